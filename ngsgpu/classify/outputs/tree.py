"""Counts of a sample, summed up the tree, and walks over the part of it that has any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.results import SampleTotals
from ngsgpu.classify.database.targets import Labels
from ngsgpu.jit import interpreted_if_small, njit
from ngsgpu.taxonomy.tree import Taxonomy

MAIN_CODES: Final = {
    "domain": "D", "kingdom": "K", "phylum": "P", "class": "C", "order": "O", "family": "F",
    "genus": "G", "species": "S",
}  # fmt: skip
"""Letters of the main ranks in Kraken's reports, and (in small) in lineages as k__, p__."""


@dataclass(frozen=True, eq=False)
class CountedTree:
    """Reads (or pairs) of one sample by taxon.

    Attributes:
        taxonomy: the tree.
        direct: int64[n], reads called as this node itself or as a reference sequence of it.
        clade: int64[n], reads called as this node or anything below it.
        unclassified: reads without a call.
        states_unclassified: whether they are stated even if there are none.
    """

    taxonomy: Taxonomy
    direct: NDArray[np.int64]
    clade: NDArray[np.int64]
    unclassified: int
    states_unclassified: bool = True

    @property
    def classified(self) -> int:
        """Reads with a call."""
        return int(self.clade[self.taxonomy.root])

    @property
    def total(self) -> int:
        """All reads."""
        return self.classified + self.unclassified

    def walk(self) -> Iterator[tuple[int, int]]:
        """Nodes with reads in their clade, in pre-order, and their depths.

        Siblings are sorted by descending number of reads, ties by taxid.
        """
        seen = np.flatnonzero(self.clade)
        children: dict[int, list[int]] = {}
        root = self.taxonomy.root
        for node in seen[np.argsort(-self.clade[seen], kind="stable")].tolist():
            if node != root:
                children.setdefault(int(self.taxonomy.parent[node]), []).append(node)
        open_nodes = [(root, 0)] if len(seen) > 0 else []
        while open_nodes:
            node, depth = open_nodes.pop()
            yield node, depth
            open_nodes += [(child, depth + 1) for child in reversed(children.get(node, []))]


def count_tree(taxonomy: Taxonomy, direct: NDArray[np.int64], unclassified: int = 0) -> CountedTree:
    """Sum counts by node, int64[n], up the tree.

    Args:
        taxonomy: the taxonomy.
        direct: reads assigned to each node itself, int64[n].
        unclassified: number of unclassified reads.
    """
    order = taxonomy.top_down()
    clade = direct.astype(np.int64, copy=True)
    with interpreted_if_small(8 * len(taxonomy)):
        _sum_up(taxonomy.parent, order, clade)
    return CountedTree(taxonomy, direct, clade, unclassified)


def tree_of(labels: Labels, totals: SampleTotals) -> CountedTree:
    """The counts of a sample by taxon; reference sequences count for their taxa."""
    direct = labels.counts_of_nodes(totals.counts)
    return count_tree(labels.taxonomy, direct, totals.unclassified)


def genome_sizes(labels: Labels, file: NDArray[np.int32]) -> NDArray[np.float64]:
    """Mean bases of the genomes at and below each node, float64[n]; 0 where there is none.

    A genome is what one file has of one taxon.

    Args:
        labels: the reference sequences.
        file: int32[t], number of each one's file.
    """
    taxonomy, known = labels.taxonomy, np.flatnonzero(labels.target_taxon >= 0)
    node = labels.target_taxon[known]
    bases, genomes = np.zeros((2, len(taxonomy)), dtype=np.int64)
    np.add.at(bases, node, labels.target_length[known])
    files = int(file.max(initial=0)) + 1
    np.add.at(genomes, np.unique(node.astype(np.int64) * files + file[known]) // files, 1)
    bases, genomes = (count_tree(taxonomy, own).clade for own in (bases, genomes))
    return np.asarray(bases / np.maximum(genomes, 1))


@njit(nogil=True, cache=True)
def _sum_up(parent, order, clade):  # type: ignore[no-untyped-def]
    for i in range(order.size - 1, 0, -1):
        node = order[i]
        clade[parent[node]] += clade[node]
