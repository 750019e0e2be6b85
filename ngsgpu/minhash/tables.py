"""Building the minhash tables of a read set, each by all threads: they sort parts of its keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.minhash import cpu
from ngsgpu.minhash.cpu import TableArrays
from ngsgpu.minhash.params import MinhashParameters
from ngsgpu.pool import map_all
from ngsgpu.readset import ReadSet

CELL_BITS_SPARED = 3
"""A cell has this many bits more entries than one on average, at most one more."""

_SIGNED_BYTES = 8 << 30
"""Signatures of several functions are made in one pass over the reads while they take no more."""

_MOST_FUNCTIONS = 16
_MOST_PART_BITS = 9
_BITS_OF_A_PART = 15
"""A table is sorted in parts of the same highest bits of the key, each by one thread; parts have
some 2^15 reads, but for many reads more."""


@dataclass(frozen=True, slots=True)
class MinhashTables:
    """The tables of a read set.

    Attributes:
        arrays: the arrays passed to kernels.
        entries: int64[hashes], entries of each table.
        buckets: int64[hashes], buckets of each table.
    """

    arrays: TableArrays
    entries: NDArray[np.int64]
    buckets: NDArray[np.int64]


def place_type(max_length: int, k: int) -> Any:
    """What holds position and strand of a k-mer in reads of up to some length."""
    return np.dtype(np.uint8 if max_length - k < 128 else np.uint16)


def entry_bytes(max_length: int, k: int) -> int:
    """Bytes of an entry: read number and position."""
    return 4 + int(place_type(max_length, k).itemsize)


def cell_bits_for(reads: int, k: int) -> int:
    """Bits of the key that choose the cell of a table, for a number of reads."""
    return min(2 * k, 28, max(0, reads.bit_length() - 1 - CELL_BITS_SPARED))


def cells_bytes(reads: int, k: int) -> int:
    """Bytes of a table's cells."""
    return 4 * ((1 << cell_bits_for(reads, k)) + 1)


def planned_bytes(reads: int, max_length: int, parameters: MinhashParameters) -> int:
    """Maximum memory in bytes for building and holding the tables of ``reads`` reads."""
    an_entry = entry_bytes(max_length, parameters.k)
    held = parameters.tables * (reads * an_entry + cells_bytes(reads, parameters.k))
    # The keys of a pass; those of a table in the order of its parts, and their reads.
    return held + reads * (_functions_per_pass(reads) * (8 + an_entry - 4) + 8 + 4)


def _functions_per_pass(reads: int) -> int:
    return max(1, min(_MOST_FUNCTIONS, _SIGNED_BYTES // max(1, 10 * reads)))


def build_tables(
    reads: ReadSet,
    parameters: MinhashParameters,
    *,
    threads: int = 1,
    advance: Callable[[int], None] = lambda tables: None,
) -> MinhashTables:
    """Build all tables, one after the other, each with all threads.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        threads: how many threads work.
        advance: called with the number of tables that were finished since the last call.
    """
    count, hashes = reads.reads, parameters.tables
    place = place_type(reads.max_length, parameters.k)
    bits = cell_bits_for(count, parameters.k)
    arrays = TableArrays(
        # Pages that no table reaches are never touched, so they use no memory.
        ids=np.empty((hashes, count + 1), dtype=np.uint32),
        positions=np.empty((hashes, count + 1), dtype=place),
        cells=np.empty((hashes, (1 << bits) + 1), dtype=np.uint32),
        long_buckets=np.empty((0, 2), dtype=np.uint32),
        long_start=np.zeros(hashes + 1, dtype=np.int64),
        first_function=parameters.first_function,
        below=2 * parameters.k - bits,
    )
    entries = np.zeros(hashes, dtype=np.int64)
    buckets = np.zeros(hashes, dtype=np.int64)
    long_buckets = []
    per_pass = min(hashes, _functions_per_pass(count))
    keys = np.empty((per_pass, count), dtype=np.uint64)
    positions = np.empty((per_pass, count), dtype=place)
    for first in range(0, hashes, per_pass):
        own_keys = keys[: hashes - first]
        _sign(reads, parameters, first, own_keys, positions[: hashes - first], threads)
        for function in range(len(own_keys)):
            table = first + function
            entries[table], buckets[table], own = _build(
                reads, own_keys[function], positions[function], parameters.k, bits, arrays, table,
                threads,
            )  # fmt: skip
            long_buckets.append(own)
            arrays.long_start[table + 1] = arrays.long_start[table] + len(own)
            advance(1)
    if long_buckets:
        arrays = arrays._replace(long_buckets=np.concatenate(long_buckets))
    return MinhashTables(arrays, entries, buckets)


def _build(
    reads: ReadSet,
    keys: NDArray[np.uint64],
    positions: NDArray[Any],
    k: int,
    bits: int,
    arrays: TableArrays,
    table: int,
    threads: int,
) -> tuple[int, int, NDArray[np.uint32]]:
    """Build a table from its signatures; return its entries, its buckets and the long ones."""
    part_bits = min(bits, _MOST_PART_BITS, max(0, reads.reads.bit_length() - _BITS_OF_A_PART))
    shift = 2 * k - part_bits
    bounds = np.linspace(0, reads.reads, 4 * threads + 1).astype(np.int64)
    ranges = list(itertools.pairwise(bounds.tolist()))
    # How many keys of each part each range of the reads has, and then where they belong.
    counts = np.zeros((len(ranges), 1 << part_bits), dtype=np.int64)

    def count(one: int) -> None:
        cpu.count_parts(reads.arrays, *ranges[one], k, keys, shift, counts[one])

    map_all(threads, count, range(len(ranges)), name="count")
    sizes = counts.sum(axis=0)
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    part_keys = np.empty(starts[-1], dtype=np.uint64)
    part_ids = np.empty(starts[-1], dtype=np.uint32)

    def scatter(one: int) -> None:
        cpu.scatter_parts(
            reads.arrays, *ranges[one], k, keys, shift, places[one], part_keys, part_ids
        )

    map_all(threads, scatter, range(len(ranges)), name="scatter")
    made = np.zeros((len(sizes), 3), dtype=np.int64)

    def sort(part: int) -> None:
        piece = slice(starts[part], starts[part + 1])
        _sort(part_keys[piece], part_ids[piece], shift)
        made[part] = cpu.count_shared(part_keys[piece])

    map_all(threads, sort, range(len(sizes)), name="sort")
    ends = np.cumsum(made, axis=0)
    long_buckets = np.empty((ends[-1, 2], 2), dtype=np.uint32)
    cells = 1 << (bits - part_bits)

    def fill(part: int) -> None:
        piece = slice(starts[part], starts[part + 1])
        cpu.fill_table(
            part_keys[piece],
            part_ids[piece],
            positions,
            ends[part, 0] - made[part, 0],
            arrays.below,
            part * cells,
            arrays.ids[table],
            arrays.positions[table],
            arrays.cells[table, part * cells : (part + 1) * cells],
            long_buckets[ends[part, 2] - made[part, 2] : ends[part, 2]],
        )

    map_all(threads, fill, range(len(sizes)), name="fill")
    entries, buckets, _ = ends[-1].tolist()
    # Walks end behind the last entry.
    arrays.ids[table, entries] = cpu.BUCKET_START
    arrays.cells[table, -1] = entries
    return entries, buckets, long_buckets


def _sign(
    reads: ReadSet,
    parameters: MinhashParameters,
    first_table: int,
    keys: NDArray[np.uint64],
    positions: NDArray[Any],
    threads: int,
) -> None:
    pieces = np.linspace(0, reads.reads, 4 * threads + 1).astype(np.int64).tolist()

    def sign(bounds: tuple[int, int]) -> None:
        canonical = np.empty(max(reads.max_length, 1), dtype=np.uint64)
        cpu.sign_reads(
            reads.arrays,
            *bounds,
            parameters.k,
            parameters.first_function + first_table,
            keys,
            positions,
            canonical,
            np.empty_like(canonical),
        )

    map_all(threads, sign, itertools.pairwise(pieces), name="sign")


def _sort(keys: NDArray[np.uint64], ids: NDArray[np.uint32], bits: int) -> None:
    """Sort keys that have these bits in addition to equal ones, and their ids, in place."""
    spare_keys, spare_ids = np.empty_like(keys), np.empty_like(ids)
    if cpu.sort_by_key(keys, ids, spare_keys, spare_ids, bits):
        keys[:], ids[:] = spare_keys, spare_ids
