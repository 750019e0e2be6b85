"""Pieces that are there once in the genome."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.paths import paths_between
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, GraphArrays, Pieces
from ngsgpu.jit import njit

_SHORT: Final = 4
"""Pieces of fewer k-mer lengths than this are short."""

_ROUND: Final = 1000
_LN2: Final = 693
_LIKELIER: Final = 2000
_MOST_DEPTH: Final = 16
"""What the graph leads back to within 1,000 bases is in a tandem repeat, or between copies of a
repeat, and its depth must tell that it is there once: one copy must be likelier than two by a
logarithm of 2 (in thousandths, as that of two), where depths count as those of a 16-fold genome at
most. Of parts of 27 genomes at 10-fold, three of the four contigs that lacked a unit of more than
100 bases no longer did, and the others were as long."""


def unique_pieces(pieces: Pieces, read: int) -> NDArray[np.bool_]:
    """Mask of the pieces that are long enough and not deeper than one copy.

    Where two copies of a repeat differ in one base, the graph has a piece of 2k - 1 bases for each.
    Of short pieces the depth is less certain, and one of two copies is soon taken for unique; but
    of alternatives between the same neighbours each is one copy, if all together are as deep. What
    goes on in two ways that nothing else leads to is there twice, and more than a fifth too deep.

    Args:
        pieces: the graph.
        read: bases of a read.
    """
    typical, lengths = pieces.copy_depths(), pieces.lengths
    most = np.where(lengths < _SHORT * pieces.k, 4 * typical // 3, 3 * typical // 2)
    single = pieces.depths <= most
    find_alternatives(pieces.arrays, typical, single)
    single &= lengths >= 2 * pieces.k - 1
    single &= ~(has_two_sequels(pieces.arrays, typical) & (5 * pieces.depths > 6 * typical))
    none = np.zeros(len(pieces), dtype=np.bool_)
    for piece in np.flatnonzero(single & (lengths < 2 * _ROUND)).tolist():
        if not _is_clear(int(pieces.depths[piece]), int(typical[piece]), int(lengths[piece]), read):
            d = 2 * piece
            rounds, *_ = paths_between(pieces.arrays, none, d, d, -pieces.k, _ROUND, 1)
            single[piece] = not rounds
    return single


def _is_clear(depth: int, one: int, length: int, read: int) -> bool:
    """Whether a piece is clearly there once, not twice.

    Args:
        depth: of the piece.
        one: depth of one copy.
        length: bases of the piece.
        read: bases of a read.
    """
    # Reads that one copy would have, less what those that there are say for two: a logarithm.
    counted = min(one, _MOST_DEPTH * DEPTH_UNIT)
    ahead = (1000 * one - _LN2 * depth) * counted * length
    return ahead >= _LIKELIER * one * DEPTH_UNIT * read


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
def has_two_sequels(graph: GraphArrays, typical: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of pieces that go on in two ways to which no other piece leads, and which are no errors.

    Args:
        graph: the graph.
        typical: int64[n], see ``Pieces.copy_depths``.
    """
    link_starts, links, depths = graph.link_starts, graph.links, graph.depths
    found = np.zeros(len(depths), dtype=np.bool_)
    for d in range(len(link_starts) - 1):
        number = together = np.int64(0)
        for i in range(link_starts[d], link_starts[d + 1]):
            e = links[i]
            alone = link_starts[(e ^ 1) + 1] - link_starts[e ^ 1] == 1
            if alone and 2 * depths[e >> 1] >= typical[d >> 1]:
                number += 1
                together += depths[e >> 1]
        # Two alleles have the depth of one copy.
        if number > 1 and 2 * together > 3 * typical[d >> 1]:
            found[d >> 1] = True
    return found
