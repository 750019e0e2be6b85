"""Finds the overlap of a pair, 64 bases at a time.

A read is three bit planes: two that distinguish its bases, and one of ambiguous bases; the second
read's are those of its reverse complement. Base i is bit ``i % 64`` of word ``i // 64``. Counting
the mismatches of 64 bases then takes a few instructions, and the first 64 mostly rule an overlap
out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import popcount

LOW, HIGH, HIDDEN = range(3)
"""Rows of a read's planes."""

NOTHING = -1
"""No overlap is good enough."""
TOO_SHORT = -2
"""No overlap has enough known bases to be looked at."""


@njit(nogil=True, cache=True)
def pack(letters: NDArray[np.uint64], length: Integer, planes: NDArray[np.uint64]) -> bool:
    """Fill the planes of a read and one word of zeros after each; return if no base is ambiguous.

    In the codes of A, C, G and T bits 1 and 2 distinguish the letters, and bit 3 is set only in N.
    A multiplication gathers the lowest bits of eight bytes.

    Args:
        letters: uint64[words], the bytes of the letters ACGTN; bytes after them are ignored.
        length: in bases.
        planes: uint64[3, at least length / 64 + 2].
    """
    words = (length + 63) >> 6
    every = np.uint64(0x0101010101010101)
    gather = np.uint64(0x0102040810204080)
    hidden_anywhere = np.uint64(0)
    for word in range(words):
        low = high = hidden = np.uint64(0)
        for part in range(min(8, (length - 64 * word + 7) >> 3)):
            eight = letters[8 * word + part]
            place = np.uint64(8 * part)
            low |= ((((eight >> np.uint64(1)) & every) * gather) >> np.uint64(56)) << place
            high |= ((((eight >> np.uint64(2)) & every) * gather) >> np.uint64(56)) << place
            hidden |= ((((eight >> np.uint64(3)) & every) * gather) >> np.uint64(56)) << place
        left = length - 64 * word
        if left < 64:
            hidden &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        planes[LOW, word] = low
        planes[HIGH, word] = high
        planes[HIDDEN, word] = hidden
        hidden_anywhere |= hidden
    planes[LOW, words] = planes[HIGH, words] = planes[HIDDEN, words] = np.uint64(0)
    return hidden_anywhere == 0


@njit(nogil=True, cache=True, inline="always")
def shifted(plane: NDArray[np.uint64], word: Integer, shift: np.uint64) -> np.uint64:
    """64 bits from ``shift`` (below 64) bits into a word on."""
    return (plane[word] >> shift) | ((plane[word + 1] << np.uint64(1)) << (np.uint64(63) - shift))


@njit(nogil=True, cache=True)
def best_overlap(
    first: NDArray[np.uint64],
    length1: Integer,
    second: NDArray[np.uint64],
    length2: Integer,
    known: bool,
    score1: NDArray[np.uint8],
    score2: NDArray[np.uint8],
    min_overlap: Integer,
    max_overlap: Integer,
    best: NDArray[np.float32],
) -> Integer:
    """Where the second read begins within the first one, at their best overlap.

    Overlaps are tried from the longest in which the second read does not begin before the first
    nor end before its end, down to ``min_overlap``. Bases that are not known count neither as
    mismatches nor towards the length. The best has the smallest mismatch density, mismatches a
    scored length (of at most ``max_overlap``); of those with the same, the smallest sum of the
    lower scores of mismatching bases a scored length; of those with the same, the longest.

    Args:
        first: planes of the first read, uint64[3, words + 1].
        length1: its bases.
        second: planes of the second read, in the direction of the first.
        length2: its bases.
        known: whether all bases of both are known.
        score1: uint8[length1], scores of the first read.
        score2: uint8[length2], scores of the second, in the direction of the first.
        min_overlap: fewest known bases.
        max_overlap: longest scored length.
        best: float32[2], density that must not be exceeded, or that of an overlap to be beaten,
            and the sum of scores of that one, or -1 if there is none; updated.

    Returns:
        The place; or NOTHING, or TOO_SHORT.
    """
    place = TOO_SHORT
    density = best[0]
    penalty = best[1]
    any_yet = penalty >= 0
    for start in range(max(0, length1 - length2), length1 - min_overlap + 1):
        length = length1 - start
        # More mismatches than this give a higher density, however the division is rounded.
        limit = np.int64(np.float64(density) * min(length, max_overlap)) + 1
        shift = np.uint64(start & 63)
        at = start >> 6
        words = (length + 63) >> 6
        mismatches = np.int64(0)
        overlap = np.int64(length)
        word = 0
        while word < words and mismatches <= limit:
            different = (shifted(first[LOW], at + word, shift) ^ second[LOW, word]) | (
                shifted(first[HIGH], at + word, shift) ^ second[HIGH, word]
            )
            inside = ~np.uint64(0)
            if word == words - 1:
                inside >>= np.uint64(63 - ((length - 1) & 63))
            if not known:
                hidden = shifted(first[HIDDEN], at + word, shift) | second[HIDDEN, word]
                hidden &= inside
                overlap -= np.int64(popcount(hidden))
                inside &= ~hidden
            mismatches += np.int64(popcount(different & inside))
            word += 1
        if mismatches > limit:
            # It cannot be the best.
            if place == TOO_SHORT and (
                known or _known(first, second, start, length) >= min_overlap
            ):
                place = NOTHING
            continue
        if overlap < min_overlap:
            continue
        if place == TOO_SHORT:
            place = NOTHING
        scored = np.float32(min(overlap, max_overlap))
        own_density = np.float32(mismatches) / scored
        if own_density > density:
            continue
        own_penalty = np.float32(0)
        if mismatches:
            total = _mismatch_scores(first, second, start, length, score1, score2)
            own_penalty = np.float32(total) / scored
        if any_yet and own_density == density and own_penalty >= penalty:
            continue
        any_yet = True
        density = own_density
        penalty = own_penalty
        place = start
        if mismatches == 0:
            break
    best[0] = density
    best[1] = penalty
    return place


@njit(nogil=True, cache=True)
def _known(
    first: NDArray[np.uint64], second: NDArray[np.uint64], start: Integer, length: Integer
) -> Integer:
    """Bases of an overlap that are known in both reads."""
    count = np.int64(length)
    for word in range((length + 63) >> 6):
        hidden = shifted(first[HIDDEN], (start >> 6) + word, np.uint64(start & 63))
        hidden |= second[HIDDEN, word]
        left = length - 64 * word
        if left < 64:
            hidden &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        count -= np.int64(popcount(hidden))
    return count


@njit(nogil=True, cache=True)
def _mismatch_scores(
    first: NDArray[np.uint64],
    second: NDArray[np.uint64],
    start: Integer,
    length: Integer,
    score1: NDArray[np.uint8],
    score2: NDArray[np.uint8],
) -> Integer:
    """Sum of the lower scores of the mismatching bases of an overlap."""
    total = np.int64(0)
    shift = np.uint64(start & 63)
    for word in range((length + 63) >> 6):
        at = (start >> 6) + word
        different = (shifted(first[LOW], at, shift) ^ second[LOW, word]) | (
            shifted(first[HIGH], at, shift) ^ second[HIGH, word]
        )
        different &= ~(shifted(first[HIDDEN], at, shift) | second[HIDDEN, word])
        left = length - 64 * word
        if left < 64:
            different &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        while different:
            trailing_zeros = popcount((different & (~different + np.uint64(1))) - np.uint64(1))
            i = 64 * word + np.int64(trailing_zeros)
            total += min(np.int64(score1[start + i]), np.int64(score2[i]))
            different &= different - np.uint64(1)
    return total
