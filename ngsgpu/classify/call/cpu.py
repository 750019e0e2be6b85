"""From candidates to calls: the lowest common ancestor of those close to the best.

Calls by the model are in ``posterior``. Here is MetaCache's rule (Kobus 2022, section 6.4.3): a
query whose best candidate has fewer hits than ``min_hits`` stays unclassified. Otherwise the call
starts at the best candidate; each further one, from the best down, whose hits exceed
``(best - min_hits) * hit_difference`` raises it to the lowest rank, from the call's own upwards, at
which both share a taxon. A call above the highest rank is discarded.

Without a taxonomy there is no rank above the best candidate. Then the best one is called regardless
of others (on ties the earliest reference sequence, which is the order of candidates), or with
``--ties ambiguous`` the query stays unclassified, as in MetaCache.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.posterior import Weights, call_by_model
from ngsgpu.classify.call.results import NO_TARGET, CalledReads
from ngsgpu.classify.params import PER_MILLION, QueryRules
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import CandidateArrays, QueryBlock
from ngsgpu.jit import Integer, njit


def call_block(
    engine: Engine,
    block: QueryBlock,
    kept: NDArray[np.uint8] | None = None,
    weights: Weights | None = None,
) -> CalledReads:
    """Call queries by their candidates.

    Args:
        engine: the database, and what decides.
        block: the queries.
        kept: uint8[targets], 0 for targets that do not count; None: all count.
        weights: the fit of the sample; None: calls are by MetaCache's rule.
    """
    best = block.candidates
    found = np.empty((5, len(block)), dtype=np.int32)
    place = np.empty(len(block), dtype=np.int64)
    tree = engine.lineages, engine.node_rank, engine.target_node
    if weights is not None:
        call_by_model(best, block.features, weights, *tree, engine.rules, found[0], place)
    else:
        kept = _NO_TARGETS if kept is None else kept
        call_queries(best, *tree, kept, engine.rules, found[0], place)
    _take_best(best, place, found[1:])
    return CalledReads(block, *found)


_NO_TARGETS: Final = np.zeros(0, dtype=np.uint8)


@njit(nogil=True, cache=True)
def _take_best(  # type: ignore[no-untyped-def]
    best, place, found
):
    """Copy hits, target and range of the candidate that each call starts at: rows of ``found``."""
    for i in range(place.size):
        found[0, i] = found[2, i] = found[3, i] = 0
        found[1, i] = NO_TARGET
        if place[i] >= 0:
            found[0, i] = best.hits[i, place[i]]
            found[1, i] = best.target[i, place[i]]
            found[2, i] = best.window_begin[i, place[i]]
            found[3, i] = best.window_end[i, place[i]]


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
    lineages: NDArray[np.int32],
    node_rank: NDArray[np.uint8],
    target_node: NDArray[np.int32],
    kept: NDArray[np.uint8],
    rules: QueryRules,
    call: NDArray[np.int32],
    first_kept: NDArray[np.int64],
) -> None:
    """Call queries.

    Args:
        best: their candidates.
        lineages: int32[nodes, ranks], each node's taxon at each rank, or -1.
        node_rank: uint8[nodes].
        target_node: int32[targets], each target's taxon, or -1.
        kept: uint8[targets], 0 for ignored targets; empty: all count.
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
                best, query, first_kept[query], lineages, node_rank, target_node, kept, rules,
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _call(
    best: CandidateArrays,
    query: Integer,
    first: Integer,
    lineages: NDArray[np.int32],
    node_rank: NDArray[np.uint8],
    target_node: NDArray[np.int32],
    kept: NDArray[np.uint8],
    rules: QueryRules,
) -> Integer:
    """The call of a query whose candidate at place ``first`` is the best that counts."""
    hits = np.int64(best.hits[query, first])
    if hits < rules.min_hits:
        return np.int64(-1)
    target = best.target[query, first]
    node = np.int64(target_node[target])
    rank: Integer = np.int64(0)
    call = np.int64(lineages.shape[0] + target)
    if rules.lowest > 0:
        call = np.int64(best.taxon[query, first])
        rank = np.int64(node_rank[call])
    threshold = (hits - rules.min_hits) * rules.difference
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
    return call if rank <= rules.highest else np.int64(-1)
