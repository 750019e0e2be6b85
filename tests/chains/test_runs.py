"""A chain writes what its commands write, one after the other, on either backend."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.chains import places
from tests.support import content
from tests.support.commands import Commands, read_json
from tests.support.io.records import bgzf, fastq, write
from tests.support.protocol import alternating, make_pairs, write_mates

SIDES = make_pairs()[1:]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pairs in two files and in one, an index of a host, and a database."""
    from ngsgpu.cli import main

    folder = tmp_path_factory.mktemp("made")
    genome = make_pairs()[0]
    write(folder / "host.fa", f">host\n{genome[:500]}\n".encode())
    write(folder / "targets.fa", f">one\n{genome[:900]}\n>two\n{genome[700:]}\n".encode())
    write_mates(folder / "pairs", *SIDES)
    write(folder / "both.fq", fastq(alternating(*SIDES)))
    index, database = folder / "host.idx", folder / "db"
    assert main(["deplete-index", str(folder / "host.fa"), "-o", str(index), "-q"]) == 0
    assert main(["db", "build", str(folder / "targets.fa"), "-d", str(database), "-q"]) == 0
    return folder


class Pieces:
    """Runs a chain, and the commands that it stands for."""

    def __init__(self, ngsgpu: Commands, made: Path, folder: Path, backend: str) -> None:
        self.ngsgpu, self.made, self.folder = ngsgpu, made, folder
        self.more = ["--quiet", "--threads", "2"]
        self.where = ["--backend", backend]
        self.one = folder / "one"
        self.one.mkdir()

    def chain(self, *words: object, status: int = 0) -> Path:
        out = self.folder / "chain"
        done = self.ngsgpu("run", *words, "-o", out, *self.more, *self.where)
        assert done.status == status, done.err
        return out

    def step(self, command: str, reads: list[str], outputs: dict[str, str]) -> None:
        """Run a command; names of files are in the folder of commands."""
        files = [word if word.startswith("-") else str(self._path(word)) for word in reads]
        named = [word for option, own in outputs.items() for word in (option, str(self.one / own))]
        words = command.format(made=self.made).split()
        done = self.ngsgpu(*words, *files, *named, *self.more, *self.where)
        assert done.status == 0, done.err

    def _path(self, word: str) -> Path:
        return self.made / word if (self.made / word).exists() else self.one / word

    def same(self, out: Path) -> None:
        """All files of the commands are the chain's, which writes statistics and a log as well."""
        found = {
            name: data
            for name, data in content(out).items()
            if not name.endswith((".stats.json", ".log", ".fastp.json"))
        }
        assert found == {name: data for name, data in content(self.one).items() if name in found}
        assert found


@pytest.fixture
def pieces(ngsgpu: Commands, made: Path, tmp_path: Path, backend: str) -> Pieces:
    return Pieces(ngsgpu, made, tmp_path, backend)


PAIRS = ["-i", "pairs/reads1.fq", "-I", "pairs/reads2.fq"]
FILES = {"-o": "{}_1.fastq.gz", "-O": "{}_2.fastq.gz"}


def outputs(word: str) -> dict[str, str]:
    return {option: name.format(word) for option, name in FILES.items()}


def pair(word: str) -> list[str]:
    return ["-i", f"{word}_1.fastq.gz", "-I", f"{word}_2.fastq.gz"]


MERGED = {
    "-o": "merged.fastq.gz",
    "--unmerged1": "unmerged_1.fastq.gz",
    "--unmerged2": "unmerged_2.fastq.gz",
}


def given(pieces: Pieces, *names: str) -> list[str]:
    return [own if own.startswith("-") else str(pieces.made / own) for own in names]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_chain_writes_what_its_commands_write(
    pieces: Pieces, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Wherever the reads lie between two steps."""
    if where == "disk":
        monkeypatch.setattr(places, "_MEMORY", pieces.folder / "nothing")
        monkeypatch.setenv("TMPDIR", str(pieces.folder))
    out = pieces.chain(
        *("--steps", "trim,deplete,correct,merge,classify"),
        *("--set", "trim.cut_tail=true", "--set", f"deplete.index={pieces.made}/host.idx"),
        *("--set", "deplete.keep=true", "--set", "correct.coverage=40"),
        *("--set", f"classify.database={pieces.made}/db"),
        *given(pieces, *PAIRS), "--sample", "S",
    )  # fmt: skip
    pieces.step("trim --cut_tail", PAIRS, outputs("trimmed"))
    pieces.step("deplete -d {made}/host.idx", pair("trimmed"), outputs("depleted"))
    pieces.step("correct --coverage 40", pair("depleted"), outputs("corrected"))
    pieces.step("merge", pair("corrected"), MERGED)
    sheet = "sample\tfastq_1\tfastq_2\nS\t{0}/unmerged_1.fastq.gz\t{0}/unmerged_2.fastq.gz\n"
    write(pieces.one / "sheet", (sheet + "S\t{0}/merged.fastq.gz\t\n").format(pieces.one).encode())
    calls = {"-o": "S.reads.tsv.gz", "--report": "S.kraken2.report.txt"}
    pieces.step("classify -d {made}/db", ["--samples", "sheet"], calls)
    pieces.same(out)
    kept = {"depleted_1.fastq.gz", "depleted_2.fastq.gz", *MERGED.values(), *calls.values()}
    names = set(content(out))
    assert names - {own for own in names if own.endswith((".json", ".log"))} == kept
    statistics = read_json(out / "chain.stats.json")
    expected = "memory" if where == "memory" else str(pieces.folder)
    assert statistics["reads_between_steps"].startswith(expected)
    assert [own["name"] for own in statistics["steps"]] == [
        "trim", "deplete", "correct", "merge", "classify",
    ]  # fmt: skip
    assert not [own for own in pieces.folder.iterdir() if own.name.startswith(".")]


def test_options_as_they_are_typed(pieces: Pieces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files are in the working directory, and their compression is that of the command."""
    here = pieces.folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    out = pieces.chain(
        "--steps", "trim,merge",
        "--set", "trim.arguments=--length_required 30 -z 9 -o 'a 1.fq.gz' -O 'a 2.fq.gz' -j a.json",
        "--set", "merge.min-overlap=40", "--set", "merge.arguments=-m 20 --mask-ties --ihist a.txt",
        *given(pieces, *PAIRS),
    )  # fmt: skip
    outputs = {"-o": "a 1.fq.gz", "-O": "a 2.fq.gz"}
    pieces.step("trim --length_required 30 -z 9", PAIRS, outputs)
    reads = ["-i", "a 1.fq.gz", "-I", "a 2.fq.gz"]
    pieces.step("merge -m 20 --mask-ties", reads, MERGED | {"--ihist": "a.txt"})
    (here / "a.json").unlink()
    found = content(here) | {name: content(out)[name] for name in MERGED.values()}
    assert found == content(pieces.one)


def test_pairs_in_one_file(pieces: Pieces) -> None:
    """Stay in one as long as commands keep them so."""
    settings = ["--set", "correct.coverage=40", "--set", "correct.keep=yes"]
    done = pieces.ngsgpu("run", "--steps", "correct,merge", *settings, "-i", "x", "-o", "y")
    assert done.status == 2
    assert "'keep' true or false" in done.error
    settings[-1] = "correct.keep=true"
    both = given(pieces, "-i", "both.fq", "--interleaved")
    out = pieces.chain("--steps", "correct,merge", *settings, *both)
    pieces.step(
        "correct --coverage 40 --interleaved", ["-i", "both.fq"], {"-o": "corrected.fastq.gz"}
    )
    pieces.step("merge --interleaved-in", ["-i", "corrected.fastq.gz"], MERGED)
    pieces.same(out)
    assert {"corrected.fastq.gz", *MERGED.values()} <= content(out).keys()


def test_single_reads_and_steps_that_only_read(pieces: Pieces) -> None:
    chain = write(
        pieces.folder / "chain.yaml",
        b"steps:\n"
        b"  - trim\n"
        b"  - kmers: {k: 21, histo: '{sample}.histo'}\n"
        b"  - correct: {coverage: 40, out1: all.fq}\n"
        b"  - longer: {command: kmers, k: 31, out: counts}\n"
        b"  - assemble\n",
    )
    out = pieces.chain(chain, *given(pieces, "-i", "pairs/reads1.fq"), "--sample", "S")
    reads = ["-i", "trimmed.fq"]
    pieces.step("trim", ["-i", "pairs/reads1.fq"], {"-o": "trimmed.fq"})
    pieces.step("kmers count -k 21", reads, {"--histo": "S.histo"})
    pieces.step("correct --coverage 40", reads, {"-o": "all.fq"})
    reads = ["-i", "all.fq"]
    pieces.step("kmers count -k 31", reads, {"-o": "counts", "--histo": "longer.histo"})
    pieces.step("assemble", reads, {"-o": "contigs.fa", "--gfa": "contigs.gfa"})
    for folder in (pieces.one, out):
        (folder / "counts/manifest.json").unlink()  # names the inputs
    pieces.same(out)
    assert {"all.fq", "S.histo", "contigs.fa", "contigs.gfa"} <= content(out).keys()


def test_a_sample_sheet(pieces: Pieces) -> None:
    """Each sample has its folder; one that cannot be read is named, and the others are there."""
    first, second = (pieces.made / f"pairs/reads{mate}.fq" for mate in (1, 2))
    bad = write(pieces.folder / "bad.fq", first.read_bytes()[:-50])
    sheet = write(
        pieces.folder / "sheet.csv",
        f"sample,fastq_1,fastq_2\nA,{first},{second}\nB,{bad},{second}\nC,{second},{first}\n".encode(),
    )
    out = pieces.folder / "chain"
    words = ["--steps", "trim,merge", "--samples", sheet, "-o", out, *pieces.more, *pieces.where]
    done = pieces.ngsgpu("run", *words)
    assert done.status == 2
    assert f"B: {bad}, record 350, line 1,400: " in done.err
    found = {path.parent.name for path in out.glob("*/merged.fastq.gz")}
    assert found == {"A", "C"}
    assert not (out / "B/trim.stats.json").exists()


def test_a_step_that_fails_leaves_what_stood_there(
    pieces: Pieces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message names it; earlier outputs are whole, and nothing else is left."""
    copy = places._copy

    def copy_slowly(*given: Any) -> None:
        time.sleep(0.5)
        copy(*given)

    monkeypatch.setattr(places, "_copy", copy_slowly)
    out = pieces.folder / "chain"
    out.mkdir()
    write(out / "merged.fastq.gz", b"old")
    settings = ["--set", "correct.memory=60M", "--set", "trim.keep=true"]
    settings += ["--set", "deplete.keep=true", "--set", f"deplete.index={pieces.made}/host.idx"]
    done = pieces.ngsgpu(
        "run", "--steps", "trim,deplete,correct,merge", *settings, *given(pieces, *PAIRS),
        "-o", out, *pieces.more, "--backend", "cpu",
    )  # fmt: skip
    assert done.status == 3
    assert done.error.startswith("step correct: ")
    assert (out / "merged.fastq.gz").read_bytes() == b"old"
    kept = {f"{word}_{mate}.fastq.gz" for word in ("trimmed", "depleted") for mate in (1, 2)}
    assert kept <= content(out).keys()
    assert not any("corrected" in name or "unmerged" in name for name in content(out))


def test_a_run_that_is_terminated_leaves_no_reads_in_memory(made: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "reads.pipe"
    os.mkfifo(pipe)
    words = ["run", "--steps", "trim,correct", "-i", str(pipe), "-o", str(tmp_path / "out")]
    before = set(places._MEMORY.iterdir())
    with (
        subprocess.Popen(
            [sys.executable, "-m", "ngsgpu", *words, "--backend", "cpu"], stderr=subprocess.PIPE
        ) as process,
        pipe.open("wb") as file,
    ):  # it has begun to read
        file.write((made / "pairs/reads1.fq").read_bytes()[:1000])
        file.flush()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert set(places._MEMORY.iterdir()) <= before
    assert not list((tmp_path / "out").glob("*.gz"))


@pytest.mark.parametrize("packing", ["plain", "gzip", "BGZF", "bad"])
def test_the_size_of_the_text_is_estimated(tmp_path: Path, packing: str) -> None:
    """From above, but not far."""
    text = fastq(alternating(*SIDES))
    packed = {
        "plain": text, "gzip": gzip.compress(text), "BGZF": bgzf(text, 5000), "bad": b"\x1f\x8b",
    }  # fmt: skip
    path = write(tmp_path / f"reads.fq{'' if packing == 'plain' else '.gz'}", packed[packing])
    with places.Places(tmp_path, [str(path)], None, threads=1, level=1) as found:
        assert found.text is not None
        if packing != "bad":
            assert len(text) <= found.text <= 1.3 * len(text)
        assert found.in_memory


def test_reads_of_a_stream_lie_on_disk(
    pieces: Pieces, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(pieces.folder))
    pipe = pieces.folder / "reads.pipe"
    os.mkfifo(pipe)
    text = (pieces.made / "pairs/reads1.fq").read_bytes()
    threading.Thread(target=pipe.write_bytes, args=(text,), daemon=True).start()
    if backend == "cuda":
        pieces.chain("--steps", "trim,correct", "-i", pipe, status=2)
        return  # as ``trim`` alone does
    out = pieces.chain("--steps", "trim,correct", "-i", pipe)
    stays = read_json(out / "chain.stats.json")["reads_between_steps"]
    assert stays.startswith(str(pieces.folder))
    expected = pieces.folder / "expected"
    done = pieces.ngsgpu(
        "run", "--steps", "trim,correct", *given(pieces, "-i", "pairs/reads1.fq"),
        "-o", expected, *pieces.more, *pieces.where,
    )  # fmt: skip
    assert done.status == 0, done.err
    name = "corrected.fastq.gz"
    assert (out / name).read_bytes() == (expected / name).read_bytes()


def test_a_plan_writes_nothing(pieces: Pieces) -> None:
    out = pieces.folder / "chain"
    words = ["--steps", "trim,correct,merge", *given(pieces, *PAIRS), "-o", out, "--dry-run"]
    done = pieces.ngsgpu("run", *words, "--backend", "cpu")
    assert done.status == 0, done.err
    assert "between two steps in memory" in done.out
    assert f"{out}/merged.fastq.gz" in done.out
    assert "tables" in done.out
    assert not out.exists()


def test_statistics_name_the_commands(pieces: Pieces) -> None:
    """Which do the same alone."""
    out = pieces.chain("--steps", "trim,correct", *given(pieces, *PAIRS))
    steps = read_json(out / "chain.stats.json")["steps"]
    assert [own["command"][:2] for own in steps] == [["ngsgpu", "trim"], ["ngsgpu", "correct"]]
    own = json.loads((out / "correct.stats.json").read_text())
    assert own["command"] == steps[1]["command"]


def test_a_step_that_finds_too_much_ends_nothing(pieces: Pieces) -> None:
    """The steps after it run, and the chain ends with its exit status."""
    chain = write(
        pieces.folder / "chain.yaml",
        f"steps:\n  - deplete: {{index: {pieces.made / 'host.idx'}, max_host: 0}}\n"
        "  - merge\n".encode(),
    )
    out = pieces.chain(chain, *given(pieces, *PAIRS), status=4)
    statuses = [own.get("exit_status") for own in read_json(out / "chain.stats.json")["steps"]]
    assert statuses == [4, None]
    assert (out / "merged.fastq.gz").exists()


def test_contigs_of_an_isolate_are_those_of_the_commands(pieces: Pieces) -> None:
    """Under the names that Shovill gives."""
    out = pieces.chain("isolate", *given(pieces, *PAIRS))
    pieces.step("trim", PAIRS, outputs("trimmed"))
    pieces.step("correct", pair("trimmed"), outputs("corrected"))
    pieces.step("merge", pair("corrected"), MERGED)
    reads = ["-s", "merged.fastq.gz", *pair("unmerged")]
    reads[3], reads[5] = MERGED["--unmerged1"], MERGED["--unmerged2"]
    pieces.step("assemble --names shovill", reads, {"-o": "contigs.fa", "--gfa": "contigs.gfa"})
    pieces.same(out)
    assert {"contigs.fa", "contigs.gfa", "ngsgpu.log"} <= content(out).keys()
    assert not any(name.endswith(".fastq.gz") for name in content(out))
    first = (out / "contigs.fa").read_text().partition("\n")[0]
    assert re.fullmatch(r">contig00001 len=\d+ cov=\d+\.\d", first)
    assert "P\tcontig00001\t" in (out / "contigs.gfa").read_text()
