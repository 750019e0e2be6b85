"""The de Bruijn graph as arrays: l-mers are edges, their prefixes and suffixes vertices.

Both strands are in the graph, each l-mer once. An edge and a vertex are named by their place among
the sorted ones, which takes the role of the source's hash table. Edges that leave a vertex share
its bases as a prefix, so they follow each other: the list of leaving edges is that of the edges
itself. Edges that enter it are listed in ``entering``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.sequence.kmers import reverse_complement

Places = NDArray[Any]
"""Edges or vertices, int32, or int64 in graphs of 2^31 edges and more."""

_WORD = np.uint64
_2 = np.uint64(2)
_62 = np.uint64(62)


@dataclass(frozen=True, slots=True)
class EulerGraph:
    """Vertices and edges.

    Attributes:
        length: of an edge in bases; vertices are one base shorter.
        edges: uint64[m], ascending; the first base is in the two highest bits.
        counts: uint16[m], how often each edge's l-mer occurs, on both strands together.
        vertices: uint64[n], ascending.
        sinks: int[m], vertex that an edge enters.
        leave_starts: int[n + 1], where the edges begin that leave a vertex.
        enter_starts: int[n + 1], where in ``entering`` those begin that enter it.
        entering: int[m], edges by the vertex that they enter, then ascending.
    """

    length: int
    edges: NDArray[np.uint64]
    counts: NDArray[np.uint16]
    vertices: NDArray[np.uint64]
    sinks: Places
    leave_starts: Places
    enter_starts: Places
    entering: Places


def euler_graph(kmers: NDArray[np.uint64], counts: NDArray[np.uint16], length: int) -> EulerGraph:
    """Make the graph of the l-mers of reads.

    Args:
        kmers: uint64[n, 1], canonical, distinct, as a k-mer database has them.
        counts: uint16[n].
        length: of the l-mers, at most 32.
    """
    edges, counts = _both_strands(kmers[:, 0], counts, length)
    kind = np.int32 if len(edges) < 1 << 31 else np.int64
    # Edges of one suffix by their first bases, so that no two are equal.
    tails = (edges << _2) | (edges >> _62)
    entering = np.argsort(tails).astype(kind)
    tails = tails[entering]
    nothing = np.empty(0, dtype=kind)
    size = merge_vertices(edges, tails, length, np.empty(0, dtype=_WORD), nothing, nothing)
    vertices = np.empty(size, dtype=_WORD)
    leave_starts, enter_starts = np.empty(size + 1, dtype=kind), np.empty(size + 1, dtype=kind)
    merge_vertices(edges, tails, length, vertices, leave_starts, enter_starts)
    sinks = np.empty(len(edges), dtype=kind)
    sinks[entering] = np.repeat(np.arange(size, dtype=kind), np.diff(enter_starts))
    return EulerGraph(length, edges, counts, vertices, sinks, leave_starts, enter_starts, entering)


def _both_strands(
    own: NDArray[np.uint64], counts: NDArray[np.uint16], length: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """L-mers and their reverse complements, ascending; those that are both, once."""
    turned = np.empty_like(own)
    turn_all(own, length, turned)
    other = turned != own
    edges = np.concatenate((own, turned[other]))
    order = np.argsort(edges)
    return edges[order], np.concatenate((counts, counts[other]))[order]


@njit(nogil=True, cache=True)
def merge_vertices(
    edges: NDArray[np.uint64],
    tails: NDArray[np.uint64],
    length: int,
    vertices: NDArray[np.uint64],
    leave_starts: Places,
    enter_starts: Places,
) -> int:
    """Number of distinct prefixes and suffixes; all of them, and where their edges begin.

    Args:
        edges: uint64[m], ascending.
        tails: uint64[m], suffixes, ascending; what is behind their bases does not matter.
        length: of the edges.
        vertices: uint64[n], filled; if it is empty, vertices are only counted.
        leave_starts: int[n + 1], filled.
        enter_starts: int[n + 1], filled.
    """
    rest = np.uint64(64 - 2 * (length - 1))
    last = ~np.uint64(0)
    size = leave = enter = 0
    while leave < len(edges) or enter < len(tails):
        head = edges[leave] >> rest if leave < len(edges) else last
        tail = tails[enter] >> rest if enter < len(tails) else last
        vertex = min(head, tail)
        if len(vertices) > 0:
            vertices[size] = vertex << rest
            leave_starts[size], enter_starts[size] = leave, enter
        size += 1
        while leave < len(edges) and edges[leave] >> rest == vertex:
            leave += 1
        while enter < len(tails) and tails[enter] >> rest == vertex:
            enter += 1
    if len(leave_starts) > 0:
        leave_starts[size], enter_starts[size] = leave, enter
    return size


@njit(nogil=True, cache=True)
def turn_all(kmers: NDArray[np.uint64], length: int, out: NDArray[np.uint64]) -> None:
    """Write the reverse complement of each l-mer."""
    unused = np.uint64(64 - 2 * length)
    for i in range(len(kmers)):
        out[i] = reverse_complement(kmers[i], 32) << unused
