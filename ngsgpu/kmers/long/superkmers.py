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
from ngsgpu.kmers.cpu import LETTER_CODES, LINE_END, first_letter, places_of
from ngsgpu.sequence.codec import AMBIGUOUS
from ngsgpu.sequence.hashing import FIRST_FACTOR, mix64
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
_2: Final = np.uint64(2)
_32: Final = np.uint64(32)
_63: Final = np.uint64(63)
_64: Final = np.uint64(64)

_MIXED: Final = np.uint64(0x2B5E6D)
"""Bits by which m-mers are changed: one of A alone would be the lowest of all."""


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
        forward, backward, bases = np.uint64(0), np.uint64(0), np.uint64(0)
        lowest, place = np.uint64(0), 0
        start = -1  # of the super-k-mer, in the run; -1: there is none
        own = np.uint64(0)  # hash of its minimizer
        for at in range(first, stop[i]):
            code = np.uint64(LETTER_CODES[data[at]])
            if code >= AMBIGUOUS or (least > 0 and data[at + shift] < least):
                if code != LINE_END:
                    if start >= 0:
                        used = _put(run, start, length, length, bases, own, bits, out, used)
                        start = -1
                    length = 0
                continue
            bases = (bases << _2) | code
            length += 1
            if length & 31 == 0:
                run[(length >> 5) - 1] = bases
            forward, backward = roll(forward, backward, code, m)
            if length < m:
                continue
            newest = length - m
            hashed = (min(forward, backward) ^ _MIXED) * FIRST_FACTOR
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
                used = _put(run, start, length - 1, length, bases, own, bits, out, used)
                start = -1
            if start < 0:
                start, own = length - k, lowest
        if start >= 0:
            used = _put(run, start, length, length, bases, own, bits, out, used)
    return used, kmers


@njit(nogil=True, cache=True)
def _put(
    run: NDArray[np.uint64],
    start: Integer,
    end: Integer,
    length: Integer,
    bases: np.uint64,
    own: np.uint64,
    bits: int,
    out: NDArray[np.uint64],
    used: Integer,
) -> Integer:
    """Write a super-k-mer, from ``start`` to ``end`` of the run; return where the next one goes."""
    size = end - start
    run[length >> 5] = bases << np.uint64(62 - 2 * ((length - 1) & 31))
    out[used] = ((mix64(own) >> np.uint64(64 - bits)) << _32) | np.uint64(size)
    word = start >> 5
    left = np.uint64(2 * (start & 31))
    for j in range((size + 31) >> 5):
        # Shifted twice, since a shift by 64 would be none.
        out[used + 1 + j] = (run[word + j] << left) | ((run[word + j + 1] >> _1) >> (_63 - left))
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
    slots: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    found: NDArray[np.uint64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    k: int,
    width: tuple[int, ...],
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], Integer]:
    """Count the k-mers of super-k-mers of a bin: each distinct one gets a row, with its count.

    A slot has half of a k-mer's hash, and in the lower half the number of its row, from 1 on; the
    highest bits of the hash choose the slot at which the search begins.

    Args:
        slots: uint64[2^n], of any content, at least ``4 * MOST_KMERS``.
        rows: uint64[``2 * MOST_KMERS`` or more, words + 1], of any content.
        found: super-k-mers.
        begin: int64[pieces], where those of the bin begin.
        end: int64[pieces], and end.
        k: length of a k-mer.
        width: any numbers, as many as a k-mer has words: loops over these are unrolled.

    Returns:
        The slots and rows, or more of them, and how many rows there are.
    """
    words = len(width)
    last = ~np.uint64(0) << np.uint64(62 - 2 * ((k - 1) & 31))
    both = np.zeros(2 * _HALF, dtype=np.uint64)
    kmers = np.zeros((2 * MOST_KMERS, words), dtype=np.uint64)
    hashes = np.zeros(2 * MOST_KMERS, dtype=np.uint64)
    slots[:] = 0
    used: Integer = 0
    held: Integer = 0
    for piece in range(len(begin)):
        at = begin[piece]
        while at < end[piece]:
            size = np.int64(found[at] & _LENGTH)
            letters = (size + 31) >> 5
            for j in range(letters):
                both[j] = found[at + 1 + j]
            at += 1 + letters
            _turn(both, letters, size)
            _canonical(both, size - k + 1, last, slots, kmers, hashes, held, width)
            held += size - k + 1
            if held >= MOST_KMERS:
                used = _add(slots, rows, used, kmers, hashes, held, width)
                held = 0
                if used > len(slots) // 2 - 2 * MOST_KMERS:
                    slots = _more_slots(slots)
                if used > len(rows) - 2 * MOST_KMERS:
                    rows = _more_rows(rows)
    used = _add(slots, rows, used, kmers, hashes, held, width)
    return slots, rows, used


@njit(nogil=True, cache=True, inline="always")
def _shift_of(slots: NDArray[np.uint64]) -> np.uint64:
    """By how many bits half of a hash is shifted to become a slot."""
    bits = 0
    while (1 << bits) < len(slots):
        bits += 1
    return np.uint64(32 - bits)


@njit(nogil=True, cache=True)
def _more_slots(slots: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Twice as many slots with the same content."""
    more = np.zeros(2 * len(slots), dtype=np.uint64)
    shift = _shift_of(more)
    mask = len(more) - 1
    for i in range(len(slots)):
        if slots[i] != 0:
            slot = np.int64((slots[i] >> _32) >> shift)
            while more[slot] != 0:
                slot = (slot + 1) & mask
            more[slot] = slots[i]
    return more


@njit(nogil=True, cache=True)
def _more_rows(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Room for twice as many rows with the same content."""
    more = np.empty((2 * len(rows), rows.shape[1]), dtype=np.uint64)
    more[: len(rows)] = rows
    return more


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
    slots: NDArray[np.uint64],
    kmers: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    to: Integer,
    width: tuple[int, ...],
) -> None:
    """Write the canonical k-mers of a super-k-mer, from ``to`` on, and halves of their hashes."""
    words = len(width)
    shift = _shift_of(slots)
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
        kmers[to + i, 0] = backward if turned else forward
        for j in range(1, words):
            kmers[to + i, j] = _bases(both, word + j, left)
        kmers[to + i, words - 1] &= last
        hashes[to + i] = hash_row(kmers, to + i, words) >> _32
        prefetch(slots, np.int64(hashes[to + i] >> shift))


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
    slots: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    used: Integer,
    kmers: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    number: Integer,
    width: tuple[int, ...],
) -> Integer:
    """Count k-mers for which there is room; return how many rows there are then."""
    words = len(width)
    shift = _shift_of(slots)
    mask = len(slots) - 1
    for i in range(number):
        # Most k-mers are in the first slot, or new, where what is not needed does no harm.
        own = slots[np.int64(hashes[i] >> shift)]
        prefetch(rows, (np.int64(own & _LENGTH) - 1) * (words + 1))
    for i in range(number):
        slot = np.int64(hashes[i] >> shift)
        while True:
            own = slots[slot]
            if own == 0:
                slots[slot] = (hashes[i] << _32) | np.uint64(used + 1)
                for j in range(words):
                    rows[used, j] = kmers[i, j]
                rows[used, words] = _1
                used += 1
                break
            if own >> _32 == hashes[i]:
                at = np.int64(own & _LENGTH) - 1
                same = True
                for j in range(words):
                    same &= rows[at, j] == kmers[i, j]
                if same:
                    rows[at, words] += _1
                    break
            slot = (slot + 1) & mask
    return used
