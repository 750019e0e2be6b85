"""Abundances at a rank: by the fit of the model, or from calls at all ranks.

By the fit, each source has the reads of its strains, and its genus and family those of relatives
that the database lacks. Of a rank, a taxon has what is known at this rank; relatives of what is
below count as such, in a separate row. All rows together are all reads.

From calls (MetaCache's rule; Kobus, chapter 7):

1. Reads called below the rank count for the ancestor at the rank or, where a lineage does not have
   the rank, for the next ranked one above.
2. From the root down, the reads of a taxon that has others with reads below it are shared among
   the nearest of these, in proportion to all reads at and below each of them: reads times these,
   divided by their sum, rounded down. What rounding leaves over is reported and counts for none.

What remains are taxa with reads and without any below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.model import Species
from ngsgpu.taxonomy.ranks import FAMILY, GENUS
from ngsgpu.taxonomy.tree import Taxonomy


@dataclass(frozen=True, eq=False)
class Abundance:
    """Reads by taxon at (or, for lineages without it, above) a rank.

    Attributes:
        taxonomy: the tree.
        rank: index into ``RANKS``.
        reads: int64[n], estimated reads of each node.
        left_over: reads that rounding down gave to no taxon.
        relatives: reads of relatives of a node's taxa, that the rank is too low for; by node.
        is_fitted: whether it is by the fit.
        unclassified: reads without a call.
        unknown: reads that were not called at the rank or below, the unclassified ones included.
    """

    taxonomy: Taxonomy
    rank: int
    reads: NDArray[np.int64]
    left_over: int
    unclassified: int
    unknown: int
    relatives: dict[int, int] = field(default_factory=dict)
    is_fitted: bool = False

    @property
    def classified(self) -> int:
        """Reads with a call."""
        return int(self.reads.sum()) + self.left_over + sum(self.relatives.values())

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


def fitted_abundance(
    taxonomy: Taxonomy,
    species: Sequence[Species],
    rank: int,
    total: int,
    lineages: NDArray[np.int32],
    node_of_target: NDArray[np.int32],
) -> Abundance:
    """Reads by taxon at a rank, by the fit.

    Args:
        taxonomy: the tree.
        species: what was found of each source.
        rank: index into ``RANKS``.
        total: all reads of the sample.
        lineages: ``taxonomy.ranked_lineages()``.
        node_of_target: int32[t], taxon of each reference sequence, the root without one.
    """
    known: dict[int, float] = {}
    relatives: dict[int, float] = {}
    for own in species:
        is_taxon = own.taxon < len(taxonomy)
        node = own.taxon if is_taxon else int(node_of_target[own.taxon - len(taxonomy)])
        above = np.flatnonzero(lineages[node, rank:] >= 0)
        taxon = int(lineages[node, rank + above[0]]) if len(above) else node
        for reads, at in ((own.reads, 0), (own.relatives, GENUS), (own.distant, FAMILY)):
            to = known if at <= rank else relatives
            to[taxon] = to.get(taxon, 0.0) + reads
    values = np.array([*known.values(), *relatives.values()])
    counts = _whole(values, min(round(float(values.sum())), total)).tolist()
    reads_of = np.zeros(len(taxonomy), dtype=np.int64)
    for node, count in zip(known, counts, strict=False):
        reads_of[node] = count
    near = {node: n for node, n in zip(relatives, counts[len(known) :], strict=True) if n}
    return Abundance(
        taxonomy,
        rank,
        reads_of,
        0,
        total - sum(counts),
        total - int(reads_of.sum()),
        near,
        is_fitted=True,
    )


def _whole(values: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers with a sum of ``total``, nearest to values that add up to about as much."""
    found = np.floor(values).astype(np.int64)
    rest = total - int(found.sum())
    if rest > 0:
        found[np.argsort(found - values, kind="stable")[:rest]] += 1
    return found
