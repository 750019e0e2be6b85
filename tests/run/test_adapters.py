"""Reads that continue into adapters are told from trimmed ones and from what genomes have."""

from __future__ import annotations

import gzip
import random
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.run.adapters import KNOWN, Adapters, find_adapters
from ngsgpu.run.options import RunOptions
from ngsgpu.run.trimming import warn_of_adapters
from ngsgpu.trim.adapters import known_adapters
from tests.support.adapters import TRUSEQ, Pair, pairs_of, random_genome, trimmed, write_mates
from tests.support.classify.world import make_world
from tests.support.commands import Commands, read_json
from tests.support.io.alignments import bam
from tests.support.io.records import write
from tests.support.minhash.oracle import reverse_complement

UNKNOWN = ("ACCTGATTCAGGTACCATTGCAAGGTCC", "TTGACCGTAAGGCTAACGTGTTCAGGAC")


def sample_of(paths: list[Path], *, interleaved: bool = False) -> ReadSample:
    sample = ReadSample()
    lane = ReadFiles(tuple(map(str, paths)), interleaved=interleaved)
    for mates in lane.batches(threads=1, phred_offset=33, chunk_bytes=1 << 20):
        sample.take(mates, interleaved=interleaved)
    return sample


def found_in(folder: Path, pairs: list[Pair]) -> Adapters:
    return find_adapters(sample_of(write_mates(folder, pairs)))


def make_pairs(seed: int = 1, count: int = 2000, **how: object) -> list[Pair]:
    rng = random.Random(seed)
    return pairs_of(rng, random_genome(rng, 20_000), count, **how)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return make_pairs()


@pytest.mark.parametrize("adapters", [TRUSEQ, *list(KNOWN.values())[1:], UNKNOWN])
def test_pairs(tmp_path: Path, adapters: tuple[str, str]) -> None:
    pairs = make_pairs(adapters=adapters)
    found = found_in(tmp_path, pairs)
    # At least 8 bases of adapter, as fragments have them.
    expected = 2 * sum(pair.fragment <= 142 for pair in pairs)
    assert 0.9 * expected <= found.with_adapter <= expected
    assert 0.9 * expected <= found.by_overlap <= expected
    assert (found.reads, found.pairs) == (4000, 2000)
    assert found.many
    kit = next((name for name, own in KNOWN.items() if own[0][:24] == adapters[0][:24]), "")
    assert found.kit == kit
    for sequence, adapter in zip(found.sequences, adapters, strict=True):
        assert len(sequence) >= min(20, len(adapter)) and adapter.startswith(
            sequence[: len(adapter)]
        )


@pytest.mark.parametrize("errors", [0.0, 0.01, 0.03])
def test_errors(tmp_path: Path, errors: float) -> None:
    pairs = make_pairs(errors=errors)
    expected = 2 * sum(pair.fragment <= 142 for pair in pairs)
    found = found_in(tmp_path, pairs)
    assert (0.75 if errors > 0.02 else 0.9) * expected <= found.with_adapter <= expected


@pytest.mark.parametrize("mate", [0, 1])
@pytest.mark.parametrize("adapters", [TRUSEQ, *list(KNOWN.values())[1:]])
def test_single_reads(tmp_path: Path, mate: int, adapters: tuple[str, str]) -> None:
    pairs = make_pairs(adapters=adapters)
    found = find_adapters(sample_of([write_mates(tmp_path, pairs)[mate]]))
    expected = sum(pair.fragment <= 134 for pair in pairs)
    assert 0.8 * expected <= found.with_adapter <= expected
    assert found.by_overlap == found.pairs == 0
    assert found.many and KNOWN[found.kit][mate][:20] == adapters[mate][:20]


def test_trimmed_reads(tmp_path: Path, pairs: list[Pair]) -> None:
    found = found_in(tmp_path, trimmed(pairs))
    assert found.with_adapter == found.poly_g == 0
    assert not found.many and not found.many_poly_g
    assert found.for_statistics()["trim_adapters"] is False


def test_long_fragments(tmp_path: Path) -> None:
    found = found_in(tmp_path, make_pairs(mean=400, deviation=30))
    assert found.with_adapter == found.poly_g == 0


def test_genomes_with_all_of_it(tmp_path: Path) -> None:
    """Adapters, inverted and tandem repeats, and runs of G in the genome are no adapters."""
    rng = random.Random(3)
    arm = random_genome(rng, 200)
    genome = "".join((
        random_genome(rng, 500), TRUSEQ[0], random_genome(rng, 500), arm, random_genome(rng, 20),
        reverse_complement(arm), random_genome(rng, 200), random_genome(rng, 37) * 30,
        random_genome(rng, 200), "G" * 60, random_genome(rng, 300), "AT" * 100,
    ))  # fmt: skip
    pairs = pairs_of(rng, genome, 4000, mean=300, deviation=20, errors=0)
    found = found_in(tmp_path, pairs)
    assert not found.many and not found.many_poly_g


def test_short_reads_nothing_at_all(tmp_path: Path) -> None:
    pairs = [Pair("ACG", "C", 5), Pair("", "", 5), Pair("N" * 150, "N" * 150, 200)]
    found = found_in(tmp_path, pairs)
    assert (found.reads, found.with_adapter, found.poly_g) == (4, 0, 0)
    assert find_adapters(ReadSample()).reads == 0


def test_poly_g(tmp_path: Path) -> None:
    pairs = make_pairs(mean=400, deviation=20)
    for number in range(0, 2000, 20):
        pairs[number] = Pair(pairs[number].first[:90] + "G" * 60, pairs[number].second, 400)
    found = found_in(tmp_path, pairs)
    assert (found.poly_g, found.with_adapter) == (100, 0)
    assert found.many_poly_g and not found.many


def remedy(caplog: pytest.LogCaptureFixture, sample: ReadSample, lanes: list[ReadFiles]) -> str:
    caplog.clear()
    warn_of_adapters(sample, lanes, "harm")
    (record,) = caplog.records
    return record.getMessage().partition("for example: ")[2]


def test_command_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture, pairs: list[Pair]) -> None:
    one, two = write_mates(tmp_path, pairs)
    both = sample_of([one, two])
    text = remedy(caplog, both, [ReadFiles(("a b/R1.fq.gz", "R2.fq.gz"))])
    assert text == (
        "ngsgpu trim -i 'a b/R1.fq.gz' -I R2.fq.gz -o trimmed_R1.fq.gz -O trimmed_R2.fq.gz "
        "--detect-adapter-for-pe --trim-poly-g --disable-quality-filtering"
    )
    assert caplog.records[0].levelname == "WARNING"
    shown = caplog.records[0].getMessage()
    assert "continue into an adapter (Illumina TruSeq, AGATCGGAAGAGCACACG" in shown
    text = remedy(caplog, both, [ReadFiles(("x.fq",), interleaved=True), ReadFiles(("y.fq",))])
    assert text == (
        "ngsgpu trim -i x.fq --interleaved-in -o trimmed_x.fq --detect-adapter-for-pe "
        "--trim-poly-g --disable-quality-filtering (and the other inputs likewise)"
    )
    single = sample_of([one])
    text = remedy(caplog, single, [ReadFiles(("/proc/self/fd/9",), given=("-",))])
    assert text == (
        f"ngsgpu trim -i - -o - --adapter-sequence {KNOWN['Illumina TruSeq'][0]} --trim-poly-g "
        "--disable-quality-filtering"
    )
    reads = str(tmp_path / "p.bam")
    Path(reads).write_bytes(bam([]))
    text = remedy(caplog, both, [ReadFiles((reads,), interleaved=True)])
    assert text == (
        f"ngsgpu trim -i {reads} --interleaved-in -o trimmed_p.fastq --detect-adapter-for-pe "
        "--trim-poly-g --disable-quality-filtering"
    )
    text = remedy(caplog, both, [ReadFiles(("R1.fq.zst", "R2.fq.xz"))])
    assert "-i R1.fq.zst -I R2.fq.xz -o trimmed_R1.fq.zst -O trimmed_R2.fq --detect" in text
    single.has_qualities = False
    text = remedy(caplog, single, [ReadFiles(("x.fa",))])
    assert text == f'cutadapt -a {KNOWN["Illumina TruSeq"][0]} -a "G{{20}}" -o trimmed_x.fa x.fa'


COMMANDS = {
    "correct": ("correct", "-o", "{out}/1.fq", "-O", "{out}/2.fq"),
    "spectrum": ("correct", "--method", "spectrum", "-o", "{out}/1.fq", "-O", "{out}/2.fq"),
    "extend": ("extend", "-o", "{out}/1.fq"),
    "kmers": ("kmers", "count", "-o", "{out}/kmers"),
    "histogram": ("kmers", "count", "--histo", "{out}/histo"),
    "assemble": ("assemble", "-o", "{out}/1.fa"),
    "euler": ("assemble", "--method", "euler", "-o", "{out}/1.fa"),
    "classify": ("classify", "-d", "{database}", "-o", "{out}/1.tsv"),
}
ONE_BY_ONE = ("kmers", "histogram", "euler")
"""Read files one after the other, whichever are mates."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    world = make_world(tmp_path_factory.mktemp("world"))
    folder = world.folder / "db"
    return build_database(world.references, folder, options=RunOptions(threads=2))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_warn(
    tmp_path: Path,
    ngsgpu: Commands,
    backend: str,
    database: Database,
    pairs: list[Pair],
    command: str,
    compressed: bool,
) -> None:
    """With the same statistics on all backends, and not of trimmed reads."""
    for name, own in (("raw", pairs), ("trimmed", trimmed(pairs)))[: 2 - compressed]:
        (out := tmp_path / name).mkdir()
        paths = write_mates(tmp_path, own, name)
        if compressed:
            paths = [
                write(path.with_suffix(".gz"), gzip.compress(path.read_bytes(), 1))
                for path in paths
            ]
        where = {"out": out, "database": database.path}
        done = ngsgpu(
            *(word.format(**where) for word in COMMANDS[command]), "-i", paths[0], "-I", paths[1],
            "--backend", backend, "--threads", 2, "--stats", out / "stats.json",
        )  # fmt: skip
        assert done.status == 0, done.err
        lines = [line for line in done.err.splitlines() if "continue into an adapter" in line]
        assert len(lines) == (name == "raw")
        if lines:
            files = f"-i {paths[0]}" + (f" -I {paths[1]}" if command != "euler" else "")
            assert f"ngsgpu trim {files} -o trimmed_{paths[0].name}" in lines[0]
        expected = _one_by_one(paths) if command in ONE_BY_ONE else sample_of(paths)
        found = read_json(out / "stats.json")["adapters"]
        assert found == find_adapters(expected).for_statistics()
        assert found["trim_adapters"] == found["trim_poly_g"] == (name == "raw")


def _one_by_one(paths: list[Path]) -> ReadSample:
    sample = ReadSample()
    for path in paths:
        for mates in ReadFiles((str(path),)).batches(
            threads=1, phred_offset=33, chunk_bytes=1 << 20
        ):
            sample.take(mates)
    return sample


@pytest.mark.parametrize("form", ["pairs", "reads", "interleaved"])
def test_the_command_line_trims(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ngsgpu: Commands,
    pairs: list[Pair],
    form: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = write_mates(tmp_path, pairs)
    both = write(tmp_path / "both.fq", b"".join(map(b"".join, _alternating(one, two))))
    words = {"pairs": ["-i", one, "-I", two], "reads": ["-i", one],
             "interleaved": ["-i", both, "--interleaved"]}[form]  # fmt: skip
    (line,) = (own for own in ngsgpu("adapters", *words).err.splitlines() if "trim: " in own)
    done = ngsgpu(*shlex.split(line.partition("trim: ngsgpu ")[2]))
    assert done.status == 0, done.err
    words = [
        path.with_name(f"trimmed_{path.name}") if isinstance(path, Path) else path for path in words
    ]
    assert "no need to trim" in ngsgpu("adapters", *words).err


def _alternating(*paths: Path) -> Iterator[list[bytes]]:
    """The records of files in turn, each as its lines."""
    texts = [path.read_bytes().splitlines(keepends=True) for path in paths]
    for at in range(0, len(texts[0]), 4):
        yield from (text[at : at + 4] for text in texts)


def test_look_at_files(tmp_path: Path, ngsgpu: Commands, pairs: list[Pair]) -> None:
    one, two = write_mates(tmp_path, pairs)
    stats, fasta = tmp_path / "a.json", tmp_path / "a.fa"
    done = ngsgpu("adapters", "-i", one, "-I", two, "--stats", stats, "--fasta", fasta)
    assert done.status == 0, done.err
    assert "trim: ngsgpu trim -i " in done.err and "(Illumina TruSeq, AGATCGGAAG" in done.err
    found = read_json(stats)
    assert found["reads"] == {"total": 4000, "bases": 600_000}
    assert found["adapters"] == find_adapters(sample_of([one, two])).for_statistics()
    first, second = KNOWN["Illumina TruSeq"]
    assert fasta.read_text() == f">adapter_1\n{first}\n>adapter_2\n{second}\n"

    one, two = write_mates(tmp_path, trimmed(pairs), "t")
    done = ngsgpu("adapters", "-i", one, "-I", two, "--stats", stats, "--fasta", fasta)
    assert "no need to trim" in done.err
    assert fasta.read_text() == ""

    one.write_bytes(one.read_bytes()[:-10])
    stats.unlink()
    done = ngsgpu("adapters", "-i", one, "-I", two, "--stats", stats)
    assert done.status == 2 and "record 2,000" in done.error
    assert not stats.exists()


def test_known_adapters_are_those_of_fastp() -> None:
    """But for a kit that it does not know: a wrong letter would not be seen otherwise."""
    for kit, both in KNOWN.items():
        for adapter in both if kit != "QIAseq miRNA" else both[1:]:
            assert any(known.startswith(adapter) for known in known_adapters()), kit
