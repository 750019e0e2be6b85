"""``ngsgpu kmers spectrum``."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from ngsgpu.cli import main
from tests.support.correct.data import simulated_pairs
from tests.support.io.records import fasta, fastq, write
from tests.support.minhash.oracle import canonical


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The reads without those that have an N, in two files of different formats."""
    records = [r for r in simulated_pairs() if b"N" not in r.bases.upper()]
    one = write(tmp_path / "1.fq.gz", gzip.compress(fastq(records[:300])))
    two = write(tmp_path / "2.fa", fasta(records[300:], width=33))
    return [str(one), str(two)]


@pytest.mark.parametrize("k", [15, 21])
def test_histogram(
    files: list[str], capfd: pytest.CaptureFixture[str], tmp_path: Path, k: int
) -> None:
    options = ["-k", str(k), "--threads", "2"]
    assert main(["kmers", "spectrum", "-i", files[0], "-i", files[1], *options]) == 0
    printed = capfd.readouterr().out
    assert (
        main(
            [
                "kmers",
                "spectrum",
                "-i",
                files[0],
                "-I",
                files[1],
                "-o",
                str(tmp_path / "h"),
                *options,
            ]
        )
        == 0
    )
    assert (tmp_path / "h").read_text() == printed
    first, header, body = printed.split("\n", 2)
    assert first.startswith(f"# k={k} sampled=1/1 coverage=2")
    assert header == "multiplicity\tcount"
    records = [r for r in simulated_pairs() if b"N" not in r.bases.upper()]
    kmers = Counter(
        canonical(bases[i : i + k])
        for bases in (r.bases.decode().upper() for r in records)
        for i in range(len(bases) - k + 1)
    )
    histogram = sorted(Counter(kmers.values()).items())
    assert body == "".join(f"{m}\t{n}\n" for m, n in histogram)


def test_no_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["kmers", "spectrum", "-i", str(write(tmp_path / "none", b""))]) == 0
    assert capfd.readouterr().out == "# k=21 sampled=1/1 coverage=0.00\nmultiplicity\tcount\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", "0"], "--kmer must be from 1 to 32, not 0"),
        (["-k", "33"], "--kmer must be from 1 to 32, not 33"),
        (["-t", "-1"], "--threads must be 0 or more, not -1"),
        (["-i", "none"], "none: "),
    ],
)
def test_wrong_use(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in", b">r\nACGT\n")
    assert main(["kmers", "spectrum", "-i", "in", *options]) == 2
    captured = capfd.readouterr()
    assert captured.err.startswith(f"ngsgpu: error: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@pytest.mark.parametrize("exact", [[], ["--exact"]])
@pytest.mark.parametrize("bases", ["N" * 100, "ACGTRYACGTNACGTTGCA" * 5, "ACGTTGCAAC" * 9 + "N"])
def test_letters_other_than_acgt_are_in_no_kmer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], bases: str, exact: list[str]
) -> None:
    """As ``ngsgpu kmers count`` has it."""
    file = str(write(tmp_path / "n.fa", f">a\n{bases}\n".encode()))
    assert main(["kmers", "count", "-i", file, "-k", "11", "--histo", "-", "-q"]) == 0
    counted = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert main(["kmers", "spectrum", "-i", file, "-k", "11", *exact]) == 0
    first, _, *lines = capfd.readouterr().out.splitlines()
    assert [line.split() for line in lines] == counted
    assert ("coverage=0.00" in first) == (not counted)
