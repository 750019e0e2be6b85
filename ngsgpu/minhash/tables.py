"""Building the minhash tables of a read set, several at a time on several threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.minhash import cpu
from ngsgpu.minhash.cpu import TableArrays
from ngsgpu.minhash.params import MinhashParameters
from ngsgpu.pool import map_all
from ngsgpu.readset import ReadSet

ENTRY_BYTES = 4 + 2 + 4
"""Bytes per read and table: read number, position, slot."""

FUNCTIONS_PER_PASS = 8, 16
"""Signatures of at least and at most this many functions are made in one pass over the reads: one
for each thread, since each thread sorts one table."""


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


def planned_bytes(reads: int, parameters: MinhashParameters, threads: int) -> int:
    """Maximum memory in bytes for building and holding the tables of ``reads`` reads."""
    held = reads * parameters.hashes * ENTRY_BYTES
    signatures = reads * _functions_per_pass(threads) * (8 + 2)
    sorting = reads * threads * (8 + 4 + 4)
    return held + signatures + sorting


def _functions_per_pass(threads: int) -> int:
    fewest, most = FUNCTIONS_PER_PASS
    return min(most, max(fewest, threads))


def build_tables(
    reads: ReadSet,
    parameters: MinhashParameters,
    *,
    threads: int = 1,
    advance: Callable[[int], None] = lambda tables: None,
) -> MinhashTables:
    """Build all tables.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        threads: how many threads work.
        advance: called with the number of tables that were finished since the last call.
    """
    count = reads.reads
    arrays = TableArrays(
        # Pages that no table reaches are never touched, so they use no memory.
        ids=np.empty((parameters.hashes, count + 1), dtype=np.uint32),
        positions=np.empty((parameters.hashes, count + 1), dtype=np.uint16),
        slots=np.full((count, parameters.hashes), cpu.NO_SLOT, dtype=np.uint32),
    )
    long_enough = _reads_with_kmers(reads, parameters.k)
    entries = np.zeros(parameters.hashes, dtype=np.int64)
    buckets = np.zeros(parameters.hashes, dtype=np.int64)
    per_pass = _functions_per_pass(threads)
    for first in range(0, parameters.hashes, per_pass):
        functions = min(per_pass, parameters.hashes - first)
        keys = np.empty((functions, count), dtype=np.uint64)
        positions = np.empty((functions, count), dtype=np.uint16)
        _sign(reads, parameters, first, keys, positions, threads)

        def build(
            function: int,
            first: int = first,
            keys: NDArray[np.uint64] = keys,
            positions: NDArray[np.uint16] = positions,
        ) -> None:
            table = first + function
            sorted_keys, ids = _sorted(keys[function], long_enough, 2 * parameters.k)
            entries[table], buckets[table] = cpu.fill_table(
                sorted_keys,
                ids,
                positions[function],
                table,
                arrays.ids[table],
                arrays.positions[table],
                arrays.slots,
            )
            advance(1)

        map_all(threads, build, range(functions), name="build")
    return MinhashTables(arrays, entries, buckets)


def _reads_with_kmers(reads: ReadSet, kmer: int) -> NDArray[np.uint32]:
    """Numbers of the reads that are long enough to have a k-mer."""
    if reads.min_length >= kmer or reads.reads == 0:
        return np.arange(reads.reads, dtype=np.uint32)
    if reads.max_length < kmer:
        return np.zeros(0, dtype=np.uint32)
    return np.flatnonzero(reads.arrays.lengths >= kmer).astype(np.uint32)


def _sign(
    reads: ReadSet,
    parameters: MinhashParameters,
    first_table: int,
    keys: NDArray[np.uint64],
    positions: NDArray[np.uint16],
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


def _sorted(
    keys: NDArray[np.uint64], ids: NDArray[np.uint32], bits: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Keys and ids of the given reads, sorted by key and then by id."""
    keys = keys[ids] if len(ids) < len(keys) else keys
    ids = ids.copy()
    spare_keys, spare_ids = np.empty_like(keys), np.empty_like(ids)
    swapped = cpu.sort_by_key(keys, ids, spare_keys, spare_ids, bits)
    return (spare_keys, spare_ids) if swapped else (keys, ids)
