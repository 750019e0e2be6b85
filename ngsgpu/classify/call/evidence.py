"""Species evidence: which species a sample contains, and which are only relatives of those.

Reads of a species without reference sequences hit those of its relatives, with fewer hits each,
because genomes of different species differ in more than 5 % of their bases and each difference
affects up to k k-mers. A single read cannot distinguish this from errors; all reads of a species
together can. So, before reads are called:

1. The evidence for a species is the median, over the reads whose best candidates are all from this
   species, of the fraction of the read's features that hit (in per cent, rounded down; for an even
   number of reads the lower of the two middle values). Reads below 8 per cent do not count: these
   are often numerous hits from distant relatives.
2. A species whose evidence reaches ``species_evidence`` is accepted; others, also those without any
   such read, are rejected. Sequences without a species are accepted. A genus is accepted if one of
   its species has evidence of at least ``genus_evidence``.

Then, for each read:

3. If an accepted candidate is close to the best (its hits exceed ``(best - min_hits) *
   hit_difference``, or it is the best), rejected ones are ignored, and the read is called as
   usual.
4. Otherwise it is called as usual, but at the next rank of the lineage above species. If the genera
   of all close candidates are rejected as well, it is not called at genus level either. Below
   ``doubtful_confidence`` of its features it stays unclassified.

All counts are integers, so that neither threads nor partitions affect the result.

The coverage filter (MetaCache's; Kobus, section 6.4) drops sparsely covered reference sequences: a
window is covered if it is in the range of a candidate with at least ``min_hits`` hits, and the
coverage of a sequence is the fraction of its windows that are covered. In ascending order of
coverage, ties by number, sequences are dropped while the sum of the dropped coverages is at most
the given fraction of the total. Reads are then classified again with the remaining candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import PER_MILLION, QueryRules
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.errors import UsageError
from ngsgpu.jit import njit
from ngsgpu.taxonomy.tree import GENUS, SPECIES

_BINS = 101
MIN_PERCENT: Final = 8
"""Minimum per cent of a read's features for it to count as evidence."""

REJECTED: Final = 0
GENUS_ACCEPTED: Final = 1
ACCEPTED: Final = 2
"""Acceptance of a reference sequence: rejected, its genus, its species."""


@dataclass(frozen=True, slots=True)
class EvidenceParameters:
    """Thresholds for accepting a species.

    Attributes:
        species_evidence: minimum median fraction of hit features; 0 accepts all in a single pass.
        genus_evidence: the same for a genus, judged by its best species.
        doubtful_confidence: minimum fraction of hit features for reads with only rejected species
            close to the best.
    """

    species_evidence: float = 0.0
    genus_evidence: float = 0.2
    doubtful_confidence: float = 0.2

    def __post_init__(self) -> None:
        for option, value in (
            ("--species-evidence", self.species_evidence),
            ("--genus-evidence", self.genus_evidence),
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
        self._genus = np.where(nodes < 0, np.int32(-1), lineages[nodes, GENUS])
        self.species = np.where(species < 0, -1, numbers).astype(np.int32)
        self._min_hits = np.int64(min_hits)
        self.counts = np.zeros((len(nodes), _BINS), dtype=np.int64)

    def add(self, best: CandidateArrays, features: NDArray[np.int64]) -> None:
        """Add reads; threads may not add at the same time."""
        _count(best.target, best.hits, features, self.species, self._min_hits, self.counts)

    def medians(self) -> dict[int, int]:
        """Evidence by species, in per cent, of those that have any."""
        counts = self.counts.copy()
        counts[:, :MIN_PERCENT] = 0
        total = counts.sum(axis=1)
        below = np.cumsum(counts, axis=1)
        median = np.argmax(below > (total[:, None] - 1) // 2, axis=1)
        return {
            int(node): int(found)
            for node, found, reads in zip(self._nodes, median, total, strict=True)
            if node >= 0 and reads > 0
        }

    def accepted(self, parameters: EvidenceParameters) -> NDArray[np.uint8]:
        """Acceptance of each reference sequence: uint8[t], see ``ACCEPTED``."""
        medians = self.medians()
        evidence = np.array([medians.get(node, -1) for node in self._nodes.tolist()])
        evidence *= PER_MILLION // 100
        of_genus: dict[int, int] = {}
        for genus, own in zip(self._genus.tolist(), evidence.tolist(), strict=True):
            of_genus[genus] = max(own, of_genus.get(genus, -1))
        in_genus = np.array([of_genus[genus] for genus in self._genus.tolist()])
        is_species = (self._nodes < 0) | (evidence >= _millionths(parameters.species_evidence))
        # A species that has no genus leaves none to doubt.
        is_genus = (self._genus < 0) | (in_genus >= _millionths(parameters.genus_evidence))
        levels = np.where(is_species, ACCEPTED, np.where(is_genus, GENUS_ACCEPTED, REJECTED))
        levels = levels.astype(np.uint8)
        return np.where(self.species < 0, np.uint8(ACCEPTED), levels[np.maximum(self.species, 0)])


def _millionths(share: float) -> int:
    return round(share * PER_MILLION)


def weigh(
    best: CandidateArrays, accepted: NDArray[np.uint8], rules: QueryRules
) -> tuple[CandidateArrays, NDArray[np.uint8]]:
    """Drop candidates of rejected species if one of an accepted species is close to the best.

    Returns:
        The candidates, and the highest acceptance of those close to the best, uint8[n];
        ``ACCEPTED`` for reads without candidates.
    """
    left = best.copy()
    acceptance = np.full(len(best.target), ACCEPTED, dtype=np.uint8)
    _weigh(left, accepted, np.int64(rules.min_hits), np.int64(rules.difference), acceptance)
    return left, acceptance


def raise_rank(
    call: NDArray[np.int32],
    acceptance: NDArray[np.uint8],
    hits: NDArray[np.int32],
    features: NDArray[np.int64],
    target_node: NDArray[np.int32],
    lineages: NDArray[np.int32],
    highest: int,
    least: int,
) -> None:
    """Raise calls of reads with only rejected species to above species or genus, or discard them.

    Args:
        call: int32[n], changed.
        acceptance: uint8[n], of the candidates close to the best.
        hits: int32[n], of the best candidate.
        features: int64[n], of the read.
        target_node: int32[t].
        lineages: int32[nodes, ranks].
        highest: highest rank of calls.
        least: minimum fraction of hit features, in millionths.
    """
    rows = np.flatnonzero((acceptance < ACCEPTED) & (call >= 0))
    enough = hits[rows].astype(np.int64) * PER_MILLION >= features[rows] * least
    call[rows[~enough]] = -1
    rows = rows[enough]
    nodes = len(lineages)
    is_sequence = call[rows] >= nodes
    node = np.where(is_sequence, target_node[np.maximum(call[rows] - nodes, 0)], call[rows])
    call[rows[node < 0]] = -1
    is_known = node >= 0
    rows, node, is_sequence = rows[is_known], node[is_known], is_sequence[is_known]
    rejected = np.where(acceptance[rows] == GENUS_ACCEPTED, SPECIES, GENUS)[:, None]
    rank, lineage = np.arange(lineages.shape[1]), lineages[node]
    above = (lineage >= 0) & (rank > rejected) & (rank <= highest)
    lifted = np.where(above.any(axis=1), lineage[np.arange(len(rows)), above.argmax(axis=1)], -1)
    lowest = np.argmax(lineage >= 0, axis=1)
    is_low = is_sequence | (lowest <= rejected[:, 0])
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
def _weigh(best, accepted, min_hits, difference, acceptance):  # type: ignore[no-untyped-def]
    """Move accepted species to the front in rows with one close to the best; clear the others."""
    target, hits, window_begin, window_end, taxon = best
    most = target.shape[1]
    for i in range(target.shape[0]):
        if target[i, 0] < 0:
            continue
        threshold = (np.int64(hits[i, 0]) - min_hits) * difference
        near = REJECTED
        for j in range(most):
            if target[i, j] < 0 or (j > 0 and np.int64(hits[i, j]) * 1000000 <= threshold):
                break
            near = max(near, accepted[target[i, j]])
        acceptance[i] = near
        if near < ACCEPTED:
            continue
        place = 0
        for j in range(most):
            if target[i, j] >= 0 and accepted[target[i, j]] == ACCEPTED:
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


class CoverageCounter:
    """Marks covered windows; one byte per window of the database.

    Args:
        windows: int64[t], windows of each reference sequence (``Labels.windows``).
        min_hits: minimum hits of a candidate to count.

    Attributes:
        first_window: int64[t + 1], where each sequence's windows begin, and the end of the last.
        marks: uint8, 1 for each covered window, concatenated over the sequences.
    """

    def __init__(self, windows: NDArray[np.int64], min_hits: int) -> None:
        self._windows = np.asarray(windows, dtype=np.int64)
        self.first_window = np.concatenate([[0], np.cumsum(self._windows)]).astype(np.int64)
        self._min_hits = min_hits
        self.marks = np.zeros(int(self.first_window[-1]), dtype=np.uint8)

    def add(self, candidates: CandidateArrays) -> None:
        """Mark the windows in the ranges of candidates; threads may not add at the same time."""
        _mark(
            candidates.target, candidates.hits, candidates.window_begin, candidates.window_end,
            self.first_window, np.int32(self._min_hits), self.marks,
        )  # fmt: skip

    def covered(self) -> NDArray[np.int64]:
        """Covered windows of each reference sequence, int64[t]."""
        sums = np.concatenate([[0], np.cumsum(self.marks, dtype=np.int64)])
        first = self.first_window
        return np.asarray(sums[first[1:]] - sums[first[:-1]], dtype=np.int64)

    def dropped(self, share: float) -> NDArray[np.bool_]:
        """Which reference sequences the filter drops, bool[t]; see `drop_sparse`."""
        return drop_sparse(self.covered(), self._windows, share)


def drop_sparse(
    covered: NDArray[np.int64], windows: NDArray[np.int64], share: float
) -> NDArray[np.bool_]:
    """Which reference sequences the filter drops.

    Args:
        covered: int64[t], windows that are covered.
        windows: int64[t], all windows.
        share: of the sum of all coverages, 0 to below 1.

    Returns:
        bool[t]; sequences without any covered window are dropped, too.

    Raises:
        UsageError: a share that makes no sense.
    """
    if not 0 <= share < 1:
        raise UsageError("the share of the coverage filter must be from 0 to below 1")
    coverage = covered / np.maximum(windows, 1)
    order = np.argsort(coverage, kind="stable")
    sums = np.cumsum(coverage[order])
    dropped = np.zeros(len(coverage), dtype=np.bool_)
    if len(sums) > 0:
        dropped[order] = (sums <= share * sums[-1]) | (coverage[order] == 0)
    return dropped


@njit(nogil=True, cache=True)
def _mark(target, hits, window_begin, window_end, first, min_hits, covered):  # type: ignore[no-untyped-def]
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            best = target[i, j]
            if best >= 0 and hits[i, j] >= min_hits:
                start = first[best]
                for window in range(window_begin[i, j], window_end[i, j] + 1):
                    covered[start + window] = 1
