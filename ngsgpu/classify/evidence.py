"""Which species a sample holds itself, and which only have relatives in it.

Reads of a species without reference sequences are found in those of its relatives, with fewer
hits each, as genomes of different species differ in more than 5 % of their bases and each
difference takes up to k k-mers. One read cannot tell this from its errors; all reads of a species
together can. So, before reads are called:

1. The evidence for a species is the median, over the reads whose best candidates are of this
   species alone, of the part of the read's features that hit (in per cent, rounded down; of an
   even number of reads the lower of the two in the middle).
2. A species whose evidence is at least ``species_evidence`` is believed; one below, or without any
   such read, is doubted. Sequences without a species are believed.

Then, of each read:

3. If a believed candidate is near the best (its hits exceed ``(best - min_hits) *
   hit_difference``, or it is the best), the doubted ones are left out, and the read is called as
   ever.
4. Otherwise it is called as ever, but not as a species or anything below: as the next rank that
   the lineage has. With less than ``doubtful_confidence`` of its features it stays unclassified.

All counts are integers, so that neither threads nor partitions change anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import PER_MILLION, QueryRules
from ngsgpu.classify.query import CandidateArrays
from ngsgpu.classify.taxonomy import SPECIES
from ngsgpu.errors import UsageError
from ngsgpu.jit import njit

_BINS = 101


@dataclass(frozen=True, slots=True)
class EvidenceParameters:
    """When a species is believed.

    Attributes:
        species_evidence: median part of the features that hit, from which on; 0 believes all and
            saves looking twice.
        doubtful_confidence: part of a read's features that have to hit where only species that
            are doubted are near.
    """

    species_evidence: float = 0.0
    doubtful_confidence: float = 0.2

    def __post_init__(self) -> None:
        for option, value in (
            ("--species-evidence", self.species_evidence),
            ("--doubtful-confidence", self.doubtful_confidence),
        ):
            if not 0 <= value <= 1:
                raise UsageError(f"{option} must be 0 to 1, not {value:g}")


class SpeciesEvidence:
    """Collects the evidence for the species of a sample.

    Args:
        target_node: int32[t], each reference sequence's taxon, or -1.
        lineages: int32[n, ranks], see ``Taxonomy.ranked_lineages``.
        min_hits: hits of the best candidate from which on a read counts.

    Attributes:
        species: int32[t], number of each reference sequence's species, or -1.
        counts: int64[species, 101], reads by species and per cent of their features that hit.
    """

    def __init__(
        self, target_node: NDArray[np.int32], lineages: NDArray[np.int32], min_hits: int
    ) -> None:
        species = np.where(target_node < 0, np.int32(-1), lineages[target_node, SPECIES])
        nodes, numbers = np.unique(species, return_inverse=True)
        self._nodes = nodes
        self.species = np.where(species < 0, -1, numbers).astype(np.int32)
        self._min_hits = np.int64(min_hits)
        self.counts = np.zeros((len(nodes), _BINS), dtype=np.int64)

    def add(self, best: CandidateArrays, features: NDArray[np.int64]) -> None:
        """Add reads; threads may not add at the same time."""
        _count(best.target, best.hits, features, self.species, self._min_hits, self.counts)

    def medians(self) -> dict[int, int]:
        """Evidence by species, in per cent, of those that have any."""
        total = self.counts.sum(axis=1)
        below = np.cumsum(self.counts, axis=1)
        median = np.argmax(below > (total[:, None] - 1) // 2, axis=1)
        return {
            int(node): int(found)
            for node, found, reads in zip(self._nodes, median, total, strict=True)
            if node >= 0 and reads > 0
        }

    def believed(self, share: float) -> NDArray[np.bool_]:
        """Which reference sequences are of believed species, or of none, bool[t]."""
        limit = round(share * PER_MILLION)
        medians = self.medians()
        is_believed = np.array(
            [
                node < 0 or medians.get(node, -1) * (PER_MILLION // 100) >= limit
                for node in self._nodes.tolist()
            ],
            dtype=np.bool_,
        )
        return (self.species < 0) | is_believed[np.maximum(self.species, 0)]


def weigh(
    best: CandidateArrays, believed: NDArray[np.bool_], rules: QueryRules
) -> tuple[CandidateArrays, NDArray[np.bool_]]:
    """Leave doubted candidates out where a believed one is near.

    Returns:
        The candidates, and which reads have none but doubted ones near, bool[n].
    """
    left = best._replace(
        target=best.target.copy(),
        hits=best.hits.copy(),
        taxon=best.taxon.copy(),
        window_begin=best.window_begin.copy(),
        window_end=best.window_end.copy(),
    )
    doubtful = np.zeros(len(best.target), dtype=np.bool_)
    _weigh(
        left.target, left.hits, left.taxon, left.window_begin, left.window_end, believed,
        np.int64(rules.min_hits), np.int64(rules.difference), doubtful,
    )  # fmt: skip
    return left, doubtful


def lift(
    call: NDArray[np.int32],
    doubtful: NDArray[np.bool_],
    hits: NDArray[np.int32],
    features: NDArray[np.int64],
    target_node: NDArray[np.int32],
    lineages: NDArray[np.int32],
    highest: int,
    least: int,
) -> None:
    """Take calls of doubtful reads above the species, or back.

    Args:
        call: int32[n], changed.
        doubtful: bool[n].
        hits: int32[n], of the best candidate.
        features: int64[n], of the read.
        target_node: int32[t].
        lineages: int32[nodes, ranks].
        highest: highest rank of calls.
        least: millionths of the features that have to hit.
    """
    rows = np.flatnonzero(doubtful & (call >= 0))
    enough = hits[rows].astype(np.int64) * PER_MILLION >= features[rows] * least
    call[rows[~enough]] = -1
    rows = rows[enough]
    nodes = len(lineages)
    node = np.where(call[rows] < nodes, call[rows], target_node[np.maximum(call[rows] - nodes, 0)])
    call[rows[node < 0]] = -1
    rows, node = rows[node >= 0], node[node >= 0]
    above = lineages[node, SPECIES + 1 : highest + 1]
    has = above >= 0
    lowest = np.argmax(lineages[node] >= 0, axis=1)
    is_low = (call[rows] >= nodes) | (lowest <= SPECIES)
    lifted = np.where(has.any(axis=1), above[np.arange(len(rows)), has.argmax(axis=1)], -1)
    call[rows[is_low]] = lifted[is_low]


@njit(nogil=True, cache=True)
def _count(target, hits, features, species, min_hits, counts):  # type: ignore[no-untyped-def]
    """Count reads by species and per cent of features that hit."""
    for i in range(target.shape[0]):
        if target[i, 0] < 0 or hits[i, 0] < min_hits:
            continue
        mine = species[target[i, 0]]
        if mine < 0:
            continue
        alone = True
        for j in range(1, target.shape[1]):
            if target[i, j] < 0 or hits[i, j] < hits[i, 0]:
                break
            alone = alone and species[target[i, j]] == mine
        if alone:
            counts[mine, min(np.int64(hits[i, 0]) * 100 // max(features[i], 1), 100)] += 1


@njit(nogil=True, cache=True)
def _weigh(  # type: ignore[no-untyped-def]
    target, hits, taxon, window_begin, window_end, believed, min_hits, difference, doubtful
):
    """Move believed candidates to the front of each row that has a near one; empty the rest."""
    most = target.shape[1]
    for i in range(target.shape[0]):
        if target[i, 0] < 0:
            continue
        threshold = (np.int64(hits[i, 0]) - min_hits) * difference
        near = False
        for j in range(most):
            if target[i, j] < 0 or (j > 0 and np.int64(hits[i, j]) * 1000000 <= threshold):
                break
            near = near or believed[target[i, j]]
        doubtful[i] = not near
        if not near:
            continue
        place = 0
        for j in range(most):
            if target[i, j] >= 0 and believed[target[i, j]]:
                target[i, place] = target[i, j]
                hits[i, place] = hits[i, j]
                window_begin[i, place] = window_begin[i, j]
                window_end[i, place] = window_end[i, j]
                if taxon.shape[1] == most:
                    taxon[i, place] = taxon[i, j]
                place += 1
        for j in range(place, most):
            target[i, j] = -1
            hits[i, j] = 0
