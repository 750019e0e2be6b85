"""Sampled k-mers, and the table that holds those of a host.

A k-mer is a uint64 of two bit planes: bit i is the low bit of the code of its base i, bit 32 + i
the high bit. Of a k-mer and its reverse complement the smaller number counts. Whether it is sampled
depends on its middle 16 bases only, so that the k-mers of a read and of the host are chosen alike
wherever the read begins, and whatever surrounds them.

The table has groups of eight marks. A mark is the low half of a k-mer's hash, and stands in the
first group with room from the one that the high half gives. 0 is an empty place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.params import Sampling
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES
from ngsgpu.sequence.hashing import mix32, mix64
from ngsgpu.sequence.intrinsics import prefetch

GROUP: Final = 8
"""Marks of a group: 32 bytes, which a GPU reads at once."""

_NO_BASE = np.uint64(0xFFFFFFFFFFFFFFFF)
_BOTH = np.uint64((1 << 32) + 1)
_GROUP = np.uint64(GROUP)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_CENTRE_MASK = np.uint64(0xFFFF)
_CENTRE_BITS = np.uint64(16)
_TRIPLET = np.uint64(7)
_THREE = np.uint64(3)
_LF = 10
_CR = 13


def _plane_bits() -> NDArray[np.uint64]:
    codes = CODES.astype(np.uint64)
    planes = (codes & _ONE) | (codes >> _ONE << _HALF)
    return np.where(CODES == AMBIGUOUS, _NO_BASE, planes)


PLANE_BITS: Final = _plane_bits()
"""uint64[256]: the bits of a letter's code in both planes; all bits where it is no base."""


@njit(nogil=True, cache=True, inline="always")
def _centre(kmer: np.uint64, sampling: Sampling) -> np.uint64:
    low = (kmer >> sampling.offset) & _CENTRE_MASK
    high = (kmer >> (sampling.offset + _HALF)) & _CENTRE_MASK
    return low | (high << _CENTRE_BITS)


@njit(nogil=True, cache=True, inline="always")
def is_sampled(forward: np.uint64, backward: np.uint64, sampling: Sampling) -> bool:
    """Whether a k-mer with this reverse complement is sampled."""
    centre = min(_centre(forward, sampling), _centre(backward, sampling))
    return mix32(centre) <= sampling.limit


@njit(nogil=True, cache=True)
def repeats(kmer: np.uint64, length: int, counts: NDArray[np.int64]) -> int:
    """Pairs of equal triplets in a k-mer; ``counts`` is room for 64 numbers."""
    counts[:] = 0
    low, high = kmer & _LOW, kmer >> _HALF
    pairs = 0
    for _ in range(length - 2):
        triplet = (low & _TRIPLET) | ((high & _TRIPLET) << _THREE)
        pairs += counts[triplet]
        counts[triplet] += 1
        low >>= _ONE
        high >>= _ONE
    return pairs


@njit(nogil=True, cache=True)
def sample(
    data: NDArray[np.uint8],
    begin: int,
    stop: int,
    end: int,
    sampling: Sampling,
    max_repeats: int,
    bits: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
) -> int:
    """Write the hashes of the sampled k-mers that begin in a stretch of text; return their number.

    Args:
        data: text, whose line ends do not count.
        begin: where the stretch begins.
        stop: where it ends.
        end: where the sequence ends.
        sampling: which k-mers.
        max_repeats: see ``IndexParameters``.
        bits: ``PLANE_BITS``.
        hashes: room for as many as the stretch has letters.
    """
    counts = np.empty(64, dtype=np.int64)
    length = sampling.kmer
    forward = backward = _ZERO
    known = found = 0
    beyond = length - 1
    for i in range(begin, end):
        letter = data[i]
        if letter == _LF or letter == _CR:  # noqa: SIM109 (slower in a kernel)
            continue
        if i >= stop:
            if beyond == 0:
                break
            beyond -= 1
        planes = bits[letter]
        if planes == _NO_BASE:
            known = 0
            continue
        known += 1
        forward = ((forward >> _ONE) & sampling.older) | (planes << sampling.last)
        backward = ((backward << _ONE) & sampling.newer) | (planes ^ _BOTH)
        if known < length or not is_sampled(forward, backward, sampling):
            continue
        kmer = min(forward, backward)
        if repeats(kmer, length, counts) <= max_repeats:
            hashes[found] = mix64(kmer)
            found += 1
    return found


@njit(nogil=True, cache=True, inline="always")
def _mark(hashed: np.uint64) -> np.uint64:
    return max(hashed & _LOW, _ONE)


class Room(NamedTuple):
    """Workspace of ``covered_bases``, as long as the longest read.

    Attributes:
        kmers: uint64, sampled k-mers, then their hashes.
        ends: int64, where they end.
    """

    kmers: NDArray[np.uint64]
    ends: NDArray[np.int64]


@njit(nogil=True, cache=True, inline="always")
def _home(hashed: np.uint64, groups: np.uint64) -> np.uint64:
    """First place of the group where a k-mer's mark is looked for first."""
    return ((hashed >> _HALF) * groups >> _HALF) * _GROUP


@njit(nogil=True, cache=True)
def insert(table: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
    """Add k-mers by their hashes, which must ascend from call to call.

    The table must have room for all of them and for one more.
    """
    groups = np.uint64(len(table)) // _GROUP
    for hashed in hashes:
        at = _home(hashed, groups)
        while table[at] != 0:
            at += _ONE
            if at == np.uint64(len(table)):
                at = _ZERO
        table[at] = _mark(hashed)


@njit(nogil=True, cache=True, inline="always")
def contains(table: NDArray[np.uint32], hashed: np.uint64) -> bool:
    """Whether a table holds the k-mer with this hash; one in 10^8 others seems to be there too."""
    groups = np.uint64(len(table)) // _GROUP
    at = _home(hashed, groups)
    mark = np.uint32(_mark(hashed))
    while True:
        found = False
        for i in range(_GROUP):
            found |= table[at + i] == mark
        # The places of a group are taken from the first on.
        if found or table[at + _GROUP - _ONE] == 0:
            return found
        at += _GROUP
        if at == np.uint64(len(table)):
            at = _ZERO


@njit(nogil=True, cache=True)
def _sampled(
    data: NDArray[np.uint8],
    start: Integer,
    length: Integer,
    sampling: Sampling,
    bits: NDArray[np.uint64],
    room: Room,
) -> int:
    """Put the sampled k-mers of a read into ``room``; return their number."""
    forward = backward = _ZERO
    known = base = 0
    found = _ZERO
    i = np.uint64(start)
    while base < length:
        letter = data[i]
        i += _ONE
        planes = bits[letter]
        if planes == _NO_BASE:
            if letter != _LF and letter != _CR:
                base += 1
                known = 0
            continue
        base += 1
        known += 1
        forward = ((forward >> _ONE) & sampling.older) | (planes << sampling.last)
        backward = ((backward << _ONE) & sampling.newer) | (planes ^ _BOTH)
        # Written even if it is not sampled, since a branch would be mispredicted too often.
        room.kmers[found] = min(forward, backward)
        room.ends[found] = base
        found += np.uint64(is_sampled(forward, backward, sampling) & (known >= sampling.kmer))
    return int(found)


@njit(nogil=True, cache=True)
def covered_bases(
    data: NDArray[np.uint8],
    start: Integer,
    length: Integer,
    sampling: Sampling,
    table: NDArray[np.uint32],
    bits: NDArray[np.uint64],
    enough: int,
    room: Room,
) -> int:
    """Bases of a read that sampled k-mers of the host cover, counted up to ``enough``.

    Args:
        data: text, whose line ends do not count.
        start: where the read begins.
        length: its bases.
        sampling: which k-mers.
        table: those of the host.
        bits: ``PLANE_BITS``.
        enough: number of bases after which counting stops.
        room: workspace.
    """
    groups = np.uint64(len(table)) // _GROUP
    found = _sampled(data, start, length, sampling, bits, room)
    for i in range(found):
        hashed = mix64(room.kmers[i])
        room.kmers[i] = hashed
        prefetch(table, np.int64(_home(hashed, groups)))
    covered = last = 0
    for i in range(found):
        if contains(table, room.kmers[i]):
            covered += min(sampling.kmer, room.ends[i] - last)
            last = room.ends[i]
            if covered >= enough:
                break
    return covered
