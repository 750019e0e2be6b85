"""Numba kernels of the correction: the reference that every other backend must equal.

``correct_anchors`` takes anchors through search, alignment, filter, MSA, refinement and decision
(``decide``); its results are edits (base replacements) of the anchors and ``votes`` on their
candidates, which ``corrections`` collects.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align import msa
from ngsgpu.align.alignment import (
    Alignments,
    align_candidates,
    filter_candidates,
    mark_compared,
    mark_mates,
)
from ngsgpu.align.alleles import CARRIES_RARE, find_alleles, rare_alleles_of
from ngsgpu.align.gap import find_gap
from ngsgpu.align.rules import Rules
from ngsgpu.correct.forests import features
from ngsgpu.correct.forests.forest import NO_FOREST
from ngsgpu.correct.rules.decide import classify, count_errors, decide
from ngsgpu.correct.rules.votes import edited_hash, vote_for_candidates
from ngsgpu.correct.workspace import (
    ALIGNED,
    ALONE,
    ANCHORS,
    CROWDED,
    FOUND,
    HIGH,
    HIGH_QUALITY,
    KEPT,
    LOW,
    LOW_QUALITY,
    RARE_BITS,
    REFINED_AWAY,
    Workspace,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.cpu import TableArrays, find_candidates
from ngsgpu.minhash.params import MAX_ENTRIES
from ngsgpu.readset import AmbiguousBases, ReadArrays
from ngsgpu.readset.cpu import plane_start, read_length


@njit(nogil=True, cache=True)
def find_aligned(
    reads: ReadArrays,
    tables: TableArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    work: Workspace,
    result: Alignments,
) -> tuple[Integer, bool]:
    """Candidates of an anchor with a valid alignment; return their number, and if crowded."""
    count, crowded = find_candidates(
        reads,
        tables,
        anchor,
        rules.kmer,
        rules.max_bucket_size,
        rules.window,
        work.found,
        work.bounds,
    )
    work.counters[ANCHORS] += 1
    work.counters[CROWDED] += crowded
    work.counters[FOUND] += count
    if count == 0:
        return 0, crowded
    length = read_length(reads, anchor)
    start = plane_start(reads, anchor)
    planes = reads.planes[start : start + 2 * ((length + 63) >> 6)]
    mark_compared(reads, weights, rules, anchor, work.compared)
    aligned = align_candidates(
        reads,
        rules,
        planes,
        length,
        work.compared,
        work.found,
        count,
        work.reverse_complemented,
        result,
    )
    work.counters[ALIGNED] += aligned
    return aligned, crowded


@njit(nogil=True, cache=True)
def mark_ambiguous(
    ambiguous_bases: AmbiguousBases, anchor: Integer, value: int, ambiguous: NDArray[np.uint8]
) -> None:
    """Set the entries of ``ambiguous`` where the anchor's base is not known to ``value``."""
    if len(ambiguous_bases.reads) == 0:
        return
    entry = np.searchsorted(ambiguous_bases.reads, np.uint32(anchor))
    if entry < len(ambiguous_bases.reads) and ambiguous_bases.reads[entry] == anchor:
        for i in range(ambiguous_bases.start[entry], ambiguous_bases.start[entry + 1]):
            ambiguous[ambiguous_bases.positions[i]] = value


@njit(nogil=True, cache=True)
def correct_anchor(
    reads: ReadArrays,
    ambiguous_bases: AmbiguousBases,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    candidates: Alignments,
    count: Integer,
    crowded: bool,
    work: Workspace,
    at: tuple[Integer, Integer, Integer],
) -> tuple[Integer, Integer, Integer]:
    """Correct one anchor from its aligned candidates; ``at`` is (records, edits, votes) so far."""
    record, edit, vote = at
    kept = filter_candidates(rules, candidates, count)
    if kept == 0:
        work.counters[ALONE] += 1
        return at
    length = read_length(reads, anchor)
    msa.build(reads, weights, anchor, candidates, count, rules.margin, work.columns)
    removed = msa.refine(reads, weights, rules, candidates, count, length, work.columns)
    work.counters[KEPT] += kept
    work.counters[REFINED_AWAY] += removed
    if removed == kept:
        work.counters[ALONE] += 1
        return at
    count_errors(reads, weights, rules, anchor, work.columns, work.counters)
    find_alleles(
        reads,
        weights,
        rules,
        anchor,
        candidates,
        count,
        length + 2 * rules.margin,
        work.columns,
    )
    replace, high = classify(rules, work.columns, length)
    mark_ambiguous(ambiguous_bases, anchor, 1, work.ambiguous)
    carried = rare_alleles_of(reads, weights, rules, anchor, work.ambiguous, work.columns)
    rare = carried & CARRIES_RARE != 0
    gap = find_gap(rules, work.columns, length)
    forest = work.forests.anchor
    if forest.threshold != NO_FOREST or work.forests.candidate.threshold != NO_FOREST:
        features.describe_msa(rules, work.columns, length, work.forests.coverage, work.features)
    end = decide(
        reads,
        weights,
        rules,
        anchor,
        replace,
        crowded,
        gap,
        work,
        edit,
        candidates,
        count,
        high,
        forest.threshold,
        rules.variant_reads > 0,
        rare,
    )
    complete = end
    if high:
        work.counters[HIGH] += 1
        vote = vote_for_candidates(work, reads, weights, rules, length, candidates, count, vote)
    else:
        work.counters[LOW] += 1
        complete = decide(
            reads,
            weights,
            rules,
            anchor,
            replace or forest.sure == NO_FOREST,
            crowded,
            gap,
            work,
            end,
            candidates,
            count,
            high,
            forest.sure,
            False,
            rare,
        )
        work.edit_hashes[record, 0] = edited_hash(work, reads, anchor, edit, end)
        work.edit_hashes[record, 1] = edited_hash(work, reads, anchor, end, complete)
    mark_ambiguous(ambiguous_bases, anchor, 0, work.ambiguous)
    work.edit_reads[record] = anchor
    work.edit_ends[record, 0] = end
    work.edit_ends[record, 1] = complete
    work.classes[record] = HIGH_QUALITY if high or gap[2] else LOW_QUALITY
    work.classes[record] |= carried << RARE_BITS
    return record + 1, complete, vote


@njit(nogil=True, cache=True)
def correct_anchors(
    reads: ReadArrays,
    ambiguous_bases: AmbiguousBases,
    tables: TableArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchors: NDArray[np.uint32],
    first: Integer,
    work: Workspace,
) -> tuple[Integer, Integer, Integer]:
    """Correct anchors from ``anchors[first]`` on, until a result buffer might not hold the next.

    Paired: ``anchors`` are first mates, and each is corrected together with its mate.

    Returns:
        Where to go on (``len(anchors)`` when done), and the numbers of records and votes.
    """
    at: tuple[Integer, Integer, Integer] = (np.int64(0), np.int64(0), np.int64(0))
    for i in range(first, len(anchors)):
        anchor = np.int64(anchors[i])
        length = read_length(reads, anchor)
        if rules.paired:
            length += read_length(reads, anchor + 1)
        if (
            at[0] + 2 > len(work.edit_reads)
            or at[1] + 2 * length > len(work.edits)
            or at[2] + 2 * MAX_ENTRIES > len(work.vote_reads)
        ):
            return i, at[0], at[2]
        count, crowded = find_aligned(reads, tables, weights, rules, anchor, work, work.first)
        mate_count: Integer = np.int64(0)
        mate_crowded = False
        if rules.paired:
            mate_count, mate_crowded = find_aligned(
                reads, tables, weights, rules, anchor + 1, work, work.second
            )
            mark_mates(work.found, work.first, count, work.second, mate_count)
        at = correct_anchor(
            reads, ambiguous_bases, weights, rules, anchor, work.first, count, crowded, work, at
        )
        if rules.paired:
            at = correct_anchor(
                reads,
                ambiguous_bases,
                weights,
                rules,
                anchor + 1,
                work.second,
                mate_count,
                mate_crowded,
                work,
                at,
            )
    return len(anchors), at[0], at[2]
