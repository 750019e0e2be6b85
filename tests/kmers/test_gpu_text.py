"""Counting in ranges of k-mers, on NumPy's arrays and with the CPU's kernels."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ngsgpu.io.gpu.parse import HEADROOM
from ngsgpu.io.text.reader import read_batches
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers import CountParameters, gpu_run, gpu_text
from ngsgpu.kmers.database import Tally
from ngsgpu.kmers.gpu import LETTERS, Counted, CountPlan, plan_counting
from ngsgpu.kmers.gpu_text import PackedText
from ngsgpu.kmers.stretches import kmers_in, packed_letters, stretches_of
from ngsgpu.run.options import RunOptions
from tests.support.io.records import Record, fasta, fastq, write
from tests.support.kmers.world import World


class _Array(np.ndarray[Any, Any]):
    """An array that can be told from the host's."""

    def get(self) -> np.ndarray[Any, Any]:
        return np.array(self).view(np.ndarray)


def _of(make: Any) -> Any:
    return lambda *given, **named: make(*given, **named).view(_Array)


def unpacked(codes: np.ndarray[Any, Any], marks: np.ndarray[Any, Any]) -> str:
    """The letters of words; a dot for those that are in no k-mer."""
    places = np.arange(32, dtype=np.uint64)
    letters = np.array(list("ACGT"))[(codes[:, None] >> (62 - 2 * places)).astype(int) & 3]
    return "".join(np.where(marks[:, None] >> places.astype(np.uint32) & 1, ".", letters).ravel())


def stretches(path: Path, k: int, most: int) -> Any:
    for batch in read_batches(path, threads=1, chunk_bytes=1 << 20, phred_offset=33):
        yield from stretches_of(batch, k, most)


@pytest.mark.parametrize("k", [11, 31, 55])
@pytest.mark.parametrize("least", [0, ord("9")])
def test_packed_letters_have_the_kmers(tmp_path: Path, k: int, least: int) -> None:
    """Of FASTA with lines, lower case and Ns; of qualities; of sequences in several stretches."""
    world = World.of(k, 60)
    for name, data in (("a.fa", fasta(world.records, width=37)), ("a.fq", fastq(world.records))):
        for own in stretches(write(tmp_path / name, data), k, 300):
            room = np.empty((own.room, (k + 31) // 32), dtype=np.uint64)
            found = room[: kmers_in(own, k, least, room)]
            text = unpacked(*packed_letters(own, k, least))
            expected = []
            for at in range(len(text) - k + 1):
                kmer = text[at : at + k]
                if "." not in kmer:
                    back = kmer[::-1].translate(str.maketrans("ACGT", "TGCA"))
                    expected.append(min(kmer, back))
            own_text = [unpacked(row, np.zeros(len(row), dtype=np.uint32))[:k] for row in found]
            assert sorted(own_text) == sorted(expected)


@pytest.fixture
def _on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of NumPy, and the kernel that finds k-mers in its words."""
    cupy = SimpleNamespace(
        uint64=np.uint64, uint32=np.uint32, int64=np.int64,
        empty=_of(np.empty), zeros=_of(np.zeros), full=_of(np.full), asarray=_of(np.asarray),
        concatenate=_of(np.concatenate), sort=_of(np.sort), cumsum=_of(np.cumsum),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(gpu_text, "to_device", lambda array: array.view(_Array))
    monkeypatch.setattr(gpu_text, "_mark_all", lambda marks: marks.fill(0xFFFFFFFF))
    monkeypatch.setattr(gpu_text, "device_classes", lambda: None)
    monkeypatch.setattr(gpu_text, "grid_of_warps", lambda units: (units,))
    monkeypatch.setattr(gpu_text, "KERNELS", SimpleNamespace(launch=_find))
    monkeypatch.setattr(gpu_run, "radix_sort", lambda values: values.sort())
    monkeypatch.setattr(gpu_run, "counted_rows", _counted_rows)
    monkeypatch.setattr(gpu_run, "summed", _summed)


def _find(kernel: str, grid: Any, block: Any, arguments: Any) -> None:
    codes, marks, first, words, k, low, high, kmers, stride, found = arguments
    for word in range(int(first), int(first) + int(words)):
        text = unpacked(codes[word : word + 6], marks[word : word + 6])
        for at in range(32):
            kmer = text[at : at + int(k)]
            if "." in kmer:
                continue
            kmer = min(kmer, kmer[::-1].translate(str.maketrans("ACGT", "TGCA")))
            value = int(
                kmer.ljust(32 * len(kmers), "A").translate(str.maketrans("ACGT", "0123")), 4
            )
            row = [value >> 64 * (len(kmers) - 1 - j) & (1 << 64) - 1 for j in range(len(kmers))]
            if int(low) <= row[0] <= int(high):
                if found[0] < stride:
                    kmers[:, int(found[0])] = row
                found[0] += 1


def _counted_rows(kmers: Any, size: int, count_type: str) -> Counted:
    found, counts = np.unique(np.asarray(kmers[:, :size]), axis=1, return_counts=True)
    return Counted(found, counts.astype(count_type))


def _summed(columns: Any, counts: Any) -> Counted:
    found, inverse = np.unique(np.asarray(columns), axis=1, return_inverse=True)
    return Counted(found, np.bincount(inverse.ravel(), counts).astype(counts.dtype))


@pytest.mark.usefixtures("_on_host")
@pytest.mark.parametrize("k", [11, 40])
@pytest.mark.parametrize("place", ["gpu", "host", "disk"])
@pytest.mark.parametrize("rows", [40, 300, 10**6])
def test_ranges_have_all_kmers_in_order(tmp_path: Path, k: int, place: str, rows: int) -> None:
    """Wherever the letters are; also of one k-mer of which there are more than rows."""
    bases = bytes(random.Random(k).choices(b"ACGTN", (20, 20, 20, 20, 1), k=900))
    records = [Record(b"a", bases, bases), Record(b"b", b"A" * 200, b"F" * 200)]
    records += World.of(k, 20).records
    path = write(tmp_path / "a.fa", fasta(records, width=1000))
    rooms = {"gpu": 1 << 30, "host": 0, "disk": 0}[place], {"disk": 0}.get(place, 1 << 30)
    text = PackedText(k, 0, 24, *rooms, tmp_path)
    plan = CountPlan(doing="", allocations=(), budget=0, rows=rows, chunk_bytes=0, block_words=24)
    parameters = CountParameters(k)
    options = RunOptions()
    counter = gpu_run.GpuCounter(
        [], Tally(), parameters, 33, options, tmp_path, plan, ReadSample(), None
    )
    counter._text = text
    expected = []
    for own in stretches(path, k, text.most_letters - k):
        text.append(*packed_letters(own, k, 0))
        room = np.empty((own.room, parameters.words), dtype=np.uint64)
        expected.append(room[: kmers_in(own, k, 0, room)])
    assert (text.on_disk > 0) == (place == "disk")
    ranges = counter._ranges()
    assert rows != 300 or len(ranges) > 1
    found = [(own.kmers.T, own.counts) for own in counter._counted(ranges)]
    kmers, counts = np.unique(np.concatenate(expected), axis=0, return_counts=True)
    assert np.array_equal(np.concatenate([own for own, _ in found]), kmers)
    assert np.array_equal(np.concatenate([own for _, own in found]), counts)
    assert counter._total == counts.sum()
    text.close()
    assert [own.name for own in tmp_path.iterdir()] == ["a.fa"]


@pytest.mark.usefixtures("_on_host")
def test_empty_sequences_need_no_room(tmp_path: Path) -> None:
    """There may be more of them than a block has letters."""
    records = [Record(b"e", b"", b"")] * 2000 + [Record(b"a", b"ACGGT" * 9, b"F" * 45)]
    path = write(tmp_path / "a.fa", fasta(records, width=1000))
    text = PackedText(21, 0, 24, 1 << 30, 0, tmp_path)
    for own in stretches(path, 21, text.most_letters - 21):
        text.append(*packed_letters(own, 21, 0))
    assert text.find(gpu_run._ALL, np.empty((1, 100), dtype=np.uint64).view(_Array)) == 45 - 20


@pytest.mark.usefixtures("_on_host")
def test_letters_without_room_are_refused(tmp_path: Path) -> None:
    """What a block has no room for is an error, not written behind it."""
    text = PackedText(21, 0, 24, 1 << 30, 0, tmp_path)
    lengths = np.full(8, 100, dtype=np.int32)
    chunk: Any = SimpleNamespace(slot=SimpleNamespace(lengths=lengths))
    with pytest.raises(ValueError, match="27 words of letters for blocks of 24"):
        text.add(chunk, 0, 8)
    with pytest.raises(ValueError, match="25 words of letters for blocks of 24"):
        text.append(np.zeros(25, dtype=np.uint64), np.zeros(25, dtype=np.uint32))
    assert text.words == 0


@pytest.mark.parametrize("letters", [None, 1000, 10**7])
@pytest.mark.parametrize("budget", [20 << 20, 64 << 20, 4 << 30])
def test_a_chunk_fits_into_a_block(letters: int | None, budget: int) -> None:
    """Its letters, those of a record carried into it, and separators."""
    plan = plan_counting(letters, 2, budget)
    assert plan.block_words >= (HEADROOM + plan.chunk_bytes + 1) // 2 // LETTERS + 2


def test_plan_of_the_human_genome() -> None:
    """Letters take at most half of the GPU; one of 80 GB counts 30-fold reads."""
    letters = 914_000_000 * 100
    assert all(plan_counting(letters, words, 20 << 20).fits for words in (1, 4))
    for budget in (24 << 30, 76 << 30, 139 << 30):
        plan = plan_counting(letters, 1, budget)
        assert plan.total <= budget
        assert plan.bytes_of("letters") <= budget // 2
        assert 1 < plan.passes <= (90 if budget >> 30 > 24 else 250)
        assert "ranges" in plan.line()
