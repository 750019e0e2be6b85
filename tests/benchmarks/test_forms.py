"""Forms of read files, and the benchmark of our commands on them, on few reads."""

from __future__ import annotations

import gzip
import json
import os
import random
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forms import __main__ as forms
from benchmarks.forms import jobs
from benchmarks.forms.jobs import JOBS, Reads, content, is_same, mates_of
from benchmarks.harness import forms as harness
from benchmarks.harness.forms import ENDINGS, form_paths, make_forms, read_zstd, write_first
from benchmarks.harness.measuring import BenchmarkError, Measurement
from ngsgpu.cli import main as ngsgpu
from ngsgpu.io.compress.bgzf import is_bgzf
from ngsgpu.io.compress.source import Source
from tests.support.minhash.oracle import reverse_complement

GENOME = "".join(random.Random(5).choices("ACGT", k=3000))
FORMS = list(ENDINGS)


def write_pairs(folder: Path, fragment: int, pairs: int = 300) -> tuple[Path, Path]:
    """Pairs of 2 x 100 bases."""
    rng = random.Random(fragment)
    mates: tuple[list[str], list[str]] = ([], [])
    for pair in range(pairs):
        start = rng.randrange(len(GENOME) - fragment)
        piece = GENOME[start : start + fragment]
        for mate, bases in enumerate((piece[:100], reverse_complement(piece)[:100])):
            mates[mate].append(f"@g-{pair}/{mate + 1}\n{bases}\n+\n{'F' * 100}\n")
    folder.mkdir(exist_ok=True)
    files = (folder / "a_1.fastq", folder / "a_2.fastq")
    for path, reads in zip(files, mates, strict=True):
        path.write_text("".join(reads))
    return files


def read_bam(path: Path) -> bytes:
    source = Source(path, threads=1, chunk_bytes=1 << 20)
    return b"".join(chunk.data.tobytes() for chunk in source.chunks())


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of many pieces."""
    monkeypatch.setattr(harness, "PIECE_BYTES", 10_000)
    monkeypatch.setattr(harness, "BGZF_BYTES", 65_280)


def test_forms_hold_the_same(tmp_path: Path, small_pieces: None) -> None:
    files = write_pairs(tmp_path / "own", 300)
    make_forms([(files, tmp_path)], FORMS, 2)
    texts = [path.read_bytes() for path in files]
    for form in ("bgzf", "gz"):
        paths = form_paths(form, files, tmp_path)
        assert [gzip.decompress(path.read_bytes()) for path in paths] == texts
        assert is_bgzf(paths[0].read_bytes()) == (form == "bgzf")
    assert [read_zstd(path) for path in form_paths("zst", files, tmp_path)] == texts
    assert mates_of(read_bam(form_paths("bam", files, tmp_path)[0])) == texts
    assert form_paths("plain", files, tmp_path) == files
    assert not list(tmp_path.rglob("*.new"))


def test_gzip_is_one_member_with_history(tmp_path: Path, small_pieces: None) -> None:
    path = write_pairs(tmp_path, 300)[0]
    with ThreadPoolExecutor(2) as pool, (tmp_path / "x.gz").open("wb") as out:
        harness.write_gzip(path, out, pool, 1)
    packed = (tmp_path / "x.gz").read_bytes()
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert inflater.decompress(packed) == path.read_bytes()
    assert inflater.eof
    assert not inflater.unused_data
    # An empty stored block for each of the seven pieces, and no window that begins anew.
    assert len(packed) < len(gzip.compress(path.read_bytes(), 6)) + 7 * 100


def test_an_empty_file(tmp_path: Path) -> None:
    files = (tmp_path / "one.fq",)
    files[0].touch()
    make_forms([(files, tmp_path)], ["gz", "bgzf"], 1)
    with pytest.raises(BenchmarkError, match="truncated file"):
        make_forms([(files, tmp_path)], ["bam"], 1)
    for form in ("bgzf", "gz"):
        assert gzip.decompress((tmp_path / form / "r1.fq.gz").read_bytes()) == b""


def test_forms_are_kept_until_the_reads_change(tmp_path: Path) -> None:
    files = write_pairs(tmp_path / "own", 300)
    kept = tmp_path / "forms"
    make_forms([(files, kept)], ["gz"], 1)
    marked = kept / "gz" / "r1.fq.gz"
    marked.write_bytes(b"kept")
    make_forms([(files, kept), (files, kept)], ["gz", "zst"], 1)
    assert marked.read_bytes() == b"kept"
    files = write_first(files, 3, tmp_path / "few")
    make_forms([(files, kept)], ["gz"], 1)
    assert gzip.decompress(marked.read_bytes()) == files[0].read_bytes()
    assert files[0].read_bytes().count(b"\n") == 12
    assert not (kept / "zst").exists()


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands run in this process; what was run."""
    commands: list[list[str]] = []

    def measure(
        command: list[str], folder: Path, *, environment: dict[str, str] | None = None
    ) -> Measurement:
        commands.append(command)
        assert environment is not None
        assert environment.keys() == jobs.CACHES.keys()
        before = Path.cwd()
        os.chdir(folder)
        try:
            assert ngsgpu(command[1:]) == 0
        finally:
            os.chdir(before)
        return Measurement(2.0, 1.0, 0.5, 10**9, 0.0, None)

    def apart(function: Any, *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    for module in (forms, jobs):
        monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(forms, "apart", apart)
    monkeypatch.setattr(forms, "head", lambda schema, version: {"schema": schema})
    monkeypatch.setattr(forms, "START_PAIRS", 50)
    return commands


def arguments(tmp_path: Path, *more: str) -> list[str]:
    reference = tmp_path / "genome.fa"
    reference.write_text(f">host\n{GENOME[:1000]}\n")
    pairs = [write_pairs(tmp_path / str(fragment), fragment) for fragment in (300, 150)]
    data, overlapping = (",".join(map(str, files)) for files in pairs)
    return [
        *("--data", data, "--overlapping", overlapping, "--references", str(reference)),
        *("--check-pairs", "200", "-t", "1", "--work", str(tmp_path / "work")),
        *("-o", str(tmp_path / "out.json"), *more),
    ]


def test_every_job_from_every_form(
    tmp_path: Path, in_process: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    own = arguments(tmp_path, "--repeats", "2", "--folder", str(tmp_path / "kept"))
    assert forms.main(own) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    measured = {(entry["job"], entry["form"]): len(entry["runs"]) for entry in document["jobs"]}
    names = [name for name in JOBS if name != "extend"]
    assert measured == {(name, form): 2 for name in names for form in FORMS}
    assert [(entry["job"], entry["form"]) for entry in document["start"]] == [
        (name, form) for name in forms.START_JOBS for form in ("plain", "gz")
    ]
    assert {len(entry["warm"]) for entry in document["start"]} == {3}
    assert document["prepared"].keys() == {"database", "index"}
    assert document["bytes"]["reads"].keys() == set(FORMS)
    told = capsys.readouterr().out
    assert "| correct | wall, s (x plain) | 2.00 (1.00) |" in told
    assert "1,000 pairs, new machine" in told
    assert str(tmp_path) not in json.dumps(document)
    assert list((tmp_path / "work").iterdir()) == []
    assert (tmp_path / "kept" / "reads-forms" / "bam" / "reads.bam").exists()
    command = next(words for words in in_process if words[1] == "merge" and "reads.bam" in words)
    assert "merged.fq.gz" in command
    assert "-I" not in command


def test_other_content_is_told(
    tmp_path: Path,
    in_process: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = jobs.Runner.run

    def spoiled(self: jobs.Runner, job: jobs.Job, reads: Reads, form: str) -> Measurement:
        measured = run(self, job, reads, form)
        if form == "zst":
            (reads.place / form / "reads.histo").write_text("1\t1\n")
        return measured

    monkeypatch.setattr(jobs.Runner, "run", spoiled)
    own = arguments(tmp_path, "--jobs", "kmers", "--forms", "plain", "gz", "zst", "--repeats", "1")
    assert forms.main(own) == 1
    told = capsys.readouterr().err
    assert "forms: these differ: kmers: zst and plain\n" in told
    assert "forms: these differ: kmers: zst and plain, all reads\n" in told
    assert "gz and plain" not in told


def test_one_changed_base_is_seen(tmp_path: Path) -> None:
    reads = Reads(write_pairs(tmp_path / "own", 300, 2), tmp_path / "forms", tmp_path / "run")
    make_forms([(reads.files, reads.forms)], ["bam"], 1)
    reads.link(["plain", "bam"])
    first, second = (path.read_bytes() for path in reads.files)
    (reads.place / "plain" / "out1.fq").write_bytes(first)
    (reads.place / "plain" / "out2.fq").write_bytes(second)
    text = read_bam(reads.paths("bam")[0])
    target = reads.place / "bam" / "out1.fq.gz"
    target.write_bytes(gzip.compress(text))
    assert is_same(JOBS["correct"], reads, "bam")
    target.write_bytes(gzip.compress(text.replace(b"FF\n", b"F#\n", 1)))
    assert not is_same(JOBS["correct"], reads, "bam")
    assert content(target) != text


def test_missing_inputs(
    tmp_path: Path, in_process: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    own = arguments(tmp_path, "--jobs", "classify", "--forms", "plain")
    at = own.index("--references")
    assert forms.main(own[:at] + own[at + 2 :]) == 1
    assert "name some: --references" in capsys.readouterr().err
    assert forms.main(["--data", "no.fq,such.fq", "--jobs", "kmers", "--work", str(tmp_path),
                       "-o", str(tmp_path / "out.json")]) == 1  # fmt: skip
    assert "two FASTQ files" in capsys.readouterr().err
