"""How calls and abundances are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.accuracy.classification.programs import Calls, Shares
from benchmarks.accuracy.classification.reads import label_of
from ngsgpu.taxonomy.ranks import GENUS, SPECIES
from ngsgpu.taxonomy.tree import Taxonomy

RANKS: Final = {"species": SPECIES, "genus": GENUS}
LEAST_SHARE: Final = 0.001
"""Of all reads, from which on a species is reported."""
LEAST_READS: Final = 50
"""Of its own, from which on a species is expected to be found."""


@dataclass(frozen=True)
class Truth:
    """Of a label: taxids of its species and genus, and whether the database has them."""

    species: int
    genus: int
    has_species: bool = True
    has_genus: bool = True


class Judge:
    """Judges calls by a taxonomy."""

    def __init__(self, tree: Taxonomy) -> None:
        self._tree = tree
        self._lineages = tree.ranked_lineages()

    def taxa(self, calls: Calls, rank: int) -> list[int]:
        """Taxid of each call at a rank; 0 above it, or without a call."""
        known: dict[int, int] = {0: 0}
        for taxid in {taxid for _, taxid in calls} - {0}:
            node = self._lineages[self._tree.index_of(taxid), rank]
            known[taxid] = int(self._tree.taxid[node]) if node >= 0 else 0
        return [known[taxid] for _, taxid in calls]

    def tally(self, calls: Calls, truth: Mapping[str, Truth]) -> dict[str, list[int]]:
        """Right calls, calls, and reads to be found, by rank."""
        own = [truth[label_of(name)] for name, _ in calls]
        found = {}
        for name, rank in RANKS.items():
            taxa = self.taxa(calls, rank)
            right = sum(taxon == getattr(one, name) for taxon, one in zip(taxa, own, strict=True))
            wanted = sum(getattr(one, f"has_{name}") for one in own)
            found[name] = [right, sum(taxon > 0 for taxon in taxa), wanted]
        return found

    def species(self, calls: Calls, truth: Mapping[str, Truth]) -> dict[str, list[int]]:
        """Species that are reported: false ones, and of those expected the missing ones."""
        reads = Counter(self.taxa(calls, SPECIES))
        reported = {one for one, own in reads.items() if one and own >= LEAST_SHARE * len(calls)}
        own = Counter(truth[label_of(name)] for name, _ in calls)
        there = {one.species for one in own}
        expected = Counter[int]()
        for one, number in own.items():
            if one.has_species:
                expected[one.species] += number
        wanted = {one for one, number in expected.items() if number >= LEAST_READS}
        return {
            "false": sorted(reported - there),
            "missing": sorted(wanted - {one for one, number in reads.items() if number > 0}),
            "expected": sorted(wanted),
        }


def rates(tallies: Sequence[Mapping[str, list[int]]]) -> dict[str, list[float]]:
    """Precision and sensitivity over tallies, by rank."""
    found = {}
    for name in RANKS:
        right, calls, wanted = np.sum([own[name] for own in tallies], axis=0).tolist()
        found[name] = [round(right / max(calls, 1), 4), round(right / max(wanted, 1), 4)]
    return found


def distance(observed: Shares, expected: Shares) -> dict[str, float]:
    """L1 of shares, and species that are too many or missing."""
    species = {*observed, *expected}
    l1 = sum(abs(observed.get(own, 0.0) - expected.get(own, 0.0)) for own in species)
    return {
        "l1": round(l1, 4),
        "false": len(observed.keys() - expected.keys()),
        "missing": len(expected.keys() - observed.keys()),
        "species": len(expected),
    }
