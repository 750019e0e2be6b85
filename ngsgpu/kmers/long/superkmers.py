"""K-mers of several words, kept as super-k-mers: stretches whose k-mers have the same minimizer.

The minimizer of a k-mer is the canonical m-mer in it whose hash is the lowest, so that a k-mer and
its reverse complement have the same one. It chooses the k-mer's bin. Neighbouring k-mers mostly
share theirs, and are kept together as the bases that they span (Kokot and others, KMC 3,
Bioinformatics 33, 2017): a word or two for each ten k-mers, where each k-mer itself has two to
four words.

A super-k-mer is a word with its bin (high half) and number of bases (low half), then the bases, 32
a word, the first one in the highest bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.kmers.cpu import LETTER_CODES, LINE_END, enlarge, first_letter, places_of
from ngsgpu.sequence.codec import AMBIGUOUS
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.intrinsics import prefetch
from ngsgpu.sequence.kmers import hash_row, reverse_complement, roll

MINIMIZER: Final = 11
RING: Final = 128
"""At least the m-mers of a k-mer; a power of two."""

MOST_KMERS: Final = 256
"""K-mers of a super-k-mer, at most."""

_HALF: Final = 16
"""Room for the words of its bases and one more."""

_LENGTH: Final = np.uint64(0xFFFFFFFF)
_1: Final = np.uint64(1)
_32: Final = np.uint64(32)
_62: Final = np.uint64(62)
_63: Final = np.uint64(63)
_64: Final = np.uint64(64)


def run_words(letters: int, k: int) -> int:
    """Words that the bases of a stretch take, with those of k-mers that begin before it."""
    return (letters + k) // 32 + 2


@njit(nogil=True, cache=True)
def find_superkmers(
    data: NDArray[np.uint8],
    begin: NDArray[np.int64],
    stop: NDArray[np.int64],
    low: NDArray[np.int64],
    quality: NDArray[np.int64],
    least: int,
    k: int,
    bits: int,
    run: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> tuple[int, int]:
    """Write the super-k-mers of stretches of sequences.

    Args:
        data: text, with line ends in sequences.
        begin: int64[n], where stretches begin; k-mers count that end there or later.
        stop: int64[n], where they stop.
        low: int64[n], where their sequences begin.
        quality: int64[n], where their qualities begin; empty without.
        least: lowest quality character of a base that counts; 0 counts all.
        k: length of a k-mer, more than 32.
        bits: that choose a bin.
        run: room for the bases of a stretch, see ``run_words``.
        out: room for a super-k-mer per letter.

    Returns:
        Words written, and k-mers.
    """
    m = MINIMIZER
    ring = np.zeros(RING, dtype=np.uint64)
    used, kmers = 0, 0
    for i in range(len(begin)):
        first = first_letter(data, begin[i], low[i], k)
        shift = quality[i] - low[i] if least > 0 else 0
        length = 0
        forward, backward = np.uint64(0), np.uint64(0)
        lowest, place = np.uint64(0), 0
        start = -1  # of the super-k-mer, in the run; -1: there is none
        own = np.uint64(0)  # hash of its minimizer
        for at in range(first, stop[i]):
            code = np.uint64(LETTER_CODES[data[at]])
            if code >= AMBIGUOUS or (least > 0 and data[at + shift] < least):
                if code != LINE_END:
                    if start >= 0:
                        used = _put(run, start, length, own, bits, out, used)
                        start = -1
                    length = 0
                continue
            word = length >> 5
            if length & 31 == 0:
                run[word] = code << _62
            else:
                run[word] |= code << np.uint64(62 - 2 * (length & 31))
            length += 1
            forward, backward = roll(forward, backward, code, m)
            if length < m:
                continue
            newest = length - m
            hashed = mix64(min(forward, backward))
            ring[newest & (RING - 1)] = hashed
            if newest == 0 or hashed <= lowest:
                lowest, place = hashed, newest
            if length < k:
                continue
            if place < length - k:
                place = length - k
                lowest = ring[place & (RING - 1)]
                for other in range(place + 1, newest + 1):
                    if ring[other & (RING - 1)] <= lowest:
                        lowest, place = ring[other & (RING - 1)], other
            if at < begin[i]:
                continue
            kmers += 1
            if start >= 0 and (own != lowest or length - start >= k + MOST_KMERS):
                used = _put(run, start, length - 1, own, bits, out, used)
                start = -1
            if start < 0:
                start, own = length - k, lowest
        if start >= 0:
            used = _put(run, start, length, own, bits, out, used)
    return used, kmers


@njit(nogil=True, cache=True)
def _put(
    run: NDArray[np.uint64],
    start: Integer,
    end: Integer,
    own: np.uint64,
    bits: int,
    out: NDArray[np.uint64],
    used: Integer,
) -> Integer:
    """Write a super-k-mer, from ``start`` to ``end`` of the run; return where the next one goes."""
    size = end - start
    out[used] = ((mix64(own) >> np.uint64(64 - bits)) << _32) | np.uint64(size)
    word = start >> 5
    left = np.uint64(2 * (start & 31))
    for j in range((size + 31) >> 5):
        bases = run[word + j] << left
        if left > 0:
            bases |= run[word + j + 1] >> (_64 - left)
        out[used + 1 + j] = bases
    return used + 1 + ((size + 31) >> 5)


@njit(nogil=True, cache=True)
def into_bins(
    found: NDArray[np.uint64], starts: NDArray[np.int64], out: NDArray[np.uint64]
) -> None:
    """Order super-k-mers by their bins.

    Args:
        found: the super-k-mers.
        starts: int64[bins + 1], gets the places in ``out`` where bins begin and the last ends.
        out: as long as ``found``.
    """
    starts[:] = 0
    at = np.int64(0)
    while at < len(found):
        words = 1 + ((np.int64(found[at] & _LENGTH) + 31) >> 5)
        starts[np.int64(found[at] >> _32) + 1] += words
        at += words
    place = places_of(starts)
    at = np.int64(0)
    while at < len(found):
        words = 1 + ((np.int64(found[at] & _LENGTH) + 31) >> 5)
        own = np.int64(found[at] >> _32)
        to = place[own]
        place[own] = to + words
        for j in range(words):
            out[to + j] = found[at + j]
        at += words


@njit(nogil=True, cache=True)
def count_bin(
    table: NDArray[np.uint64],
    found: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    k: int,
    width: tuple[int, ...],
) -> tuple[NDArray[np.uint64], int]:
    """Count the k-mers of super-k-mers of a bin in a hash table.

    Args:
        table: uint64[2^n, words + 1], empty, of at least ``2 * MOST_KMERS`` slots.
        found: super-k-mers.
        begin: int64[pieces], where those of the bin begin.
        end: int64[pieces], and end.
        k: length of a k-mer.
        width: any numbers, as many as a k-mer has words: loops over these are unrolled.

    Returns:
        The table, or a larger one, and how many k-mers it has.
    """
    words = len(width)
    last = ~np.uint64(0) << np.uint64(62 - 2 * ((k - 1) & 31))
    both = np.zeros(2 * _HALF, dtype=np.uint64)
    kmers = np.zeros((MOST_KMERS, words), dtype=np.uint64)
    slots = np.zeros(MOST_KMERS, dtype=np.uint64)
    used = 0
    for piece in range(len(begin)):
        at = begin[piece]
        while at < end[piece]:
            size = np.int64(found[at] & _LENGTH)
            letters = (size + 31) >> 5
            for j in range(letters):
                both[j] = found[at + 1 + j]
            at += 1 + letters
            _turn(both, letters, size)
            number = size - k + 1
            if used + number > len(table) // 2:
                table = enlarge(table)
            _canonical(both, number, last, table, kmers, slots, width)
            used += _add(table, kmers, slots, number, width)
    return table, used


@njit(nogil=True, cache=True, inline="always")
def _turn(both: NDArray[np.uint64], letters: Integer, size: Integer) -> None:
    """Write the reverse complement of the bases in the first half into the second one."""
    for j in range(letters):
        both[_HALF + j] = reverse_complement(both[letters - 1 - j], 32)
    unused = np.uint64(2 * (32 * letters - size))
    if unused > 0:
        for j in range(_HALF, _HALF + letters):
            both[j] = (both[j] << unused) | (both[j + 1] >> (_64 - unused))


@njit(nogil=True, cache=True, inline="always")
def _bases(both: NDArray[np.uint64], word: Integer, left: np.uint64) -> np.uint64:
    """32 bases that begin in a word, behind ``left`` bits."""
    # Shifted twice, since a shift by 64 would be none.
    return (both[word] << left) | ((both[word + 1] >> _1) >> (_63 - left))


@njit(nogil=True, cache=True)
def _canonical(
    both: NDArray[np.uint64],
    number: Integer,
    last: np.uint64,
    table: NDArray[np.uint64],
    kmers: NDArray[np.uint64],
    slots: NDArray[np.uint64],
    width: tuple[int, ...],
) -> None:
    """Write the canonical k-mers of a super-k-mer, and the slots at which their search begins."""
    words = len(width)
    mask = np.uint64(len(table) - 1)
    for i in range(number):
        other = number - 1 - i
        forward = _bases(both, i >> 5, np.uint64(2 * (i & 31)))
        backward = _bases(both, _HALF + (other >> 5), np.uint64(2 * (other & 31)))
        turned = backward < forward
        if backward == forward:
            turned = _comes_later(both, i, other, last, words)
        # No branch, for no processor would guess it.
        at = other if turned else i
        word = (at >> 5) + (_HALF if turned else 0)
        left = np.uint64(2 * (at & 31))
        kmers[i, 0] = backward if turned else forward
        for j in range(1, words):
            kmers[i, j] = _bases(both, word + j, left)
        kmers[i, words - 1] &= last
        slot = hash_row(kmers, i, words) & mask
        slots[i] = slot
        prefetch(table, np.int64(slot) * (words + 1))


@njit(nogil=True, cache=True)
def _comes_later(
    both: NDArray[np.uint64], i: Integer, other: Integer, last: np.uint64, words: Integer
) -> bool:
    """Whether a k-mer comes after its reverse complement, though their first words are equal."""
    for j in range(1, words):
        forward = _bases(both, (i >> 5) + j, np.uint64(2 * (i & 31)))
        backward = _bases(both, _HALF + (other >> 5) + j, np.uint64(2 * (other & 31)))
        if j == words - 1:
            forward &= last
            backward &= last
        if forward != backward:
            return backward < forward
    return False


@njit(nogil=True, cache=True)
def _add(
    table: NDArray[np.uint64],
    kmers: NDArray[np.uint64],
    slots: NDArray[np.uint64],
    number: Integer,
    width: tuple[int, ...],
) -> Integer:
    """Count k-mers in a table that has room for them; return how many are new."""
    words = len(width)
    mask = np.uint64(len(table) - 1)
    new = 0
    for i in range(number):
        slot = slots[i]
        while table[slot, words] != 0:
            same = True
            for j in range(words):
                same &= table[slot, j] == kmers[i, j]
            if same:
                break
            slot = (slot + _1) & mask
        if table[slot, words] == 0:
            for j in range(words):
                table[slot, j] = kmers[i, j]
            new += 1
        table[slot, words] += _1
    return new


@njit(nogil=True, cache=True)
def gathered(
    rows: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    width: tuple[int, ...],
) -> NDArray[np.uint64]:
    """Rows from several places together.

    Args:
        rows: uint64[n, words + 1].
        begin: int64[pieces], where those of each piece begin.
        end: int64[pieces], and end.
        width: see ``count_bin``.
    """
    size = np.int64(0)
    for piece in range(len(begin)):
        size += end[piece] - begin[piece]
    out = np.empty((size, len(width) + 1), dtype=np.uint64)
    at = 0
    for piece in range(len(begin)):
        for i in range(begin[piece], end[piece]):
            for j in range(len(width) + 1):
                out[at, j] = rows[i, j]
            at += 1
    return out
