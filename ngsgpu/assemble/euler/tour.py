"""The Euler tour: which edge follows which, so that each edge is used once.

1. ``assign_successors``: at each vertex, the first entering edge is followed by the first leaving
   edge, the second by the second, and so on (algorithm 3.6 of the source).
2. ``find_components``: edges that follow each other make paths and circuits; each gets the
   smallest of its edges as a label (3.7, 3.8). The successor graph is the array of successors.
3. ``circuit_graph``: entering edges that are neighbours in a vertex's list, of two labels (3.9).
4. ``spanning_tree``: those that join labels without a circle, by Kruskal's rule (section 3.5.5).
5. ``swipe``: the two edges of each exchange their successors, which makes one tour of two (3.10).

Where two labels are both paths, which begin and end at vertices with more edges on one side, an
exchange only swaps their ends; the source does the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.euler.graph import EulerGraph, Places
from ngsgpu.jit import njit
from ngsgpu.pool import map_all

_PART: Final = 1 << 16


class CircuitGraph(NamedTuple):
    """Pairs of entering edges by which two labels can be joined, in the order of their labels.

    Attributes:
        low: int[c], the smaller label.
        high: int[c], the larger one.
        places: int64[c], of the first edge of the pair in ``EulerGraph.entering``; the second one
            follows it.
    """

    low: Places
    high: Places
    places: NDArray[np.int64]


def assign_successors(graph: EulerGraph, threads: int = 1) -> Places:
    """What follows each edge, int[m], or -1."""
    successors = np.full(len(graph.edges), -1, dtype=graph.entering.dtype)

    def work(begin: int) -> None:
        end = min(len(graph.vertices), begin + _PART)
        pair_edges(graph.enter_starts, graph.entering, graph.leave_starts, begin, end, successors)

    map_all(threads, work, range(0, len(graph.vertices), _PART), name="successors")
    return successors


def find_components(successors: Places, threads: int = 1) -> Places:
    """Label each edge with the smallest one that it is connected with by successors, int[m].

    In each round, the roots of trees of edges are hooked to smaller roots next to them, and all
    edges to their roots. Which of several smaller roots a root gets depends on threads; the labels
    do not, since the smallest edge is never hooked.
    """
    labels = np.arange(len(successors), dtype=successors.dtype)
    parts = range(0, len(successors), _PART)

    def hook(begin: int) -> bool:
        return bool(hook_roots(successors, begin, min(len(labels), begin + _PART), labels))

    def jump(begin: int) -> bool:
        return bool(jump_up(begin, min(len(labels), begin + _PART), labels))

    while any(map_all(threads, hook, parts, name="hooking")):
        while any(map_all(threads, jump, parts, name="jumping")):
            pass
    return labels


def circuit_graph(graph: EulerGraph, labels: Places) -> CircuitGraph:
    """Where tours could be joined: a multigraph whose vertices are labels."""
    first, second = graph.entering[:-1], graph.entering[1:]
    joined = (graph.sinks[first] == graph.sinks[second]) & (labels[first] != labels[second])
    places = np.flatnonzero(joined)
    own, other = labels[first[places]], labels[second[places]]
    low, high = np.minimum(own, other), np.maximum(own, other)
    order = np.lexsort((places, high, low))
    return CircuitGraph(low[order], high[order], places[order])


def spanning_tree(circuits: CircuitGraph, size: int) -> NDArray[np.int64]:
    """Places of the pairs of a spanning forest, ascending.

    Args:
        circuits: of the graph.
        size: number of edges of the graph, which labels are among.
    """
    parents = np.arange(size, dtype=circuits.low.dtype)
    kept = np.zeros(len(circuits.places), dtype=np.bool_)
    join_trees(circuits.low, circuits.high, parents, kept)
    return np.sort(circuits.places[kept])


def swipe(
    graph: EulerGraph, places: NDArray[np.int64], successors: Places, threads: int = 1
) -> None:
    """Exchange the successors of pairs of entering edges; those of a vertex one after another.

    Args:
        graph: the graph.
        places: edges of the spanning tree, one of each pair, int64[n].
        successors: the next edge of each edge; changed in place.
        threads: number of threads; does not affect the result.
    """
    marks = np.zeros(len(graph.edges), dtype=np.uint8)
    marks[places] = 1

    def work(begin: int) -> None:
        end = min(len(graph.vertices), begin + _PART)
        exchange(graph.enter_starts, graph.entering, marks, begin, end, successors)

    map_all(threads, work, range(0, len(graph.vertices), _PART), name="swipe")


@njit(nogil=True, cache=True)
def pair_edges(
    enter_starts: Places,
    entering: Places,
    leave_starts: Places,
    begin: int,
    end: int,
    successors: Places,
) -> None:
    """Pair entering and leaving edges of the vertices from ``begin`` to ``end``."""
    for vertex in range(begin, end):
        first, leave = enter_starts[vertex], leave_starts[vertex]
        entered = enter_starts[vertex + 1] - first
        left = leave_starts[vertex + 1] - leave
        for i in range(min(entered, left)):
            successors[entering[first + i]] = leave + i


@njit(nogil=True, cache=True)
def hook_roots(successors: Places, begin: int, end: int, labels: Places) -> bool:
    """Hook roots to smaller ones along the successors of some edges; whether labels differ."""
    differ = False
    for edge in range(begin, end):
        after = successors[edge]
        if after < 0:
            continue
        own, other = labels[edge], labels[after]
        if own == other:
            continue
        differ = True
        low, high = min(own, other), max(own, other)
        if labels[high] == high:
            labels[high] = low
    return differ


@njit(nogil=True, cache=True)
def jump_up(begin: int, end: int, labels: Places) -> bool:
    """Replace the labels of some edges by those of their labels; whether any was another."""
    moved = False
    for edge in range(begin, end):
        label = labels[edge]
        above = labels[label]
        if above != label:
            labels[edge] = above
            moved = True
    return moved


@njit(nogil=True, cache=True)
def join_trees(low: Places, high: Places, parents: Places, kept: NDArray[np.bool_]) -> None:
    """Keep the pairs, in their order, that join two trees."""
    for i in range(len(low)):
        own, other = low[i], high[i]
        while parents[own] != own:
            parents[own] = parents[parents[own]]
            own = parents[own]
        while parents[other] != other:
            parents[other] = parents[parents[other]]
            other = parents[other]
        if own != other:
            parents[max(own, other)] = min(own, other)
            kept[i] = True


@njit(nogil=True, cache=True)
def exchange(
    enter_starts: Places,
    entering: Places,
    marks: NDArray[np.uint8],
    begin: int,
    end: int,
    successors: Places,
) -> None:
    """Exchange successors at the marked places of the vertices from ``begin`` to ``end``."""
    for vertex in range(begin, end):
        for place in range(enter_starts[vertex], enter_starts[vertex + 1] - 1):
            if marks[place]:
                own, other = entering[place], entering[place + 1]
                after = successors[own]
                successors[own] = successors[other]
                successors[other] = after
