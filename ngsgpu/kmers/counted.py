"""Distinct k-mers with their counts, in order: those of a bucket in parts, or of a hash table.

A row has the words of a k-mer and, where k-mers were counted before, its count. Kernels that
compare rows get them one behind the other, and a tuple with as many numbers as a k-mer has words,
and one that has a number more where there is a count: loops over these are unrolled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, all_rows, by_digit

_FEW: Final = 16
"""Rows of different k-mers that are sorted by insertion."""

_PART_BITS: Final = 13
"""Rows of a part, about 2 to this power: they stay near a core while they are sorted."""

_MOST_BITS: Final = 10
"""Bits by which a bucket is cut, at most: more parts than a cache has lines for take longer."""

_MOST_IN_CELL: Final = 1024
"""K-mers that are sorted by insertion, most of which are equal; where there are more, a hash table
takes less time."""


def parts_of(rows: int) -> int:
    """Bits by which a bucket of this size is cut into parts, see ``counted_in_parts``."""
    return min(_MOST_BITS, max(0, (rows - 1).bit_length() - _PART_BITS))


@njit(nogil=True, cache=True)
def counted_in_parts(
    rows: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    bits: int,
    digit: int,
    min_count: int,
    no_counts: NDArray[Any],
    width: tuple[int, ...],
    whole: tuple[int, ...],
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Count the k-mers of a bucket, part by part; they and their counts, in order.

    The rows are brought together by their next bits, and those of each part sorted.

    Args:
        rows: uint64[m, len(whole)].
        begin: int64[pieces], where those of the bucket begin.
        end: int64[pieces], and end.
        bits: highest bits of the k-mers, which all have in common.
        digit: how many of the next bits choose a part, at least 1.
        min_count: k-mers that are less frequent are left out.
        no_counts: empty, of the counts' type, whose highest value is that of higher counts, too.
        width: any numbers, as many as a k-mer has words.
        whole: as many as a row has.

    Returns:
        uint64[n, words], and their counts.
    """
    size = (end - begin).sum()
    starts = np.empty((1 << digit) + 1, dtype=np.int64)
    ordered = np.empty((size, len(whole)), dtype=np.uint64)
    most = by_digit(rows, begin, end, bits, digit, starts, ordered)
    room = np.empty((most, len(whole)), dtype=np.uint64)
    flat = room.reshape(-1)
    kmers = np.empty((size, len(width)), dtype=np.uint64)
    counts = np.empty(size, dtype=no_counts.dtype)
    cells = np.empty((1 << _PART_BITS) + 1, dtype=np.int64)
    found = 0
    for part in range(1 << digit):
        first, last = starts[part : part + 1], starts[part + 1 : part + 2]
        most = by_digit(ordered, first, last, bits + digit, _PART_BITS, cells, room)
        if len(whole) > len(width):
            _sort_counted(cells, flat, width, whole)
        elif most <= _MOST_IN_CELL:
            _sort_cells(cells, flat, width)
        else:
            found = _count_in_table(ordered, first, last, min_count, kmers, counts, found, width)
            continue
        found = _add_up(flat, cells[-1], min_count, kmers, counts, found, width, whole)
    if found == size:
        return kmers, counts
    return kmers[:found].copy(), counts[:found].copy()


@njit(nogil=True, cache=True)
def _count_in_table(
    rows: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    min_count: int,
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    found: Integer,
    width: tuple[int, ...],
) -> Integer:
    """Count k-mers of which some are frequent, in a hash table; see ``_add_up``.

    Args:
        rows: k-mers.
        begin: int64[1], where they begin.
        end: int64[1], and end.
        min_count: see ``_add_up``.
        kmers: likewise.
        counts: likewise.
        found: likewise.
        width: of a k-mer.
    """
    used = np.zeros(1, dtype=np.int64)
    table = np.zeros((FIRST_SLOTS, len(width) + 1), dtype=np.uint64)
    table = add_kmers(table, used, rows, begin, end, counts[:0])
    size = frequent(table, 1)
    flat = table.reshape(-1)
    _sort_rows(flat, 0, size, width, (*width, 0))
    return _add_up(flat, size, min_count, kmers, counts, found, width, (*width, 0))


@njit(nogil=True, cache=True)
def _sort_cells(
    cells: NDArray[np.int64], kmers: NDArray[np.uint64], width: tuple[int, ...]
) -> None:
    """Sort the k-mers of each cell, by insertion: few of a cell are different."""
    for cell in range(len(cells) - 1):
        for i in range(cells[cell] + 1, cells[cell + 1]):
            _insert(kmers, cells[cell], i, width, width)


@njit(nogil=True, cache=True)
def _sort_counted(
    cells: NDArray[np.int64],
    rows: NDArray[np.uint64],
    width: tuple[int, ...],
    whole: tuple[int, ...],
) -> None:
    """Sort the rows of each cell: all are different."""
    for cell in range(len(cells) - 1):
        if cells[cell + 1] - cells[cell] > 1:
            _sort_rows(rows, cells[cell], cells[cell + 1], width, whole)


@njit(nogil=True, cache=True)
def _add_up(
    rows: NDArray[np.uint64],
    size: Integer,
    min_count: int,
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    found: Integer,
    width: tuple[int, ...],
    whole: tuple[int, ...],
) -> Integer:
    """Write the distinct ones of sorted k-mers and their counts, from ``found`` on.

    Args:
        rows: sorted.
        size: number of them.
        min_count: k-mers that are less frequent are left out.
        kmers: uint64[m, words].
        counts: of the counts' type.
        found: where to begin.
        width: of a k-mer.
        whole: of a row; without a count, each is one.

    Returns:
        Where the next ones go.
    """
    words, row = len(width), len(whole)
    most = highest_count(counts)
    at = 0
    while at < size:
        first = at
        at += 1
        while at < size and _are_same(rows, first * row, at * row, width):
            at += 1
        count = np.uint64(at - first)
        if row > words:
            count = rows[first * row + words]
            for other in range(first + 1, at):
                count += rows[other * row + words]
        if count >= min_count:
            for j in range(words):
                kmers[found, j] = rows[first * row + j]
            counts[found] = min(count, most)
            found += 1
    return found


@njit(nogil=True, cache=True)
def frequent(rows: NDArray[np.uint64], least: int) -> int:
    """Put the rows with at least such a count together, at the beginning; return their number.

    Args:
        rows: k-mers and counts, such as a hash table, whose empty places have none.
        least: lowest count that stays, at least 1.
    """
    last = rows.shape[1] - 1
    found = 0
    for i in range(len(rows)):
        if rows[i, last] >= np.uint64(least):
            for j in range(last + 1):
                rows[found, j] = rows[i, j]
            found += 1
    return found


def sorted_counts(
    table: NDArray[np.uint64], bits: int, min_count: int, no_counts: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """The k-mers of a hash table in order, uint64[n, words], and their counts.

    Args:
        table: see ``add_kmers``; is not one any more.
        bits: see ``counted_in_parts``.
        min_count: likewise.
        no_counts: likewise.
    """
    return in_order(table, *all_rows(frequent(table, max(1, min_count))), bits, no_counts)


def in_order(
    rows: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    bits: int,
    no_counts: NDArray[Any],
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """The k-mers of rows that have counts, in order, uint64[n, words], and their counts.

    Args:
        rows: see ``counted_in_parts``.
        begin: likewise.
        end: likewise.
        bits: likewise.
        no_counts: likewise.
    """
    digit = max(1, parts_of(int((end - begin).sum())))
    whole = (0,) * rows.shape[1]
    return counted_in_parts(rows, begin, end, bits, digit, 1, no_counts, whole[1:], whole)


@njit(nogil=True, cache=True)
def highest_count(counts: NDArray[Any]) -> np.uint64:
    """The highest count of a type, which k-mers that are more frequent have, too."""
    return ~np.uint64(0) >> np.uint64(64 - 8 * counts.itemsize)


@njit(nogil=True, cache=True, inline="always")
def _are_same(rows: NDArray[np.uint64], a: Integer, b: Integer, width: tuple[int, ...]) -> bool:
    """Whether the k-mers that begin at two places are."""
    same = True
    for j in range(len(width)):
        same &= bool(rows[a + j] == rows[b + j])
    return same


@njit(nogil=True, cache=True, inline="always")
def _is_before(rows: NDArray[np.uint64], a: Integer, b: Integer, width: tuple[int, ...]) -> bool:
    """Whether the k-mer that begins at one place comes before that at another."""
    for j in range(len(width) - 1):
        if rows[a + j] != rows[b + j]:
            return bool(rows[a + j] < rows[b + j])
    last = len(width) - 1
    return bool(rows[a + last] < rows[b + last])


@njit(nogil=True, cache=True, inline="always")
def _swap(rows: NDArray[np.uint64], a: Integer, b: Integer, whole: tuple[int, ...]) -> None:
    for j in range(len(whole)):
        rows[a + j], rows[b + j] = rows[b + j], rows[a + j]


@njit(nogil=True, cache=True, inline="always")
def _insert(
    rows: NDArray[np.uint64],
    begin: Integer,
    at: Integer,
    width: tuple[int, ...],
    whole: tuple[int, ...],
) -> None:
    """Put a row to its place among those before it, from ``begin`` on, which are sorted."""
    row = len(whole)
    first, own = begin * row, at * row
    place = own
    while place > first and _is_before(rows, own, place - row, width):
        place -= row
    if place == own:
        return
    for j in range(row):
        word = rows[own + j]
        for to in range(own + j, place + j, -row):
            rows[to] = rows[to - row]
        rows[place + j] = word


@njit(nogil=True, cache=True)
def _sort_rows(
    rows: NDArray[np.uint64],
    begin: Integer,
    end: Integer,
    width: tuple[int, ...],
    whole: tuple[int, ...],
) -> None:
    """Sort rows of different k-mers: heapsort, or insertion of few."""
    row = len(whole)
    if end - begin <= _FEW:
        for i in range(begin + 1, end):
            _insert(rows, begin, i, width, whole)
        return
    low = begin * row
    size = end - begin
    for step in range(size // 2 - 1 + size, 0, -1):
        # First the heap is made, then its largest row goes to the end, time and again.
        if step >= size:
            root, count = step - size, size
        else:
            _swap(rows, low, low + step * row, whole)
            root, count = 0, step
        while 2 * root + 1 < count:
            child = 2 * root + 1
            other = low + child * row
            if child + 1 < count and _is_before(rows, other, other + row, width):
                child += 1
                other += row
            if not _is_before(rows, low + root * row, other, width):
                break
            _swap(rows, low + root * row, other, whole)
            root = child
