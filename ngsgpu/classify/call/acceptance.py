"""Calls of reads when it is known which species a sample contains; it follows ``evidence``.

For each read:

1. If an accepted candidate is near the best, rejected ones are ignored, and so are accepted ones
   of species with less than a third of the reads of another species near the best. But those of
   another genus than the best one that is left are not if they have as many hits (where that has
   up to ``few_hits`` one less, from ``many_hits`` on one more) and their species would pass if no
   relative explained it: they raise the call above both genera, since the read may come from
   either. The read is called as usual, at species level only if the fraction of its k-mers is at
   least 0.16 of the evidence for the species.
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
        passes: uint8[t], whether the species was accepted, or would be if no relative explained it.
    """

    level: NDArray[np.uint8]
    reads: NDArray[np.int64]
    least: NDArray[np.int32]
    passes: NDArray[np.uint8]


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
    margin = rules.near_hits + (hits <= rules.few_hits) - (hits >= rules.many_hits)
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
    target_node: NDArray[np.int32],
    lineages: NDArray[np.int32],
    acceptance: NDArray[np.uint8],
) -> None:
    """Drop candidates of rejected and of rare species if there are others near the best.

    The best of those that stay comes first, also if one of another genus has more hits.

    Args:
        best: candidates of the reads; changed.
        accepted: species of the sample that were accepted or rejected.
        rules: thresholds of the queries.
        target_node: int32[t].
        lineages: int32[nodes, ranks].
        acceptance: uint8[n], output: the highest acceptance of those near the best; ``ACCEPTED``
            for reads without candidates.
    """
    target, hits = best.target, best.hits
    level, reads, _, passes = accepted
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
        first: Integer = 0
        while not stays(target[i, first], level, reads, most_reads):
            first += 1
        for j in range(first, 0, -1):
            _exchange(best, i, j, j - 1)
        genus = genus_of(target[i, 0], target_node, lineages)
        enough = hits[i, 0] - (hits[i, 0] <= rules.few_hits) + (hits[i, 0] >= rules.many_hits)
        place = 0
        for j in range(most):
            own = target[i, j]
            if own < 0:
                break
            is_rival = hits[i, j] >= enough and passes[own] != 0
            is_rival &= genus_of(own, target_node, lineages) != genus
            if is_rival or stays(own, level, reads, most_reads):
                _exchange(best, i, place, j)
                place += 1
        for j in range(place, most):
            target[i, j] = -1
            hits[i, j] = 0


@njit(nogil=True, cache=True, inline="always")
def stays(target, level, reads, most_reads):  # type: ignore[no-untyped-def]
    """Whether a candidate is of an accepted species that is not much rarer than another."""
    return level[target] >= ACCEPTED and not 0 <= reads[target] * TIMES_LESS < most_reads


@njit(nogil=True, cache=True, inline="always")
def genus_of(target, target_node, lineages):  # type: ignore[no-untyped-def]
    """The genus of a reference sequence, or -1."""
    node = target_node[target]
    return np.int64(lineages[node, GENUS]) if node >= 0 else np.int64(-1)


@njit(nogil=True, cache=True)
def _exchange(best: CandidateArrays, read: Integer, one: Integer, other: Integer) -> None:
    """Exchange two candidates of a read."""
    if one == other:
        return
    for values in best:
        if values.shape[1] > 0:
            values[read, one], values[read, other] = values[read, other], values[read, one]


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
