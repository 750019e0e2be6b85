"""What is known of each species that reads of a sample look like, for people to judge.

Identities here are shown, not decided by: ``ngsgpu.classify.call.evidence`` decides in integers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.acceptance import ACCEPTED
from ngsgpu.classify.call.coverage import sums_by_sequence
from ngsgpu.classify.call.evidence import OWN, SHARED, SpeciesEvidence
from ngsgpu.classify.params import PER_MILLION, EvidenceParameters


class Verdict(NamedTuple):
    """A species.

    Attributes:
        node: of the taxonomy.
        level: acceptance.
        reads: with the best candidates from this species alone.
        own: reads with all candidates near the best from this species.
        shared: reads with some of these from it and some from others.
        identity: to the reference sequences.
        low: lower end of the interval that holds it in 19 of 20 samples.
        high: its upper end.
        note: ``few reads``, ``explained`` by a relative, ``accident`` (too likely by chance), or
            ``ambiguous``: the interval contains the threshold; empty otherwise.
        windows: of its reference sequences.
        covered: of these, in the range of a called read's best candidate.
        evenness: ``covered`` by what is expected of as many ranges anywhere in the species.
        chance: probability of as many reads or more if those of rejected species were spread over
            the database by length.
    """

    node: int
    level: int
    reads: int
    own: int
    shared: int
    identity: float
    low: float
    high: float
    note: str
    windows: int
    covered: int
    evenness: float
    chance: float


def verdicts(
    evidence: SpeciesEvidence,
    parameters: EvidenceParameters,
    kmer: int,
    windows: NDArray[np.int64],
    window_reads: NDArray[np.int32],
) -> list[Verdict]:
    """Verdicts on the species with reads, most reads first.

    Args:
        evidence: of the sample.
        parameters: thresholds.
        kmer: length of k-mers.
        windows: int64[t], windows of each reference sequence, as ``evidence`` has them.
        window_reads: int32, see ``SampleTotals``.
    """
    found = evidence.findings(parameters, kmer)
    own_counts = evidence.counts[:, OWN]
    total = evidence.windows
    covered = evidence.of_species(sums_by_sequence(window_reads > 0, windows))
    ranges = evidence.of_species(sums_by_sequence(window_reads, windows))
    chances = evidence.chances(found.reads, (found.levels == ACCEPTED) | found.accident)
    rows = []
    for at in np.argsort(-found.reads, kind="stable").tolist():
        reads = int(found.reads[at])
        if reads == 0:
            break
        low, middle, high = (_identity(share, found.kept, kmer) for share in evidence.interval(at))
        note = ""
        if not found.enough[at]:
            note = "few reads"
        elif found.explained[at]:
            note = "explained"
        elif found.accident[at]:
            note = "accident"
        elif low < parameters.species_identity <= high:
            note = "ambiguous"
        expected = total[at] * -math.expm1(-ranges[at] / max(total[at], 1))
        rows.append(
            Verdict(
                node=int(found.nodes[at]), level=int(found.levels[at]), reads=reads,
                own=int(own_counts[at]), shared=int(evidence.counts[at, SHARED]),
                identity=middle, low=low, high=high, note=note, windows=int(total[at]),
                covered=int(covered[at]),
                evenness=float(covered[at] / expected) if expected > 0 else 0.0,
                chance=float(chances[at]),
            )
        )  # fmt: skip
    return rows


def _identity(share: float, kept: int, kmer: int) -> float:
    """Identity at which this fraction of k-mers is shared."""
    return float(min(share * PER_MILLION / kept, 1.0) ** (1 / kmer))
