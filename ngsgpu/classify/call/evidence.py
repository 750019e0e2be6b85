"""Which species a sample contains, by the estimated identity of its reads to their references.

Reads of a species without reference sequences hit those of its relatives, with fewer hits each:
genomes of different species differ in about 5 % of their bases or more, and each difference costs
up to k k-mers. A single read cannot distinguish this from errors; all reads of a species together
can. So, before reads are called:

1. A read shares the fraction (hits - 1) / (expected - 1) of its k-mers with a candidate, where
   ``expected`` are the hits of the read in an identical sequence
   (``expected_hits``). One hit is chance.
2. The evidence for a species is the median of this fraction over the reads with at least
   ``near_hits`` hits whose best candidates are all from this species; in a database with a
   fraction of the features it is estimated as in ``few_features``. The identity of the species
   to its references is (evidence / c) ** (1 / k), where c allows for errors in reads: the highest
   evidence of a species with many reads, at least 0.8, or what ``read_errors`` says.
3. A species of at least ``species_identity`` passes; the class of the evidence has to reach it
   with its upper end. A species that shares more than three times as many of its reads with others
   as it has alone (in a database with a fraction of the features, where only ties count as shared,
   more than it has alone), half of them or more with another species of its family that passes,
   and a third or less as many alone as that one, is explained by it and does not: its reads come
   from sequences that a strain of the other species has in common with it. Nor does one with few
   reads (10, or a 500th of all). A genus is accepted if a species of at least ``genus_identity``
   that no species of another genus explains is in it. Sequences without a species are accepted.
   With ``max_accident``, a species does not pass either if as many reads are likelier than that
   when the reads of all species that do not pass are spread over the database by length.

What this means for each read is in ``acceptance``.

All counts are integers, so that neither threads nor partitions affect the result; logarithms and
powers only turn options into fractions of k-mers and fractions into identities to be shown.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.chance import at_least
from ngsgpu.classify.call.acceptance import (
    ACCEPTED,
    GENUS_ACCEPTED,
    REJECTED,
    Acceptance,
    above_chance,
    near_to,
)
from ngsgpu.classify.call.few_features import CLASSES, LEAST_HITS, class_of, last_above
from ngsgpu.classify.params import PER_MILLION, EvidenceParameters, QueryRules
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.jit import njit
from ngsgpu.taxonomy.ranks import FAMILY, GENUS, SPECIES

SHARES: Final = 201
"""Bins of fractions of k-mers: half per cent each; the last holds 1 and above."""
OWN: Final = SHARES
SHARED: Final = SHARES + 1
"""Columns of reads with candidates near the best from this species alone, and from others, too."""
SHARED_WITH: Final = SHARES + 2
PARTNERS: Final = 32
COLUMNS: Final = SHARED_WITH + PARTNERS
"""From ``SHARED_WITH`` on, the latter by the other species, whose numbers are taken modulo
``PARTNERS``: relatives, which have neighbouring numbers, seldom coincide."""
_MIDDLES: Final = np.minimum(
    (2 * np.arange(SHARES) + 1) * (PER_MILLION // (2 * (SHARES - 1))), PER_MILLION
)
"""Of the bins, in millionths."""
_HALF_BIN: Final = PER_MILLION // (2 * (SHARES - 1))
_SHARES: Final = tuple((_MIDDLES / PER_MILLION).tolist())

LEAST_KEPT: Final = 800_000
"""Fraction of k-mers, in millionths, that errors leave at least, if ``read_errors`` is not given:
about 1.4 % of the bases are wrong."""
MANY_READS: Final = 20
"""Reads, and per cent of all reads, from which on a species counts for the errors in reads."""
ENOUGH_READS: Final = 10
FEW: Final = 500
"""A species has enough reads from ``ENOUGH_READS`` on, or from a 500th of all; a genus if one of
its species has half of that."""
TIMES_MORE: Final = 3
"""Times as many reads alone as of another species are those of a species that explains it."""
TIMES_SHARED: Final = 3
"""Times as many reads shared with others as alone are those of a species that may be explained;
once where only ties are near the best."""
LEAST_PERCENT: Final = 16
"""Per cent of the evidence for a species that a read needs for a call at this level."""


class Findings(NamedTuple):
    """What the first pass found out about species.

    Attributes:
        nodes: int32[species], -1 for reference sequences without one.
        levels: int64[species], see ``ACCEPTED``.
        medians: int64[species], evidence in millionths.
        reads: int64[species], with the best candidates from this species alone.
        enough: bool[species], whether there are enough of them.
        explained: bool[species], whether a relative explains them.
        accident: bool[species], rejected for ``max_accident`` alone.
        kept: fraction of k-mers that errors leave, in millionths.
    """

    nodes: NDArray[np.int32]
    levels: NDArray[np.int64]
    medians: NDArray[np.int64]
    reads: NDArray[np.int64]
    enough: NDArray[np.bool_]
    explained: NDArray[np.bool_]
    accident: NDArray[np.bool_]
    kept: int


def errors_that_leave(kept: int, kmer: int) -> float:
    """Errors per base that leave a fraction of k-mers, in millionths."""
    return 1 - float((kept / PER_MILLION) ** (1 / kmer))


class SpeciesEvidence:
    """Collects the evidence for the species of a sample.

    Args:
        target_node: int32[t], each reference sequence's taxon, or -1.
        lineages: int32[n, ranks], see ``Taxonomy.ranked_lineages``.
        rules: when a read counts, and which candidates are near the best.
        windows: int64[t], windows of each reference sequence; None: as many of each.

    Attributes:
        species: int32[t], number of each reference sequence's species, or -1.
        counts: int64[species, COLUMNS], reads by species and fraction of shared k-mers in half
            per cent, or class of ``few_features``, then those in ``OWN``, ``SHARED`` and
            ``SHARED_WITH``.
        windows: int64[species], of its reference sequences.
        is_thin: whether the database has a fraction of the features, of which chance hits less than
            one. A hit stands for several then: only candidates with as many are near the best.
        looked_up: int64[2], features of all reads, and hits that are expected, as ``HitScale``
            counts; for a database with a fraction of the features.
    """

    def __init__(
        self,
        target_node: NDArray[np.int32],
        lineages: NDArray[np.int32],
        rules: QueryRules,
        windows: NDArray[np.int64] | None = None,
    ) -> None:
        species = np.where(target_node < 0, np.int32(-1), lineages[target_node, SPECIES])
        nodes, numbers = np.unique(species, return_inverse=True)
        self._nodes = nodes
        self._genus = np.where(nodes < 0, np.int32(-1), lineages[nodes, GENUS])
        family = np.where(nodes < 0, np.int32(-1), lineages[nodes, FAMILY])
        self._family = np.where(family < 0, self._genus, family)
        self.species = np.where(species < 0, -1, numbers).astype(np.int32)
        self.is_thin = rules.chance < rules.unit
        self.rules = rules.by_ties() if self.is_thin else rules
        self.counts = np.zeros((len(nodes), COLUMNS), dtype=np.int64)
        self.looked_up = np.zeros(2, dtype=np.int64)
        self.windows = self.of_species(np.ones_like(target_node) if windows is None else windows)

    def of_species(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Values of reference sequences, added up by species."""
        is_known = self.species >= 0
        return np.bincount(self.species[is_known], values[is_known], len(self._nodes)).astype(
            np.int64
        )

    def add(
        self, best: CandidateArrays, expected: NDArray[np.int64], features: NDArray[np.int64]
    ) -> None:
        """Add reads; threads may not add at the same time.

        Args:
            best: their candidates.
            expected: int64[n], see ``expected_hits``.
            features: int64[n], of the reads.
        """
        _count(best.target, best.hits, expected, features, self.species, self.rules, self.counts)
        self.looked_up += (features.sum(), (expected + self.rules.chance).sum())

    def found(self) -> float:
        """Probability to find a feature of a read in an identical sequence."""
        features, expected = self.looked_up.tolist()
        return min(expected / max(features * self.rules.unit, 1), 1.0)

    def medians(self) -> NDArray[np.int64]:
        """Evidence for each species in millionths (the middle of its bin), 0 without any."""
        counts = self.counts[:, :SHARES]
        if self.is_thin:
            classes = counts[:, :CLASSES]
            place = last_above(classes, self.found(), _SHARES)
            return np.where(classes.any(axis=1), _MIDDLES[place], 0)
        total = counts.sum(axis=1)
        below = np.cumsum(counts, axis=1)
        median = np.argmax(below > (total[:, None] - 1) // 2, axis=1)
        return np.where(total > 0, _MIDDLES[median], 0)

    def interval(self, species: int) -> tuple[float, float, float]:
        """Evidence for a species, between ends that hold it in 19 of 20 samples; fractions."""
        counts = self.counts[species, :SHARES]
        reads = int(counts.sum())
        if self.is_thin:
            # Ranks among what is expected have a standard deviation of sqrt(1 / 12) at most.
            width = round(PER_MILLION / math.sqrt(3 * reads))
            own = counts[None, :CLASSES]
            places = [
                int(last_above(own, self.found(), _SHARES, more)[0]) for more in (width, 0, -width)
            ]
        else:
            below = np.cumsum(counts)
            ranks = [(reads - 1) // 2 + step * math.isqrt(reads) for step in (-1, 0, 1)]
            places = [
                int(np.searchsorted(below, min(max(rank, 0), reads - 1), side="right"))
                for rank in ranks
            ]
        low, middle, high = ((2 * place + 1) / (2 * (SHARES - 1)) for place in places)
        return low, middle, high

    def kept_by_errors(self, parameters: EvidenceParameters, kmer: int) -> int:
        """Fraction of k-mers that errors in reads leave, in millionths."""
        if parameters.read_errors is not None:
            return max(1, round(parameters.left_by_errors(kmer) * PER_MILLION))
        return max(self._best_of_many(), LEAST_KEPT)

    def _best_of_many(self) -> int:
        """Highest evidence of a species with many reads, in millionths; all without one."""
        reads = self.counts[:, :SHARES].sum(axis=1)
        many = (self._nodes >= 0) & (reads >= MANY_READS) & (reads * 100 >= reads.sum())
        return int(self.medians()[many].max(initial=0)) if many.any() else PER_MILLION

    def errors_or_strangers(self, parameters: EvidenceParameters, kmer: int) -> float:
        """Errors per base that would explain the evidence for the best species with many reads.

        0 if they are stated, or no more than is allowed for. A species of which the database has
        another strain, or only a relative, looks the same.
        """
        best = self._best_of_many()
        if parameters.read_errors is not None or best >= LEAST_KEPT:
            return 0.0
        return errors_that_leave(best, kmer)

    def findings(self, parameters: EvidenceParameters, kmer: int) -> Findings:
        """What the thresholds make of the evidence.

        Args:
            parameters: thresholds.
            kmer: length of k-mers.
        """
        medians = self.medians()
        reads = np.where(self._nodes < 0, 0, self.counts[:, :SHARES].sum(axis=1))
        kept, total = self.kept_by_errors(parameters, kmer), int(reads.sum())

        def at_least(identity: float) -> NDArray[np.bool_]:
            return (medians + _HALF_BIN) * PER_MILLION >= round(identity**kmer * PER_MILLION) * kept

        enough = (reads >= ENOUGH_READS) | (reads * FEW >= total)
        passes = (reads > 0) & enough & at_least(parameters.species_identity)
        explained, by_other_genus = self._explained(passes)
        some = (reads >= ENOUGH_READS // 2) | (reads * 2 * FEW >= total)
        for_genus = (reads > 0) & some & at_least(parameters.genus_identity) & ~by_other_genus
        # A species that has no genus leaves none to doubt.
        is_genus = (self._genus < 0) | np.isin(self._genus, self._genus[for_genus])
        is_species = (self._nodes < 0) | (passes & ~explained)
        accident = np.zeros(len(reads), dtype=np.bool_)
        if parameters.max_accident < 1:
            likely = self.chances(reads, is_species) > parameters.max_accident
            accident = is_species & (self._nodes >= 0) & likely
        levels = np.where(is_genus, GENUS_ACCEPTED, REJECTED)
        levels[is_species & ~accident] = ACCEPTED
        return Findings(self._nodes, levels, medians, reads, enough, explained, accident, kept)

    def chances(
        self, reads: NDArray[np.int64], is_species: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Probability of as many reads by chance, float64[species].

        Args:
            reads: int64[species].
            is_species: bool[species]; the reads of all others are spread over the database.
        """
        strays, total = int(reads[~is_species].sum()), max(int(self.windows.sum()), 1)
        found = np.ones(len(reads))
        for at in np.flatnonzero(reads).tolist():
            found[at] = at_least(int(reads[at]), strays * (int(self.windows[at]) / total))
        return found

    def accepted(self, parameters: EvidenceParameters, kmer: int) -> Acceptance:
        """Acceptance of each reference sequence; arguments as of ``findings``."""
        found = self.findings(parameters, kmer)
        own = np.maximum(self.species, 0)

        def of_targets(values: NDArray[Any], otherwise: int) -> NDArray[Any]:
            return np.where(self.species < 0, otherwise, values[own] if len(values) else 0)

        return Acceptance(
            of_targets(found.levels, ACCEPTED).astype(np.uint8),
            of_targets(found.reads, -1).astype(np.int64),
            of_targets(found.medians * LEAST_PERCENT // 100, 0).astype(np.int32),
            of_targets((found.levels == ACCEPTED) | found.explained, 1).astype(np.uint8),
        )

    def _explained(self, passes: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Species that a relative explains, and those that only one of another genus does."""
        own, shared = self.counts[:, OWN], self.counts[:, SHARED]
        partners = np.arange(len(own)) % PARTNERS
        least = own if self.is_thin else TIMES_SHARED * own
        explained = np.zeros(len(own), dtype=np.bool_)
        by_other = np.zeros(len(own), dtype=np.bool_)
        for at in np.flatnonzero(passes & (least < shared) & (self._family >= 0)).tolist():
            relatives = passes & (self._family == self._family[at])
            relatives &= (own >= TIMES_MORE * own[at]) & (own > own[at])
            relatives &= 2 * self.counts[at, SHARED_WITH + partners] >= shared[at]
            explained[at] = relatives.any()
            same = self._genus == self._genus[at]
            by_other[at] = explained[at] and not (relatives & same).any()
        return explained, by_other


@njit(nogil=True, cache=True)
def _count(  # type: ignore[no-untyped-def]
    target, hits, expected, features, species, rules, counts
):
    """Count reads by species."""
    is_thin = rules.chance < rules.unit
    for i in range(target.shape[0]):
        if target[i, 0] < 0 or hits[i, 0] < rules.near_hits:
            continue
        mine = species[target[i, 0]]
        alone = is_own = True
        for j in range(1, target.shape[1]):
            if target[i, j] < 0:
                break
            if species[target[i, j]] == mine:
                continue
            alone = alone and hits[i, j] < hits[i, 0]
            is_own = is_own and np.int64(hits[i, j]) * PER_MILLION <= near_to(hits[i, 0], rules)
        if alone and mine >= 0 and is_thin:
            if hits[i, 0] >= LEAST_HITS:
                counts[mine, class_of(features[i], np.int64(hits[i, 0]))] += 1
        elif alone and mine >= 0:
            share = above_chance(hits[i, 0], rules) * (SHARES - 1) // expected[i]
            counts[mine, min(share, SHARES - 1)] += 1
        if hits[i, 0] < rules.min_hits:
            continue
        if is_own:
            if mine >= 0:
                counts[mine, OWN] += 1
            continue
        near = 1
        while (
            near < target.shape[1]
            and target[i, near] >= 0
            and (np.int64(hits[i, near]) * PER_MILLION > near_to(hits[i, 0], rules))
        ):
            near += 1
        for j in range(near):
            own = species[target[i, j]]
            if not _is_first(target[i], species, j):
                continue
            counts[own, SHARED] += 1
            for other in range(near):
                if other != j and _is_first(target[i], species, other):
                    with_it = species[target[i, other]] % PARTNERS
                    counts[own, SHARED_WITH + with_it] += 1


@njit(nogil=True, cache=True)
def _is_first(target, species, place):  # type: ignore[no-untyped-def]
    """Whether no candidate before one is from its species, which it has."""
    own = species[target[place]]
    for before in range(place):
        if species[target[before]] == own:
            return False
    return own >= 0
