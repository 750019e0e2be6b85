"""Numba kernels of the minhash tables: signatures, sorting, buckets, look-up.

Read them in that order. A table is two arrays in bucket order: ``ids`` holds read numbers, whose
top bit marks the first entry of a bucket, and ``positions`` the position and the strand of the
k-mer that brought the read there. No keys are kept: a read that looks for its neighbours is in
their bucket itself. The highest bits of its key choose a cell of some 16 entries, in which it looks
for its own number. Where a bucket is too long for that, its ends are listed.
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

NEAR_ENTRIES = 64
"""Entries of the longest bucket through which a read searches for itself one by one."""


class TableArrays(NamedTuple):
    """The tables, as passed to kernels.

    Attributes:
        ids: uint32[hashes, reads + 1], read numbers in bucket order, top bit at bucket starts.
        positions: uint8 or uint16[hashes, reads + 1], 2 x position + strand of each entry's k-mer.
        cells: uint32[hashes, cells + 1], first entry of each cell.
        long_buckets: uint32[., 2], first entry and end of the buckets of more than
            ``NEAR_ENTRIES``, in the order of tables and entries.
        long_start: int64[hashes + 1], first of them of each table.
        first_function: what the first hash function adds to a k-mer.
        below: bits of a key below those that choose the cell.
    """

    ids: NDArray[np.uint32]
    positions: NDArray[np.uint8] | NDArray[np.uint16]
    cells: NDArray[np.uint32]
    long_buckets: NDArray[np.uint32]
    long_start: NDArray[np.int64]
    first_function: int
    below: int


class FoundArrays(NamedTuple):
    """Workspace and result of ``find_candidates``.

    Attributes:
        key: uint64, distinct entries: read << 17 | (shift + 32768) << 1 | reverse_complemented.
        cells: int32, open-addressing hash table of indices into ``key``, -1 if free.
        used: int32, cells in use.
        canonical: uint64, k-mers of the anchor.
        forward: uint64, the same.
    """

    key: NDArray[np.uint64]
    cells: NDArray[np.int32]
    used: NDArray[np.int32]
    canonical: NDArray[np.uint64]
    forward: NDArray[np.uint64]

    @classmethod
    def allocate(cls, max_length: int, capacity: int = MAX_ENTRIES) -> FoundArrays:
        """Workspace for up to ``capacity`` distinct entries of reads of up to some length."""
        cells = 64
        while cells < 2 * capacity:
            cells *= 2
        return cls(
            key=np.empty(capacity, dtype=np.uint64),
            cells=np.full(cells, -1, dtype=np.int32),
            used=np.empty(capacity, dtype=np.int32),
            canonical=np.empty(max(1, max_length), dtype=np.uint64),
            forward=np.empty(max(1, max_length), dtype=np.uint64),
        )


@njit(nogil=True, cache=True)
def smallest_hash(canonical: NDArray[np.uint64], count: Integer, function: np.uint64) -> np.uint64:
    """Smallest of the 64-bit hashes of the k-mers under one function."""
    smallest = ~np.uint64(0)
    for i in range(count):
        smallest = min(smallest, mix64(canonical[i] + function))
    return smallest


@njit(nogil=True, cache=True, inline="always")
def key_mask(k: int) -> np.uint64:
    """The bits of a hash that are a key."""
    return ~np.uint64(0) if k == 32 else (np.uint64(1) << np.uint64(2 * k)) - np.uint64(1)


@njit(nogil=True, cache=True, inline="always")
def cell_of(key: np.uint64, below: int) -> np.int64:
    """The cell of a key."""
    return np.int64(key >> np.uint64(below)) if below < 64 else np.int64(0)


@njit(nogil=True, cache=True)
def sign_reads(
    reads: ReadArrays,
    first: int,
    last: int,
    k: int,
    first_function: int,
    keys: NDArray[np.uint64],
    positions: NDArray[np.uint8] | NDArray[np.uint16],
    canonical: NDArray[np.uint64],
    forward: NDArray[np.uint64],
) -> None:
    """Signatures of reads ``first`` to ``last`` under ``len(keys)`` consecutive functions.

    ``keys[f, read]`` becomes the low 2k bits of the smallest hash, ``positions[f, read]`` twice the
    (first) position of its k-mer, plus 1 where the k-mer is the reverse complement of the
    canonical one. Reads shorter than k are left as they are.
    """
    mask = key_mask(k)
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
def count_parts(
    reads: ReadArrays,
    first: int,
    last: int,
    k: int,
    keys: NDArray[np.uint64],
    shift: int,
    counts: NDArray[np.int64],
) -> None:
    """Add to ``counts`` the keys of reads ``first`` to ``last`` by their bits from ``shift`` on."""
    for read in range(first, last):
        if read_length(reads, read) >= k:
            counts[cell_of(keys[read], shift)] += 1


@njit(nogil=True, cache=True)
def scatter_parts(
    reads: ReadArrays,
    first: int,
    last: int,
    k: int,
    keys: NDArray[np.uint64],
    shift: int,
    places: NDArray[np.int64],
    part_keys: NDArray[np.uint64],
    part_ids: NDArray[np.uint32],
) -> None:
    """Put keys and reads where the next one of each part belongs, ``places``, which moves on."""
    for read in range(first, last):
        if read_length(reads, read) >= k:
            part = cell_of(keys[read], shift)
            place = places[part]
            places[part] = place + 1
            part_keys[place] = keys[read]
            part_ids[place] = read


@njit(nogil=True, cache=True)
def count_shared(keys: NDArray[np.uint64]) -> tuple[int, int, int]:
    """Entries, buckets and long buckets that sorted keys make; see ``fill_table``."""
    entries, buckets, long_buckets = 0, 0, 0
    begin = 0
    for end in range(1, len(keys) + 1):
        if end < len(keys) and keys[end] == keys[begin]:
            continue
        if end - begin >= 2:
            entries += end - begin
            buckets += 1
            long_buckets += end - begin > NEAR_ENTRIES
        begin = end
    return entries, buckets, long_buckets


@njit(nogil=True, cache=True)
def fill_table(
    keys: NDArray[np.uint64],
    ids: NDArray[np.uint32],
    positions: NDArray[np.uint8] | NDArray[np.uint16],
    at: int,
    below: int,
    first_cell: int,
    table_ids: NDArray[np.uint32],
    table_positions: NDArray[np.uint8] | NDArray[np.uint16],
    cells: NDArray[np.uint32],
    long_buckets: NDArray[np.uint32],
) -> None:
    """Turn sorted (key, id) pairs into a part of a table, from entry ``at`` on.

    Reads alone in their bucket are dropped.

    Args:
        keys: keys of the part, sorted.
        ids: their reads.
        positions: position and strand of each read's k-mer.
        at: first entry.
        below: bits of a key below those that choose the cell.
        first_cell: number of the part's first cell.
        table_ids: of the whole table.
        table_positions: the same.
        cells: first entries of the part's cells.
        long_buckets: of the part.
    """
    cell = 0
    found = 0
    begin = 0
    for end in range(1, len(keys) + 1):
        if end < len(keys) and keys[end] == keys[begin]:
            continue
        own_cell = cell_of(keys[begin], below) - first_cell
        while cell <= own_cell:
            cells[cell] = at
            cell += 1
        if end - begin >= 2:
            if end - begin > NEAR_ENTRIES:
                long_buckets[found, 0] = at
                long_buckets[found, 1] = at + end - begin
                found += 1
            for i in range(begin, end):
                read = ids[i]
                table_ids[at] = read | BUCKET_START if i == begin else read
                table_positions[at] = positions[read]
                at += 1
        begin = end
    while cell < len(cells):
        cells[cell] = at
        cell += 1


@njit(nogil=True, cache=True)
def find_slot(
    tables: TableArrays, table: Integer, entry: Integer, last: Integer, read: Integer
) -> Integer:
    """Entry of a read in a table, of those of its cell; -1 where the read is alone in its bucket.

    Args:
        tables: the tables.
        table: number of the table.
        entry: first entry of the cell.
        last: its end.
        read: number of the read.
    """
    wanted = np.uint32(read)
    for near in range(entry, min(last, entry + 2 * NEAR_ENTRIES)):
        if tables.ids[table, near] & READ_MASK == wanted:
            return near
    if last - entry <= 2 * NEAR_ENTRIES:
        return np.int64(-1)
    ids = tables.ids[table]
    begin = entry
    while entry < last:
        if ids[entry] >= BUCKET_START:
            begin = entry
        elif entry - begin == NEAR_ENTRIES:
            listed = tables.long_buckets[tables.long_start[table] : tables.long_start[table + 1]]
            end = np.int64(listed[np.searchsorted(listed[:, 0], np.uint32(begin)), 1])
            # The reads of a bucket ascend.
            own = entry + np.searchsorted(ids[entry:end], np.uint32(read))
            if own < end and np.int64(ids[own]) == read:
                return own
            entry = end
            continue
        if np.int64(ids[entry] & READ_MASK) == read:
            return entry
        entry += 1
    return np.int64(-1)


@njit(nogil=True, cache=True)
def bucket_window(
    ids: NDArray[np.uint32], slot: Integer, max_bucket_size: int, window: int
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
        bounds: int64[hashes, 3], workspace: what is looked at, and the anchor's entry.

    Returns:
        The number of distinct entries in ``found``, and whether any bucket was crowded.
    """
    hashes = len(tables.ids)
    total = 0
    crowded = False
    kmers = canonical_kmers(reads, anchor, k, found.canonical, found.forward)
    if kmers == 0:
        return 0, False
    touched = np.uint64(0)
    for table in range(hashes):
        number = np.uint64(tables.first_function + table)
        key = smallest_hash(found.canonical, kmers, number) & key_mask(k)
        cell = cell_of(key, tables.below)
        bounds[table, 0] = tables.cells[table, cell]
        bounds[table, 1] = tables.cells[table, cell + 1]
        # So that entries of all tables are on their way before those of the first are looked at.
        touched ^= np.uint64(tables.ids[table, bounds[table, 0]])
    found.forward[0] = touched
    for table in range(hashes):
        slot = find_slot(tables, table, bounds[table, 0], bounds[table, 1], anchor)
        bounds[table] = 0
        if slot < 0:
            continue
        begin, end, more = bucket_window(tables.ids[table], slot, max_bucket_size, window)
        crowded = crowded or more
        bounds[table, 0] = begin
        bounds[table, 1] = end
        bounds[table, 2] = slot
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
        own = np.int64(tables.positions[table, bounds[table, 2]])
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
