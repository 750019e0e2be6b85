"""Where the mates of a pair overlap, and correcting one by the other (fastp 0.23.2)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.trim.cuts import Read, length_of
from ngsgpu.trim.rules import LOWEST, Rules

_LOOKED_AT: Final = 50
"""Bases of an overlap that must not differ too much; behind them it is taken as it is."""

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


@njit(nogil=True, cache=True)
def turn(read: Read, out: NDArray[np.uint8]) -> None:
    """Write the reverse complement of a read."""
    last, length = read.span[1] - 1, length_of(read)
    for i in range(length):
        out[i] = COMPLEMENTS[read.bases[last - i]]


@njit(nogil=True, cache=True)
def find_overlap(first: Read, second: Read, turned: NDArray[np.uint8], rules: Rules) -> Overlap:
    """Find the overlap of mates: the one with the longest fragment that is good enough.

    Args:
        first: the first mate.
        second: the second.
        turned: uint8 [longest], for its reverse complement.
        rules: what is good enough.
    """
    turn(second, turned)
    bases = first.bases[first.span[0] : first.span[1]]
    length1, length2 = length_of(first), length_of(second)
    for offset in range(length1 - rules.overlap_least):
        length = min(length1 - offset, length2)
        differences = _differences(bases, offset, turned, 0, length, rules)
        if differences >= 0:
            return Overlap(True, offset, length, differences)
    for offset in range(length2 - rules.overlap_least):
        length = min(length1, length2 - offset)
        differences = _differences(bases, 0, turned, offset, length, rules)
        if differences >= 0:
            return Overlap(True, -offset, length, differences)
    return Overlap(False, 0, 0, 0)


@njit(nogil=True, cache=True, inline="always")
def _differences(
    one: NDArray[np.uint8], start: Integer, other: NDArray[np.uint8], begin: Integer,
    length: Integer, rules: Rules,
) -> int:  # fmt: skip
    """Bases that differ; -1 if too many."""
    most = min(rules.overlap_most, int(length * rules.overlap_share))
    differences = 0
    for i in range(length):
        if one[start + i] != other[begin + i]:
            differences += 1
            if differences > most and i < _LOOKED_AT:
                return -1
    return differences if differences <= most or length > _LOOKED_AT else -1


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
