"""The table that holds the sampled k-mers of a host.

It has groups of eight marks. A mark is the low half of a k-mer's hash, and stands in the first
group with room from the one that the high half gives. 0 is an empty place.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.kmers import Room
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.intrinsics import prefetch

GROUP: Final = 8
"""Marks of a group: 32 bytes, which a GPU reads at once."""

_GROUP = np.uint64(GROUP)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def _mark(hashed: np.uint64) -> np.uint64:
    return max(hashed & _LOW, _ONE)


@njit(nogil=True, cache=True, inline="always")
def _home(hashed: np.uint64, groups: np.uint64) -> np.uint64:
    """First place of the group where a k-mer's mark is looked for first."""
    return ((hashed >> _HALF) * groups >> _HALF) * _GROUP


@njit(nogil=True, cache=True)
def insert(
    window: NDArray[np.uint32],
    first: Integer,
    groups: Integer,
    hashes: NDArray[np.uint64],
    carried: NDArray[np.uint32],
    beyond: NDArray[np.uint32],
) -> int:
    """Add k-mers to a window of a table; return how many marks have no place before its end.

    Args:
        window: places of the table, with those of all groups where the k-mers are looked for first
            but perhaps the one after it.
        first: number of the window's first place.
        groups: of the table.
        hashes: of the k-mers, which ascend from window to window.
        carried: marks that had no place in the window before.
        beyond: room for all marks; gets those for the next window.
    """
    size = np.uint64(len(window))
    over = 0
    at = _ZERO
    for mark in carried:
        while at < size and window[at] != 0:
            at += _ONE
        if at < size:
            window[at] = mark
        else:
            beyond[over] = mark
            over += 1
    for hashed in hashes:
        at = _home(hashed, np.uint64(groups)) - np.uint64(first)
        while at < size and window[at] != 0:
            at += _ONE
        if at < size:
            window[at] = _mark(hashed)
        else:
            beyond[over] = _mark(hashed)
            over += 1
    return over


def fill(
    table: NDArray[np.uint32],
    starts: NDArray[np.uint64],
    hashes_of: Callable[[int], NDArray[np.uint64]],
    release: Callable[[], None],
) -> None:
    """Fill a table that has room for all k-mers and for one more.

    Args:
        table: places, all empty.
        starts: uint64[parts], the lowest hash that each part may have; 0 is the first.
        hashes_of: gives the hashes of a part, ascending.
        release: called when the places of a part have been filled.
    """
    groups = len(table) // GROUP
    homes = [((int(start) >> 32) * groups >> 32) * GROUP for start in starts]
    bounds = list(pairwise([*homes, len(table)]))
    carried = np.empty(0, dtype=np.uint32)

    def put(number: int, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        begin, end = bounds[number]
        beyond = np.empty(len(carried) + len(hashes), dtype=np.uint32)
        over = insert(table[begin:end], begin, groups, hashes, carried, beyond)
        release()
        return beyond[:over].copy()

    for number in range(len(bounds)):
        carried = put(number, hashes_of(number))
    # What has no place before the end goes on at the beginning.
    number = 0
    while len(carried):
        carried = put(number, np.empty(0, dtype=np.uint64))
        number += 1


@njit(nogil=True, cache=True)
def hash_all(room: Room, found: Integer, table: NDArray[np.uint32]) -> None:
    """Replace the first k-mers by their hashes, and fetch where they are looked for."""
    groups = np.uint64(len(table)) // _GROUP
    for i in range(found):
        hashed = mix64(room.kmers[i])
        room.kmers[i] = hashed
        prefetch(table, np.int64(_home(hashed, groups)))


@njit(nogil=True, cache=True, inline="always")
def contains(table: NDArray[np.uint32], hashed: np.uint64) -> bool:
    """Whether a table holds the k-mer with this hash; one in 10^8 others seems to be there too."""
    groups = np.uint64(len(table)) // _GROUP
    at = _home(hashed, groups)
    mark = np.uint32(_mark(hashed))
    for _ in range(groups):  # a table has room; one that was changed may have none
        found = False
        for i in range(_GROUP):
            found |= table[at + i] == mark
        # The places of a group are taken from the first on.
        if found or table[at + _GROUP - _ONE] == 0:
            return found
        at += _GROUP
        if at == np.uint64(len(table)):
            at = _ZERO
    return False
