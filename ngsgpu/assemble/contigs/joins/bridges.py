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

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.gaps import Libraries, Links, linked
from ngsgpu.assemble.contigs.joins.join import SLACK, Join, split
from ngsgpu.assemble.contigs.joins.search import MARGIN, Search
from ngsgpu.assemble.contigs.pieces import Pieces
from ngsgpu.assemble.contigs.places import Places


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
    choosing = min(least, few + 1)
    search = Search(pieces, places, libraries, unique, choosing)
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
        if found and pairs < choosing and len({step >> 1 for step in found[1]}) < len(found[1]):
            found = None  # it goes round in a tandem repeat: how often is a choice as well
        size, steps = found or (gap, ())
        # What is next to the other end may lie between, with too few pairs to show from this one.
        if nearer == d or nearer in steps:
            joins.append(Join(d, e, size, error, steps, found is not None, pairs, said=gap))
    return split(pieces, joins, unique)


def _nearest(links: Links, pieces: Pieces, least: int) -> NDArray[np.int64]:
    """For each direction the row of what follows next, or -1 if there is doubt."""
    lengths = pieces.lengths
    best = np.full(2 * len(pieces), -1, dtype=np.int64)
    starts = np.searchsorted(links.source, np.arange(len(best) + 1))
    for d in np.unique(links.source):
        rows = np.arange(starts[d], starts[d + 1])
        pairs = links.pairs[rows]
        most = int(pairs.max())
        rows = rows[(MARGIN * pairs >= most) & (pairs >= min(most, least))]
        first = rows[np.argmin(links.gaps[rows])]
        behind = links.gaps[first] + lengths[links.target[first] >> 1] - (pieces.k - 1)
        errors = np.sqrt(links.errors[rows] ** 2 + links.errors[first] ** 2)
        if all((rows == first) | (links.gaps[rows] >= behind - SLACK - 3 * errors)):
            best[d] = first
    return best
