"""Patches: sequence between two ends that pairs put side by side, where no path goes.

Where coverage is low, or within repeats, some window of the last k is in no read, and pieces end or
lose a link. Two things then say what lies between ends that pairs join. Both may be dead ends that
overlap, by fewer bases than any k: alone, chance makes such overlaps, but not one of the size that
the pairs say. Or reads go from one end to the other: those that lie at the ends, and the mates of
those, which a repeat's other copies do not disturb.

A patch is a piece with the last k - 1 bases of one end, what is between, and the first k - 1 bases
of the other, so that both overlap it as all pieces do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.around import Around
from ngsgpu.assemble.contigs.joins.join import SLACK, Join, is_tandem, spelled
from ngsgpu.assemble.contigs.joins.local import LocalReads
from ngsgpu.assemble.contigs.pieces import Pieces, begin_of, end_of, turn, without_ends
from ngsgpu.assemble.contigs.places import Places
from ngsgpu.assemble.contigs.reads import Reads

_WRONG: Final = 4
_CLIPPED: Final = 8
_LEAST: Final = 4
_AHEAD: Final = 2
"""An overlap's score: its bases that agree, less 4 for each that does not; or that of its best
part, less 8, which leaves out what errors at the end of the last read have made of an end. The best
overlap has a score of 4 or more, and is 2 ahead of any other. Of a size that pairs allow, chance
makes a score of 4 once in 256 times. Chosen, with the numbers below, where ``LOW_DEPTH`` was."""

_LEAST_EXACT: Final = 15
"""Bases of an overlap with an end from which the graph goes on elsewhere."""

_FEW: Final = {1: 12, 2: 8}
_MANY: Final = 5
_LEAST_OF_MANY: Final = 3
"""The least score where one or two pairs join two ends; and that of ends which no read goes past
and five pairs join within a standard error."""


class Patch(NamedTuple):
    """What joins two ends.

    Attributes:
        before: bases that are cut from the first end, a dead one.
        after: bases that are cut from the second end, a dead one.
        middle: uint8[m], codes between.
        shared: bases that both ends have, the same ones, and of which none is cut.
    """

    before: int
    after: int
    middle: NDArray[np.uint8]
    shared: int = 0

    @property
    def gap(self) -> int:
        """Bases between the ends; negative, if they overlap."""
        return len(self.middle) - self.before - self.after - self.shared


def patched(
    pieces: Pieces,
    joins: Sequence[Join],
    reads: Reads,
    places: Places,
    longest: int,
    *,
    doubted: bool = False,
) -> tuple[Pieces, list[Join]]:
    """The graph with patches for open joins, and all joins, those that got one closed.

    Args:
        pieces: the graph.
        joins: of its ends.
        reads: the reads.
        places: of the paired reads on the graph.
        longest: bases of their longest fragments.
        doubted: whether reads may contradict paths as well, which then are left out: of copies of
            a repeat that differ, the right one may not be in the graph.
    """
    if all(join.closed and not (doubted and join.between) for join in joins):
        return pieces, list(joins)
    local = LocalReads(pieces, joins, reads, places, longest)
    around = Around(pieces, joins)
    closed = [
        each for each in joins if not (doubted and _is_contradicted(pieces, each, local, around))
    ]
    joins = list(closed)
    made: list[tuple[Join, Patch]] = []
    for number, join in enumerate(joins):
        patch = None if join.closed else _patch(pieces, join, local, around)
        if patch is not None:
            step = 2 * (len(pieces) + len(made))
            made.append((join, patch))
            closed[number] = replace(
                join, gap=patch.gap, between=(step,), closed=True, patched=True
            )
    return _with_patches(pieces, made), closed


def _patch(pieces: Pieces, join: Join, local: LocalReads, around: Around) -> Patch | None:
    """The patch of an open join, if there is no doubt."""
    # The fewer pairs there are, the wider is what they allow, and a repeat's unit fits in.
    slack = SLACK + (2 if join.pairs in _FEW else 3) * join.error
    low, high = join.gap - slack, join.gap + slack
    patch = _overlapping(pieces, join, local, low, high)
    if patch is None:
        found = local.between(join, low, high)
        patch = None if found is None else Patch(0, 0, *found)
    if patch is None:
        return None
    one, two = around.before(join.source, local.reach), around.behind(join.target, local.reach)
    if is_tandem(text_of(one, two, patch, pieces.k - 1), patch.gap, join.said, join.error):
        return None
    before, after = one[: len(one) - patch.before], two[patch.after + patch.shared :]
    text = np.concatenate([before, patch.middle, after])
    return None if local.contradict(join, text, (len(one), len(two))) else patch


def _is_contradicted(pieces: Pieces, join: Join, local: LocalReads, around: Around) -> bool:
    """Whether the reads around a path's ends are of another copy of a repeat."""
    if not (join.closed and join.between):
        return False
    one, two = around.before(join.source, local.reach), around.behind(join.target, local.reach)
    overlap = pieces.k - 1
    inner = spelled(pieces, join.source, join.between, join.target)
    text = np.concatenate([one[:-overlap], inner, two[overlap:]])
    return local.contradict(join, text, (len(one), len(two)))


def _overlapping(
    pieces: Pieces, join: Join, local: LocalReads, low: int, high: int
) -> Patch | None:
    """The overlap of two ends, of which one is dead; with what reads have behind it, and without.

    Args:
        pieces: the graph.
        join: of the ends.
        local: the reads around them.
        low: fewest bases between; overlaps count as negative.
        high: most bases between.
    """
    dead = [
        pieces.link_starts[d] == pieces.link_starts[d + 1] for d in (join.source, join.target ^ 1)
    ]
    if not any(dead):
        return None
    size = pieces.k + max(pieces.k, -low)
    one, two = end_of(pieces, join.source, size), begin_of(pieces, join.target, size)
    none = np.empty(0, dtype=np.uint8)
    behind = local.overhang(join.source) if dead[0] else none
    ahead = turn(local.overhang(join.target ^ 1)) if dead[1] else none
    for new, old in ((behind, ahead), (none, none)):
        more = len(new) + len(old)
        is_sure = join.pairs >= _MANY and not len(behind) + len(ahead)
        score = _LEAST_OF_MANY if is_sure else _FEW.get(join.pairs, _LEAST)
        first, second = np.concatenate([one, new]), np.concatenate([old, two])
        if all(dead):
            ends = first[pieces.k :], second[: -pieces.k]
            found = overlap(*ends, more - high, more - low, score)
            if is_sure and found is not None and abs(found.gap - join.gap) > join.error:
                found = overlap(*ends, more - high, more - low)
        else:
            found = exact_overlap(first, second, more - high, more + min(-low, pieces.k - 2))
        if found is not None:
            return _without(found, new, old)
    return None


def _without(patch: Patch, new: NDArray[np.uint8], old: NDArray[np.uint8]) -> Patch:
    """A patch of ends without the bases behind the first and ahead of the second one.

    Args:
        patch: of the ends with these bases.
        new: bases behind the first end.
        old: bases ahead of the second end.
    """
    if patch.shared:
        over = max(0, patch.shared - len(old))
        from_new = min(over, len(new))
        middle = np.concatenate([new[: len(new) - from_new], old[patch.shared :]])
        return Patch(0, 0, middle, over - from_new)
    left, right = new[: max(0, len(new) - patch.before)], old[patch.after :]
    before, after = max(0, patch.before - len(new)), max(0, patch.after - len(old))
    return Patch(before, after, np.concatenate([left, right]))


def overlap(
    one: NDArray[np.uint8], two: NDArray[np.uint8], least: int, most: int, score: int = _LEAST
) -> Patch | None:
    """The overlap of two ends, if there is one beyond doubt; each end keeps a half.

    Bases near an end are those of a single read's end, so each end is right where it is far.

    Args:
        one: codes, at the end of which it lies.
        two: codes, at the beginning of which it lies.
        least: bases of the shortest one.
        most: bases of the longest one.
        score: of the best one, at least.
    """
    scores = []
    for size in range(max(1, least), min(most, len(one), len(two)) + 1):
        same = one[len(one) - size :] == two[:size]
        sums = np.concatenate([[0], np.cumsum(np.where(same, 1, -_WRONG))])
        rises = sums - np.minimum.accumulate(sums)
        stop = int(np.argmax(rises))
        part = int(rises[stop]) - _CLIPPED
        if int(sums[-1]) >= part:
            scores.append((int(sums[-1]), size, size // 2))
        else:
            scores.append((part, size, (int(np.argmin(sums[: stop + 1])) + stop) // 2))
    scores.sort(reverse=True)
    if not scores or scores[0][0] < score:
        return None
    best, size, cut = scores[0]
    second = scores[1][0] if len(scores) > 1 else 0
    # A tandem repeat overlaps itself by a unit less as well.
    if second > best - _AHEAD or (second >= _LEAST and 2 * second >= best):
        return None
    return Patch(size - cut, cut, np.empty(0, dtype=np.uint8))


def exact_overlap(
    one: NDArray[np.uint8], two: NDArray[np.uint8], least: int, most: int
) -> Patch | None:
    """The only overlap of two ends that has no difference and is long enough."""
    sizes = range(max(_LEAST_EXACT, least), most + 1)
    found = [size for size in sizes if np.array_equal(one[len(one) - size :], two[:size])]
    return Patch(0, 0, np.empty(0, dtype=np.uint8), found[0]) if len(found) == 1 else None


def text_of(
    one: NDArray[np.uint8], two: NDArray[np.uint8], patch: Patch, overlap: int
) -> NDArray[np.uint8]:
    """The codes of a patch as a piece."""
    one, two = one[: len(one) - patch.before], two[patch.after :]
    return np.concatenate([one[-overlap:], patch.middle, two[patch.shared : overlap]])


def _with_patches(pieces: Pieces, made: list[tuple[Join, Patch]]) -> Pieces:
    """The graph with a piece for each patch, behind all others, and what it cuts taken away."""
    if not made:
        return pieces
    overlap = pieces.k - 1
    cuts = np.zeros((len(pieces), 2), dtype=np.int64)
    texts, depths, edges = [], [], []
    for number, (join, patch) in enumerate(made, len(pieces)):
        one = end_of(pieces, join.source, overlap + patch.before)
        two = begin_of(pieces, join.target, overlap + patch.after)
        texts.append(text_of(one, two, patch, overlap))
        cuts[join.source >> 1, 1 - (join.source & 1)] = patch.before
        cuts[join.target >> 1, join.target & 1] = patch.after
        depths.append(min(pieces.depths[join.source >> 1], pieces.depths[join.target >> 1]))
        d = 2 * number
        edges += [(join.source, d), (d, join.target), (d ^ 1, join.source ^ 1)]
        edges += [(join.target ^ 1, d ^ 1)]
    pieces = without_ends(pieces, cuts)
    sizes = [*pieces.lengths.tolist(), *map(len, texts)]
    sources, links = np.concatenate([np.stack([pieces.sources, pieces.links], 1), edges]).T
    order = np.lexsort((links, sources))
    return Pieces(
        pieces.k,
        np.concatenate([pieces.bases, *texts]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([pieces.depths, depths]),
        np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=2 * len(sizes)))]),
        links[order],
    )
