"""Bridges: pairs of reads join unique pieces over the repeats between them.

A piece is unique if it is long enough and not deeper than one copy of the genome. Pairs whose mates
lie on two unique pieces say which follows which, and how far away. Two ends are joined if each is
the other's next neighbour beyond doubt; and one path through the graph has about the length that
the pairs say. Of several such paths, as where copies of a repeat differ inside, the only one is
taken of which the length is in keeping with the pairs; or pairs choose, of which one mate lies on
an end and the other on what only one path passes; or length and depth together. Ends for which
there is no such path may get a patch, or make scaffolds.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.gaps import Libraries, Links, followed, linked
from ngsgpu.assemble.contigs.joins import LEAST_ERROR, Join, is_tandem, spelled, split
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, GraphArrays, Pieces
from ngsgpu.assemble.contigs.places import Places
from ngsgpu.jit import njit

_MARGIN: Final = 4
"""A neighbour counts that has this part of the pairs of the best one, 1 / this."""

SLACK: Final = 5
"""Bases by which the gap of pairs may be wrong, beside three standard errors."""

_SHORT: Final = 4
"""Pieces of fewer k-mer lengths than this are short."""

_LIKELIER: Final = 8.0
_MOST_DEPTH: Final = 16
"""One of several paths is taken, if its logarithm of likelihood is ahead by as much as that of four
standard errors. Depths count as those of a genome of this depth at most."""

_MOST_STEPS: Final = 4000
_MOST_PATHS: Final = 8
_DEEPEST: Final = 64


Path = tuple[int, tuple[int, ...]]
"""Bases and directions between two directions."""


def unique_pieces(pieces: Pieces) -> NDArray[np.bool_]:
    """Mask of the pieces that are long enough and not deeper than one copy.

    Where two copies of a repeat differ in one base, the graph has a piece of 2k - 1 bases for each.
    Of short pieces the depth is less certain, and one of two copies is soon taken for unique; but
    of alternatives between the same neighbours each is one copy, if all together are as deep.
    """
    typical, lengths = pieces.copy_depths(), pieces.lengths
    most = np.where(lengths < _SHORT * pieces.k, 4 * typical // 3, 3 * typical // 2)
    single = pieces.depths <= most
    find_alternatives(pieces.arrays, typical, single)
    return (lengths >= 2 * pieces.k - 1) & single


def find_joins(
    pieces: Pieces,
    places: Places,
    libraries: Libraries,
    unique: NDArray[np.bool_],
    least: int,
    few: int,
    *,
    lone: bool = False,
) -> list[Join]:
    """Join unique pieces.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
        unique: which pieces are unique.
        least: pairs that a join has at least, or that choose a path.
        few: as many do where no neighbour has more; one more chooses a path.
        lone: whether fewer make a join without a path, for patches.
    """
    links = linked(pieces, places, libraries, unique, 1 if lone else min(least, few))
    best = _nearest(links, pieces, least)
    search = _Search(pieces, places, libraries, unique, min(least, few + 1))
    joins = []
    for d in np.flatnonzero(best >= 0).tolist():
        row = int(best[d])
        e = int(links.target[row])
        back = int(best[e ^ 1])
        nearer = int(links.target[back]) ^ 1 if back >= 0 else -1
        # Each join is found from both of its ends.
        if back < 0 or (nearer == d and d > e ^ 1):
            continue
        gap, error, pairs = (int(of[row]) for of in (links.gaps, links.errors, links.pairs))
        found = search.path(d, e, gap, error) if pairs >= min(least, few) else None
        size, steps = found or (gap, ())
        # What is next to the other end may lie between, with too few pairs to show from this one.
        if nearer == d or nearer in steps:
            joins.append(Join(d, e, size, error, steps, found is not None, pairs, said=gap))
    return split(pieces, joins, unique)


class _Search:
    """The search for paths between ends.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
        unique: bool[n], which pieces are unique.
        least: pairs that choose a path, at least.
    """

    def __init__(
        self,
        pieces: Pieces,
        places: Places,
        libraries: Libraries,
        unique: NDArray[np.bool_],
        least: int,
    ) -> None:
        self._pieces, self._places, self._libraries = pieces, places, libraries
        self._unique, self._least = unique, least
        self._depths = pieces.copy_depths()
        self._support: Support | None = None

    def path(self, source: int, target: int, gap: int, error: int) -> Path | None:
        """The path between two ends, if there is one beyond doubt.

        Pieces that are unique may lie on it: those between copies of a repeat can be so short that
        pairs say less of them than of what is behind. If there are too many paths, only those
        without them count.

        Args:
            source: the first end.
            target: the second end.
            gap: bases between, by the pairs.
            error: standard error of ``gap``.
        """
        error = max(error, LEAST_ERROR)
        wide = 7 * error + SLACK
        ends = np.zeros_like(self._unique)
        ends[[source >> 1, target >> 1]] = True
        for barred in (ends, self._unique):
            found = _paths(self._pieces, barred, source, target, gap - wide, gap + wide)
            if found:
                break
        if not found:
            return None
        best = min(abs(size - gap) for size, _ in found)
        if best > max(3 * error, 5 * LEAST_ERROR) + SLACK:
            return None
        near = [each for each in found if abs(each[0] - gap) <= best + 4 * error]
        if len(near) > 1:
            near = self._chosen(near, source, target, gap, error)
        if not near:
            return None
        size, steps = near[0]
        text = spelled(self._pieces, source, steps, target)
        # Paths with more or fewer units have been there to be chosen.
        others = {other for other, _ in found}
        return None if is_tandem(text, size, gap, error, others) else near[0]

    def _chosen(
        self, paths: list[Path], source: int, target: int, gap: int, error: int
    ) -> list[Path]:
        """The path that pairs choose, or their gap together with the depth of what it passes."""
        self._support = self._support or Support(self._pieces, self._places, self._libraries)
        chosen = self._support.chosen(paths, source, target, self._least)
        if not chosen:
            one = int(self._depths[source >> 1])
            chosen = Copies(self._pieces, paths, source, target, one).chosen(paths, gap, error)
        return chosen


class Support:
    """Pairs between all pieces, by which one of several paths is chosen.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
    """

    def __init__(self, pieces: Pieces, places: Places, libraries: Libraries) -> None:
        keys, *_ = followed(pieces, places, libraries, np.ones(len(pieces), dtype=np.bool_))
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


class Copies:
    """How often pieces are there by their depth, by which one of several paths is chosen.

    Args:
        pieces: the graph.
        paths: all between two ends that may be meant.
        source: the first end.
        target: the second end.
        one: depth of one copy.
    """

    def __init__(
        self, pieces: Pieces, paths: list[Path], source: int, target: int, one: int
    ) -> None:
        typical = max(1, one) / DEPTH_UNIT
        # Coverage depends on the sequence as well, so that more depth does not tell more.
        self._one = min(typical, _MOST_DEPTH)
        self._depths = pieces.depths * (self._one / typical / DEPTH_UNIT)
        inner = {d >> 1 for _, steps in paths for d in steps}
        around = {source ^ 1, target}
        self._is_closed = all(
            e >> 1 in inner or e in around
            for piece in inner
            for d in (2 * piece, 2 * piece + 1)
            for e in pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist()
        )

    def chosen(self, paths: list[Path], gap: int, error: int) -> list[Path]:
        """The path that is likelier than each of the others, if there is one.

        Args:
            paths: the paths.
            gap: bases between the ends, by the pairs.
            error: standard error of ``gap``.
        """

        def is_likelier(one: Path, other: Path) -> bool:
            by_gap = ((other[0] - gap) ** 2 - (one[0] - gap) ** 2) / (2 * error**2)
            return by_gap + self._by_depth(one, other) >= _LIKELIER

        return [
            one for one in paths if all(is_likelier(one, other) for other in paths if other != one)
        ]

    def _by_depth(self, one: Path, other: Path) -> float:
        """Logarithm of how much likelier a path is than another, by the mean of pieces.

        What is deeper than a path passes it may belong to other places too, unless there is no way
        out to them.
        """
        own, its = (Counter(d >> 1 for d in path[1]) for path in (one, other))
        found = []
        for piece in (own - its) + (its - own):
            more, fewer = max(own[piece], its[piece]), min(own[piece], its[piece])
            depth = float(self._depths[piece])
            if fewer:
                score = depth * math.log(more / fewer) - self._one * (more - fewer)
            else:
                score = _LIKELIER if 2 * depth >= self._one else 0.0
            if not self._is_closed:
                score = min(score, 0.0)
            found.append(score if own[piece] == more else -score)
        return sum(found) / max(1, len(found))


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


def _nearest(links: Links, pieces: Pieces, least: int) -> NDArray[np.int64]:
    """For each direction the row of what follows next, or -1 if there is doubt."""
    lengths = pieces.lengths
    best = np.full(2 * len(pieces), -1, dtype=np.int64)
    starts = np.searchsorted(links.source, np.arange(len(best) + 1))
    for d in np.unique(links.source):
        rows = np.arange(starts[d], starts[d + 1])
        pairs = links.pairs[rows]
        most = int(pairs.max())
        rows = rows[(_MARGIN * pairs >= most) & (pairs >= min(most, least))]
        first = rows[np.argmin(links.gaps[rows])]
        behind = links.gaps[first] + lengths[links.target[first] >> 1] - (pieces.k - 1)
        errors = np.sqrt(links.errors[rows] ** 2 + links.errors[first] ** 2)
        if all((rows == first) | (links.gaps[rows] >= behind - SLACK - 3 * errors)):
            best[d] = first
    return best


@njit(nogil=True, cache=True)
def find_alternatives(
    graph: GraphArrays, typical: NDArray[np.int64], single: NDArray[np.bool_]
) -> None:
    """Mark pieces between the same two neighbours that are together as deep as one copy of each.

    Args:
        graph: the graph.
        typical: int64[n], see ``Pieces.copy_depths``.
        single: bool[n], pieces of one copy; gets these as well.
    """
    link_starts, links = graph.link_starts, graph.links
    for d in range(len(link_starts) - 1):
        number = link_starts[d + 1] - link_starts[d]
        if number < 2:
            continue
        together = np.int64(0)
        after = np.int64(-1)
        same = True
        for i in range(link_starts[d], link_starts[d + 1]):
            e = links[i]
            together += graph.depths[e >> 1]
            if (
                link_starts[e + 1] - link_starts[e] != 1
                or link_starts[(e ^ 1) + 1] - link_starts[e ^ 1] != 1
                or (after >= 0 and links[link_starts[e]] != after)
            ):
                same = False
                break
            after = links[link_starts[e]]
        if same and 2 * together <= (2 * number + 1) * typical[d >> 1]:
            for i in range(link_starts[d], link_starts[d + 1]):
                single[links[i] >> 1] = True


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
