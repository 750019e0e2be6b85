"""Reads with a call and those without, as they are in the files, by the table of calls."""

from __future__ import annotations

import gzip
import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.params import EvidenceParameters, OutputRules
from ngsgpu.classify.run import cpu_run, two_pass
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import SampleOutputs, one_sample
from ngsgpu.classify.run.sorted_reads import SortedReads
from ngsgpu.errors import InputError
from ngsgpu.run.options import RunOptions
from ngsgpu.run.record import Task
from tests.support.classify.world import World
from tests.support.commands import Commands
from tests.support.io.records import write

ONE_PASS = ("--species-identity", "0")


def texts(reads: Sequence[str], suffix: str = "", *, fasta: bool = False) -> list[bytes]:
    """Records with comments and qualities of their own; of FASTA, with lines inside."""
    found = []
    for number, read in enumerate(reads):
        name = f"r{number}{suffix} comment {number % 7}"
        if fasta:
            lines = "\n".join(read[at : at + 50] for at in range(0, len(read), 50))
            found.append(f">{name}\n{lines}\n".encode())
        else:
            quality = chr(40 + number % 30) * len(read)
            found.append(f"@{name}\n{read}\n+{name}\n{quality}\n".encode())
    return found


def called(table: Path) -> list[bool]:
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    return [row[1] != "0" for row in rows]


def chosen(records: Sequence[bytes], wanted: Sequence[bool]) -> bytes:
    return b"".join(itertools.compress(records, wanted))


@pytest.mark.parametrize("more", [(), ONE_PASS, (*ONE_PASS, "--coverage-filter", "0.1")])
@pytest.mark.parametrize("kind", ["fastq", "fasta", "gzip", "two files", "interleaved"])
def test_reads_by_call(
    ngsgpu: Commands,
    world: World,
    database: Database,
    tmp_path: Path,
    backend: str,
    kind: str,
    more: tuple[str, ...],
) -> None:
    fasta = kind == "fasta"
    sides = [texts(world.reads, fasta=fasta)]
    if kind in ("two files", "interleaved"):
        half = len(world.reads) // 2
        sides = [
            texts(world.reads[half * mate : half * mate + half], f"/{mate + 1}") for mate in (0, 1)
        ]
    if kind == "interleaved":
        sides = [[b"".join(pair) for pair in zip(*sides, strict=True)]]
    words: list[object] = ["--interleaved"] if kind == "interleaved" else []
    for option, side in zip(("-i", "-I"), sides, strict=False):
        data = b"".join(side)
        path = write(tmp_path / f"in{option}", gzip.compress(data) if kind == "gzip" else data)
        words += [option, path]
    for name, mate in itertools.product(("classified", "unclassified"), range(len(sides))):
        option = f"--{name}-out{'2' * mate}"
        words += [option, tmp_path / f"{name}{mate}"]
    table = tmp_path / "calls.tsv"
    done = ngsgpu(
        "classify", "-d", database.path, *words, "-o", table, "-t", 2, "-q",
        *more, "--backend", backend,
    )  # fmt: skip
    assert done.status == 0, done.err
    is_called = called(table)
    assert any(is_called) and not all(is_called)
    for mate, side in enumerate(sides):
        assert (tmp_path / f"classified{mate}").read_bytes() == chosen(side, is_called)
        others = [not own for own in is_called]
        assert (tmp_path / f"unclassified{mate}").read_bytes() == chosen(side, others)


def test_several_samples_lanes_and_compressed_files(
    ngsgpu: Commands, world: World, database: Database, tmp_path: Path
) -> None:
    half = len(world.reads) // 2
    records = [texts(world.reads[:half]), texts(world.reads[half:])]
    lanes = [write(tmp_path / f"{n}.fq", b"".join(own)) for n, own in enumerate(records)]
    other = write(tmp_path / "other.fq", b"".join(texts(world.reads)))
    rows = [("a", lanes[0]), ("b", other), ("a", lanes[1])]
    sheet = tmp_path / "sheet.tsv"
    sheet.write_text("sample\tfastq_1\n" + "".join(f"{name}\t{path}\n" for name, path in rows))
    done = ngsgpu(
        "classify", "-d", database.path, "--samples", sheet, "-o", tmp_path / "{sample}.tsv",
        "--unclassified-out", tmp_path / "{sample}.fq.gz", "-q",
    )  # fmt: skip
    assert done.status == 0, done.err
    for name, own in (("a", records[0] + records[1]), ("b", texts(world.reads))):
        others = [not has for has in called(tmp_path / f"{name}.tsv")]
        assert gzip.decompress((tmp_path / f"{name}.fq.gz").read_bytes()) == chosen(own, others)


@pytest.mark.parametrize("more", [(), ONE_PASS])
def test_a_stream(world: World, database: Database, tmp_path: Path, more: tuple[str, ...]) -> None:
    """Standard input is stored for two passes; standard output gets the reads."""
    records = texts(world.reads)
    table = tmp_path / "calls.tsv"
    words = ["classify", "-d", database.path, "-i", "-", "-o", table, "--classified-out", "-", "-q"]
    words += more
    done = subprocess.run(
        [sys.executable, "-m", "ngsgpu", *map(str, words), "--backend", "cpu"],
        input=b"".join(records), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == chosen(records, called(table))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-i", "A", "--classified-out2", "O"], "--classified-out2 is for second mates"),
        (["-i", "A", "-I", "B", "--classified-out", "O"], "needs --classified-out2"),
        (
            ["-i", "A", "--unclassified-out", "O", "--unclassified-out2", "P"],
            "--unclassified-out2 is for mates in two files",
        ),
        (["-i", "A", "--classified-out", "O", "-o", "O"], "O"),
        (
            ["-i", "A", "--only-partition", "0", "--candidates", "C", "--classified-out", "O"],
            "--candidates writes only candidates: omit --classified-out",
        ),
        (["--samples", "SHEET", "-o", "{sample}", "--classified-out", "O"], "put {sample} into"),
        (["--samples", "SHEET", "--classified-out", "{sample}.fq"], "pairs and single reads"),
    ],
)
def test_refusals(
    ngsgpu: Commands, world: World, database: Database, tmp_path: Path, words: list[str], said: str
) -> None:
    """Inputs stay as they are, and nothing is written."""
    names = {name: tmp_path / name for name in ("A", "B", "O", "P", "C", "SHEET")}
    for name, suffix in (("A", "/1"), ("B", "/2")):
        write(names[name], b"".join(texts(world.reads, suffix)))
    names["SHEET"].write_text(
        f"sample\tfastq_1\tfastq_2\none\t{names['A']}\t\none\t{names['A']}\t{names['B']}\n"
        if "single" in said
        else f"sample\tfastq_1\none\t{names['A']}\ntwo\t{names['B']}\n"
    )
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    given = [str(names.get(word, tmp_path / word if "{" in word else word)) for word in words]
    done = ngsgpu("classify", "-d", database.path, *given)
    assert done.status == 2
    assert said in done.error.replace(f"{tmp_path}/", "")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_that_changes(
    world: World,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_packed: bool,
) -> None:
    """What was read of it before and after the change is not mixed."""
    data = b"".join(texts(world.reads))
    reads = write(tmp_path / "reads.fq", gzip.compress(data) if is_packed else data)
    out = tmp_path / "out.fq"

    class Changing(SortedReads):
        changed = False

        def take(self, queries: int) -> Iterator[Task]:
            if not self.changed:
                self.changed = True
                moved = tmp_path / "moved"
                shutil.copy(reads, moved)
                with moved.open("ab") as file:
                    file.write(reads.read_bytes())
                moved.replace(reads)
            return super().take(queries)

    monkeypatch.setattr(cpu_run, "SortedReads", Changing)
    rules = OutputRules(evidence=EvidenceParameters())
    classifier = Classifier(database, rules=rules, options=RunOptions(threads=2))
    sample = one_sample([str(reads)], [], interleaved=False, name="own")
    with pytest.raises(InputError, match="changed during the run"):
        classifier.classify([sample], SampleOutputs(classified_out=str(out)))
    assert not out.exists()


@pytest.mark.parametrize("left_out", [0, 1, 7, 12])
@pytest.mark.parametrize("units", [1, 5, 1000])
def test_what_is_written_already(tmp_path: Path, world: World, left_out: int, units: int) -> None:
    records = texts(world.reads)[:12]
    reads = write(tmp_path / "reads.fq", b"".join(records))
    lanes = one_sample([str(reads)], [], interleaved=False, name="own").lanes
    sorted_reads = SortedReads(lanes, ["unclassified_out"], RunOptions(units_per_task=units))
    wanted = np.arange(12) % 3 > 0
    sorted_reads.leave_out(left_out)
    for begin, end in ((left_out, 10), (max(10, left_out), 12)):
        if begin < end:
            sorted_reads.add(wanted[begin:end])
    found: list[bytes] = []
    sorted_reads.write(lambda _, piece: found.append(piece.tobytes()), {"unclassified_out": 0})
    assert b"".join(found) == chosen(records[left_out:], (~wanted[left_out:]).tolist())


def test_few_bytes_may_be_kept(
    ngsgpu: Commands,
    world: World,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A compressed file is inflated again where memory is scarce."""
    monkeypatch.setattr(RunOptions, "kept_bytes", 100)
    records = texts(world.reads)
    reads = write(tmp_path / "reads.fq.gz", gzip.compress(b"".join(records)))
    table, out = tmp_path / "calls.tsv", tmp_path / "out.fq"
    done = ngsgpu("classify", "-d", database.path, "-i", reads, "-o", table,
                  "--classified-out", out, "-q")  # fmt: skip
    assert done.status == 0, done.err
    assert out.read_bytes() == chosen(records, called(table))


@pytest.mark.parametrize(
    "most", [{"MOST_QUERIES": 7}, {"MOST_BASES": 900}, {"MOST_QUERIES": 10**6}]
)
@pytest.mark.parametrize("units", [1, 5])
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_groups_of_blocks(
    world: World,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: dict[str, int],
    units: int,
    share: float,
) -> None:
    """In memory and in a file, calls and records are those of all queries together."""
    records = texts(world.reads)
    reads = write(tmp_path / "reads.fq", b"".join(records))
    sample = one_sample([str(reads)], [], interleaved=False, name="own")

    def done(name: str, options: RunOptions) -> list[bytes]:
        files = {"reads": "r", "classified_out": "c", "unclassified_out": "u"}
        paths = {own: str(tmp_path / f"{name}.{end}") for own, end in files.items()}
        rules = OutputRules(evidence=EvidenceParameters())
        Classifier(database, rules=rules, options=options).classify(
            [sample], SampleOutputs(**paths)
        )
        return [Path(path).read_bytes() for path in paths.values()]

    whole = done("whole", RunOptions())
    monkeypatch.setattr(two_pass, "SHARE_OF_MEMORY", share)
    for name, value in most.items():
        monkeypatch.setattr(two_pass, name, value)
    assert done("parts", RunOptions(threads=2, units_per_task=units, chunk_bytes=3000)) == whole
