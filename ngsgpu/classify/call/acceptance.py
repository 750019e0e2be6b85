"""Calls of reads when it is known which species a sample contains; it follows ``evidence``.

For each read:

1. If an accepted candidate is near the best, rejected ones are ignored, and so are accepted ones
   of species with less than a third of the reads of another species near the best. The read is
   called as usual, at species level only if the fraction of its k-mers is at least 0.16 of the
   evidence for the species.
2. Otherwise it is called as usual, but at the next rank of the lineage above species. If the genera
   of all near candidates are rejected as well, it is not called at genus level either. Below
   ``doubtful_confidence`` it stays unclassified.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import PER_MILLION, QueryRules
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.jit import Integer, njit
from ngsgpu.taxonomy.ranks import GENUS, SPECIES

REJECTED: Final = 0
GENUS_ACCEPTED: Final = 1
ACCEPTED: Final = 2
"""Acceptance of a reference sequence: rejected, its genus, its species."""

TIMES_LESS: Final = 3
"""Candidates of species with less than a third of the reads of another near the best give way."""


class Acceptance(NamedTuple):
    """What the first pass found out about reference sequences.

    Attributes:
        level: uint8[t], see ``ACCEPTED``.
        reads: int64[t], reads of the species; -1 of those without one.
        least: int32[t], fraction of shared k-mers that a call at species level needs, millionths.
    """

    level: NDArray[np.uint8]
    reads: NDArray[np.int64]
    least: NDArray[np.int32]


@njit(nogil=True, cache=True, inline="always")
def above_chance(hits: Integer, rules: QueryRules) -> Integer:
    """Hits above those of chance, as ``HitScale`` counts."""
    return np.int64(hits) * rules.unit - rules.chance


@njit(nogil=True, cache=True)
def reaches(hits: Integer, expected: Integer, rules: QueryRules, least: Integer) -> bool:
    """Whether hits above chance are at least a fraction, in millionths, of what is expected."""
    return bool(above_chance(hits, rules) * PER_MILLION >= expected * least)


@njit(nogil=True, cache=True)
def near_to(hits: Integer, rules: QueryRules) -> Integer:
    """Hits, in millionths, above which candidates are near one with ``hits``."""
    margin = rules.near_hits + (hits <= rules.few_hits)
    return (np.int64(hits) - margin) * rules.difference


@njit(nogil=True, cache=True)
def raise_rank(
    call: NDArray[np.int32],
    acceptance: NDArray[np.uint8],
    hits: NDArray[np.int32],
    expected: NDArray[np.int64],
    target_node: NDArray[np.int32],
    lineages: NDArray[np.int32],
    rules: QueryRules,
    least: Integer,
) -> None:
    """Raise calls of reads with only rejected species to above species or genus, or discard them.

    Args:
        call: int32[n], changed.
        acceptance: uint8[n], of the candidates near the best.
        hits: int32[n], of the best candidate.
        expected: int64[n], see ``expected_hits``.
        target_node: int32[t].
        lineages: int32[nodes, ranks].
        rules: highest rank of calls, and the unit of ``expected``.
        least: minimum fraction of shared k-mers, in millionths.
    """
    nodes, ranks = lineages.shape
    for i in range(call.size):
        if call[i] < 0 or acceptance[i] >= ACCEPTED:
            continue
        node = call[i] if call[i] < nodes else target_node[call[i] - nodes]
        if node < 0 or not reaches(hits[i], expected[i], rules, least):
            call[i] = -1
            continue
        rejected = SPECIES if acceptance[i] == GENUS_ACCEPTED else GENUS
        lowest = 0
        while lowest < ranks and lineages[node, lowest] < 0:
            lowest += 1
        if call[i] < nodes and rejected < lowest < ranks:
            continue
        call[i] = -1
        for rank in range(rejected + 1, min(rules.highest + 1, ranks)):
            if lineages[node, rank] >= 0:
                call[i] = lineages[node, rank]
                break


@njit(nogil=True, cache=True)
def weigh(
    best: CandidateArrays,
    accepted: Acceptance,
    rules: QueryRules,
    acceptance: NDArray[np.uint8],
) -> None:
    """Drop candidates of rejected and of rare species if there are others near the best.

    Args:
        best: candidates of the reads; changed.
        accepted: species of the sample that were accepted or rejected.
        rules: thresholds of the queries.
        acceptance: uint8[n], output: the highest acceptance of those near the best; ``ACCEPTED``
            for reads without candidates.
    """
    target, hits, window_begin, window_end, taxon = best
    level, reads, _ = accepted
    most = target.shape[1]
    for i in range(target.shape[0]):
        acceptance[i] = ACCEPTED
        if target[i, 0] < 0:
            continue
        near = REJECTED
        for j in range(most):
            if target[i, j] < 0 or (
                j > 0 and np.int64(hits[i, j]) * PER_MILLION <= near_to(hits[i, 0], rules)
            ):
                break
            near = max(near, level[target[i, j]])
        acceptance[i] = near
        if near < ACCEPTED:
            continue
        most_reads = most_reads_near(target[i], hits[i], level, reads, rules)
        place = 0
        for j in range(most):
            own = target[i, j]
            if own < 0 or level[own] < ACCEPTED or 0 <= reads[own] * TIMES_LESS < most_reads:
                continue
            target[i, place] = own
            hits[i, place] = hits[i, j]
            window_begin[i, place] = window_begin[i, j]
            window_end[i, place] = window_end[i, j]
            if taxon.shape[1] == most:
                taxon[i, place] = taxon[i, j]
            place += 1
        for j in range(place, most):
            target[i, j] = -1
            hits[i, j] = 0


@njit(nogil=True, cache=True)
def most_reads_near(target, hits, level, reads, rules):  # type: ignore[no-untyped-def]
    """The most reads of a species with a candidate near the best accepted one, or -1."""
    found = np.int64(-1)
    first: Integer = -1
    for j in range(target.size):
        if target[j] < 0:
            break
        if level[target[j]] < ACCEPTED:
            continue
        if first < 0:
            first = hits[j]
        elif np.int64(hits[j]) * PER_MILLION <= near_to(first, rules):
            break
        found = max(found, reads[target[j]])
    return found
