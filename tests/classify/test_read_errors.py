"""Errors of long reads by the qualities of the first ones, against plain Python."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    EvidenceParameters,
    OutputRules,
    PartitionRequest,
)
from ngsgpu.classify.query.candidate_file import CandidateFile
from ngsgpu.classify.run import errors
from ngsgpu.classify.run.errors import LEAST_LENGTH, Estimate, ReadErrors, with_errors
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import SampleOutputs, one_sample
from ngsgpu.run.options import RunOptions
from tests.support.classify.runs import contents, misread, outputs_in, rows, run, single
from tests.support.classify.world import World

Texts = Sequence[tuple[str, str]]
"""Bases and qualities of reads."""
WRONG = 0.1
RULES = OutputRules(evidence=EvidenceParameters())
GENOMES = ("NC_000000.1", "NC_000004.1")


def fastq(reads: Texts) -> str:
    return "".join(f"@r{i}\n{bases}\n+\n{own}\n" for i, (bases, own) in enumerate(reads))


def drawn(lengths: Sequence[int], qualities: str) -> list[tuple[str, str]]:
    source = random.Random(len(lengths))
    return [
        ("".join(source.choices("ACGT", k=own)), "".join(source.choices(qualities, k=own)))
        for own in lengths
    ]


def expected(reads: Texts, most_reads: int, most_bases: int) -> Estimate:
    bases = wrong = count = 0
    letters: set[str] = set()
    for text, qualities in reads[:most_reads]:
        if bases >= most_bases:
            break
        bases += len(text)
        count += 1
        wrong += sum(10 ** -((ord(own) - 33) / 10) for own in qualities) / len(qualities)
        letters |= {*qualities}
    length = bases // count
    if length < LEAST_LENGTH:
        return Estimate(length, None)
    if len(letters) == 1:
        return Estimate(length, None, is_unknown=True)
    return Estimate(length, round(wrong / count, 4))


def estimated(path: Path, *, interleaved: bool = False, **options: int) -> Estimate:
    (lane,) = one_sample([str(path)], [], interleaved=interleaved, name="own").lanes
    found = ReadErrors()
    for batches in lane.batches(phred_offset="auto", **options):
        found.take(batches[0], 2 if interleaved else 1)
    return found.estimate()


@pytest.mark.parametrize(
    ("lengths", "qualities"),
    [
        ([5000] * 20, "#'+/5"),
        ([100, 9000, 650, 3000, 2] * 4, "!~I"),
        ([900] * 30, "5"),
        ([300] * 30, "#+5"),
        ([699] * 30, "#+5"),
        ([700] * 30, "#+5"),
    ],
)
@pytest.mark.parametrize(("most_reads", "most_bases"), [(1000, 5_000_000), (7, 10**6), (90, 9001)])
def test_the_first_reads_tell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lengths: list[int],
    qualities: str,
    most_reads: int,
    most_bases: int,
) -> None:
    monkeypatch.setattr(errors, "MOST_READS", most_reads)
    monkeypatch.setattr(errors, "MOST_BASES", most_bases)
    reads = drawn(lengths, qualities)
    path = tmp_path / "reads.fq"
    path.write_text(fastq(reads))
    own = expected(reads, most_reads, most_bases)
    for threads, chunk_bytes in ((1, 1 << 20), (3, 4096), (2, 20_000)):
        assert estimated(path, threads=threads, chunk_bytes=chunk_bytes) == own


def test_of_pairs_first_mates_tell(tmp_path: Path) -> None:
    first, second = drawn([800] * 10, "#+"), drawn([900] * 10, "~I")
    path = tmp_path / "pairs.fq"
    path.write_text(
        "".join(fastq([own]) for pair in zip(first, second, strict=True) for own in pair)
    )
    own = estimated(path, interleaved=True, threads=1, chunk_bytes=1 << 20)
    assert own == expected(first, 1000, 10**7)


def test_reads_without_qualities(tmp_path: Path) -> None:
    path = tmp_path / "reads.fa"
    path.write_text("".join(f">r{i}\n{own}\n" for i, (own, _) in enumerate(drawn([9000] * 4, "+"))))
    assert estimated(path, threads=1, chunk_bytes=1 << 20) == Estimate(9000, None)


@pytest.mark.parametrize(
    ("found", "evidence", "stated", "said"),
    [
        (Estimate(5000, 0.1), EvidenceParameters(), 0.1, "10 % of the bases"),
        (Estimate(5000, 0.4), EvidenceParameters(), 0.25, "`read_errors=0.25`"),
        (Estimate(5000, 0.002), EvidenceParameters(), None, ""),
        (Estimate(5000, 0.012), EvidenceParameters(), 0.012, "`read_errors=0.012`"),
        (Estimate(5000, 0.1), EvidenceParameters(read_errors=0.02), 0.02, ""),
        (Estimate(5000, 0.1), EvidenceParameters(0.0), None, ""),
        (Estimate(5000, None), EvidenceParameters(), None, ""),
        (Estimate(5000, None, is_unknown=True), EvidenceParameters(), None, "all the same"),
    ],
)
def test_what_thresholds_allow_for(
    caplog: pytest.LogCaptureFixture,
    found: Estimate,
    evidence: EvidenceParameters,
    stated: float | None,
    said: str,
) -> None:
    with caplog.at_level("INFO", "ngsgpu"):
        assert with_errors(evidence, found, "own").read_errors == stated
    assert len(caplog.messages) == bool(said)
    assert said in "".join(caplog.messages)


@pytest.fixture(scope="module")
def sequences() -> dict[str, str]:
    source = random.Random(4)
    return {name: "".join(source.choices("ACGT", k=50_000)) for name in GENOMES}


@pytest.fixture
def reads(tmp_path: Path, sequences: dict[str, str]) -> Path:
    """Long reads whose qualities say how many of their bases are wrong."""
    source = random.Random(5)
    starts = [(name, source.randrange(40_000)) for name in sequences for _ in range(30)]
    texts = [misread(sequences[name][at : at + 6000], WRONG, source) for name, at in starts]
    own = [(text, "".join(source.choices("(*-", k=len(text)))) for text in texts]
    path = tmp_path / "reads.fq"
    path.write_text(fastq(own))
    return path


@pytest.fixture
def build(tmp_path: Path, world: World, sequences: dict[str, str]) -> Callable[[int], Database]:
    def built(partitions: int) -> Database:
        path = tmp_path / "genomes.fa"
        path.write_text("".join(f">{name}\n{own}\n" for name, own in sequences.items()))
        return build_database(
            [path], tmp_path / f"db{partitions}", taxonomy=world.taxonomy, maps=[world.map],
            request=PartitionRequest(partitions),
        )  # fmt: skip

    return built


def test_reads_are_called_as_if_their_errors_were_stated(
    tmp_path: Path,
    build: Callable[[int], Database],
    reads: Path,
    backend: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    database = build(1)
    options = RunOptions(backend=backend, chunk_bytes=60_000)  # type: ignore[arg-type]
    how = (CALLS_BY_EVIDENCE, options)
    with caplog.at_level("INFO", "ngsgpu"):
        own = run(database, single(reads), tmp_path / "own", *how, RULES)
    (said,) = [text for text in caplog.messages if "of the bases of long reads" in text]
    rate = float(said.rpartition("=")[2].rstrip("`)"))
    assert 0.1 < rate < 0.15
    rules = OutputRules(evidence=EvidenceParameters(read_errors=rate))
    assert run(database, single(reads), tmp_path / "stated", *how, rules) == own
    called = rows(own["reads.tsv"])
    assert sum(row[2] != "no rank" for row in called) == len(called)


def test_from_a_pipe_as_from_a_file(
    tmp_path: Path, build: Callable[[int], Database], reads: Path
) -> None:
    words = [sys.executable, "-m", "ngsgpu", "classify", "-d", str(build(1).path), "-o", "-",
             "--backend", "cpu", "-i"]  # fmt: skip
    data = reads.read_bytes()
    done = [
        subprocess.run([*words, name], input=data, capture_output=True, check=True)
        for name in ("-", str(reads))
    ]
    assert done[0].stdout == done[1].stdout
    assert all(b"(--read-errors 0." in own.stderr for own in done)


@pytest.mark.parametrize("is_long", [True, False])
def test_candidates_carry_the_errors(
    tmp_path: Path, build: Callable[[int], Database], reads: Path, backend: str, is_long: bool
) -> None:
    """So that merging them calls what all partitions at once call."""
    database = build(2)
    if not is_long:
        lines = reads.read_text().splitlines()
        reads.write_text("".join(f"{own[:150]}\n" for own in lines))
    options = RunOptions(backend=backend, units_per_task=7)  # type: ignore[arg-type]
    files = [tmp_path / f"{number}.cand" for number in (0, 1)]
    for number, file in enumerate(files):
        part = Classifier(
            database, CALLS_BY_EVIDENCE, partitions=[number], rules=RULES, options=options
        )
        part.classify([single(reads)], SampleOutputs(candidates=str(file)))
        opened = CandidateFile(file)
        opened.close()
        assert (opened.header.read_errors > 0) == is_long
        assert (b"read_errors" in file.read_bytes().split(b"\n", 1)[0]) == is_long
    merger = Classifier(database, CALLS_BY_EVIDENCE, partitions=[], rules=RULES)
    merger.merge(files, outputs_in(tmp_path / "merged"))
    whole = run(database, single(reads), tmp_path / "whole", CALLS_BY_EVIDENCE, options, RULES)
    assert contents(tmp_path / "merged") == whole
