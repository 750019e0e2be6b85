"""Abundances at a rank, from calls at all ranks (MetaCache's rule; Kobus, chapter 7).

1. Reads called below the rank count for the ancestor at the rank or, where a lineage does not have
   the rank, for the next ranked one above.
2. From the root down, the reads of a taxon that has others with reads below it are shared among
   the nearest of these, in proportion to all reads at and below each of them: reads times these,
   divided by their sum, rounded down. What rounding leaves over is reported and counts for none.

What remains are taxa with reads and without any below them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.taxonomy.tree import Taxonomy


@dataclass(frozen=True, eq=False)
class Abundance:
    """Reads by taxon at (or, for lineages without it, above) a rank.

    Attributes:
        taxonomy: the tree.
        rank: index into ``RANKS``.
        reads: int64[n], estimated reads of each node.
        left_over: reads that rounding down gave to no taxon.
        unclassified: reads without a call.
        unknown: reads that were not called at the rank or below, the unclassified ones included.
    """

    taxonomy: Taxonomy
    rank: int
    reads: NDArray[np.int64]
    left_over: int
    unclassified: int
    unknown: int

    @property
    def classified(self) -> int:
        """Reads with a call."""
        return int(self.reads.sum()) + self.left_over

    def fractions(self) -> NDArray[np.float64]:
        """float64[n], share of all reads, the unclassified ones included."""
        return np.asarray(self.reads / max(self.classified + self.unclassified, 1))


def estimate_abundance(
    taxonomy: Taxonomy,
    direct: NDArray[np.int64],
    rank: int,
    unclassified: int = 0,
    lineages: NDArray[np.int32] | None = None,
) -> Abundance:
    """Estimate reads by taxon at a rank.

    Args:
        taxonomy: the tree.
        direct: int64[n], reads called as each node (reference sequences count for their taxa).
        rank: index into ``RANKS``.
        unclassified: reads without a call, passed on.
        lineages: ``taxonomy.ranked_lineages()``, if it is there already.
    """
    ranked = taxonomy.ranked_lineages() if lineages is None else lineages
    unknown = unclassified + int(direct[ranked[:, rank] < 0].sum())
    moved = _moved_up(taxonomy, direct, rank, ranked)
    counts = {node: int(moved[node]) for node in np.flatnonzero(moved).tolist()}
    left_over = _shared_down(taxonomy, counts)
    reads = np.zeros(len(taxonomy), dtype=np.int64)
    for node, count in counts.items():
        reads[node] = count
    return Abundance(taxonomy, rank, reads, left_over, unclassified, unknown)


def _moved_up(
    taxonomy: Taxonomy,
    direct: NDArray[np.int64],
    rank: int,
    ranked: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Step 1: counts with those from below the rank at the rank or above it."""
    seen = np.flatnonzero(direct)
    rows = ranked[seen]
    lowest = np.argmax(rows >= 0, axis=1)
    above = rows[:, rank:]
    first = above[np.arange(len(seen)), np.argmax(above >= 0, axis=1)]
    moved = np.zeros(len(taxonomy), dtype=np.int64)
    np.add.at(moved, np.where((lowest <= rank) & (first >= 0), first, seen), direct[seen])
    return moved


def _shared_down(taxonomy: Taxonomy, counts: dict[int, int]) -> int:
    """Step 2: change ``counts`` (node to reads, none of them 0); return the remainder.

    Python's integers do not overflow in products of read counts.
    """
    parent = {node: _nearest_above(taxonomy, node, counts) for node in counts}
    children: dict[int, list[int]] = {}
    from_below = dict.fromkeys(counts, 0)
    depth = {node: int(taxonomy.depth[node]) for node in counts}
    for node in sorted(counts, key=lambda node: -depth[node]):
        above = parent[node]
        if above is not None:
            children.setdefault(above, []).append(node)
            from_below[above] += from_below[node] + counts[node]
    left_over = 0
    for node in sorted(children, key=lambda node: depth[node]):
        reads = counts.pop(node)
        given = 0
        for child in children[node]:
            share = reads * (counts[child] + from_below[child]) // from_below[node]
            counts[child] += share
            given += share
        left_over += reads - given
    return left_over


def _nearest_above(taxonomy: Taxonomy, node: int, counts: dict[int, int]) -> int | None:
    for above in taxonomy.lineage(node)[1:]:
        if above in counts:
            return above
    return None
