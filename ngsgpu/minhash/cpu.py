"""Numba kernels of the minhash tables: signatures, sorting, buckets, look-up.

Read them in that order. A table is two arrays in bucket order: ``ids`` holds read numbers, whose
top bit marks the first entry of a bucket, and ``positions`` the position and the strand of the
k-mer that brought the read there. ``slots[read, table]`` is the entry of a read in a table, so
that a read that looks for its neighbours walks to both ends of its bucket and searches nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.params import MAX_ENTRIES
from ngsgpu.readset.cpu import ReadArrays, read_length
from ngsgpu.readset.kmers import canonical_kmers
from ngsgpu.sequence.hashing import find_cell, mix64, unmix64

BUCKET_START = np.uint32(1 << 31)
READ_MASK = np.uint32((1 << 31) - 1)
NO_SLOT = np.uint32(0xFFFFFFFF)
DIGIT_BITS = 11


class TableArrays(NamedTuple):
    """The tables, as passed to kernels.

    Attributes:
        ids: uint32[hashes, reads + 1], read numbers in bucket order, top bit at bucket starts.
        positions: uint16[hashes, reads + 1], 2 x position + strand of each entry's k-mer.
        slots: uint32[reads, hashes], entry of each read in each table, or ``NO_SLOT``.
    """

    ids: NDArray[np.uint32]
    positions: NDArray[np.uint16]
    slots: NDArray[np.uint32]


class FoundArrays(NamedTuple):
    """Workspace and result of ``find_candidates``.

    Attributes:
        key: uint64, distinct entries: read << 17 | (shift + 32768) << 1 | reverse_complemented.
        cells: int32, open-addressing hash table of indices into ``key``, -1 if free.
        used: int32, cells in use.
    """

    key: NDArray[np.uint64]
    cells: NDArray[np.int32]
    used: NDArray[np.int32]

    @classmethod
    def allocate(cls, capacity: int = MAX_ENTRIES) -> FoundArrays:
        """Workspace for up to ``capacity`` distinct entries."""
        cells = 64
        while cells < 2 * capacity:
            cells *= 2
        return cls(
            key=np.empty(capacity, dtype=np.uint64),
            cells=np.full(cells, -1, dtype=np.int32),
            used=np.empty(capacity, dtype=np.int32),
        )


@njit(nogil=True, cache=True)
def smallest_hash(canonical: NDArray[np.uint64], count: Integer, function: np.uint64) -> np.uint64:
    """Smallest of the 64-bit hashes of the k-mers under one function."""
    smallest = ~np.uint64(0)
    for i in range(count):
        smallest = min(smallest, mix64(canonical[i] + function))
    return smallest


@njit(nogil=True, cache=True)
def sign_reads(
    reads: ReadArrays,
    first: int,
    last: int,
    k: int,
    first_function: int,
    keys: NDArray[np.uint64],
    positions: NDArray[np.uint16],
    canonical: NDArray[np.uint64],
    forward: NDArray[np.uint64],
) -> None:
    """Signatures of reads ``first`` to ``last`` under ``len(keys)`` consecutive functions.

    ``keys[f, read]`` becomes the low 2k bits of the smallest hash, ``positions[f, read]`` twice the
    (first) position of its k-mer, plus 1 where the k-mer is the reverse complement of the
    canonical one. Reads shorter than k are left as they are.
    """
    mask = ~np.uint64(0) if k == 32 else (np.uint64(1) << np.uint64(2 * k)) - np.uint64(1)
    for read in range(first, last):
        count = canonical_kmers(reads, read, k, canonical, forward)
        if count == 0:
            continue
        for function in range(len(keys)):
            number = np.uint64(first_function + function)
            smallest = smallest_hash(canonical, count, number)
            # The hash is a bijection: recover the k-mer from it and find its position.
            kmer = unmix64(smallest) - number
            position = 0
            while canonical[position] != kmer:
                position += 1
            keys[function, read] = smallest & mask
            positions[function, read] = 2 * position + (forward[position] != kmer)


@njit(nogil=True, cache=True)
def sort_by_key(
    keys: NDArray[np.uint64],
    ids: NDArray[np.uint32],
    spare_keys: NDArray[np.uint64],
    spare_ids: NDArray[np.uint32],
    bits: int,
) -> bool:
    """Sort ids by key, stably (LSD radix sort); return whether the spare arrays hold the result."""
    count = len(keys)
    passes = (bits + DIGIT_BITS - 1) // DIGIT_BITS
    digit = np.uint64((1 << DIGIT_BITS) - 1)
    histogram = np.zeros((passes, 1 << DIGIT_BITS), dtype=np.int64)
    for i in range(count):
        key = keys[i]
        for p in range(passes):
            histogram[p, (key >> np.uint64(p * DIGIT_BITS)) & digit] += 1
    swapped = False
    for p in range(passes):
        shift = np.uint64(p * DIGIT_BITS)
        total = 0
        for value in range(1 << DIGIT_BITS):
            size = histogram[p, value]
            histogram[p, value] = total
            total += size
        for i in range(count):
            key = keys[i]
            value = (key >> shift) & digit
            target = histogram[p, value]
            histogram[p, value] = target + 1
            spare_keys[target] = key
            spare_ids[target] = ids[i]
        keys, spare_keys = spare_keys, keys
        ids, spare_ids = spare_ids, ids
        swapped = not swapped
    return swapped


@njit(nogil=True, cache=True)
def fill_table(
    keys: NDArray[np.uint64],
    ids: NDArray[np.uint32],
    positions: NDArray[np.uint16],
    table: int,
    table_ids: NDArray[np.uint32],
    table_positions: NDArray[np.uint16],
    slots: NDArray[np.uint32],
) -> tuple[int, int]:
    """Turn sorted (key, id) pairs into a table; return its number of entries and of buckets.

    Reads alone in their bucket are dropped. The entry after the last one is marked as a bucket's
    start, so that walks end there.
    """
    entries = 0
    buckets = 0
    count = len(keys)
    begin = 0
    while begin < count:
        end = begin + 1
        while end < count and keys[end] == keys[begin]:
            end += 1
        if end - begin >= 2:
            for i in range(begin, end):
                read = ids[i]
                table_ids[entries] = read | BUCKET_START if i == begin else read
                table_positions[entries] = positions[read]
                slots[read, table] = entries
                entries += 1
            buckets += 1
        begin = end
    table_ids[entries] = BUCKET_START
    return entries, buckets


@njit(nogil=True, cache=True)
def bucket_window(
    ids: NDArray[np.uint32], slot: np.uint32, max_bucket_size: int, window: int
) -> tuple[Integer, Integer, bool]:
    """Entries that the read at ``slot`` looks at, and whether its bucket is crowded.

    A bucket of more than ``max_bucket_size`` reads comes from a repeat. Of more than ``window``
    reads, those closest by number are used: reads are numbered in sequencing order, which is
    independent of the genome.
    """
    first = np.int64(slot)
    begin = first
    while ids[begin] < BUCKET_START and first - begin < max_bucket_size:
        begin -= 1
    end = first + 1
    while ids[end] < BUCKET_START and end - first <= max_bucket_size:
        end += 1
    # Neither walk goes beyond the reach of an uncrowded bucket.
    at_start = ids[begin] >= BUCKET_START
    at_end = ids[end] >= BUCKET_START
    crowded = not (at_start and at_end and end - begin <= max_bucket_size)
    if not crowded and end - begin <= window:
        return begin, end, False
    low = first - window // 2
    if at_end:
        low = min(low, end - window)
    if at_start:
        low = max(low, begin)
    return low, low + window, crowded


@njit(nogil=True, cache=True)
def find_candidates(
    reads: ReadArrays,
    tables: TableArrays,
    anchor: Integer,
    k: int,
    max_bucket_size: int,
    window: int,
    found: FoundArrays,
    bounds: NDArray[np.int64],
) -> tuple[int, bool]:
    """Collect the distinct (read, strand, shift) that share a k-mer with the anchor.

    A read and the anchor in one bucket share a canonical k-mer, and its two positions determine the
    alignment: reverse-complemented if the strands differ, and shifted so that the k-mers coincide.

    Args:
        reads: the read arrays.
        tables: the tables (``TableArrays``).
        anchor: number of the anchor.
        k: k-mer length.
        max_bucket_size: a bucket with more reads comes from a repeat.
        window: maximum bucket entries examined, at most ``max_bucket_size``.
        found: workspace and result (``FoundArrays``).
        bounds: int64[hashes, 2], workspace.

    Returns:
        The number of distinct entries in ``found``, and whether any bucket was crowded.
    """
    hashes = tables.slots.shape[1]
    total = 0
    crowded = False
    for table in range(hashes):
        slot = tables.slots[anchor, table]
        if slot == NO_SLOT:
            bounds[table, 0] = 0
            bounds[table, 1] = 0
            continue
        begin, end, more = bucket_window(tables.ids[table], slot, max_bucket_size, window)
        crowded = crowded or more
        bounds[table, 0] = begin
        bounds[table, 1] = end
        total += end - begin
    if total == 0:
        return 0, False
    size = 64
    while size < 2 * total:
        size *= 2
    count = 0
    for table in range(hashes):
        begin = bounds[table, 0]
        end = bounds[table, 1]
        if begin == end:
            continue
        own = np.int64(tables.positions[table, np.int64(tables.slots[anchor, table])])
        for entry in range(begin, end):
            read = np.int64(tables.ids[table, entry] & READ_MASK)
            if read == anchor:
                continue
            place = np.int64(tables.positions[table, entry])
            reverse_complemented = (own ^ place) & 1
            position = place >> 1
            if reverse_complemented:
                position = read_length(reads, read) - k - position
            shift = (own >> 1) - position
            key = (np.uint64(read) << np.uint64(17)) | np.uint64(
                ((shift + 32768) << 1) | reverse_complemented
            )
            cell = find_cell(found.cells, size, found.key, key)
            if found.cells[cell] >= 0:
                continue
            found.cells[cell] = count
            found.used[count] = cell
            found.key[count] = key
            count += 1
    for i in range(count):
        found.cells[found.used[i]] = -1
    return count, crowded
