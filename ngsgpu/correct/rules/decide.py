"""Decides which of an anchor's bases its MSA changes: by support and evidence, or by a forest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align import msa
from ngsgpu.align.alignment import Q20_WEIGHT, Q30_WEIGHT, Alignments
from ngsgpu.align.alleles import verdict_of_strain
from ngsgpu.align.gap import in_gap
from ngsgpu.align.msa import Columns, support_of
from ngsgpu.align.rules import Rules
from ngsgpu.correct.forests import features
from ngsgpu.correct.forests.forest import NO_FOREST, accepts
from ngsgpu.correct.workspace import (
    ASKED,
    DOUBTFUL,
    GOOD,
    Q20_BASES,
    Q20_ERRORS,
    Q30_BASES,
    Q30_ERRORS,
    Workspace,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import quality_code, quality_start, read_length

RARE = 50
"""A base that at most one in this many Q20 reads has, or only one, is an error of the sample."""


@njit(nogil=True, cache=True)
def classify(
    rules: Rules, columns: Columns, length: Integer
) -> tuple[bool | np.bool, bool | np.bool]:
    """Whether the consensus may replace the anchor, and whether the MSA is of high quality."""
    support_sum = np.int64(0)
    smallest = np.int64(1) << 62
    coverage = np.int64(1) << 62
    for position in range(length):
        column = position + rules.margin
        support = support_of(columns.sums, column, columns.consensus[column])
        support_sum += support
        smallest = min(smallest, support)
        reads = np.int64(0)
        for base in range(4):
            reads += columns.sums[4 * column + base] >> msa.COUNT_SHIFT
        coverage = min(coverage, reads)
    replace = (
        support_sum >= rules.mean_support * length
        and smallest >= rules.min_support
        and coverage >= rules.min_coverage
    )
    high = (
        replace
        and support_sum >= rules.high_mean_support * length
        and smallest >= rules.high_min_support
    )
    return replace, high


@njit(nogil=True, cache=True)
def chosen_by_forest(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    candidates: Alignments,
    count: Integer,
    crowded: bool,
    work: Workspace,
    position: Integer,
    threshold: int,
) -> bool:
    """Whether the anchor forest changes a position; ``features.describe_msa`` was called."""
    features.describe_anchor_position(
        reads,
        weights,
        rules,
        anchor,
        candidates,
        count,
        crowded,
        work.columns,
        position,
        work.forests.coverage,
        work.features,
    )
    base = work.columns.consensus[position + rules.margin]
    features.record(work.samples, 0, anchor, position, base, work.features)
    return accepts(work.forests.anchor, work.features, threshold)


@njit(nogil=True, cache=True)
def outweighs(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    columns: Columns,
    quality: Integer,
    position: Integer,
) -> bool | np.bool:
    """Whether the reads with the consensus outweigh the others, without the anchor.

    Where there are no others, any number does; the backends keep no weights of such columns.
    """
    column = position + rules.margin
    base = columns.consensus[column]
    others = np.int64(0)
    for other in range(4):
        if other != base:
            others += columns.sums[4 * column + other] & msa.WEIGHT_MASK
    if others == 0:
        return True
    if columns.anchor[position] != base:
        others -= max(1, weights[quality_code(reads, quality, position)])
    agreeing = np.int64(columns.sums[4 * column + base] & msa.WEIGHT_MASK)
    return agreeing >= rules.evidence_weight + rules.evidence_ratio * others


@njit(nogil=True, cache=True)
def accepted_by_rules(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    columns: Columns,
    quality: Integer,
    position: Integer,
    known: bool | np.bool,
    replace: bool | np.bool,
) -> bool | np.bool:
    """Whether the columns suffice to change a position of an anchor to the consensus.

    With ``replace`` they do, otherwise the position itself must be certain. An ambiguous base needs
    another read that has the new base at Q20, not its own placeholder.
    """
    column = position + rules.margin
    base = columns.consensus[column]
    if not known:
        # Without qualities the placeholder counts as Q20.
        q20 = weights[quality_code(reads, quality, position)] >= Q20_WEIGHT
        own = np.int64(q20 and base == columns.anchor[position])
        if msa.q20_reads(columns.sums, column, base) == own:
            return False
    if replace:
        return True
    if rules.variant_reads:
        return outweighs(reads, weights, rules, columns, quality, position)
    own = msa.q20_reads(columns.sums, column, columns.anchor[position])
    if known and own > rules.position_max_reads:
        return False
    return support_of(columns.sums, column, base) >= rules.position_support


@njit(nogil=True, cache=True)
def may_be_variant(
    reads: ReadArrays,
    rules: Rules,
    candidates: Alignments,
    count: Integer,
    work: Workspace,
    length: Integer,
    position: Integer,
    weight: Integer,
    rare: bool | np.bool,
) -> bool | np.bool:
    """Whether a known base may be of a rare strain, by its quality ``weight`` and other reads.

    Where the anchor itself has an allele of the strain (``rare``), others that share it decide.
    """
    columns = work.columns
    verdict = 0
    if rare:
        verdict = verdict_of_strain(
            reads, rules, length, work.ambiguous, candidates, count, columns, position
        )
    if verdict != 0:
        return verdict > 0
    return weight >= (Q20_WEIGHT if rare else Q30_WEIGHT)


@njit(nogil=True, cache=True)
def decide(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    replace: bool | np.bool,
    crowded: bool,
    gap: tuple[Integer, Integer, Integer],
    work: Workspace,
    edit: Integer,
    candidates: Alignments,
    count: Integer,
    high: bool | np.bool,
    threshold: int,
    with_rules: bool,
    rare: bool | np.bool,
) -> Integer:
    """Write an anchor's edits from index ``edit`` of ``work.edits``; return the index after them.

    Rules decide (``accepted_by_rules``). A crowded anchor sees only some reads of a repeat, perhaps
    none from the same copy, so its Q20 bases are kept.

    With a ``threshold`` the anchor forest decides on all known bases of MSAs that are not of
    ``high`` quality, and on the Q20 bases of crowded anchors: ``with_rules`` on what the rules
    leave, otherwise in their place.

    An edit of a base that so few reads cover that one may be all of a strain's is ``ASKED``, and of
    Q20 ``GOOD``; one that may be the strain's variant is ``DOUBTFUL``. ``rare``: the anchor has an
    allele that few reads carry.
    """
    columns = work.columns
    quality = quality_start(reads, anchor)
    recording = len(work.samples.rows) > 0
    length = read_length(reads, anchor)
    for position in range(length):
        if in_gap(gap, position):
            continue
        column = position + rules.margin
        known = not work.ambiguous[position]
        if columns.consensus[column] == columns.anchor[position] and known:
            continue
        if known and (columns.alleles[column] >> columns.anchor[position]) & 1:
            continue
        guarded = (
            known and crowded and weights[quality_code(reads, quality, position)] >= Q20_WEIGHT
        )
        asked = known and threshold != NO_FOREST and (guarded or not high)
        changed = (
            not guarded
            and (with_rules or not asked)
            and accepted_by_rules(reads, weights, rules, columns, quality, position, known, replace)
        )
        if asked and (recording or not changed):
            chosen = chosen_by_forest(
                reads, weights, rules, anchor, candidates, count, crowded, work, position, threshold
            )
            changed = changed or chosen
        if changed:
            work.edits[edit] = np.uint32((position << 2) | columns.consensus[column])
            weight = weights[quality_code(reads, quality, position)]
            if known and msa.q20_depth(columns.sums, column) <= rules.pair_depth:
                work.edits[edit] |= ASKED
                if weight >= Q20_WEIGHT:
                    work.edits[edit] |= GOOD
                if may_be_variant(
                    reads, rules, candidates, count, work, length, position, weight, rare
                ):
                    work.edits[edit] |= DOUBTFUL
            edit += 1
    return edit


@njit(nogil=True, cache=True)
def count_errors(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    columns: Columns,
    counters: NDArray[np.int64],
) -> None:
    """Count the anchor's Q20 and Q30 bases, and the rare ones that differ from the consensus."""
    quality = quality_start(reads, anchor)
    for position in range(read_length(reads, anchor)):
        weight = weights[quality_code(reads, quality, position)]
        if weight < Q20_WEIGHT:
            continue
        counters[Q20_BASES] += 1
        counters[Q30_BASES] += weight >= Q30_WEIGHT
        column = position + rules.margin
        base = columns.anchor[position]
        if base == columns.consensus[column]:
            continue
        depth = msa.q20_depth(columns.sums, column)
        if msa.q20_reads(columns.sums, column, base) <= max(1, depth // RARE):
            counters[Q20_ERRORS] += 1
            counters[Q30_ERRORS] += weight >= Q30_WEIGHT
