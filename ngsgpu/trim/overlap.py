"""Where the mates of a pair overlap, and correcting one by the other (fastp 0.23.2)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import popcount
from ngsgpu.trim.cuts import Read, length_of
from ngsgpu.trim.rules import LOWEST, Rules

_LOOKED_AT: Final = 50
"""Bases of an overlap that must not differ too much; behind them it is taken as it is."""

_STEP: Final = 8
"""Bases of a word."""

_MOST_WORDS: Final = 1 << 15
"""Words that are kept of a mate; overlaps that begin behind them are compared base by base."""

_SEVENS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_EIGHTS: Final = np.uint64(0x8080808080808080)

_GOOD: Final = LOWEST + 30
_POOR: Final = LOWEST + 14


class Overlap(NamedTuple):
    """An overlap of mates.

    Attributes:
        found: whether there is one.
        offset: base of the first mate at which the second, turned back, begins; negative if the
            mates go on into adapters.
        length: bases.
        differences: bases that differ.
    """

    found: bool
    offset: int
    length: int
    differences: int


def _complements() -> NDArray[np.uint8]:
    table = np.full(256, ord("N"), dtype=np.uint8)
    for one, other in zip(b"ACGTacgt", b"TGCATGCA", strict=True):
        table[one] = other
    return table


COMPLEMENTS: Final = _complements()
"""uint8 [256], of all letters; N of what is no base."""


class Words(NamedTuple):
    """Room for words of bases, from every base of a read on.

    Attributes:
        first: uint64 [longest, at most _MOST_WORDS], of the first mate.
        turned: uint8 [longest], the second mate turned back.
        second: uint64, as many, of that.
    """

    first: NDArray[np.uint64]
    turned: NDArray[np.uint8]
    second: NDArray[np.uint64]


@njit(nogil=True, cache=True)
def words_for(longest: int) -> Words:
    """Room for mates of up to ``longest`` bases."""
    words = min(longest, _MOST_WORDS)
    return Words(
        np.empty(words, dtype=np.uint64),
        np.empty(longest, dtype=np.uint8),
        np.empty(words, dtype=np.uint64),
    )


@njit(nogil=True, cache=True)
def _fill(
    bases: NDArray[np.uint8], begin: Integer, length: Integer, out: NDArray[np.uint64]
) -> None:
    """Write the word that begins at each base; the last ones have letters before them, too."""
    word = np.uint64(0)
    for i in range(min(length, len(out))):
        word = (word >> np.uint64(8)) | (np.uint64(bases[begin + i]) << np.uint64(56))
        if i >= _STEP - 1:
            out[i - _STEP + 1] = word


@njit(nogil=True, cache=True)
def find_overlap(first: Read, second: Read, words: Words, rules: Rules) -> Overlap:
    """Find the overlap of mates: the one with the longest fragment that is good enough.

    Args:
        first: the first mate.
        second: the second.
        words: room.
        rules: what is good enough.
    """
    length1, length2 = length_of(first), length_of(second)
    last = second.span[1] - 1
    for i in range(length2):
        words.turned[i] = COMPLEMENTS[second.bases[last - i]]
    _fill(first.bases, first.span[0], length1, words.first)
    _fill(words.turned, 0, length2, words.second)
    for offset in range(length1 - rules.overlap_least):
        length = min(length1 - offset, length2)
        differences = _differences(first, offset, words, 0, length, rules)
        if differences >= 0:
            return Overlap(True, offset, length, differences)
    for offset in range(length2 - rules.overlap_least):
        length = min(length1, length2 - offset)
        differences = _differences(first, 0, words, offset, length, rules)
        if differences >= 0:
            return Overlap(True, -offset, length, differences)
    return Overlap(False, 0, 0, 0)


@njit(nogil=True, cache=True, inline="always")
def _differences(
    first: Read, start: Integer, words: Words, begin: Integer, length: Integer, rules: Rules
) -> int:
    """Bases that differ; -1 if too many."""
    most = min(rules.overlap_most, int(length * rules.overlap_share))
    # Unsigned indices are not looked at for being negative.
    here, there, step = np.uintp(start), np.uintp(begin), np.uintp(_STEP)
    if length >= 2 * _STEP and max(start, begin) <= len(words.first) - 2 * _STEP:
        # Most overlaps differ too much in their first bases.
        found = _differing(words.first[here] ^ words.second[there])
        found += _differing(words.first[here + step] ^ words.second[there + step])
        if found > most:
            return -1
    shift = np.uintp(first.span[0]) + here
    differences = 0
    for i in range(np.uintp(length)):
        if first.bases[shift + i] != words.turned[there + i]:
            differences += 1
            if differences > most and i < np.uintp(_LOOKED_AT):
                return -1
    return differences if differences <= most or length > _LOOKED_AT else -1


@njit(nogil=True, cache=True, inline="always")
def _differing(word: np.uint64) -> np.int64:
    """Bytes of a word that are not zero."""
    marks = (((word & _SEVENS) + _SEVENS) | word) & _EIGHTS
    return np.int64(popcount(marks))


@njit(nogil=True, cache=True)
def correct(first: Read, second: Read, overlap: Overlap) -> tuple[int, int]:
    """Replace poor bases by good ones of the other mate, with their quality.

    Returns:
        Reads and bases that were corrected.
    """
    if not overlap.found or overlap.differences == 0:
        return 0, 0
    begin = first.span[0] + max(0, overlap.offset)
    last = second.span[1] - 1 - max(0, -overlap.offset)
    bases = 0
    changed1 = changed2 = False
    for i in range(overlap.length):
        here, there = begin + i, last - i
        if first.bases[here] == COMPLEMENTS[second.bases[there]]:
            continue
        one, other = first.qualities[here], second.qualities[there]
        if one >= _GOOD and other <= _POOR:
            second.bases[there] = COMPLEMENTS[first.bases[here]]
            second.qualities[there] = one
            changed2 = True
        elif other >= _GOOD and one <= _POOR:
            first.bases[here] = COMPLEMENTS[second.bases[there]]
            first.qualities[here] = other
            changed1 = True
        else:
            continue
        bases += 1
    return int(changed1) + int(changed2), bases
