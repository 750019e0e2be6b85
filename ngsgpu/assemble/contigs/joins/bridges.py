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

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.gaps import Libraries, Links, linked
from ngsgpu.assemble.contigs.joins.join import SLACK, Join, split
from ngsgpu.assemble.contigs.joins.search import MARGIN, Search
from ngsgpu.assemble.contigs.pieces import GraphArrays, Pieces
from ngsgpu.assemble.contigs.places import Places
from ngsgpu.jit import njit

_SHORT: Final = 4
"""Pieces of fewer k-mer lengths than this are short."""


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
    search = Search(pieces, places, libraries, unique, min(least, few + 1))
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
