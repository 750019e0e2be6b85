"""Counts of 32 bits against a dictionary: counted, joined, written, compared and looked up."""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.kmers import (
    CountParameters,
    Kept,
    Lookup,
    Source,
    combine,
    count_files,
    cpu_run,
    open_database,
)
from ngsgpu.kmers.database import DatabaseWriter, new_database
from ngsgpu.kmers.long import cpu_run as long_cpu_run
from ngsgpu.kmers.model import fit_genome
from ngsgpu.run.options import RunOptions
from tests.support.commands import Commands
from tests.support.io.records import Record, fasta, write
from tests.support.kmers.histogram import histogram_of_files
from tests.support.kmers.world import World, as_dict

Bits = Literal[16, 32]
MOST, WIDE = 65_535, 2**32 - 1
FREQUENT = ("A" * 70_000, "AC" * 33_000, "ACG" * 21_900, "T" * 70_000)
"""Some of the k-mers occur more than 65,535 times, and some as often or hardly less."""


def frequent_world(seed: int) -> World:
    """Random sequences beside ones of few k-mers, which are frequent."""
    own = [Record(b"f", text.encode(), b"F" * len(text)) for text in FREQUENT[: 2 + seed]]
    return World(own + World.of(seed, 200).records)


def counted(path: Path, out: Path, k: int, bits: Bits) -> None:
    """A database of a file."""
    count_files([path], out, CountParameters(k, count_bits=bits), options=RunOptions(threads=2))


@functools.cache
def frequent_counts(k: int) -> Counter[str]:
    """What the oracle counts."""
    return frequent_world(2).counts(k)


@pytest.mark.parametrize("k", [11, 32, 33, 101])
@pytest.mark.parametrize("arena", [30_000, 1 << 20])
def test_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int, arena: int) -> None:
    """Also where runs are added up."""
    world = frequent_world(2)
    path = write(tmp_path / "1.fa", fasta(world.records, width=70))
    for own in (cpu_run, long_cpu_run):
        monkeypatch.setattr(own, "STRETCH", 30_000)
    monkeypatch.setattr(cpu_run, "arena_rows", lambda *_: arena)
    expected = frequent_counts(k)
    assert max(expected.values()) > 130_000
    limits: list[tuple[Bits, int]] = [(16, MOST), (32, WIDE)]
    for bits, most in limits:
        counted(path, tmp_path / "db", k, bits)
        database = open_database(tmp_path / "db")
        assert as_dict(database) == {kmer: min(n, most) for kmer, n in expected.items()}
        assert (Lookup(database).counts(database.kmers) == database.counts).all()
        by_count = np.bincount(np.minimum([*expected.values()], MOST), minlength=MOST + 1)
        assert np.array_equal(database.histogram(2), by_count)
        high = [n for n in expected.values() if n > MOST] if bits == 32 else []
        assert sorted(database.high_counts(2)) == sorted(high)
        parameters = CountParameters(k, count_bits=bits)
        alone, _ = histogram_of_files([path], parameters, beside=tmp_path / "h")
        assert np.array_equal(alone, by_count)


@pytest.mark.parametrize("bits", [(32, 32, 32), (32, 16, 32), (16, 32, 16), (16, 16, 32)])
def test_sets(tmp_path: Path, bits: tuple[Bits, ...]) -> None:
    """The widest counts of those that go into the new database."""
    worlds = [frequent_world(seed) for seed in range(3)]
    names, dicts = [], []
    for number, (world, own) in enumerate(zip(worlds, bits, strict=True)):
        names.append(str(tmp_path / f"{number}"))
        counted(write(tmp_path / "in.fa", fasta(world.records)), Path(names[-1]), 21, own)
        most = WIDE if own == 32 else MOST
        dicts.append({kmer: min(n, most) for kmer, n in world.counts(21).items()})
    a, b, c = dicts
    total: Counter[str] = Counter()
    for own_counts in dicts:
        total.update(own_counts)
    most = WIDE if 32 in bits else MOST
    for kept, expected, widest in (
        (Kept.COMMON, {x: min(a[x], b[x], c[x]) for x in a if x in b and x in c}, max(bits)),
        (Kept.OWN, {x: n for x, n in a.items() if x not in b and x not in c}, bits[0]),
        (Kept.ANY, {x: min(n, most) for x, n in total.items()}, max(bits)),
    ):
        combine(names[0], names[1:], tmp_path / "out", kept, threads=2)
        found = open_database(tmp_path / "out")
        assert as_dict(found) == expected
        assert found.parameters.count_bits == widest
        assert found.counts.dtype == f"uint{widest}"


def test_sums_end_at_the_highest_count(tmp_path: Path) -> None:
    parameters = CountParameters(11, count_bits=32)
    for name in "ab":
        with new_database(tmp_path / name) as folder:
            writer = DatabaseWriter(folder, parameters)
            kmers = np.array([[0], [1 << 42]], dtype=np.uint64)
            writer.append(kmers, np.array([3_000_000_000, 2_000_000_000], dtype=np.uint32))
            writer.close(parameters, Source(1, 1, 5_000_000_000, ("x",)))
    combine(tmp_path / "a", [tmp_path / "b"], tmp_path / "sum", Kept.ANY)
    assert [*as_dict(open_database(tmp_path / "sum")).values()] == [WIDE, 4_000_000_000]


def test_versions(tmp_path: Path) -> None:
    """Databases of 16 bits are those of before; a count of another length is refused."""
    path = write(tmp_path / "1.fa", b">a\nACGTACGTACGTACGT\n")
    manifests = []
    for bits in (16, 32):
        counted(path, tmp_path / "db", 11, bits)
        manifests.append(json.loads((tmp_path / "db/manifest.json").read_text()))
    assert [own["version"] for own in manifests] == [1, 2]
    assert [own["parameters"].get("count_bits") for own in manifests] == [None, 32]
    counts = (tmp_path / "db/counts.npy").read_bytes()
    counted(path, tmp_path / "db", 11, 16)
    (tmp_path / "db/counts.npy").write_bytes(counts)
    with pytest.raises(InputError, match=r"counts\.npy"):
        open_database(tmp_path / "db")


def test_commands(tmp_path: Path, ngsgpu: Commands) -> None:
    world = frequent_world(2)
    path = write(tmp_path / "1.fa", fasta(world.records))
    database, out = tmp_path / "db", tmp_path / "out"

    def run(*words: object) -> str:
        done = ngsgpu("kmers", *words, "-o", out)
        assert done.status == 0, done.err
        return out.read_text()

    made = ngsgpu("kmers", "count", "-i", path, "-k", 21, "--count-bits", 32, "-o", database)
    assert made.status == 0, made.err
    expected = world.counts(21)
    lines = run("dump", "-d", database)
    assert lines == "".join(f"{kmer}\t{expected[kmer]}\n" for kmer in sorted(expected))
    high = run("dump", "-d", database, "--min-count", 65_536).splitlines()
    assert len(high) == sum(n > MOST for n in expected.values()) > 0
    numbers = Counter(expected.values())
    for most in (10, 65_534, 65_535, 65_536, 100_000, 3_000_000):
        shown: Counter[int] = Counter()
        for n, kmers in numbers.items():
            shown[min(n, most + 1)] += kmers
        text = "".join(f"{n} {shown[n]}\n" for n in sorted(shown))
        assert run("histo", "-d", database, "--max", most) == text
    assert f"{'A' * 21}\t{expected['A' * 21]}\n" == run("query", "-d", database, "A" * 21)
    info = ngsgpu("kmers", "info", "-d", database, "--json")
    assert json.loads(info.out)["count_bits"] == 32


def test_unitigs_are_those_of_narrow_counts(tmp_path: Path, ngsgpu: Commands) -> None:
    """But the table of colours has the counts of the databases."""
    path = write(tmp_path / "1.fa", fasta(frequent_world(2).records))
    for bits in (16, 32):
        counted(path, tmp_path / f"{bits}", 21, bits)
        done = ngsgpu(
            "unitigs", "-d", tmp_path / f"{bits}", "-o", tmp_path / f"{bits}.fa",
            "--min-abundance", 1, "--color", tmp_path / f"{bits}", "--colors", tmp_path / "table",
        )  # fmt: skip
        assert done.status == 0, done.err
        rows = [line.split("\t") for line in (tmp_path / "table").read_text().splitlines()[1:]]
        total = sum(int(row[3]) for row in rows)
        assert total == open_database(tmp_path / f"{bits}").counts.sum(dtype=np.int64)
    assert (tmp_path / "16.fa").read_bytes() == (tmp_path / "32.fa").read_bytes()


def test_size_of_a_genome_with_frequent_kmers() -> None:
    """What is beyond the histogram belongs to the genome."""
    histogram = np.zeros(MOST + 1, dtype=np.int64)
    numbers = np.arange(60, 141)
    histogram[60:141] = 10_000 * np.exp(-((numbers - 100) ** 2) / 200)
    histogram[1:4] = 50_000, 5_000, 500
    size = fit_genome(histogram, 21, 1).genome_size
    histogram[MOST] = 2
    with_frequent = fit_genome(histogram, 21, 1, high=np.array([1_000_000, 2_000_000]))
    assert with_frequent.genome_size - size == pytest.approx(30_000, rel=0.01)
