"""The kernels: k-mers of sequences, by buckets, and their counts.

A k-mer is ``words`` uint64, two bits a base, the first base in the highest bits of the first word
and unused bits 0, so that k-mers of any length are in order as their sequences are. Of a k-mer and
its reverse complement the smaller one counts.

The highest bits of a k-mer choose its bucket. The k-mers of a bucket are counted in parts (see
``counted``), or, where there are counts from before, in a hash table.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES
from ngsgpu.sequence.hashing import find_slot, free_slot, mix64
from ngsgpu.sequence.kmers import hash_row, roll, roll_words, unused_bits

FIRST_SLOTS: Final = 1 << 10
LINE_END: Final = 5
LETTER_CODES: Final = CODES.copy()
LETTER_CODES[[10, 13]] = LINE_END


@njit(nogil=True, cache=True)
def find_kmers(
    data: NDArray[np.uint8],
    begin: NDArray[np.int64],
    stop: NDArray[np.int64],
    low: NDArray[np.int64],
    quality: NDArray[np.int64],
    least: int,
    k: int,
    kmers: NDArray[np.uint64],
) -> int:
    """Write the canonical k-mers of stretches of sequences; return their number.

    Args:
        data: text, with line ends in sequences.
        begin: int64[n], where stretches begin; k-mers count that end there or later.
        stop: int64[n], where they stop.
        low: int64[n], where their sequences begin.
        quality: int64[n], where their qualities begin; empty without.
        least: lowest quality character of a base that counts; 0 counts all.
        k: length of a k-mer.
        kmers: uint64[m, words], room for one k-mer per letter.
    """
    found = 0
    for i in range(len(begin)):
        first = first_letter(data, begin[i], low[i], k)
        shift = quality[i] - low[i] if least > 0 else 0
        if kmers.shape[1] == 1:
            found = _find_short(data, first, begin[i], stop[i], shift, least, k, kmers, found)
        else:
            found = _find_long(data, first, begin[i], stop[i], shift, least, k, kmers, found)
    return found


@njit(nogil=True, cache=True)
def pack_letters(
    data: NDArray[np.uint8],
    begin: NDArray[np.int64],
    stop: NDArray[np.int64],
    low: NDArray[np.int64],
    quality: NDArray[np.int64],
    least: int,
    k: int,
    codes: NDArray[np.uint64],
    marks: NDArray[np.uint32],
) -> int:
    """Pack the letters of stretches, each with a separator; return the place behind the last.

    Empty ones have no separator: any number of them fits, whatever room there is.

    Args:
        data: see ``find_kmers``, as for the following up to ``k``.
        begin: as there.
        stop: as there.
        low: as there.
        quality: as there.
        least: as there.
        k: as there.
        codes: uint64[words], zeros; gets 32 letters a word, the first in the highest bits.
        marks: uint32[words], all ones; those of letters that count become 0.
    """
    at = 0
    for i in range(len(begin)):
        if begin[i] == stop[i]:
            continue
        shift = quality[i] - low[i] if least > 0 else 0
        for place in range(first_letter(data, begin[i], low[i], k), stop[i]):
            code = np.uint64(LETTER_CODES[data[place]])
            if code == LINE_END:
                continue
            if code < AMBIGUOUS and (least == 0 or data[place + shift] >= least):
                codes[at >> 5] |= code << np.uint64(62 - 2 * (at & 31))
                marks[at >> 5] &= ~(np.uint32(1) << np.uint32(at & 31))
            at += 1
        at += 1
    return at


@njit(nogil=True, cache=True, inline="always")
def first_letter(data: NDArray[np.uint8], begin: Integer, low: Integer, k: Integer) -> Integer:
    """Where the first k-mer begins that ends at ``begin``, or the sequence does, at ``low``."""
    before = k - 1
    while begin > low and before > 0:
        begin -= 1
        before -= LETTER_CODES[data[begin]] != LINE_END
    return begin


@njit(nogil=True, cache=True)
def _find_short(
    data: NDArray[np.uint8],
    first: Integer,
    begin: Integer,
    stop: Integer,
    shift: Integer,
    least: int,
    k: int,
    kmers: NDArray[np.uint64],
    found: int,
) -> int:
    """K-mers of one word."""
    unused = unused_bits(k)
    forward = np.uint64(0)
    backward = np.uint64(0)
    length = 0
    for at in range(first, stop):
        code = np.uint64(LETTER_CODES[data[at]])
        if code >= AMBIGUOUS or (least > 0 and data[at + shift] < least):
            if code != LINE_END:
                length = 0
            continue
        forward, backward = roll(forward, backward, code, k)
        length += 1
        if length >= k and at >= begin:
            kmers[found, 0] = min(forward, backward) << unused
            found += 1
    return found


@njit(nogil=True, cache=True)
def _find_long(
    data: NDArray[np.uint8],
    first: Integer,
    begin: Integer,
    stop: Integer,
    shift: Integer,
    least: int,
    k: int,
    kmers: NDArray[np.uint64],
    found: int,
) -> int:
    """K-mers of several words."""
    last = kmers.shape[1] - 1
    forward = np.zeros(last + 1, dtype=np.uint64)
    backward = np.zeros(last + 1, dtype=np.uint64)
    length = 0
    for at in range(first, stop):
        code = np.uint64(LETTER_CODES[data[at]])
        if code >= AMBIGUOUS or (least > 0 and data[at + shift] < least):
            if code != LINE_END:
                length = 0
            continue
        roll_words(forward, backward, code, k)
        length += 1
        if length >= k and at >= begin:
            j = 0
            while j < last and forward[j] == backward[j]:
                j += 1
            smaller = forward if forward[j] < backward[j] else backward
            for j in range(last + 1):
                kmers[found, j] = smaller[j]
            found += 1
    return found


def into_buckets(
    kmers: NDArray[np.uint64], bits: int, starts: NDArray[np.int64], out: NDArray[np.uint64]
) -> None:
    """Order k-mers by their highest bits.

    Args:
        kmers: uint64[n, words].
        bits: that choose a bucket.
        starts: int64[2^bits + 1], gets the places in ``out`` where buckets begin and the last ends.
        out: uint64[n, words].
    """
    by_digit(kmers, *all_rows(len(kmers)), 0, bits, starts, out)


def all_rows(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where all rows begin, and end, in one piece."""
    return np.zeros(1, dtype=np.int64), np.full(1, size, dtype=np.int64)


@njit(nogil=True, cache=True)
def by_digit(
    rows: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    left: int,
    digit: int,
    starts: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> int:
    """Order rows by bits of their first words; return how many have these in common, at most.

    Args:
        rows: uint64[m, any].
        begin: int64[pieces], where pieces begin.
        end: int64[pieces], and end.
        left: how many bits are before those that count.
        digit: how many bits count, at least 1.
        starts: int64[2^digit + 1], gets where rows with each digit begin in ``out``, and the end.
        out: uint64[n or more, any], as wide.
    """
    before, shift = np.uint64(left), np.uint64(64 - digit)
    starts[:] = 0
    for piece in range(len(begin)):
        for i in range(begin[piece], end[piece]):
            starts[np.int64((rows[i, 0] << before) >> shift) + 1] += 1
    most = int(starts.max())
    place = places_of(starts)
    for piece in range(len(begin)):
        for i in range(begin[piece], end[piece]):
            own = np.int64((rows[i, 0] << before) >> shift)
            to = place[own]
            place[own] = to + 1
            out[to, 0] = rows[i, 0]
            for j in range(1, rows.shape[1]):
                out[to, j] = rows[i, j]
    return most


@njit(nogil=True, cache=True)
def places_of(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn sizes, each one behind its place, to where places begin; returns a copy without the end.

    Counting sorts have the sizes, and put things at the places of the copy.
    """
    for i in range(len(starts) - 1):
        starts[i + 1] += starts[i]
    return starts[:-1].copy()


@njit(nogil=True, cache=True)
def enlarge(table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A table of twice the size with the same rows."""
    words = table.shape[1] - 1
    larger = np.zeros((2 * len(table), words + 1), dtype=np.uint64)
    counts = larger[:, words]
    for i in range(len(table)):
        if table[i, words] != 0:
            slot = free_slot(counts, hash_row(table, i, words))
            for j in range(words + 1):
                larger[slot, j] = table[i, j]
    return larger


@njit(nogil=True, cache=True)
def add_kmers(
    table: NDArray[np.uint64],
    used: NDArray[np.int64],
    kmers: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    counts: NDArray[Any],
) -> NDArray[np.uint64]:
    """Count k-mers in a hash table.

    Args:
        table: uint64[2^n, words + 1], k-mers and counts; 0 is an empty place.
        used: int64[1], number of distinct k-mers.
        kmers: uint64[m, words].
        begin: int64[pieces], where the k-mers to be counted begin in ``kmers``.
        end: int64[pieces], and end.
        counts: uint16[m] or uint32[m], how often each one occurs; empty: once.

    Returns:
        The table, or a larger one.
    """
    for piece in range(len(begin)):
        at = begin[piece]
        while at < end[piece]:
            if kmers.shape[1] == 1:
                at = _add_short(table, used, kmers, at, end[piece], counts)
            else:
                at = _add_long(table, used, kmers, at, end[piece], counts)
            if at < end[piece]:
                table = enlarge(table)
    return table


@njit(nogil=True, cache=True)
def _add_short(
    table: NDArray[np.uint64],
    used: NDArray[np.int64],
    kmers: NDArray[np.uint64],
    begin: Integer,
    end: Integer,
    counts: NDArray[Any],
) -> Integer:
    """Count k-mers of one word until the table is half full; return where the others begin."""
    keys, values = table[:, 0], table[:, 1]
    room = len(table) // 2 - used[0]
    count = np.uint64(1)
    for i in range(begin, end):
        if len(counts) > 0:
            count = np.uint64(counts[i])
        kmer = kmers[i, 0]
        slot = find_slot(keys, values, kmer, mix64(kmer))
        if table[slot, 1] == 0:
            if room == 0:
                used[0] = len(table) // 2
                return i
            table[slot, 0] = kmer
            room -= 1
        table[slot, 1] += count
    used[0] = len(table) // 2 - room
    return end


@njit(nogil=True, cache=True)
def _add_long(
    table: NDArray[np.uint64],
    used: NDArray[np.int64],
    kmers: NDArray[np.uint64],
    begin: Integer,
    end: Integer,
    counts: NDArray[Any],
) -> Integer:
    """The same for k-mers of several words."""
    words = kmers.shape[1]
    mask = np.uint64(len(table) - 1)
    room = len(table) // 2 - used[0]
    count = np.uint64(1)
    for i in range(begin, end):
        if len(counts) > 0:
            count = np.uint64(counts[i])
        slot = hash_row(kmers, i, words) & mask
        while table[slot, words] != 0:
            j = 0
            while j < words and table[slot, j] == kmers[i, j]:
                j += 1
            if j == words:
                break
            slot = (slot + np.uint64(1)) & mask
        if table[slot, words] == 0:
            if room == 0:
                used[0] = len(table) // 2
                return i
            for j in range(words):
                table[slot, j] = kmers[i, j]
            room -= 1
        table[slot, words] += count
    used[0] = len(table) // 2 - room
    return end
