"""Paths through the graph between two ends."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import GraphArrays, Pieces
from ngsgpu.jit import njit

_MOST_STEPS: Final = 4000
_MOST_PATHS: Final = 8
_DEEPEST: Final = 64

Path = tuple[int, tuple[int, ...]]
"""Bases and directions between two directions."""


def find_paths(
    pieces: Pieces, unique: NDArray[np.bool_], source: int, target: int, low: int, high: int
) -> list[Path]:
    """The paths of ``paths_between``; none if there are too many."""
    number, sizes, starts, steps = paths_between(
        pieces.arrays, unique, source, target, low, high, _MOST_PATHS
    )
    if number > _MOST_PATHS:
        return []
    return [
        (int(sizes[i]), tuple(steps[starts[i] : starts[i + 1]].tolist())) for i in range(number)
    ]


@njit(nogil=True, cache=True)
def paths_between(
    graph: GraphArrays,
    unique: NDArray[np.bool_],
    source: int,
    target: int,
    low: int,
    high: int,
    most: int,
) -> tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Paths between two directions that pass no unique piece and have a length within limits.

    Args:
        graph: the graph.
        unique: bool[n].
        source: the first direction.
        target: the last direction.
        low: fewest bases between them; overlaps count as negative.
        high: most bases between them.
        most: paths that there is room for.

    Returns:
        The number of paths, ``most + 1`` if there are more or the search became too long; the bases
        between of each, where its directions between begin, and these.
    """
    lengths, link_starts, links = graph.lengths, graph.link_starts, graph.links
    overlap = graph.k - 1
    stack = np.empty(_DEEPEST + 1, dtype=np.int64)
    gaps = np.empty(_DEEPEST + 1, dtype=np.int64)
    own = np.empty(_DEEPEST + 1, dtype=np.int64)
    between = np.empty(most * _DEEPEST, dtype=np.int64)
    starts = np.zeros(most + 1, dtype=np.int64)
    sizes = np.zeros(most, dtype=np.int64)
    found = steps = depth = 0
    own[0], gaps[0], stack[0] = source, -overlap, link_starts[source]
    while depth >= 0:
        if stack[depth] == link_starts[own[depth] + 1]:
            depth -= 1
            continue
        e = links[stack[depth]]
        stack[depth] += 1
        steps += 1
        if steps > _MOST_STEPS:
            return most + 1, sizes, starts, between
        if e == target and gaps[depth] >= low and gaps[depth] <= high:
            if found == most:
                return most + 1, sizes, starts, between
            sizes[found] = gaps[depth]
            end = starts[found] + depth
            between[starts[found] : end] = own[1 : depth + 1]
            found += 1
            starts[found] = end
        gap = gaps[depth] + lengths[e >> 1] - overlap
        if not unique[e >> 1] and gap <= high and depth < _DEEPEST:
            depth += 1
            own[depth], gaps[depth], stack[depth] = e, gap, link_starts[e]
        elif gap <= high and depth == _DEEPEST:
            return most + 1, sizes, starts, between
    return found, sizes, starts, between
