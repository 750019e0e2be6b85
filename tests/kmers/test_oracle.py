"""Counts of k-mers against a dictionary, for any cuts, threads and memory."""

from __future__ import annotations

import random
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import DeviceMemoryError, InputError, OutputError
from ngsgpu.kmers import (
    CountParameters,
    Kept,
    Lookup,
    combine,
    count_files,
    cpu_run,
    gpu,
    gpu_run,
    open_database,
    runs,
)
from ngsgpu.kmers.long import cpu_run as long_cpu_run
from ngsgpu.kmers.text import counts_of_text, dump
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from tests.support.io.records import fasta, fastq, write
from tests.support.kmers.world import World, as_dict
from tests.support.minhash.oracle import canonical
from tests.support.properties import examples


def counted(folder: Path, paths: list[Path], parameters: CountParameters, **run: int) -> bytes:
    """Text of a new database ``db``."""
    options = RunOptions(threads=run.get("threads", 2), chunk_bytes=run.get("chunk", 1 << 16))
    count_files(paths, folder / "db", parameters, options=options)
    return b"".join(dump(open_database(folder / "db"), 1, 65_535))


@given(
    seed=st.integers(0, 10**6),
    k=st.sampled_from([11, 16, 31, 32, 33, 64, 65, 96, 127]),
    least=st.sampled_from([0, 0, 3, 21]),
    min_count=st.sampled_from([1, 1, 2, 3]),
    stretch=st.sampled_from([64, 301, 1 << 20]),
    arena=st.sampled_from([400, 2000, 1 << 20]),
)
@examples(25)
def test_random_sequences(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    k: int,
    least: int,
    min_count: int,
    stretch: int,
    arena: int,
) -> None:
    """Stretches cut anywhere; an arena that is full time and again, so that there are runs."""
    folder = tmp_path_factory.mktemp("kmers")
    world = World.of(seed, 300)
    half = len(world.records) // 2
    paths = [write(folder / "1.fq", fastq(world.records[:half]))]
    if least:
        paths.append(write(folder / "2.fq", fastq(world.records[half:])))
    else:
        paths.append(write(folder / "2.fa", fasta(world.records[half:], width=37)))
    parameters = CountParameters(k, least, min_count)
    with pytest.MonkeyPatch.context() as patch:
        for own in (cpu_run, long_cpu_run):
            patch.setattr(own, "STRETCH", stretch)
        patch.setattr(cpu_run, "arena_rows", lambda *_: max(arena, stretch))
        expected = world.counts(k, least)
        is_empty = bool(world.records) and not expected
        refused = pytest.raises(InputError, match="no k-mer") if is_empty else nullcontext()
        with refused:
            source = count_files(
                paths, folder / "db", parameters, phred_offset=33, options=RunOptions(threads=2)
            )
    if is_empty:
        return
    found = as_dict(open_database(folder / "db"))
    assert found == {kmer: n for kmer, n in expected.items() if n >= min_count}
    assert list(found) == sorted(found)
    assert source.kmers == expected.total()
    assert source.sequences == len(world.records)
    assert sorted(path.name for path in (folder / "db").iterdir()) == [
        "counts.npy", "kmers.npy", "manifest.json",
    ]  # fmt: skip


def test_counts_saturate(tmp_path: Path) -> None:
    """Also where runs are added up."""
    path = write(tmp_path / "1.fa", b">a\n" + b"A" * 70_000 + b"\n>b\n" + b"A" * 65_544 + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        for own in (cpu_run, long_cpu_run):
            patch.setattr(own, "STRETCH", 30_000)
        patch.setattr(cpu_run, "arena_rows", lambda *_: 30_000)
        count_files([path], tmp_path / "db", CountParameters(11))
    database = open_database(tmp_path / "db")
    assert as_dict(database) == {"A" * 11: 65_535}
    assert database.source.kmers == 70_000 + 65_544 - 20


def test_memory_is_planned(tmp_path: Path) -> None:
    path = write(tmp_path / "1.fa", b">a\nACGT\n")
    with pytest.raises(Exception, match="try fewer threads, or `memory='"):
        count_files(
            [path], tmp_path / "db", options=RunOptions(memory=INTERPRETER_BYTES + (1 << 20))
        )
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("k", [21, 55])
def test_the_disk_is_not_filled_with_what_goes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    """Counts that do not fit into memory are not written where little would be left."""
    for own in (cpu_run, long_cpu_run):
        monkeypatch.setattr(own, "STRETCH", 64)
    monkeypatch.setattr(cpu_run, "arena_rows", lambda *given: 400)
    bases = bytes(random.Random(k).choices(b"ACGT", k=20_000))
    path = write(tmp_path / "in.fa", b">a\n" + bases + b"\n")
    free = shutil.disk_usage(tmp_path)._replace(total=10**12, free=10**11)
    monkeypatch.setattr(runs.shutil, "disk_usage", lambda path: free)
    count_files([path], tmp_path / "db", CountParameters(k))
    full = free._replace(free=5 * 10**10)
    monkeypatch.setattr(runs.shutil, "disk_usage", lambda path: full)
    with pytest.raises(OutputError, match="raise `memory`, or choose an output on a disk"):
        count_files([path], tmp_path / "other", CountParameters(k))
    assert sorted(own.name for own in tmp_path.iterdir()) == ["db", "in.fa"]


@pytest.mark.parametrize("k", [21, 55])
def test_sets_and_look_ups(tmp_path: Path, k: int) -> None:
    worlds = [World.of(seed, 400) for seed in (1, 2)]
    shared = worlds[0].records[:5]
    parts = [worlds[0].records, worlds[1].records + shared, worlds[1].records[:3] + shared[:2]]
    names = [str(tmp_path / name) for name in "abc"]
    dicts = []
    for name, records in zip(names, parts, strict=True):
        count_files([write(tmp_path / "in.fa", fasta(records))], name, CountParameters(k))
        dicts.append(World(records).counts(k))
    a, b, c = dicts
    both, rest = tmp_path / "both", tmp_path / "rest"
    expected = {kmer: min(a[kmer], b[kmer], c[kmer]) for kmer in a if kmer in b and kmer in c}
    assert combine(names[0], names[1:], both, Kept.COMMON, threads=2) == len(expected) > 0
    assert as_dict(open_database(both)) == expected
    expected = {kmer: n for kmer, n in a.items() if kmer not in b and kmer not in c}
    assert combine(names[0], names[1:], rest, Kept.OWN) == len(expected) > 0
    assert as_dict(open_database(rest)) == expected

    database = open_database(names[0])
    text = "".join(random.Random(5).choices("ACGT", k=300)) + max(
        (record.bases.decode() for record in parts[0]), key=len
    )
    _, found = counts_of_text(database, text)
    asked = (text.upper()[i : i + k] for i in range(len(text) - k + 1))
    assert found.tolist() == [a[canonical(own)] for own in asked if set(own) <= set("ACGT")]
    assert (Lookup(database).counts(database.kmers) == database.counts).all()
    assert database.histogram().tolist() == np.bincount([*a.values()], minlength=65_536).tolist()


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_gpu_memory_is_planned(words: int) -> None:
    """Within the budget, no more than the file needs, and refused if it is too little."""
    for budget in (32 << 20, 1 << 30, 138 << 30):
        plan = gpu_run.plan_counting(None, words, budget)
        assert plan.rows * 8 * words < plan.total <= budget
        assert plan.total > 0.9 * budget or plan.rows == gpu.MOST_ROWS
    assert gpu_run.plan_counting(1 << 20, words, 1 << 30).rows == 1 << 20
    with pytest.raises(DeviceMemoryError, match="counting k-mers takes at least"):
        gpu_run.plan_counting(None, words, 4 << 20)
