"""The de Bruijn graph of counted k-mers: which k-mers follow which.

The graph's nodes are canonical k-mers in ascending order, and a node is named by its place. A node
is read in two directions: ``d = 2 * node`` is the k-mer as it stands, ``d = 2 * node + 1`` its
reverse complement, and ``d ^ 1`` the other direction. ``e`` follows ``d`` if the last k - 1 bases
of ``d`` are the first of ``e``; then ``d ^ 1`` follows ``e ^ 1``.

Each node finds its neighbours by itself, in the sorted k-mers: the eight bits of ``masks`` say
which bases follow in either direction, and ``nexts`` names the follower where there is but one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.kmers.counted import highest_count
from ngsgpu.pool import map_all
from ngsgpu.sequence.intrinsics import prefetch
from ngsgpu.sequence.kmers import find_row, is_less, roll_words, turn, unused_bits

Places = NDArray[Any]
"""Nodes or directions, int32, or int64 in graphs of 2^30 nodes and more."""

_PART: Final = 1 << 16
_MOST_BITS: Final = 28
_TOGETHER: Final = 16
"""Nodes whose neighbours are looked up together."""

_ONE = np.uint64(1)
_3 = np.uint64(3)
_62 = np.uint64(62)


@dataclass(frozen=True, slots=True)
class Graph:
    """K-mers and their neighbours.

    Attributes:
        k: k-mer length, odd.
        kmers: uint64[n, words], ascending (see ``ngsgpu.kmers.cpu``).
        counts: uint16[n].
        starts: int[2^bits + 1], where the k-mers begin that have the same highest bits.
        masks: uint8[n]; bit ``4 * (d & 1) + b`` is set if base b follows direction d.
        nexts: int[2n], what follows direction d, or -1 if there is nothing or more than one.
    """

    k: int
    kmers: NDArray[np.uint64]
    counts: NDArray[np.uint16]
    starts: Places
    masks: NDArray[np.uint8]
    nexts: Places

    def __len__(self) -> int:
        return len(self.kmers)

    @property
    def bits(self) -> int:
        """Highest bits by which ``starts`` is indexed."""
        return len(self.starts).bit_length() - 1


def place_type(size: int) -> type[np.signedinteger[Any]]:
    """Integer type that can number the nodes of a graph."""
    return np.int32 if size < 1 << 30 else np.int64


def index_bits(size: int, k: int) -> int:
    """Highest bits of a k-mer by which it is looked up."""
    return min(_MOST_BITS, 2 * k, max(1, size.bit_length()))


def graph_of(
    kmers: NDArray[np.uint64], counts: NDArray[np.uint16], k: int, threads: int = 1
) -> Graph:
    """Find the neighbours of all k-mers.

    Args:
        kmers: uint64[n, words], canonical, ascending, distinct.
        counts: uint16[n].
        k: their length, odd.
        threads: number of threads; does not affect the result.
    """
    kind = place_type(len(kmers))
    bits = index_bits(len(kmers), k)
    starts = np.empty((1 << bits) + 1, dtype=kind)
    fill_starts(kmers, bits, starts)
    masks = np.empty(len(kmers), dtype=np.uint8)
    nexts = np.empty(2 * len(kmers), dtype=kind)

    def work(begin: int) -> None:
        end = min(len(kmers), begin + _PART)
        find_neighbours(kmers, starts, bits, k, begin, end, masks, nexts)

    map_all(threads, work, range(0, len(kmers), _PART), name="neighbours")
    return Graph(k, kmers, counts, starts, masks, nexts)


@njit(nogil=True, cache=True)
def select(
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    least: int,
    out: NDArray[np.uint64],
    out_counts: NDArray[np.uint16],
) -> None:
    """Write the k-mers that are frequent enough, and their counts, as far as these go."""
    most = highest_count(out_counts)
    at = 0
    for i in range(len(kmers)):
        if counts[i] >= least:
            for j in range(kmers.shape[1]):
                out[at, j] = kmers[i, j]
            out_counts[at] = min(np.uint64(counts[i]), most)
            at += 1


@njit(nogil=True, cache=True)
def fill_starts(kmers: NDArray[np.uint64], bits: int, starts: Places) -> None:
    """Where the k-mers begin that have the same ``bits`` highest bits; see ``Graph.starts``."""
    shift = np.uint64(64 - bits)
    done = 0
    for i in range(len(kmers)):
        part = np.int64(kmers[i, 0] >> shift)
        while done <= part:
            starts[done] = i
            done += 1
    while done < len(starts):
        starts[done] = len(kmers)
        done += 1


@njit(nogil=True, cache=True)
def load_directions(
    kmers: NDArray[np.uint64], i: Integer, k: int, both: NDArray[np.uint64]
) -> None:
    """Write k-mer ``i`` into row 0, and its reverse complement into row 1."""
    for j in range(kmers.shape[1]):
        both[0, j] = kmers[i, j]
    turn(kmers, i, k, both, 1)


@njit(nogil=True, cache=True)
def shift_out(both: NDArray[np.uint64], o: int, k: int, near: NDArray[np.uint64]) -> None:
    """Direction ``o`` without its first base, then a free one (A), in both directions."""
    for j in range(both.shape[1]):
        near[0, j] = both[o, j]
        near[1, j] = both[1 - o, j]
    roll_words(near[0], near[1], np.uint64(0), k)


@njit(nogil=True, cache=True)
def set_base(near: NDArray[np.uint64], base: int, k: int) -> int:
    """Put a base in the free place; return which direction is canonical."""
    words = near.shape[1]
    top = unused_bits(k)
    code = np.uint64(base)
    near[0, words - 1] = (near[0, words - 1] & ~(_3 << top)) | (code << top)
    near[1, 0] = (near[1, 0] & ~(_3 << _62)) | ((_3 - code) << _62)
    return 1 if is_less(near, 1, near, 0, words) else 0


@njit(nogil=True, cache=True)
def follower(
    kmers: NDArray[np.uint64],
    starts: Places,
    bits: int,
    k: int,
    near: NDArray[np.uint64],
    base: int,
) -> Integer:
    """The direction that follows by a base, which must be there.

    Args:
        kmers: of the graph.
        starts: of the graph.
        bits: of ``starts``.
        k: k-mer length.
        near: uint64[2, words], of ``shift_out``, or of this function for another base.
        base: that follows.
    """
    o = set_base(near, base, k)
    part = np.int64(near[o, 0] >> np.uint64(64 - bits))
    return 2 * find_row(kmers, np.int64(starts[part]), np.int64(starts[part + 1]), near, o) + o


@njit(nogil=True, cache=True)
def find_neighbours(
    kmers: NDArray[np.uint64],
    starts: Places,
    bits: int,
    k: int,
    begin: int,
    end: int,
    masks: NDArray[np.uint8],
    nexts: Places,
) -> None:
    """Fill ``masks`` and ``nexts`` of the nodes from ``begin`` to ``end``; see ``Graph``.

    The k-mers that may follow a few nodes are looked up together, so that the memory is asked for
    all of them at once.
    """
    words = kmers.shape[1]
    both = np.empty((2, words), dtype=np.uint64)
    near = np.empty_like(both)
    wanted = np.empty((8 * _TOGETHER, words), dtype=np.uint64)
    strand = np.empty(8 * _TOGETHER, dtype=np.int64)
    low = np.empty(8 * _TOGETHER, dtype=np.int64)
    high = np.empty(8 * _TOGETHER, dtype=np.int64)
    for first in range(begin, end, _TOGETHER):
        size = 8 * (min(end, first + _TOGETHER) - first)
        for i in range(size >> 3):
            load_directions(kmers, first + i, k, both)
            for o in range(2):
                shift_out(both, o, k, near)
                for base in range(4):
                    q = 8 * i + 4 * o + base
                    strand[q] = set_base(near, base, k)
                    for j in range(words):
                        wanted[q, j] = near[strand[q], j]
                    low[q] = np.int64(wanted[q, 0] >> np.uint64(64 - bits))
                    prefetch(starts, low[q])
        for q in range(size):
            part = low[q]
            low[q], high[q] = starts[part], starts[part + 1]
            prefetch(kmers, words * low[q])
        for i in range(size >> 3):
            mask = 0
            for o in range(2):
                degree = 0
                found = -1
                for q in range(8 * i + 4 * o, 8 * i + 4 * o + 4):
                    place = find_row(kmers, low[q], high[q], wanted, q)
                    if place >= 0:
                        mask |= 1 << (q & 7)
                        degree += 1
                        found = 2 * place + strand[q]
                nexts[2 * (first + i) + o] = found if degree == 1 else -1
            masks[first + i] = mask
