"""Bridges: pairs of reads join unique pieces over the repeats between them.

A piece is unique if it is long enough and not deeper than one copy of the genome. Pairs whose mates
lie on two unique pieces say which follows which, and how far away. Two ends are joined if each is
the other's next neighbour beyond doubt; and one path through the graph has about the length that
the pairs say. Of several such paths, as where copies of a repeat differ inside, pairs choose, of
which one mate lies on an end and the other on what only one path passes. Ends for which there is no
such path can make scaffolds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import GraphArrays, Paths, Pieces
from ngsgpu.assemble.contigs.places import Places
from ngsgpu.jit import njit

_LEAST_PAIRS: Final = 100
"""Pairs within pieces from which the insert size is known."""

_LONGEST_INSERT: Final = 20_000
_LONG: Final = 2000
_MARGIN: Final = 4
"""A neighbour counts that has this part of the pairs of the best one, 1 / this."""

_MOST_STEPS: Final = 4000
_MOST_PATHS: Final = 8
_DEEPEST: Final = 64


Path = tuple[int, tuple[int, ...]]
"""Bases and directions between two directions."""


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert sizes of pairs, reads included.

    Attributes:
        median: their median.
        deviation: about their standard deviation, by the median of absolute differences.
        longest: of nearly all.
        pairs: number of pairs by which they are known.
    """

    median: int
    deviation: int
    longest: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Join:
    """Two directions, one after the other.

    Attributes:
        source: the first.
        target: what follows it.
        gap: bases between them; negative, if they overlap.
        between: directions of pieces on the one path; empty, if they are neighbours.
        closed: whether there is such a path.
        pairs: that say so.
        patched: whether the path is a patch.
    """

    source: int
    target: int
    gap: int
    between: tuple[int, ...]
    closed: bool
    pairs: int
    patched: bool = False


def insert_size(pieces: Pieces, places: Places) -> Insert | None:
    """The insert size, by pairs of which both mates lie on one long piece."""
    if not len(pieces):
        return None
    one, two = places.direction[0::2], places.direction[1::2]
    lengths = pieces.lengths
    least = min(_LONG, int(lengths.max(initial=0)) // 2)
    same = np.flatnonzero((one >= 0) & (two == one ^ 1) & (lengths[one >> 1] >= least))
    sizes = lengths[one[same] >> 1] - places.at[0::2][same] - places.at[1::2][same]
    sizes = np.sort(sizes[(sizes > 0) & (sizes <= _LONGEST_INSERT)])
    if len(sizes) < _LEAST_PAIRS:
        return None
    median = int(sizes[len(sizes) // 2])
    spread = int(np.sort(np.abs(sizes - median))[len(sizes) // 2])
    deviation = max(1, spread * 3 // 2)
    # The tail of false pairs does not count.
    near = sizes[sizes <= median + 6 * deviation]
    return Insert(median, deviation, int(near[len(near) * 999 // 1000]), len(sizes))


def unique_pieces(pieces: Pieces, least: int) -> NDArray[np.bool_]:
    """Mask of the pieces that are long enough and not deeper than one copy."""
    typical = pieces.typical_depth()
    return (pieces.lengths >= least) & (2 * pieces.depths <= 3 * typical)


def find_joins(
    pieces: Pieces, places: Places, insert: Insert, unique: NDArray[np.bool_], least: int, few: int
) -> list[Join]:
    """Join unique pieces.

    Args:
        pieces: the graph.
        places: of the paired reads.
        insert: their insert size.
        unique: which pieces are unique.
        least: pairs that a join has at least.
        few: as many do where no neighbour has more.
    """
    source, target, pairs, gaps = _linked(pieces, places, insert, unique, min(least, few))
    lengths = pieces.lengths
    slack = 3 * insert.deviation
    best = _nearest(source, target, pairs, gaps, lengths, slack, 2 * len(pieces), least)
    joins = []
    support: Support | None = None
    for d in np.flatnonzero(best >= 0):
        row = int(best[d])
        e = int(target[row])
        back = int(best[e ^ 1])
        # Each join is found from both of its ends.
        if back < 0 or target[back] != d ^ 1 or d > e ^ 1:
            continue
        gap = int(gaps[row])
        found = _paths(pieces, unique, int(d), e, gap - slack, gap + slack)
        if len(found) > 1:
            support = support or Support(pieces, places, insert)
            found = support.chosen(found, int(d), e, least)
        size, steps = found[0] if found else (gap, ())
        joins.append(Join(int(d), e, size, steps, bool(found), int(pairs[row])))
    return joins


class Support:
    """Pairs between all pieces, by which one of several paths is chosen.

    Args:
        pieces: the graph.
        places: of the paired reads.
        insert: their insert size.
    """

    def __init__(self, pieces: Pieces, places: Places, insert: Insert) -> None:
        keys, _ = _followed(pieces, places, insert, np.ones(len(pieces), dtype=np.bool_))
        self._directions = 2 * len(pieces)
        self._keys, self._pairs = np.unique(keys, return_counts=True)

    def chosen(self, paths: list[Path], source: int, target: int, least: int) -> list[Path]:
        """The path for which pairs speak against each of the others, if there is one."""

        def pairs(steps: set[int]) -> int:
            return sum(self._between(source, d) + self._between(d, target) for d in steps)

        def is_better(one: Path, other: Path) -> bool:
            own = pairs({*one[1]} - {*other[1]})
            return own >= least and own > _MARGIN * pairs({*other[1]} - {*one[1]})

        return [
            one for one in paths if all(is_better(one, other) for other in paths if other != one)
        ][:1]

    def _between(self, source: int, target: int) -> int:
        key = source * self._directions + target
        row = int(np.searchsorted(self._keys, key))
        return int(self._pairs[row]) if row < len(self._keys) and self._keys[row] == key else 0


def _paths(
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


def _linked(
    pieces: Pieces, places: Places, insert: Insert, unique: NDArray[np.bool_], least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Directions, those that follow them by pairs, the number of pairs, and their mean gap."""
    keys, inside = _followed(pieces, places, insert, unique)
    keys, place, pairs = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, place, inside)
    gaps = insert.median - sums // pairs
    kept = pairs >= least
    source, target = np.divmod(keys[kept], 2 * len(pieces))
    return source, target, pairs[kept], gaps[kept]


def _followed(
    pieces: Pieces, places: Places, insert: Insert, among: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Directions and what follows them, as keys, by each pair on two pieces ``among`` all.

    Returns:
        A direction times their number, plus the one that follows; the bases of the pair's fragment
        on both. Every pair counts in both directions.
    """
    one, two = places.direction[0::2], places.direction[1::2]
    lengths = pieces.lengths
    apart = (one >= 0) & (two >= 0) & (one >> 1 != two >> 1)
    apart &= among[one >> 1] & among[two >> 1]
    rows = np.flatnonzero(apart)
    source, target = one[rows], two[rows] ^ 1
    inside = lengths[source >> 1] - places.at[0::2][rows]
    inside += lengths[target >> 1] - places.at[1::2][rows]
    near = inside - (pieces.k - 1) <= insert.longest
    source, target, inside = source[near], target[near], inside[near]
    directions = 2 * len(pieces)
    keys = np.concatenate([source * directions + target, (target ^ 1) * directions + (source ^ 1)])
    return keys, np.tile(inside, 2)


def _nearest(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    pairs: NDArray[np.int64],
    gaps: NDArray[np.int64],
    lengths: NDArray[np.int64],
    slack: int,
    directions: int,
    least: int,
) -> NDArray[np.int64]:
    """For each direction the row of what follows next, or -1 if there is doubt."""
    best = np.full(directions, -1, dtype=np.int64)
    starts = np.searchsorted(source, np.arange(directions + 1))
    for d in np.unique(source):
        rows = np.arange(starts[d], starts[d + 1])
        most = int(pairs[rows].max())
        rows = rows[(_MARGIN * pairs[rows] >= most) & (pairs[rows] >= min(most, least))]
        first = rows[np.argmin(gaps[rows])]
        behind = gaps[first] + lengths[target[first] >> 1] - slack
        if all(row == first or gaps[row] >= behind for row in rows):
            best[d] = first
    return best


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


def bridged(pieces: Pieces, joins: list[Join]) -> Paths:
    """The paths of contigs: pieces in chains of closed joins, and every other piece alone.

    A repeat that chains go through as often as it has copies, by its depth, is not also written
    alone.
    """
    after = np.full(2 * len(pieces), -1, dtype=np.int64)
    for number, join in enumerate(joins):
        if join.closed:
            after[join.source] = 2 * number
            after[join.target ^ 1] = 2 * number + 1
    typical = max(1, pieces.typical_depth())
    left = np.maximum(1, (2 * pieces.depths + typical) // (2 * typical))
    for join in joins:
        for d in join.between:
            left[d >> 1] -= 1
    seen = np.zeros(len(pieces), dtype=np.bool_)
    ended = (after[0::2] < 0) | (after[1::2] < 0)
    steps: list[int] = []
    starts = [0]
    # First the chains with ends, then circles.
    for piece in (*np.flatnonzero(ended).tolist(), *np.flatnonzero(~ended).tolist()):
        if seen[piece] or left[piece] <= 0:
            continue
        d = 2 * piece + (1 if after[2 * piece] < 0 <= after[2 * piece + 1] else 0)
        while not seen[d >> 1]:
            seen[d >> 1] = True
            steps.append(d)
            if after[d] < 0:
                break
            join = joins[int(after[d]) >> 1]
            if not after[d] & 1:
                between, d = join.between, join.target
            else:
                between, d = tuple(step ^ 1 for step in reversed(join.between)), join.source ^ 1
            if not seen[d >> 1]:
                steps += between
        starts.append(len(steps))
    return Paths(np.array(starts, dtype=np.int64), np.array(steps, dtype=np.int64))
