"""Calls by the fit of a sample: the lowest taxon that a read is from with enough probability.

A read's candidates are weighed by what the fit says of their sources (shares of each divergence)
and by the read's hits. Strains count for their source, relatives for its genus or, beyond
``GENUS_BOUNDARY``, for its family; what is related to none counts for nothing. The call is the
lowest taxon of the heaviest candidate's lineage that holds ``posterior`` of the whole. A read whose
list of candidates is cut off amid equals is called as what all of these have in common.

All of it is in integers: logarithms are looked up in tables, powers of two are shifted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.classes import SUBSTITUTIONS, Sources, scaled
from ngsgpu.classify.call.fit import NEVER, Fit
from ngsgpu.classify.call.likelihood import COMPONENTS, LEAST_HITS, LEVELS, OCTAVE, STRAINS
from ngsgpu.classify.params import PER_MILLION, EvidenceParameters, QueryRules
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.jit import njit
from ngsgpu.taxonomy.ranks import FAMILY, GENUS

GENUS_BOUNDARY: Final = 2.2
"""Divergence up to which relatives are of the same genus, in units of that of a species' boundary:
11 %."""
_ONE_BITS: Final = 30
POWERS: Final[NDArray[np.int64]] = np.rint(2.0 ** (_ONE_BITS - np.arange(OCTAVE) / OCTAVE)).astype(
    np.int64
)
"""Two to the power of minus each part of an octave."""
KINDS: Final = 3
"""Strains, relatives of the genus, relatives of the family."""


class Weights(NamedTuple):
    """A fit, in the kernels' form.

    Attributes:
        row: int32[sources], of each in ``weights``; -1 without reads.
        of_target: int32[t], each reference sequence's source.
        weights: int32[n, COMPONENTS], logarithms of shares.
        log2: int32[LEVELS + 1, LEVELS + 1, COMPONENTS + 1], see ``Likelihoods``.
        unknown: logarithm of the share of what is related to none.
        genus: int32[n], components from ``STRAINS`` on that are of the genus.
        step: features that one substitution costs.
        posterior: in millionths.
    """

    row: NDArray[np.int32]
    of_target: NDArray[np.int32]
    weights: NDArray[np.int32]
    log2: NDArray[np.int32]
    unknown: int
    genus: NDArray[np.int32]
    step: int
    posterior: int


def weights_of(
    fitted: Fit, sources: Sources, genus: NDArray[np.int32], parameters: EvidenceParameters
) -> Weights:
    """The fit in the kernels' form.

    Args:
        fitted: the fit.
        sources: what reads may come from.
        genus: int32[sources], taxon of each one's genus; -1 without one.
        parameters: holds ``posterior``.
    """
    weights, unknown = fitted.weights()
    row = np.full(len(genus), -1, dtype=np.int32)
    row[fitted.sources] = np.arange(len(fitted.sources))
    return Weights(
        row, sources.of_target, weights, fitted.likelihoods.log2, unknown,
        genus_components(fitted, genus), fitted.likelihoods.step,
        round(parameters.posterior * PER_MILLION),
    )  # fmt: skip


def genus_components(fitted: Fit, genus: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number of each source's components of relatives that are of its genus, int32[n].

    None if its strains are not present, but something has sequence in common with them, and no
    species of the genus is present.
    """
    divergence = fitted.likelihoods.divergence
    boundary = divergence[STRAINS - 1] * GENUS_BOUNDARY
    count = int((divergence[STRAINS:] <= boundary).sum())
    own, judged = genus[fitted.sources], fitted.judged
    shared = ~judged.is_present & (judged.gain > judged.least)
    shared &= ~np.isin(own, own[judged.is_present])
    return np.where(shared, 0, count).astype(np.int32)


@njit(nogil=True, cache=True)
def call_by_model(  # type: ignore[no-untyped-def]
    best: CandidateArrays,
    features: NDArray[np.int64],
    weights: Weights,
    lineages: NDArray[np.int32],
    node_rank: NDArray[np.uint8],
    target_node: NDArray[np.int32],
    rules: QueryRules,
    call: NDArray[np.int32],
    place: NDArray[np.int64],
):
    """Call queries.

    Args:
        best: their candidates.
        features: int64[n].
        weights: the fit.
        lineages: int32[nodes, ranks].
        node_rank: uint8[nodes].
        target_node: int32[t].
        rules: lowest and highest rank of calls.
        call: int32[n], output: the calls, see ``ngsgpu.classify.call.results``.
        place: int64[n], output: the candidate that a call starts at, or -1.
    """
    most = best.target.shape[1]
    lowest = max(np.int64(1), np.int64(rules.lowest))
    mass = np.zeros((most, KINDS), dtype=np.int64)
    for i in range(call.size):
        call[i] = place[i] = -1
        if best.target[i, 0] < 0:
            continue
        place[i] = 0
        n = min(features[i], LEVELS)
        top = scaled(best.hits[i, 0], features[i])
        if top < LEAST_HITS:
            continue
        last = best.target[i, most - 1] >= 0
        near = max(np.int64(LEAST_HITS), top - weights.step)
        if last and scaled(best.hits[i, most - 1], features[i]) >= near:
            call[i] = _in_common(best, i, features[i], near, lineages, target_node, lowest)
        else:
            total, first, kind = _weigh(best, i, features[i], n, top, weights, mass)
            place[i] = first
            call[i] = _lowest(
                best, i, first, kind, total, mass, weights.posterior, lineages, node_rank,
                target_node,
            )  # fmt: skip
        is_taxon = call[i] >= 0 and call[i] < node_rank.size
        if is_taxon and node_rank[call[i]] > rules.highest:
            call[i] = -1


@njit(nogil=True, cache=True)
def _weigh(best, i, features, n, top, weights, mass):  # type: ignore[no-untyped-def]
    """Fill ``mass``; the total, and the candidate and kind with the most of it."""
    least = max(np.int64(LEAST_HITS), top - SUBSTITUTIONS * weights.step)
    none = np.int64(weights.unknown) + weights.log2[n, top, COMPONENTS]
    highest = none
    mass[:] = 0
    count = 0
    while count < mass.shape[0] and best.target[i, count] >= 0:
        hits = scaled(best.hits[i, count], features)
        if count > 0 and hits < least:
            break
        row = weights.row[weights.of_target[best.target[i, count]]]
        if row >= 0:
            for k in range(COMPONENTS):
                highest = max(highest, np.int64(weights.weights[row, k]) + weights.log2[n, hits, k])
        count += 1
    total = _power(highest - none)
    first, kind, heaviest = 0, 0, np.int64(0)
    for j in range(count):
        row = weights.row[weights.of_target[best.target[i, j]]]
        if row < 0:
            continue
        hits = scaled(best.hits[i, j], features)
        for k in range(COMPONENTS):
            weight = np.int64(weights.weights[row, k])
            if weight > NEVER:
                of = 0 if k < STRAINS else 1 if k < STRAINS + weights.genus[row] else 2
                mass[j, of] += _power(highest - weight - weights.log2[n, hits, k])
        for of in range(KINDS):
            total += mass[j, of]
            if mass[j, of] > heaviest:
                first, kind, heaviest = j, of, mass[j, of]
    return total, first, kind


@njit(nogil=True, cache=True, inline="always")
def _power(less):  # type: ignore[no-untyped-def]
    """Two to the power of minus some parts of an octave, as an integer."""
    octaves = less // OCTAVE
    return POWERS[less % OCTAVE] >> octaves if octaves < 31 else np.int64(0)


@njit(nogil=True, cache=True)
def _lowest(  # type: ignore[no-untyped-def]
    best, i, first, kind, total, mass, posterior, lineages, node_rank, target_node
):
    """The lowest taxon with enough of the mass, or -1."""
    nodes, ranks = lineages.shape
    own = np.int64(best.taxon[i, first])
    if own < 0:
        own = nodes + np.int64(best.target[i, first])
    if kind == 0 and mass[first, 0] * PER_MILLION >= total * posterior:
        return own
    node = target_node[best.target[i, first]]
    if node < 0:
        return np.int64(-1)
    begin = np.int64(node_rank[own]) + 1 if own < nodes else np.int64(1)
    if own < nodes and begin > GENUS:
        begin -= 1  # relatives of a source above species may be of it
    for rank in range(begin, ranks):
        taxon = lineages[node, rank]
        if taxon < 0:
            continue
        held = np.int64(0)
        for j in range(mass.shape[0]):
            target = best.target[i, j]
            if target < 0:
                break
            if target_node[target] >= 0 and lineages[target_node[target], rank] == taxon:
                held += mass[j, 0]
                if rank >= GENUS:
                    held += mass[j, 1]
                if rank >= FAMILY:
                    held += mass[j, 2]
        if held * PER_MILLION >= total * posterior:
            return np.int64(taxon)
    return np.int64(-1)


@njit(nogil=True, cache=True)
def _in_common(best, i, features, least, lineages, target_node, lowest):  # type: ignore[no-untyped-def]
    """The lowest taxon, from rank ``lowest`` on, of all candidates with enough hits, or -1."""
    node = target_node[best.target[i, 0]]
    if node < 0:
        return np.int64(-1)
    rank = lowest
    for j in range(best.target.shape[1]):
        target = best.target[i, j]
        if target < 0 or scaled(best.hits[i, j], features) < least:
            break
        other = target_node[target]
        while rank < lineages.shape[1] and (
            lineages[node, rank] < 0 or other < 0 or lineages[node, rank] != lineages[other, rank]
        ):
            rank += 1
    return np.int64(lineages[node, rank]) if rank < lineages.shape[1] else np.int64(-1)
