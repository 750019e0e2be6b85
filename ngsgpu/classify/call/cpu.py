"""From candidates to calls: the lowest common ancestor of those close to the best.

MetaCache's rule (Kobus 2022, section 6.4.3): a query whose best candidate has fewer hits than
``min_hits`` stays unclassified. Otherwise the call starts at the best candidate; each further one,
from the best down, whose hits exceed ``(best - min_hits) * hit_difference`` raises it to the lowest
rank, from the call's own upwards, at which both share a taxon. A call above the highest rank is
discarded.

Without a taxonomy there is no rank above the best candidate. Then the best one is called regardless
of others (on ties the earliest reference sequence, which is the order of candidates), or with
``--ties ambiguous`` the query stays unclassified, as in MetaCache.

Two more rules are additions. With ``confidence``, a query that shares less than this fraction of
its k-mers with the best candidate, as estimated from hits, stays unclassified; with
``species_confidence``, one below that fraction is not called at species level or below, but at the
next rank of the lineage. Both are off for MetaCache's calls.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.acceptance import Acceptance, near_to, raise_rank, reaches, weigh
from ngsgpu.classify.call.results import NO_TARGET, CalledReads
from ngsgpu.classify.params import PER_MILLION, QueryRules
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import CandidateArrays, QueryBlock
from ngsgpu.classify.sketch.cpu import expected_hits
from ngsgpu.jit import Integer, njit
from ngsgpu.taxonomy.ranks import SPECIES


def call_block(
    engine: Engine,
    block: QueryBlock,
    kept: NDArray[np.uint8] | None = None,
    accepted: Acceptance | None = None,
    doubtful_confidence: float = 0.0,
) -> CalledReads:
    """Call queries by their candidates.

    Args:
        engine: the database, and what decides.
        block: the queries.
        kept: uint8[targets], 0 for targets that do not count; None: all count.
        accepted: see ``ngsgpu.classify.call.evidence``; None: all are.
        doubtful_confidence: see there.
    """
    best = block.candidates
    found = np.empty((5, len(block)), dtype=np.int32)
    _call_all(
        best if accepted is None else best.copy(), block.length1, block.length2,
        engine.sketch.kmer, engine.sketch.hit_scale, engine.lineages, engine.node_rank,
        engine.target_node, _NO_TARGETS if kept is None else kept,
        _ALL_ACCEPTED if accepted is None else accepted, engine.rules,
        round(doubtful_confidence * PER_MILLION), found,
    )  # fmt: skip
    return CalledReads(block, *found)


_NO_TARGETS: Final = np.zeros(0, dtype=np.uint8)
_ALL_ACCEPTED: Final = Acceptance(
    _NO_TARGETS, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), _NO_TARGETS
)


@njit(nogil=True, cache=True)
def _call_all(  # type: ignore[no-untyped-def]
    best, length1, length2, kmer, scale, lineages, node_rank, target_node, kept, accepted, rules,
    doubtful, found,
):  # fmt: skip
    """All that ``call_block`` does, so that threads seldom wait for Python's lock.

    ``found`` has the fields of ``CalledReads``, a row each.
    """
    call, score, target, window_begin, window_end = (
        found[0], found[1], found[2], found[3], found[4],
    )  # fmt: skip
    queries = call.size
    expected = expected_hits(length1, length2, kmer, scale)
    acceptance = np.empty(queries, dtype=np.uint8)
    if accepted.level.size > 0:
        weigh(best, accepted, rules, target_node, lineages, acceptance)
    place = np.empty(queries, dtype=np.int64)
    call_queries(
        best, expected, lineages, node_rank, target_node, kept, accepted.least, rules, call, place
    )
    for i in range(queries):
        score[i] = window_begin[i] = window_end[i] = 0
        target[i] = NO_TARGET
        if place[i] >= 0:
            score[i] = best.hits[i, place[i]]
            target[i] = best.target[i, place[i]]
            window_begin[i] = best.window_begin[i, place[i]]
            window_end[i] = best.window_end[i, place[i]]
    if accepted.level.size > 0:
        raise_rank(call, acceptance, score, expected, target_node, lineages, rules, doubtful)


@njit(nogil=True, cache=True)
def _common_rank(
    lineages: NDArray[np.int32], first: Integer, second: Integer, lowest: Integer
) -> Integer:
    """The lowest rank from ``lowest`` up at which two nodes have the same taxon, or -1."""
    if first < 0 or second < 0:
        return -1
    for rank in range(max(lowest, 1), lineages.shape[1]):
        if lineages[first, rank] >= 0 and lineages[first, rank] == lineages[second, rank]:
            return rank
    return -1


@njit(nogil=True, cache=True)
def call_queries(
    best: CandidateArrays,
    expected: NDArray[np.int64],
    lineages: NDArray[np.int32],
    node_rank: NDArray[np.uint8],
    target_node: NDArray[np.int32],
    kept: NDArray[np.uint8],
    least: NDArray[np.int32],
    rules: QueryRules,
    call: NDArray[np.int32],
    first_kept: NDArray[np.int64],
) -> None:
    """Call queries.

    Args:
        best: their candidates.
        expected: int64[n], see ``expected_hits``.
        lineages: int32[nodes, ranks], each node's taxon at each rank, or -1.
        node_rank: uint8[nodes].
        target_node: int32[targets], each target's taxon, or -1.
        kept: uint8[targets], 0 for ignored targets; empty: all count.
        least: int32[targets], see ``Acceptance``; empty: 0.
        rules: calling rules.
        call: int32[n], output: the calls, see ``ngsgpu.classify.call.results``.
        first_kept: int64[n], output: index of the best candidate that counts, or -1.
    """
    for query in range(call.size):
        call[query] = -1
        first_kept[query] = -1
        for i in range(best.target.shape[1]):
            target = best.target[query, i]
            if target < 0:
                break
            if kept.size == 0 or kept[target]:
                first_kept[query] = i
                break
        if first_kept[query] >= 0:
            call[query] = _call(
                best, query, first_kept[query], expected[query], lineages, node_rank,
                target_node, kept, least, rules,
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _call(
    best: CandidateArrays,
    query: Integer,
    first: Integer,
    expected: Integer,
    lineages: NDArray[np.int32],
    node_rank: NDArray[np.uint8],
    target_node: NDArray[np.int32],
    kept: NDArray[np.uint8],
    least: NDArray[np.int32],
    rules: QueryRules,
) -> Integer:
    """The call of a query whose candidate at place ``first`` is the best that counts."""
    hits = np.int64(best.hits[query, first])
    if hits < rules.min_hits or not reaches(hits, expected, rules, rules.confidence):
        return np.int64(-1)
    target = best.target[query, first]
    node = np.int64(target_node[target])
    rank: Integer = np.int64(0)
    call = np.int64(lineages.shape[0] + target)
    if rules.lowest > 0:
        call = np.int64(best.taxon[query, first])
        rank = np.int64(node_rank[call])
    threshold = near_to(hits, rules)
    last = first + 1 if rules.best_alone else best.target.shape[1]
    for i in range(first + 1, last):
        other = best.target[query, i]
        if other < 0 or np.int64(best.hits[query, i]) * PER_MILLION <= threshold:
            break
        if kept.size > 0 and not kept[other]:
            continue
        rank = _common_rank(lineages, node, target_node[other], rank)
        if rank < 0 or rank > rules.highest:
            return np.int64(-1)
        call = np.int64(lineages[node, rank])
    needed: Integer = np.int64(rules.species_confidence)
    if least.size > 0:
        needed = max(needed, np.int64(least[target]))
    if rank <= SPECIES and not reaches(hits, expected, rules, needed):
        rank = _common_rank(lineages, node, node, SPECIES + 1)
        if rank < 0:
            return np.int64(-1)
        call = np.int64(lineages[node, rank])
    return call if rank <= rules.highest else np.int64(-1)
