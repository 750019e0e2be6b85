"""The commands: what they write and print, and what they refuse."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from ngsgpu.kmers.count import most_letters
from ngsgpu.kmers.cpu_run import plan_arena
from ngsgpu.run import options as options_module
from ngsgpu.run.options import RunOptions
from tests.support.commands import Commands, names
from tests.support.io.records import write

GENOME = "".join(random.Random(1).choices("ACGT", k=300))


def text(ngsgpu: Commands, command: str, *arguments: object) -> str:
    """What a command writes."""
    folder = Path(str(arguments[1])).parent
    done = ngsgpu("kmers", command, *arguments, "-o", folder / "text")
    assert done.status == 0, done.err
    return (folder / "text").read_text()


@pytest.fixture
def database(tmp_path: Path, ngsgpu: Commands) -> Path:
    reads = f"@r1\n{GENOME}\n+\n{'F' * 300}\n@r2\n{GENOME[:100]}\n+\n{'F' * 50 + '#' + 'F' * 49}\n"
    path = write(tmp_path / "r.fq.gz", gzip.compress(reads.encode()))
    done = ngsgpu("kmers", "count", "-i", path, "-k", 21, "-o", tmp_path / "db", "-t", 2)
    assert done.status == 0, done.err
    assert "360 k-mers of 2 sequences, 280 distinct" in done.err
    return tmp_path / "db"


def test_text(tmp_path: Path, database: Path, ngsgpu: Commands) -> None:
    assert text(ngsgpu, "histo", "-d", database) == "1 200\n2 80\n"
    assert text(ngsgpu, "histo", "-d", database, "--max", 1) == "1 200\n2 80\n"
    lines = text(ngsgpu, "dump", "-d", database).splitlines()
    assert (len(lines), lines) == (280, sorted(lines))
    more = text(ngsgpu, "dump", "-d", database, "--min-count", 2).splitlines()
    assert more == [line for line in lines if line.endswith("\t2")]
    shown = ngsgpu("kmers", "info", "-d", database, "--json").out
    assert json.loads(shown) == {
        "kmer": 21, "min_quality": 0, "min_count": 1, "sequences": 2, "bases": 400,
        "kmers": 360, "distinct": 280, "files": ["r.fq.gz"],
    }  # fmt: skip
    assert "files         r.fq.gz" in ngsgpu("kmers", "info", "-d", database).out


def test_histogram_without_a_database(tmp_path: Path, database: Path, ngsgpu: Commands) -> None:
    reads, out = tmp_path / "r.fq.gz", tmp_path / "h"
    before = names(tmp_path)
    done = ngsgpu("kmers", "count", "-i", reads, "-k", 21, "--histo", out)
    assert done.status == 0, done.err
    assert "360 k-mers of 2 sequences, 280 distinct" in done.err
    assert out.read_text() == "1 200\n2 80\n"
    assert names(tmp_path) == sorted([*before, "h"])
    done = ngsgpu(
        "kmers", "count", "-q", "-i", reads, "-k", 21, "--min-count", 2, "-o", database,
        "--histo", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert out.read_text() == "2 80\n" == text(ngsgpu, "histo", "-d", database)


def test_a_database_and_its_histogram_are_both_there_or_neither(
    tmp_path: Path, database: Path, ngsgpu: Commands
) -> None:
    count = ["kmers", "count", "-q", "-i", tmp_path / "r.fq.gz", "-k", 33]
    before = text(ngsgpu, "dump", "-d", database), names(tmp_path)
    for histogram, status, message in (
        ("/dev/full", 1, "the disk is full"),
        (database / "counts.npy", 2, "lies in the output"),
    ):
        done = ngsgpu(*count, "-o", database, "--histo", histogram)
        assert done.status == status
        assert message in done.err
        assert (text(ngsgpu, "dump", "-d", database), names(tmp_path)) == before


def test_quality(tmp_path: Path, database: Path, ngsgpu: Commands) -> None:
    done = ngsgpu(
        "kmers", "count", "-q", "-i", tmp_path / "r.fq.gz", "-k", 21, "--min-quality", 3,
        "--min-count", 2, "-o", database,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert text(ngsgpu, "histo", "-d", database) == "2 59\n"


def test_qualities_of_any_offset_if_none_counts(tmp_path: Path, ngsgpu: Commands) -> None:
    """They are doubted only where they decide."""
    reads = "".join(f"@r{i}\n{GENOME[i : i + 100]}\n+\n{'h' * 80 + 'B' * 20}\n" for i in range(200))
    path = write(tmp_path / "r.fq", reads.encode())
    command = ["kmers", "count", "-i", path, "-k", 21, "-o", tmp_path / "db"]
    done = ngsgpu(*command)
    assert done.status == 0, done.err
    assert "16,000 k-mers of 200 sequences, 279 distinct" in done.err
    refused = ngsgpu(*command, "--min-quality", 3)
    assert refused.status != 0
    assert "looks like Phred+64; give --phred-offset 64" in refused.err
    done = ngsgpu(*command, "--min-quality", 3, "--phred-offset", 64)
    assert done.status == 0, done.err
    assert "12,000 k-mers of 200 sequences" in done.err


def test_query(tmp_path: Path, database: Path, ngsgpu: Commands) -> None:
    asked = text(ngsgpu, "query", "-d", database, GENOME[79:101])
    assert [line.split("\t")[1] for line in asked.splitlines()] == ["2", "1"]
    path = write(tmp_path / "q.fa", f">x 1\n{GENOME[:50]}\n>y\nACGT\n>z\n{'A' * 30}\n".encode())
    assert (
        text(ngsgpu, "query", "-d", database, "-i", path)
        == "sequence\tkmers\tfound\tmedian\nx\t30\t30\t2\ny\t0\t0\t0\nz\t10\t0\t0\n"
    )
    every = text(ngsgpu, "query", "-d", database, "-i", path, "--all")
    assert len(every.splitlines()) == 40


def test_sets(tmp_path: Path, database: Path, ngsgpu: Commands) -> None:
    part = write(tmp_path / "part.fa", f">p\n{GENOME[50:150]}\n".encode())
    assert ngsgpu("kmers", "count", "-q", "-i", part, "-k", 21, "-o", tmp_path / "p").status == 0
    for command, expected in (("intersect", "1 80\n"), ("subtract", "1 150\n2 50\n")):
        out = tmp_path / command
        done = ngsgpu("kmers", command, database, tmp_path / "p", "-o", out)
        assert done.status == 0, done.err
        assert text(ngsgpu, "histo", "-d", out) == expected
    copy = shutil.copytree(database, tmp_path / "copy")
    done = ngsgpu("kmers", "union", database, tmp_path / "p", copy, "-o", tmp_path / "all")
    assert done.status == 0, done.err
    total: Counter[str] = Counter()
    for own in (database, tmp_path / "p", database):
        for line in text(ngsgpu, "dump", "-d", own).splitlines():
            total[line.split()[0]] += int(line.split()[1])
    lines = "".join(f"{kmer}\t{total[kmer]}\n" for kmer in sorted(total))
    assert text(ngsgpu, "dump", "-d", tmp_path / "all") == lines


def test_model(tmp_path: Path, ngsgpu: Commands) -> None:
    rng = random.Random(2)
    genome = "".join(rng.choices("ACGT", k=20_000))
    starts = [rng.randrange(19_900) for _ in range(6000)]
    reads = "".join(f">\n{genome[start : start + 100]}\n" for start in starts)
    path = write(tmp_path / "r.fa", reads.encode())
    assert ngsgpu("kmers", "count", "-q", "-i", path, "-k", 21, "-o", tmp_path / "db").status == 0
    done = ngsgpu("kmers", "model", "-d", tmp_path / "db", "--ploidy", 1, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["genome_size"] == pytest.approx(20_000, rel=0.03)
    shown = ngsgpu("kmers", "model", "-d", tmp_path / "db")
    assert "heterozygosity  0.0" in shown.out


def test_refusals(tmp_path: Path, database: Path, ngsgpu: Commands) -> None:
    reads, out = tmp_path / "r.fq.gz", tmp_path / "x"
    other = tmp_path / "other"
    assert ngsgpu("kmers", "count", "-q", "-i", reads, "-k", 33, "-o", other).status == 0
    few = tmp_path / "few"
    done = ngsgpu("kmers", "count", "-q", "-i", reads, "--min-count", 2, "-o", few)
    assert done.status == 0, done.err
    full = tmp_path / "full"
    full.mkdir()
    write(full / "notes.txt", b"mine")
    bad = write(tmp_path / "bad.fq", b"@r\nACGT\n+\nFF\n")
    before = names(tmp_path)
    cases: dict[str, list[object]] = {
        "--kmer must be from 11 to 127, not 10": ["count", "-i", reads, "-k", 10, "-o", out],
        "--min-quality must be": ["count", "-i", reads, "--min-quality", -1, "-o", out],
        "--min-count must be": ["count", "-i", reads, "--min-count", 0, "-o", out],
        "holds notes.txt, which is not": ["count", "-i", reads, "-o", full],
        "is a file, but": ["count", "-i", reads, "-o", bad],
        "no output given": ["count", "-i", reads],
        "is a folder; name one": ["count", "-i", reads, "-o", "-"],
        "bad.fq, record 1": ["count", "-q", "-i", bad, "-o", out],
        "there is no ngsgpu k-mer database here": ["histo", "-d", full],
        "has no 21-mer": ["query", "-d", database, "ACGTN"],
        "give sequences or files": ["query", "-d", database],
        "has 33-mers and": ["intersect", database, other, "-o", out],
        "give at least two": ["subtract", database, "-o", out],
        "does not have all k-mers": ["model", "-d", few],
        "has no peak of the genome's": ["model", "-d", database],
        "--ploidy must be 1 or 2": ["model", "-d", database, "--ploidy", 3],
        "--max must be 1 or more": ["histo", "-d", database, "--max", 0],
    }
    for message, arguments in cases.items():
        done = ngsgpu("kmers", *arguments)
        assert done.status == 2, (message, done.err)
        assert message in done.error
    assert names(tmp_path) == before


def test_damage(database: Path, ngsgpu: Commands) -> None:
    path = database / "kmers.npy"
    whole = path.read_bytes()
    write(path, whole[:-1] + bytes([whole[-1] ^ 64]))
    assert "the content has changed (CRC-32)" in ngsgpu("kmers", "histo", "-d", database).error
    write(path, whole[:-8])
    assert "it was cut short" in ngsgpu("kmers", "dump", "-d", database).error


def test_an_empty_file_does_not_hide_how_much_there_is_to_count(tmp_path: Path) -> None:
    """Counting would take all memory that it may, as for what a pipe has."""
    some, empty, pipe = write(tmp_path / "r.fa", b">r\nACGT\n"), tmp_path / "e.fa", tmp_path / "p"
    empty.touch()
    os.mkfifo(pipe)
    assert most_letters([some, empty]) == 8
    assert most_letters([empty]) == 0
    assert most_letters([some, pipe]) is None


def test_memory_that_others_take_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arena of files of unknown size takes its share of what was free a moment ago."""
    free = itertools.count(8 << 30, -(1 << 20))
    monkeypatch.setattr(options_module, "available_memory", lambda: next(free))
    plan_arena(None, 8, RunOptions(threads=2)).check()
