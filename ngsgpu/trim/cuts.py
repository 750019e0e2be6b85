"""Cutting a read: fixed numbers of bases, windows of quality, tails of one base, adapters.

All does what fastp 0.23.2 does, also where that is unexpected.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.trim.rules import Rules, Window

N: Final = 78
G: Final = 71
BASES: Final = (65, 84, 67, 71)
"""In fastp's order: A, T, C, G."""

_ONE_IN: Final = 8
_MOST_MISMATCHES: Final = 5

NOWHERE: Final = -(1 << 30)


class Read(NamedTuple):
    """A read that is being trimmed.

    Attributes:
        bases: uint8 [longest], letters.
        qualities: uint8 [longest], characters of Phred+33.
        span: int64 [2], where it begins and ends in both.
    """

    bases: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    span: NDArray[np.int64]


@njit(nogil=True, cache=True, inline="always")
def length_of(read: Read) -> int:
    """Bases of a read."""
    return read.span[1] - read.span[0]


@njit(nogil=True, cache=True, inline="always")
def shorten(read: Read, length: Integer) -> None:
    """Cut off what exceeds a length; shorter reads stay as they are."""
    if 0 <= length <= length_of(read):
        read.span[1] = read.span[0] + length


@njit(nogil=True, cache=True)
def cut(read: Read, mate: Integer, rules: Rules) -> tuple[bool, Integer]:
    """Cut fixed numbers of bases and windows of low quality.

    Returns:
        Whether something is left, else the read is as it was; bases that were cut from its start.
    """
    front, tail = np.int64(rules.fronts[mate]), np.int64(rules.tails[mate])
    begin, length = read.span[0], length_of(read)
    by_windows = rules.cut_front.size + rules.cut_tail.size + rules.cut_right.size > 0
    if front == 0 and tail == 0 and not by_windows:
        return True, np.int64(0)
    left = length - front - tail
    if left < 0:
        return False, np.int64(0)
    if by_windows:
        if rules.cut_front.size:
            if left <= rules.cut_front.size:
                return False, np.int64(0)
            front = _front(read, front, tail, rules)
            left = length - front - tail
        if rules.cut_right.size:
            if length - front - tail <= rules.cut_right.size:
                return False, np.int64(0)
            left = _right(read, front, tail, rules)
        elif rules.cut_tail.size:
            if length - front - tail <= rules.cut_tail.size:
                return False, np.int64(0)
            left = _tail(read, front, tail, rules)
        if left <= 0 or front >= length - 1:
            return False, np.int64(0)
    read.span[0] = begin + front
    read.span[1] = begin + front + left
    return True, front


@njit(nogil=True, cache=True)
def _find_window(
    quality: NDArray[np.uint8], begin: Integer, end: Integer, window: Window, poor: bool
) -> Integer:
    """Where the first window is that is poor, or that is not; else where none fits any more."""
    size = np.int64(window.size)
    total: Integer = 0
    for i in range(size - 1):
        total += np.int64(quality[begin + i])
    at = begin
    while at + size < end:
        total += np.int64(quality[at + size - 1])
        if at > begin:
            total -= np.int64(quality[at - 1])
        if (total < window.least) == poor:
            break
        at += 1
    return at


@njit(nogil=True, cache=True)
def _front(read: Read, front: Integer, tail: Integer, rules: Rules) -> Integer:
    """Bases to cut from the start, of which ``front`` anyway."""
    begin, length = read.span[0], length_of(read)
    at = _find_window(read.qualities[begin:], front, length - tail, rules.cut_front, False)
    if at > 0:
        at += rules.cut_front.size - 1
    while at < length and read.bases[begin + at] == N:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _right(read: Read, front: Integer, tail: Integer, rules: Rules) -> Integer:
    """Bases that are left behind ``front``, up to the first poor window."""
    begin, length = read.span[0], length_of(read)
    quality, end = read.qualities[begin:], length - tail
    at = _find_window(quality, front, end, rules.cut_right, True)
    if at + rules.cut_right.size >= end:
        return end - front
    while at < length - 1 and quality[at] >= rules.cut_right.character:
        at += 1
    return at - front


@njit(nogil=True, cache=True)
def _tail(read: Read, front: Integer, tail: Integer, rules: Rules) -> Integer:
    """Bases that are left behind ``front``, without the poor windows at the end."""
    begin, length = read.span[0], length_of(read)
    quality, size = read.qualities[begin:], np.int64(rules.cut_tail.size)
    last = length - tail - 1
    total: Integer = 0
    for i in range(size - 1):
        total += np.int64(quality[last - i])
    at = last
    while at - size >= front:
        total += np.int64(quality[at - size + 1])
        if at < last:
            total -= np.int64(quality[at + 1])
        if total >= rules.cut_tail.least:
            break
        at -= 1
    if at < length - 1:
        at -= size - 1
    while at >= 0 and read.bases[begin + at] == N:
        at -= 1
    return at - front + 1


@njit(nogil=True, cache=True)
def cut_poly_g(read: Read, least: Integer) -> None:
    """Cut a tail of G of at least this length; one mismatch in eight, five in all."""
    end, length = read.span[1], length_of(read)
    mismatches, first = 0, length - 1
    i = 0
    while i < length:
        if read.bases[end - i - 1] == G:
            first = length - i - 1
        else:
            mismatches += 1
        if mismatches > _MOST_MISMATCHES or (mismatches > (i + 1) // _ONE_IN and i >= least - 1):
            break
        i += 1
    if i >= least:
        shorten(read, first)


@njit(nogil=True, cache=True)
def cut_poly_x(read: Read, least: Integer) -> tuple[Integer, Integer]:
    """Cut a tail of one base.

    Returns:
        Number of the base in ``BASES``, -1 if there is no such tail; bases of the tail.
    """
    end, length = read.span[1], length_of(read)
    counts = np.zeros(4, dtype=np.int64)
    at = 0
    while at < length:
        letter = read.bases[end - at - 1]
        seen = at + 1
        allowed = min(_MOST_MISMATCHES, seen // _ONE_IN)
        goes_on = False
        for base in range(4):
            counts[base] += letter == BASES[base] or letter == N
            goes_on |= seen - counts[base] <= allowed
        if not goes_on and (at >= _ONE_IN or seen >= least - 1):
            break
        at += 1
    if at + 1 < least:
        return np.int64(-1), np.int64(0)
    most = np.int64(0)
    for base in range(1, 4):
        if counts[base] > counts[most]:
            most = np.int64(base)
    while at >= 0 and (at >= length or read.bases[end - at - 1] != BASES[most]):
        at -= 1
    shorten(read, length - at - 1)
    return most, np.int64(at + 1)


@njit(nogil=True, cache=True)
def find_adapter(read: Read, number: Integer, rules: Rules, need: Integer) -> Integer:
    """Where an adapter begins in a read; it may lack its first bases, then that is negative.

    One base in eight may differ. ``NOWHERE`` if it is not there.
    """
    begin, length = read.span[0], length_of(read)
    own = rules.adapter_ends[number]
    size = rules.adapter_ends[number + 1] - own
    if size < need:
        return np.int64(NOWHERE)
    start = -4 if size >= 16 else -3 if size >= 12 else -2 if size >= 8 else 0
    for at in range(start, length - need):
        compared = min(length - at, size)
        allowed = compared // _ONE_IN
        mismatches = 0
        for i in range(max(0, -at), compared):
            if rules.adapters[own + i] != read.bases[begin + at + i]:
                mismatches += 1
                if mismatches > allowed:
                    break
        if mismatches <= allowed:
            return np.int64(at)
    return np.int64(NOWHERE)
