"""Joins of pieces, and the paths of contigs that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import Paths, Pieces, begin_of, end_of

_REPEATED: Final = 21
_NEARER: Final = 4
"""Where what joins two ends has 21 bases twice, repeats follow each other: with one more or less of
them, it must be farther from what the pairs say, by four standard errors."""

SLACK: Final = 5
"""Bases by which the gap of pairs may be wrong, beside three standard errors."""

LEAST_ERROR: Final = 3
"""The error of a gap is not taken to be smaller than this."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two directions, one after the other.

    Attributes:
        source: the first.
        target: what follows it.
        gap: bases between them; negative, if they overlap.
        error: standard error of the gap that pairs say.
        between: directions of pieces on the one path; empty, if they are neighbours.
        closed: whether there is such a path.
        pairs: that say so.
        patched: whether the path is a patch.
        said: bases between, by the pairs alone.
    """

    source: int
    target: int
    gap: int
    error: int
    between: tuple[int, ...]
    closed: bool
    pairs: int
    patched: bool = False
    said: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        """All directions, from the first to the last."""
        return (self.source, *self.between, self.target)


def turned(steps: tuple[int, ...]) -> tuple[int, ...]:
    """Directions as they follow each other on the other strand."""
    return tuple(d ^ 1 for d in reversed(steps))


def split(pieces: Pieces, joins: Sequence[Join], unique: NDArray[np.bool_]) -> list[Join]:
    """Joins of which no path passes a unique piece, but those that only seemed to be unique.

    What is between two ends may be put together by several joins, each of which passes an end of
    another one. A piece at which they disagree about what is next to it is no end of a join.

    Args:
        pieces: the graph.
        joins: of unique pieces, from one end to another.
        unique: which pieces are unique.
    """
    closed = [join for join in joins if join.closed]
    nexts: dict[int, set[int]] = {}
    for join in closed:
        for steps in (join.steps, turned(join.steps)):
            for d, e in pairwise(steps):
                if unique[d >> 1]:
                    nexts.setdefault(d, set()).add(e)

    def is_sure(d: int) -> bool:
        return bool(unique[d >> 1]) and all(len(nexts.get(each, ())) < 2 for each in (d, d ^ 1))

    found: dict[tuple[int, ...], Join] = {}
    for join in closed:
        if is_sure(join.source) and is_sure(join.target):
            for part in _parts(pieces, join, is_sure):
                found.setdefault(min(part.steps, turned(part.steps)), part)
    taken: dict[int, int] = {}
    for part in found.values():
        for d in (part.source, part.target ^ 1):
            taken[d] = taken.get(d, 0) + 1
    # One end that goes on in two ways goes on in none.
    made = [part for part in found.values() if taken[part.source] == taken[part.target ^ 1] == 1]
    made += [
        join
        for join in joins
        if not join.closed and join.source not in taken and join.target ^ 1 not in taken
    ]
    return sorted(made, key=lambda join: (join.source, join.target))


def _parts(pieces: Pieces, join: Join, is_end: Callable[[int], bool]) -> Iterator[Join]:
    """A join as joins between those of its pieces that are ends."""
    overlap = pieces.k - 1
    steps = join.steps
    ends = [i for i, d in enumerate(steps) if i in (0, len(steps) - 1) or is_end(d)]
    for i, j in pairwise(ends):
        between = steps[i + 1 : j]
        gap = sum(int(pieces.lengths[d >> 1]) - overlap for d in between) - overlap
        yield replace(join, source=steps[i], target=steps[j], gap=gap, between=between)


def all_words(codes: NDArray[np.uint8], size: int) -> NDArray[np.uint64]:
    """All words of a size, as numbers."""
    found = np.zeros(max(0, len(codes) - size + 1), dtype=np.uint64)
    for at in range(size):
        found = (found << np.uint64(2)) | codes[at : at + len(found)].astype(np.uint64)
    return found


def is_tandem(
    codes: NDArray[np.uint8], gap: int, said: int, error: int, known: Set[int] = frozenset()
) -> bool:
    """Whether a repeat follows itself, and pairs do not tell how often.

    Args:
        codes: between two ends, with bases of both.
        gap: bases between the ends.
        said: bases between, by the pairs.
        error: standard error of ``said``.
        known: other gaps, of which it is known that they are wrong.
    """
    words = all_words(codes, _REPEATED)
    order = np.argsort(words, kind="stable")
    same = words[order[1:]] == words[order[:-1]]
    own = abs(gap - said)
    other = [
        abs(gap + sign * unit - said)
        for unit in np.unique(np.diff(order)[same]).tolist()
        for sign in (-1, 1)
        if gap + sign * unit not in known
    ]
    return bool(other) and min(other) < own + _NEARER * max(error, LEAST_ERROR)


def spelled(pieces: Pieces, source: int, steps: Sequence[int], target: int) -> NDArray[np.uint8]:
    """The codes of a path between two ends, with k - 1 bases of either.

    Args:
        pieces: the graph.
        source: the first end.
        steps: directions between.
        target: the second end.
    """
    overlap = pieces.k - 1
    parts = [begin_of(pieces, d, int(pieces.lengths[d >> 1])) for d in steps]
    parts = [end_of(pieces, source, overlap), *parts, begin_of(pieces, target, overlap)]
    return np.concatenate([parts[0], *(each[overlap:] for each in parts[1:])])


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
    typical = np.maximum(1, pieces.copy_depths())
    left = np.maximum(1, (2 * pieces.depths + typical) // (2 * typical))
    for join in joins:
        for d in join.between:
            left[d >> 1] -= 1
    seen = np.zeros(len(pieces), dtype=np.bool_)
    ended = (after[0::2] < 0) | (after[1::2] < 0)
    steps: list[int] = []
    starts = [0]
    circles = []
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
                between, d = turned(join.between), join.source ^ 1
            if d == steps[starts[-1]]:
                circles.append(len(starts) - 1)
            if d == steps[starts[-1]] or not seen[d >> 1]:
                steps += between
        starts.append(len(steps))
    return Paths(
        np.array(starts, dtype=np.int64), np.array(steps, dtype=np.int64), frozenset(circles)
    )
