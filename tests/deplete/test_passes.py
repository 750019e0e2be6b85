"""Indexes for which memory does not suffice at once: k-mers in a file, sorted in several passes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.deplete import IndexParameters, build_index
from ngsgpu.deplete.parts import STARTS, InMemory, Part, Spill, parts_of
from ngsgpu.deplete.table import GROUP, contains, fill
from ngsgpu.run.options import RunOptions
from ngsgpu.sequence.kmers import distinct
from tests.support.commands import Commands, names
from tests.support.deplete.world import write_sequences
from tests.support.io.records import write

LITTLE = "320M"
BASES = 16_000_000


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sequences with so many k-mers that they need more memory than LITTLE; a part occurs twice."""
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    bases = letters[np.random.default_rng(5).integers(0, 4, BASES)]
    text = b"".join(
        b">c%d\n%s\n" % (i, own.tobytes()) for i, own in enumerate([*np.split(bases, 8), bases[:9]])
    )
    return write(tmp_path_factory.mktemp("large") / "host.fa", text + b">again\n" + text[4:50_000])


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--keep-kmers",)])
def test_passes_change_nothing_but_the_memory(
    tmp_path: Path, host: Path, more: tuple[str, ...]
) -> None:
    excluded = write_sequences(
        tmp_path / "x.fa", [host.read_bytes()[100_004:200_000].decode(), "ACGT" * 50]
    )
    stats, common = tmp_path / "s.json", ["--one-in", 1, "-t", 1, "-x", excluded, *more]
    peaks = []
    for memory in ("2G", LITTLE):
        out = tmp_path / memory
        command = ["deplete-index", host, "-o", out, "--memory", memory, *common, "--stats", stats]
        own = [sys.executable, "-m", "ngsgpu", *map(str, command), "-q"]
        # By a small process: what this one has would count as the program's.
        subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *own], check=True)
        peaks.append(json.loads(stats.read_text())["memory"]["peak_rss_bytes"])
    assert (tmp_path / LITTLE).read_bytes() == (tmp_path / "2G").read_bytes()
    assert peaks[1] < 320 << 20 < peaks[0]


@pytest.mark.parametrize("memory", [LITTLE, "2G"])
def test_dry_run_tells_the_passes(
    tmp_path: Path, ngsgpu: Commands, host: Path, memory: str
) -> None:
    done = ngsgpu("deplete-index", host, "-o", tmp_path / "x", "--memory", memory, "--one-in", 1,
                  "-t", 1, "--dry-run")  # fmt: skip
    assert done.status == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    passes = [["passes", "64,", "over", "k-mers", "in", "a", "file", "of", "122.5", "MiB"]]
    assert [line for line in lines if line[0] == "passes"] == passes * (memory == LITTLE)
    assert names(tmp_path) == []


def test_too_little_even_for_passes(tmp_path: Path, ngsgpu: Commands, host: Path) -> None:
    done = ngsgpu("deplete-index", host, "-o", tmp_path / "x", "--memory", "220M", "--one-in", 1)
    assert (done.status, "--one-in 2, which samples fewer" in done.error) == (3, True)
    assert names(tmp_path) == []


def test_a_part_is_the_same_in_a_file() -> None:
    rng = np.random.default_rng(1)
    there, moved = Part(), Part()
    spill = Spill()
    for size in (200_000, 70_000, 0, 65_536, 3):
        hashes = rng.integers(0, 1 << 40, size, dtype=np.uint64)
        for part in (there, moved):
            part.add(hashes)
        if size == 70_000:
            moved.move_to(spill)
    assert there.size == moved.size == 335_539
    expected, found = there.take(), moved.take()
    np.testing.assert_array_equal(found, expected)
    moved.put(found)
    np.testing.assert_array_equal(moved.take_sorted(), expected)
    spill.close()


@pytest.mark.parametrize("kmers", [0, 1, 5, 60, 3000])
@pytest.mark.parametrize("skewed", [False, True])
def test_windows_of_a_table(kmers: int, skewed: bool) -> None:
    """Marks that have no place in a window, or before the end, are in the next, or the first."""
    rng = np.random.default_rng(kmers)
    least = (1 << 64) - (1 << 40) if skewed else 0
    hashes = distinct(rng.integers(least, (1 << 64) - 1, kmers, dtype=np.uint64, endpoint=True))
    groups = len(hashes) // GROUP + 1
    table = np.zeros(groups * GROUP, dtype=np.uint32)
    parts = InMemory(parts_of(hashes))
    fill(table, STARTS, parts.take, lambda: None)
    expected = np.zeros_like(table)
    for hashed in hashes.tolist():
        at = ((hashed >> 32) * groups >> 32) * GROUP
        while expected[at % len(table)]:
            at += 1
        expected[at % len(table)] = max(hashed & 0xFFFFFFFF, 1)
    np.testing.assert_array_equal(table, expected)
    assert all(contains(table, np.uint64(hashed)) for hashed in hashes.tolist())


def test_an_index_that_lies_in_a_file_can_be_used(tmp_path: Path, host: Path) -> None:
    options = RunOptions(memory=320 << 20)
    index = build_index([host], IndexParameters(one_in=1), options=options)
    assert index.pages is not None
    start = random.Random(2).randrange(5, 1_000_000)
    assert b"\n" not in host.read_bytes()[start : start + 24]
    assert np.count_nonzero(index.table) == index.kmers > BASES - 1000
