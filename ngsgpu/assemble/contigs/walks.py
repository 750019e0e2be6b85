"""Reads threaded through an assembly graph.

A read is followed from the end of a piece on, through link after link, as long as it agrees; an
error inside a piece is read over. What a read says about windows is what the graph says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import GraphArrays, Pieces, base_of, letters
from ngsgpu.assemble.contigs.reads import Reads, unpack
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all
from ngsgpu.sequence.hashing import mix64

_PART: Final = 1 << 15
"""Reads that a task threads."""

_ROOM: Final = 1 << 20
"""Codes of stretches that a task takes at once."""

_FILTER_BITS: Final = 20
_CALM: Final = 12
"""Bases that agree between two errors, and behind a link."""

SURE: Final = 2
"""Reads that cross a link that is in no doubt, at least."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


@dataclass(frozen=True, slots=True)
class Threads:
    """What reads say about links.

    Attributes:
        text: uint8[m], letters of stretches across links.
        starts: int64[n + 1], where they begin.
        support: int64[l], reads that go over each link, in either direction.
    """

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    support: NDArray[np.int64]


def threaded(pieces: Pieces, reads: Reads, window: int, threads: int) -> Threads:
    """Thread reads through a graph.

    Args:
        pieces: the graph.
        reads: the reads.
        window: length of the windows across links that are wanted; 0 if only support is.
        threads: number of threads; does not affect the result.
    """
    graph = pieces.arrays
    slots, seen = _ends(pieces)
    longest = int(reads.lengths.max(initial=0))

    def work(begin: int) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        end = min(len(reads), begin + _PART)
        room = np.empty(max(_ROOM, longest * (window + 1)), dtype=np.uint8)
        sizes = np.empty(max(_ROOM >> 6, longest + 1), dtype=np.int64)
        support = np.zeros(len(pieces.links), dtype=np.int64)
        text, size = [], []
        at = begin
        while at < end:
            at, used, found = thread(
                graph, slots, seen, reads.bases, reads.starts, reads.lengths, at, end, window,
                longest, room, sizes, support,
            )  # fmt: skip
            text.append(room[:used].copy())
            size.append(sizes[:found].copy())
        return np.concatenate(text), np.concatenate(size), support

    parts = map_all(threads, work, range(0, len(reads), _PART), name="threads")
    sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(part[1] for part in parts)])
    own = np.zeros(len(pieces.links), dtype=np.int64)
    for part in parts:
        own += part[2]
    texts = np.concatenate([np.empty(0, dtype=np.uint8), *(part[0] for part in parts)])
    turned = _turned(pieces)
    # A link that is its own reverse complement has been counted in both directions.
    own += np.where(turned == np.arange(len(turned)), 0, own[turned])
    return Threads(letters(texts), np.cumsum(sizes), own)


def unsure_links(pieces: Pieces, reads: Reads, threads: int) -> NDArray[np.bool_]:
    """Mask of the directions that have links, none of which two reads cross: bool[2n].

    Args:
        pieces: the graph.
        reads: the reads.
        threads: number of threads; does not affect the result.
    """
    support = threaded(pieces, reads, 0, threads).support
    found = np.diff(pieces.link_starts) > 0
    found[pieces.sources[support >= SURE]] = False
    return found


def _turned(pieces: Pieces) -> NDArray[np.int64]:
    """The place of each link as it is in the other direction."""
    turned = np.empty(len(pieces.links), dtype=np.int64)
    turn_links(pieces.link_starts, pieces.links, turned)
    return turned


def _ends(pieces: Pieces) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """A hash table of the last k-mers of directions that something follows, and a filter."""
    wanted = np.flatnonzero(np.diff(pieces.link_starts) > 0)
    bits = max(4, int(4 * len(wanted)).bit_length())
    slots = np.full(1 << bits, -1, dtype=np.int64)
    seen = np.zeros(1 << (_FILTER_BITS - 6), dtype=np.uint64)
    enter_ends(pieces.arrays, wanted, slots, seen)
    return slots, seen


@njit(nogil=True, cache=True)
def hash_of(
    bases: NDArray[np.uint8], starts: NDArray[np.int64], d: Integer, begin: Integer, size: Integer
) -> np.uint64:
    """Hash of ``size`` bases of a direction, as the rolling one of ``thread``."""
    value = np.uint64(0)
    for i in range(begin, begin + size):
        value = value * _BASE + np.uint64(base_of(bases, starts, d, i)) + _ONE
    return value


@njit(nogil=True, cache=True)
def enter_ends(
    graph: GraphArrays,
    wanted: NDArray[np.int64],
    slots: NDArray[np.int64],
    seen: NDArray[np.uint64],
) -> None:
    """Enter the last k-mers of directions in a table (-1: free) and a filter of 2^20 bits."""
    k, bases, starts = graph.k, graph.bases, graph.starts
    mask = np.uint64(len(slots) - 1)
    for d in wanted:
        length = starts[(d >> 1) + 1] - starts[d >> 1]
        value = mix64(hash_of(bases, starts, d, length - k, k))
        bit = value >> np.uint64(64 - _FILTER_BITS)
        seen[bit >> np.uint64(6)] |= _ONE << (bit & np.uint64(63))
        slot = value & mask
        while slots[slot] >= 0:
            slot = (slot + _ONE) & mask
        slots[slot] = d


@njit(nogil=True, cache=True)
def turn_links(
    link_starts: NDArray[np.int64], links: NDArray[np.int64], turned: NDArray[np.int64]
) -> None:
    """Write the place of each link's turned one: of a to b, that of b ^ 1 to a ^ 1."""
    for d in range(len(link_starts) - 1):
        for i in range(link_starts[d], link_starts[d + 1]):
            back = links[i] ^ 1
            j = link_starts[back]
            while links[j] != d ^ 1:
                j += 1
            turned[i] = j


@njit(nogil=True, cache=True)
def thread(
    graph: GraphArrays,
    slots: NDArray[np.int64],
    seen: NDArray[np.uint64],
    read_bases: NDArray[np.uint8],
    read_starts: NDArray[np.int64],
    read_lengths: NDArray[np.int32],
    first: int,
    end: int,
    window: int,
    longest: int,
    room: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    support: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Thread some reads.

    Args:
        graph: the graph.
        slots: of ``enter_ends``.
        seen: of ``enter_ends``.
        read_bases: of the reads.
        read_starts: of the reads.
        read_lengths: of the reads.
        first: read to begin with.
        end: of the reads.
        window: see ``threaded``.
        longest: length of the longest read.
        room: gets the codes of stretches.
        sizes: gets their lengths.
        support: is added to.

    Returns:
        The read before which the room was full, the codes and the stretches written.
    """
    k = graph.k
    codes = np.empty(longest, dtype=np.uint8)
    path = np.empty(longest, dtype=np.uint8)
    joints = np.empty(longest + 1, dtype=np.int64)
    crossed = np.empty(longest + 1, dtype=np.int64)
    mask = np.uint64(len(slots) - 1)
    gone = _ONE
    for _ in range(k):
        gone *= _BASE
    used = found = 0
    for read in range(first, end):
        length = np.int64(read_lengths[read])
        if used + length * (window + 1) > len(room) or found + length >= len(sizes):
            return read, used, found
        if length <= k:
            continue
        unpack(read_bases, read_starts[read], length, codes)
        value = np.uint64(0)
        at = 0
        fresh = 0
        while at < length:
            value = value * _BASE + np.uint64(codes[at]) + _ONE
            if at - fresh >= k:
                value -= gone * (np.uint64(codes[at - k]) + _ONE)
            at += 1
            if at - fresh < k or at == length:
                continue
            mixed = mix64(value)
            bit = mixed >> np.uint64(64 - _FILTER_BITS)
            if not (seen[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & _ONE:
                continue
            d = end_at(graph, slots, mixed & mask, mask, codes, at)
            if d < 0:
                continue
            low, high, number = walk(graph, d, codes, fresh, at, length, path, joints, crossed)
            for i in range(number):
                support[crossed[i]] += 1
            if window > 0:
                used, found = put_windows(
                    k, path, low, high, joints, number, window, room, used, sizes, found
                )
            if high > at:
                at = fresh = high
                value = np.uint64(0)
    return end, used, found


@njit(nogil=True, cache=True)
def end_at(
    graph: GraphArrays,
    slots: NDArray[np.int64],
    slot: np.uint64,
    mask: np.uint64,
    codes: NDArray[np.uint8],
    at: Integer,
) -> Integer:
    """The direction whose last k-mer ends at a place of a read, or -1."""
    k, bases, starts = graph.k, graph.bases, graph.starts
    while slots[slot] >= 0:
        d = slots[slot]
        length = starts[(d >> 1) + 1] - starts[d >> 1]
        i = 0
        while i < k and base_of(bases, starts, d, length - k + i) == codes[at - k + i]:
            i += 1
        if i == k:
            return d
        slot = (slot + _ONE) & mask
    return -1


@njit(nogil=True, cache=True)
def walk(
    graph: GraphArrays,
    d: Integer,
    codes: NDArray[np.uint8],
    fresh: Integer,
    at: Integer,
    length: Integer,
    path: NDArray[np.uint8],
    joints: NDArray[np.int64],
    crossed: NDArray[np.int64],
) -> tuple[Integer, Integer, int]:
    """Follow a read from the end of a direction on.

    Args:
        graph: the graph.
        d: direction whose last base is that before ``at``.
        codes: of the read.
        fresh: where the read has not been followed yet.
        at: place in the read.
        length: of the read.
        path: gets the graph's bases, as far as the read is followed.
        joints: gets the places behind links' ends.
        crossed: gets the links.

    Returns:
        Where the path begins and ends, and the number of links.
    """
    k, bases, starts = graph.k, graph.bases, graph.starts
    link_starts, links = graph.link_starts, graph.links
    size = starts[(d >> 1) + 1] - starts[d >> 1]
    low = at
    wrong = at + _CALM
    while low > fresh and at - low < size:
        base = base_of(bases, starts, d, size - 1 - (at - low))
        if base != codes[low - 1]:
            if wrong - low < _CALM:
                break
            wrong = low - 1
        low -= 1
        path[low] = base
    if wrong < at and wrong - low < _CALM:
        low = wrong + 1
    high = at
    number = 0
    wrong = at - _CALM
    joint = at
    while high < length:
        step = link_starts[d]
        while (
            step < link_starts[d + 1] and base_of(bases, starts, links[step], k - 1) != codes[high]
        ):
            step += 1
        if step == link_starts[d + 1] or (high - wrong < _CALM and wrong >= joint):
            break
        joint = high
        joints[number], crossed[number] = high, step
        number += 1
        d = links[step]
        size = starts[(d >> 1) + 1] - starts[d >> 1]
        failed = False
        for i in range(k - 1, size):
            if high == length:
                break
            base = base_of(bases, starts, d, i)
            if base != codes[high]:
                failed = high - wrong <= _CALM or high - joint < _CALM
                if failed:
                    break
                wrong = high
            path[high] = base
            high += 1
        if failed:
            high = joint if high - joint < _CALM else high
            break
    if high - wrong <= _CALM and wrong >= at:
        high = wrong
    while number > 0 and joints[number - 1] >= high:
        number -= 1
    return low, high, number


@njit(nogil=True, cache=True)
def put_windows(
    k: int,
    path: NDArray[np.uint8],
    low: Integer,
    high: Integer,
    joints: NDArray[np.int64],
    number: int,
    window: int,
    room: NDArray[np.uint8],
    used: int,
    sizes: NDArray[np.int64],
    found: int,
) -> tuple[int, int]:
    """Write the stretches of a path of which every window goes across a link.

    A window lies inside a piece if it begins at its first base or later and ends in it: the piece
    behind a link begins k - 1 bases before the link's place, and ends at the next one.
    """
    begin = low
    for i in range(number + 2):
        if i <= number:
            inside = low if i == 0 else max(low, joints[i - 1] - (k - 1))
            stop = joints[i] if i < number else high
            if stop - inside < window:
                continue
        else:
            inside, stop = high - window + 1, high
        if inside > begin:
            size = inside - 1 + window - begin
            room[used : used + size] = path[begin : begin + size]
            sizes[found] = size
            used += size
            found += 1
        begin = max(begin, stop - window + 1)
    return used, found
