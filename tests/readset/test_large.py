"""Reads and tables whose indices need more than 31 or 32 bits, in memory that is hardly touched."""

from __future__ import annotations

import math
import mmap
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.correct import CorrectionParameters, MinhashParameters, cpu
from ngsgpu.correct.workspace import Workspace
from ngsgpu.errors import DeviceError, InputError
from ngsgpu.extend.gpu import MAX_READS as MAX_EXTENDED
from ngsgpu.extend.gpu import DeviceExtender
from ngsgpu.hashtable.gpu import groups_for
from ngsgpu.minhash import build_tables
from ngsgpu.minhash.cpu import FoundArrays, TableArrays, find_candidates, sign_reads
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.cpu import ReadArrays
from ngsgpu.readset.readset import MAX_READS
from tests.support.io.records import Record, fastq, write

NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux, which mmap does not name
LENGTH, READS, KMER, HASHES = 100, 60, 16, 3
OFFSET = MAX_READS - READS
"""What is added to the numbers of the few reads, so that they are the last that can be."""


def sparse(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros that takes memory only where it is written."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        memory = mmap.mmap(-1, size, flags=flags)
    except OSError as error:
        pytest.skip(f"the system has no {size:,} bytes of addresses: {error}")
    return np.frombuffer(memory, dtype).reshape(shape)


@pytest.fixture(scope="module")
def few() -> ReadSet:
    rng = random.Random(4)
    genome = "".join(rng.choices("ACGT", k=300))
    sequences, qualities = [], []
    for _ in range(READS):
        begin = rng.randrange(len(genome) - LENGTH)
        letters = [
            rng.choice("ACGT") if rng.random() < 0.02 else base
            for base in genome[begin : begin + LENGTH]
        ]
        sequences.append("".join(letters))
        qualities.append("".join(chr(33 + rng.choice([10, 20, 35])) for _ in letters))
    return ReadSet.from_sequences(sequences, qualities)


@pytest.fixture(scope="module")
def many(few: ReadSet) -> ReadArrays:
    """The same reads, behind others of which nothing is looked at."""
    arrays = few.arrays
    planes = sparse((MAX_READS * len(arrays.planes) // READS,), np.uint64)
    planes[-len(arrays.planes) :] = arrays.planes
    qualities = sparse((MAX_READS * LENGTH,), np.uint8)
    qualities[-len(arrays.qualities) :] = arrays.qualities
    assert len(planes) > 1 << 32 < len(qualities)
    return arrays._replace(planes=planes, qualities=qualities)


PARAMETERS = CorrectionParameters(minhash=MinhashParameters(kmer=KMER, hashes=HASHES))


def moved(tables: TableArrays, entries: NDArray[Any]) -> TableArrays:
    """Tables of the last reads, behind entries of which nothing is looked at."""
    ids = sparse((HASHES, MAX_READS + 1), np.uint32)
    positions = sparse((HASHES, MAX_READS + 1), tables.positions.dtype)
    for table, count in enumerate(entries.tolist()):
        ids[table, OFFSET : OFFSET + count + 1] = tables.ids[table, : count + 1] + OFFSET
        positions[table, OFFSET : OFFSET + count] = tables.positions[table, :count]
    return tables._replace(
        ids=ids,
        positions=positions,
        cells=tables.cells + np.uint32(OFFSET),
        long_buckets=tables.long_buckets + np.uint32(OFFSET),
    )


def test_signatures(few: ReadSet, many: ReadArrays) -> None:
    found = []
    for arrays, offset in ((few.arrays, 0), (many, OFFSET)):
        keys = sparse((HASHES, offset + READS), np.uint64)
        positions = sparse((HASHES, offset + READS), np.uint16)
        spaces = [np.empty(LENGTH, np.uint64) for _ in range(2)]
        sign_reads(arrays, offset, offset + READS, KMER, 0, keys, positions, *spaces)
        found.append((keys[:, offset:], positions[:, offset:]))
    for one, two in zip(*found, strict=True):
        assert one.any() and np.array_equal(one, two)


def test_candidates_and_corrections(few: ReadSet, many: ReadArrays) -> None:
    built = build_tables(few, PARAMETERS.minhash)
    cases = ((few.arrays, built.arrays, 0), (many, moved(built.arrays, built.entries), OFFSET))
    candidates, corrections = [], []
    for arrays, tables, offset in cases:
        found, bounds = FoundArrays.allocate(LENGTH), np.empty((HASHES, 3), np.int64)
        own = []
        for anchor in range(offset, offset + READS):
            count, _ = find_candidates(arrays, tables, anchor, KMER, 1000, 1000, found, bounds)
            own.append(sorted(int(key) - (offset << 17) for key in found.key[:count]))
        candidates.append(own)
        space = Workspace.allocate(LENGTH, HASHES, PARAMETERS.margin)
        anchors = np.arange(offset, offset + READS, dtype=np.uint32)
        done, records, votes = cpu.correct_anchors(
            arrays, few.ambiguous, tables, quality_weights(8),
            PARAMETERS.rules(20.0, paired=False), anchors, 0, space,
        )  # fmt: skip
        assert done == READS
        ends = space.edit_ends[:records]
        corrections.append(
            (
                (space.edit_reads[:records].astype(np.int64) - offset).tolist(),
                space.classes[:records].tolist(),
                ends.tolist(),
                space.edits[: int(ends.max())].tolist(),
                (space.vote_reads[:votes].astype(np.int64) - offset).tolist(),
                space.counters.tolist(),
            )
        )
    assert candidates[0] == candidates[1] and sum(map(len, candidates[0])) > READS
    assert corrections[0] == corrections[1] and len(corrections[0][3]) > 20


def test_more_reads_than_numbers_are_refused(tmp_path: Any) -> None:
    from ngsgpu.io.text.reader import read_batches

    path = write(tmp_path / "r.fq", fastq([Record(b"r", b"ACGT", b"IIII")] * 4))
    builder = ReadSetBuilder(paired=False)
    builder.reads = MAX_READS - 3
    with pytest.raises(InputError, match=r"there are more than 2,147,483,647 reads"):
        for batch in read_batches(path):
            builder.add(batch)


def test_more_reads_than_a_gpu_extends_are_refused() -> None:
    reads: Any = SimpleNamespace(reads=MAX_EXTENDED + 1)
    nothing: Any = None
    with pytest.raises(DeviceError, match=r"1,073,741,824 reads .*`backend='cpu'`"):
        DeviceExtender(reads, nothing, nothing)


def test_hash_tables_of_more_slots_than_keys() -> None:
    for slots in ((1 << 32) + 1, 1 << 34):
        groups = groups_for(slots)
        assert slots <= 8 * groups < slots + 8 * 500
    with pytest.raises(DeviceError, match="cannot have"):
        groups_for(8 << 32)
