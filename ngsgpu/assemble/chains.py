"""Unitigs: the longest paths of k-mers that have no alternative, and the links between them.

Two nodes are joined if one is the only follower of the other, which is its only predecessor, and
they are not the same node. Joined nodes make chains and circles. A chain is walked from either end,
by whichever thread comes first; what is kept depends on the chain alone:

- it is written on the strand that comes first in alphabetical order, which its first k bases tell;
  a circle begins with its smallest k-mer, as it stands;
- unitigs are in the order of the smaller of their two end nodes; circles, of their first node.

Parallel machines find the same by list ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.graph import Graph, Places, follower, load_directions, place_type, shift_out
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all
from ngsgpu.sequence.kmers import is_less

_PART: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Unitigs:
    """Unitigs in their order; the number of a unitig is its place.

    Attributes:
        first: int[n], direction in which the first k-mer is read.
        last: int[n], direction of the last one.
        sizes: int64[n], number of k-mers.
        totals: int64[n], sum of their counts.
        link_starts: int64[2n + 1], where the links of each end begin in ``links``: 2u is the end of
            unitig u, 2u + 1 the end of its reverse complement.
        links: int[m], what follows: 2v is unitig v, 2v + 1 its reverse complement; by base.
        letters: uint8[letters], of all unitigs one after the other, where they are known already.
    """

    first: Places
    last: Places
    sizes: NDArray[np.int64]
    totals: NDArray[np.int64]
    link_starts: NDArray[np.int64]
    links: Places
    letters: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.first)


def find_unitigs(graph: Graph, threads: int = 1) -> Unitigs:
    """Compact a graph.

    Args:
        graph: the graph.
        threads: number of threads; does not affect the result.
    """
    kind = place_type(len(graph))
    seen = np.zeros(len(graph), dtype=np.uint8)

    def walk(begin: int) -> tuple[Places, NDArray[np.int64]]:
        end = min(len(graph), begin + _PART)
        ends = np.empty((end - begin, 2), dtype=kind)
        sums = np.empty((end - begin, 2), dtype=np.int64)
        found = find_chains(
            graph.kmers, graph.counts, graph.nexts, graph.k, begin, end, seen, ends, sums
        )
        return ends[:found].copy(), sums[:found].copy()

    parts = map_all(threads, walk, range(0, len(graph), _PART), name="chains")
    left = np.flatnonzero(seen == 0)
    ends = np.empty((len(left), 2), dtype=kind)
    sums = np.empty((len(left), 2), dtype=np.int64)
    found = find_circles(graph.counts, graph.nexts, left, seen, ends, sums)
    parts.append((ends[:found], sums[:found]))
    ends = np.concatenate([part[0] for part in parts])
    sums = np.concatenate([part[1] for part in parts])
    # Threads that began at both ends of a chain at once have found it twice.
    _, order = np.unique(ends.min(axis=1) >> 1, return_index=True)
    # The first node of a circle is its smallest, too.
    ends, sums = ends[order], sums[order]
    first, last = (np.ascontiguousarray(ends[:, side]) for side in (0, 1))
    link_starts, links = _linked(graph, first, last, threads)
    sizes, totals = (np.ascontiguousarray(sums[:, i]) for i in (0, 1))
    return Unitigs(first, last, sizes, totals, link_starts, links)


def _linked(
    graph: Graph, first: Places, last: Places, threads: int
) -> tuple[NDArray[np.int64], Places]:
    """Links of the unitigs with these ends."""
    out = np.stack([last, first ^ 1], axis=1).reshape(-1)
    degrees = np.bitwise_count((graph.masks[out >> 1] >> (4 * (out & 1)).astype(np.uint8)) & 15)
    starts = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    unitig_at = np.empty(len(graph), dtype=first.dtype)
    numbers = np.arange(len(first), dtype=first.dtype)
    unitig_at[first >> 1] = numbers
    unitig_at[last >> 1] = numbers
    links = np.empty(int(starts[-1]), dtype=first.dtype)

    def work(begin: int) -> None:
        find_links(
            graph.kmers, graph.starts, graph.bits, graph.k, graph.masks, first, out,
            begin, min(len(out), begin + _PART), unitig_at, starts, links,
        )  # fmt: skip

    map_all(threads, work, range(0, len(out), _PART), name="links")
    return starts, links


@njit(nogil=True, cache=True)
def successor_of(nexts: Places, d: Integer) -> int:
    """The direction that is joined to direction ``d`` at its end, or -1."""
    e = nexts[d]
    if e < 0 or e >> 1 == d >> 1 or nexts[e ^ 1] != d ^ 1:
        return -1
    return e


@njit(nogil=True, cache=True)
def find_chains(
    kmers: NDArray[np.uint64],
    counts: NDArray[np.uint16],
    nexts: Places,
    k: int,
    begin: int,
    end: int,
    seen: NDArray[np.uint8],
    ends: Places,
    sums: NDArray[np.int64],
) -> int:
    """Walk the chains that have an end among some nodes, unless they have been walked.

    Args:
        kmers: of the graph.
        counts: of the graph.
        nexts: of the graph.
        k: k-mer length.
        begin: first of the nodes.
        end: of the nodes.
        seen: uint8[n], is set for all nodes of chains; another thread may set it too.
        ends: int[room, 2], gets the first and the last direction of each chain.
        sums: int64[room, 2], gets its number of k-mers, and the sum of their counts.

    Returns:
        Number of chains.
    """
    both = np.empty((2, kmers.shape[1]), dtype=np.uint64)
    other = np.empty_like(both)
    found = 0
    for i in range(begin, end):
        forward, backward = successor_of(nexts, 2 * i), successor_of(nexts, 2 * i + 1)
        if (forward >= 0 and backward >= 0) or seen[i]:
            continue
        first = 2 * i + 1 if backward >= 0 else 2 * i
        last = first
        size = 1
        total = np.int64(counts[i])
        seen[i] = 1
        e = max(forward, backward)
        while e >= 0:
            last = e
            seen[last >> 1] = 1
            size += 1
            total += np.int64(counts[last >> 1])
            e = successor_of(nexts, last)
        load_directions(kmers, first >> 1, k, both)
        load_directions(kmers, last >> 1, k, other)
        if is_less(other, (last & 1) ^ 1, both, first & 1, kmers.shape[1]):
            first, last = last ^ 1, first ^ 1
        ends[found, 0], ends[found, 1] = first, last
        sums[found, 0], sums[found, 1] = size, total
        found += 1
    return found


@njit(nogil=True, cache=True)
def find_circles(
    counts: NDArray[np.uint16],
    nexts: Places,
    left: NDArray[np.int64],
    seen: NDArray[np.uint8],
    ends: Places,
    sums: NDArray[np.int64],
) -> int:
    """Walk circles; arguments and result as of ``find_chains``.

    Args:
        counts: of the graph.
        nexts: of the graph.
        left: nodes in no chain, ascending.
        seen: as of ``find_chains``.
        ends: as of ``find_chains``.
        sums: as of ``find_chains``.
    """
    found = 0
    for i in left:
        if seen[i]:
            continue
        d = 2 * i
        last = d
        size = 0
        total = np.int64(0)
        while not seen[d >> 1]:
            last = d
            seen[d >> 1] = 1
            size += 1
            total += np.int64(counts[d >> 1])
            d = np.int64(nexts[d])
        ends[found, 0], ends[found, 1] = 2 * i, last
        sums[found, 0], sums[found, 1] = size, total
        found += 1
    return found


@njit(nogil=True, cache=True)
def find_links(
    kmers: NDArray[np.uint64],
    starts: Places,
    bits: int,
    k: int,
    masks: NDArray[np.uint8],
    first: Places,
    out: Places,
    begin: int,
    end: int,
    unitig_at: Places,
    link_starts: NDArray[np.int64],
    links: Places,
) -> None:
    """Write the links of some ends.

    Args:
        kmers: of the graph.
        starts: of the graph.
        bits: of ``starts``.
        k: k-mer length.
        masks: of the graph.
        first: first directions of unitigs.
        out: int[2n], the last direction of each unitig and of its reverse complement.
        begin: first of the ends.
        end: of the ends.
        unitig_at: unitig of each end node.
        link_starts: where the links of each end begin.
        links: gets them.
    """
    both = np.empty((2, kmers.shape[1]), dtype=np.uint64)
    near = np.empty_like(both)
    for i in range(begin, end):
        at = link_starts[i]
        if at == link_starts[i + 1]:
            continue
        node, o = out[i] >> 1, out[i] & 1
        load_directions(kmers, node, k, both)
        shift_out(both, o, k, near)
        for base in range(4):
            if (masks[node] >> (4 * o + base)) & 1:
                e = follower(kmers, starts, bits, k, near, base)
                unitig = unitig_at[e >> 1]
                links[at] = 2 * unitig + (e != first[unitig])
                at += 1
