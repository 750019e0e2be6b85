"""Distinct k-mers with their counts, in order: those of a bucket in parts, or of a hash table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, places_of
from ngsgpu.sequence.kmers import is_less

_FEW: Final = 16
"""Rows that are sorted by insertion."""

_PART_BITS: Final = 13
"""K-mers of a part, about 2 to this power: they stay near a core while they are sorted."""

_MOST_BITS: Final = 10
"""Bits by which a bucket is cut, at most: more parts than a cache has lines for take longer."""

_MOST_IN_CELL: Final = 1024
"""K-mers that are sorted by insertion, most of which are equal; where there are more, a hash table
takes less time."""


def parts_of(kmers: int) -> int:
    """Bits by which a bucket of this size is cut into parts, see ``counted_in_parts``."""
    return min(_MOST_BITS, max(0, (kmers - 1).bit_length() - _PART_BITS))


@njit(nogil=True, cache=True)
def counted_in_parts(
    kmers: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    bits: int,
    digit: int,
    min_count: int,
    no_counts: NDArray[Any],
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Count the k-mers of a bucket, part by part; they and their counts, in order.

    The k-mers are brought together by their next bits, and those of each part sorted.

    Args:
        kmers: uint64[m, 1].
        begin: int64[pieces], where those of the bucket begin.
        end: int64[pieces], and end.
        bits: highest bits of the k-mers, which all have in common.
        digit: how many of the next bits choose a part, at least 1.
        min_count: k-mers that are less frequent are left out.
        no_counts: see ``sorted_counts``.
    """
    starts = np.empty((1 << digit) + 1, dtype=np.int64)
    ordered = np.empty((end - begin).sum(), dtype=np.uint64)
    own = ordered.reshape(-1, 1)
    room = np.empty(_by_digit(kmers, begin, end, bits, digit, starts, ordered), dtype=np.uint64)
    most = highest_count(no_counts)
    distinct = np.empty((len(own), 1), dtype=np.uint64)
    counts = np.empty(len(own), dtype=no_counts.dtype)
    cells = np.empty((1 << _PART_BITS) + 1, dtype=np.int64)
    used = np.empty(1, dtype=np.int64)
    found = 0
    for part in range(1 << digit):
        first, last = starts[part : part + 1], starts[part + 1 : part + 2]
        largest = _by_digit(own, first, last, bits + digit, _PART_BITS, cells, room)
        if largest <= _MOST_IN_CELL:
            _sort_cells(cells, room)
            found = _count_equal(room, cells[-1], min_count, most, distinct, counts, found)
            continue
        used[0] = 0
        table = np.zeros((FIRST_SLOTS, 2), dtype=np.uint64)
        table = add_kmers(table, used, own, first, last, no_counts)
        some, their = sorted_counts(table, used[0], bits + digit, min_count, no_counts)
        distinct[found : found + len(some)] = some
        counts[found : found + len(some)] = their
        found += len(some)
    return distinct[:found].copy(), counts[:found].copy()


@njit(nogil=True, cache=True)
def _by_digit(
    kmers: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    left: int,
    digit: int,
    starts: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> int:
    """Order k-mers by some of their bits; return how many of them have these in common, at most.

    Args:
        kmers: uint64[m, 1].
        begin: int64[pieces], where they begin.
        end: int64[pieces], and end.
        left: how many bits are before those that count.
        digit: how many bits count.
        starts: int64[2^digit + 1], gets where those with each digit begin in ``out``, and the end.
        out: uint64[n], room for all.
    """
    before, shift = np.uint64(left), np.uint64(64 - digit)
    starts[:] = 0
    for piece in range(len(begin)):
        for i in range(begin[piece], end[piece]):
            starts[np.int64((kmers[i, 0] << before) >> shift) + 1] += 1
    most = int(starts.max())
    place = places_of(starts)
    for piece in range(len(begin)):
        for i in range(begin[piece], end[piece]):
            own = np.int64((kmers[i, 0] << before) >> shift)
            out[place[own]] = kmers[i, 0]
            place[own] += 1
    return most


@njit(nogil=True, cache=True)
def _sort_cells(cells: NDArray[np.int64], kmers: NDArray[np.uint64]) -> None:
    """Sort the k-mers of each cell, by insertion: few of a cell are different."""
    for cell in range(len(cells) - 1):
        begin = cells[cell]
        for i in range(begin + 1, cells[cell + 1]):
            own = kmers[i]
            at = i
            while at > begin and kmers[at - 1] > own:
                kmers[at] = kmers[at - 1]
                at -= 1
            kmers[at] = own


@njit(nogil=True, cache=True)
def _count_equal(
    kmers: NDArray[np.uint64],
    size: Integer,
    min_count: int,
    most: np.uint64,
    distinct: NDArray[np.uint64],
    counts: NDArray[Any],
    found: Integer,
) -> Integer:
    """Write the distinct ones of sorted k-mers and their counts, from ``found`` on.

    Args:
        kmers: uint64[size or more].
        size: number of them.
        min_count: k-mers that are less frequent are left out.
        most: count that more frequent ones have.
        distinct: uint64[m, 1].
        counts: of any type.
        found: where to begin.

    Returns:
        Where the next ones go.
    """
    begin = 0
    while begin < size:
        end = begin + 1
        while end < size and kmers[end] == kmers[begin]:
            end += 1
        if end - begin >= min_count:
            distinct[found, 0] = kmers[begin]
            counts[found] = min(np.uint64(end - begin), most)
            found += 1
        begin = end
    return found


@njit(nogil=True, cache=True)
def rows_by_digit(
    table: NDArray[np.uint64], left: int, digit: int, least: int, starts: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The rows of a table, uint64[n, words + 1], ordered by some bits of the k-mers.

    Args:
        table: see ``add_kmers``.
        left: how many bits are before those that count.
        digit: how many bits count.
        least: k-mers that are less frequent are left out.
        starts: int64[2^digit + 1], gets where those with each digit begin, and the end.
    """
    words = table.shape[1] - 1
    before, shift = np.uint64(left), np.uint64(64 - digit)
    lowest = np.uint64(max(1, least))
    starts[:] = 0
    for i in range(len(table)):
        if table[i, words] >= lowest:
            starts[np.int64((table[i, 0] << before) >> shift) + 1] += 1
    place = places_of(starts)
    rows = np.empty((starts[-1], words + 1), dtype=np.uint64)
    for i in range(len(table)):
        if table[i, words] >= lowest:
            own = np.int64((table[i, 0] << before) >> shift)
            for j in range(words + 1):
                rows[place[own], j] = table[i, j]
            place[own] += 1
    return rows


@njit(nogil=True, cache=True)
def sorted_counts(
    table: NDArray[np.uint64], used: int, bits: int, min_count: int, no_counts: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """The k-mers of a bucket in order, uint64[n, words], and their counts.

    Args:
        table: see ``add_kmers``.
        used: number of its k-mers.
        bits: highest bits of its k-mers, which all have in common.
        min_count: k-mers that are less frequent are left out.
        no_counts: empty, of the counts' type, whose highest value is that of higher counts, too.
    """
    words = table.shape[1] - 1
    digit = 1
    while digit < 16 and (used >> digit) > 1:
        digit += 1
    starts = np.empty((1 << digit) + 1, dtype=np.int64)
    rows = rows_by_digit(table, bits, digit, min_count, starts)
    for cell in range(1 << digit):
        _sort_rows(rows, starts[cell], starts[cell + 1])
    kmers = np.empty((len(rows), words), dtype=np.uint64)
    counts = np.empty(len(rows), dtype=no_counts.dtype)
    most = highest_count(no_counts)
    for i in range(len(rows)):
        for j in range(words):
            kmers[i, j] = rows[i, j]
        counts[i] = min(rows[i, words], most)
    return kmers, counts


@njit(nogil=True, cache=True)
def highest_count(counts: NDArray[Any]) -> np.uint64:
    """The highest count of a type, which k-mers that are more frequent have, too."""
    return ~np.uint64(0) >> np.uint64(64 - 8 * counts.itemsize)


@njit(nogil=True, cache=True)
def _swap(rows: NDArray[np.uint64], a: Integer, b: Integer) -> None:
    for j in range(rows.shape[1]):
        rows[a, j], rows[b, j] = rows[b, j], rows[a, j]


@njit(nogil=True, cache=True)
def _sort_rows(rows: NDArray[np.uint64], begin: Integer, end: Integer) -> None:
    """Sort distinct k-mers with their counts: heapsort, or insertion of few."""
    words = rows.shape[1] - 1
    if end - begin <= _FEW:
        for i in range(begin + 1, end):
            k = i
            while k > begin and is_less(rows, k, rows, k - 1, words):
                _swap(rows, k, k - 1)
                k -= 1
        return
    size = end - begin
    for step in range(size // 2 - 1 + size, 0, -1):
        # First the heap is made, then its largest row goes to the end, time and again.
        if step >= size:
            root, count = step - size, size
        else:
            _swap(rows, begin, begin + step)
            root, count = 0, step
        while 2 * root + 1 < count:
            child = 2 * root + 1
            if child + 1 < count and is_less(rows, begin + child, rows, begin + child + 1, words):
                child += 1
            if not is_less(rows, begin + root, rows, begin + child, words):
                break
            _swap(rows, begin + root, begin + child)
            root = child
