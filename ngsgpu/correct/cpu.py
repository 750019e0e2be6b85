"""Numba kernels of the correction: the reference that every other backend must equal.

``correct_anchors`` takes anchors through search, alignment, filter, MSA, refinement and decision;
its results are edits (base replacements) of the anchors and votes on their candidates, which
``corrections`` collects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align import msa
from ngsgpu.align.alignment import (
    Q20_WEIGHT,
    Alignments,
    align_candidates,
    filter_candidates,
    mark_compared,
    mark_mates,
)
from ngsgpu.align.alleles import carries_allele, find_alleles
from ngsgpu.align.gap import find_gap, in_gap
from ngsgpu.align.msa import Columns, support_of
from ngsgpu.align.rules import Rules
from ngsgpu.correct import forest_features as features
from ngsgpu.correct.forest import NO_FOREST, Forests, accepts, without_forests
from ngsgpu.correct.forest_features import MOST_FEATURES, Samples
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.cpu import MAX_ENTRIES, FoundArrays, TableArrays, find_candidates
from ngsgpu.readset import AmbiguousBases, ReadArrays
from ngsgpu.readset.cpu import plane_start, quality_code, quality_start, read_length
from ngsgpu.sequence.codec import base_at, popcount, set_base
from ngsgpu.sequence.hashing import mix64

# Class of a read's own (anchor) correction; 0: none.
HIGH_QUALITY = 1
LOW_QUALITY = 2


# Counters of a run, in this order (``ngsgpu.correct.stats``).
(ANCHORS, ALONE, CROWDED, HIGH, LOW, FOUND, ALIGNED, KEPT, REFINED_AWAY, Q20_BASES,
 Q20_ERRORS) = range(11)  # fmt: skip
COUNTERS = 11

RARE = 50
"""A base that at most one in this many Q20 reads has, or only one, is an error of the sample."""

SAMPLE = 4096
"""Anchors whose errors are counted first, so that alleles can be told from them."""


def sampled_anchors(reads: int, mates: int) -> NDArray[np.uint32]:
    """Anchors (first mates where paired) of the sample, evenly over the reads."""
    anchors = reads // mates
    step = max(8, -(-anchors // SAMPLE))
    return np.arange(0, anchors, step, dtype=np.uint32) * np.uint32(mates)


def sampled_errors(counters: NDArray[Any]) -> dict[str, int]:
    """The Q20 bases of anchors, and the errors among them."""
    return {"bases": int(counters[Q20_BASES]), "errors": int(counters[Q20_ERRORS])}


class Workspace(NamedTuple):
    """Workspace of one thread for correcting anchors.

    Attributes:
        found: candidates from the tables.
        bounds: int64[hashes, 2], buckets of an anchor.
        reverse_complemented: uint64, planes of a reverse complement.
        compared: uint64, a bit for each base of the anchor that is compared with others.
        first: alignments of an anchor.
        second: alignments of its mate.
        columns: the MSA.
        ambiguous: uint8[max length], 1 where the anchor's own base is ambiguous.
        consensus: uint64, planes of a candidate's corrected sequence.
        edits: uint32, position << 2 | base; for each anchor its correction, followed, for low
            quality, by its complete one or, with a forest, what that is sure of.
        edit_reads: uint32, anchors with a correction record, in the order of ``edits``.
        edit_ends: int64[., 2], ends in ``edits`` of the two corrections of each of them.
        edit_hashes: uint64[., 2], hashes of the two corrected sequences (low quality only).
        classes: uint8, ``HIGH_QUALITY`` or ``LOW_QUALITY`` of each of them.
        vote_reads: uint32, reads voted on.
        vote_hashes: uint64, hash of the sequence each vote is for.
        counters: int64[COUNTERS].
        forests: what decides where columns do not; none: as without them.
        features: int64[MOST_FEATURES], what a forest sees of a position.
        samples: positions recorded for training.
    """

    found: FoundArrays
    bounds: NDArray[np.int64]
    reverse_complemented: NDArray[np.uint64]
    compared: NDArray[np.uint64]
    first: Alignments
    second: Alignments
    columns: Columns
    ambiguous: NDArray[np.uint8]
    consensus: NDArray[np.uint64]
    edits: NDArray[np.uint32]
    edit_reads: NDArray[np.uint32]
    edit_ends: NDArray[np.int64]
    edit_hashes: NDArray[np.uint64]
    classes: NDArray[np.uint8]
    vote_reads: NDArray[np.uint32]
    vote_hashes: NDArray[np.uint64]
    counters: NDArray[np.int64]
    forests: Forests
    features: NDArray[np.int64]
    samples: Samples

    @classmethod
    def allocate(
        cls,
        max_length: int,
        hashes: int,
        margin: int,
        forests: Forests | None = None,
        samples: Samples | None = None,
    ) -> Workspace:
        """Workspace for anchors of up to ``max_length`` bases; by default without forests."""
        planes = 2 * ((max_length + 63) // 64) + 2
        records = 1 << 14
        votes = 2 * MAX_ENTRIES + (1 << 17)
        return cls(
            found=FoundArrays.allocate(),
            bounds=np.zeros((hashes, 2), dtype=np.int64),
            reverse_complemented=np.zeros(planes, dtype=np.uint64),
            compared=np.zeros(planes, dtype=np.uint64),
            first=Alignments.allocate(MAX_ENTRIES),
            second=Alignments.allocate(MAX_ENTRIES),
            columns=Columns.allocate(max_length, margin),
            ambiguous=np.zeros(max_length + 1, dtype=np.uint8),
            consensus=np.zeros(planes, dtype=np.uint64),
            edits=np.zeros(max(1 << 16, 8 * max_length), dtype=np.uint32),
            edit_reads=np.zeros(records, dtype=np.uint32),
            edit_ends=np.zeros((records, 2), dtype=np.int64),
            edit_hashes=np.zeros((records, 2), dtype=np.uint64),
            classes=np.zeros(records, dtype=np.uint8),
            vote_reads=np.zeros(votes, dtype=np.uint32),
            vote_hashes=np.zeros(votes, dtype=np.uint64),
            counters=np.zeros(COUNTERS, dtype=np.int64),
            forests=forests or without_forests(),
            features=np.zeros(MOST_FEATURES, dtype=np.int64),
            samples=samples or Samples.allocate(0),
        )


@njit(nogil=True, cache=True)
def hash_sequence(planes: NDArray[np.uint64], start: int, length: Integer) -> np.uint64:
    """64-bit hash of a read's bases; never 0, which means no hash."""
    value = np.uint64(length)
    for word in range(2 * ((length + 63) >> 6)):
        value = mix64(value ^ planes[start + word])
    return value if value != np.uint64(0) else np.uint64(1)


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
) -> Integer:
    """Write an anchor's edits from index ``edit`` of ``work.edits``; return the index after them.

    With ``replace`` every base becomes the consensus, otherwise only positions with high support
    whose base has hardly any Q20 reads. An ambiguous base is treated like an error, but only
    replaced by a base that another read has at Q20, not by its own placeholder. A crowded anchor
    sees only some reads of a repeat, perhaps none of its own copy, so its Q20 bases are kept.

    With a ``threshold`` the anchor forest decides instead: on all known bases of MSAs that are not
    of ``high`` quality, and on the Q20 bases of crowded anchors.
    """
    columns = work.columns
    quality = quality_start(reads, anchor)
    length = read_length(reads, anchor)
    for position in range(length):
        if in_gap(gap, position):
            continue
        column = position + rules.margin
        base = columns.consensus[column]
        known = not work.ambiguous[position]
        if base == columns.anchor[position] and known:
            continue
        q20 = weights[quality_code(reads, quality, position)] >= Q20_WEIGHT
        guarded = known and crowded and q20
        if known and (columns.alleles[column] >> columns.anchor[position]) & 1:
            continue
        if known and threshold != NO_FOREST and (guarded or not high):
            if not chosen_by_forest(
                reads, weights, rules, anchor, candidates, count, crowded, work, position, threshold
            ):
                continue
        elif guarded:
            continue
        else:
            if not known:
                # Without qualities the placeholder counts as Q20.
                own = np.int64(q20 and base == columns.anchor[position])
                if msa.q20_reads(columns.sums, column, base) == own:
                    continue
            if not replace and rules.variant_reads:
                if not outweighs(reads, weights, rules, columns, quality, position):
                    continue
            elif not replace:
                own = msa.q20_reads(columns.sums, column, columns.anchor[position])
                if known and own > rules.position_max_reads:
                    continue
                if support_of(columns.sums, column, base) < rules.position_support:
                    continue
        work.edits[edit] = np.uint32((position << 2) | base)
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
    """Count the anchor's Q20 bases, and those that differ from the consensus and are rare."""
    quality = quality_start(reads, anchor)
    for position in range(read_length(reads, anchor)):
        if weights[quality_code(reads, quality, position)] < Q20_WEIGHT:
            continue
        counters[Q20_BASES] += 1
        column = position + rules.margin
        base = columns.anchor[position]
        if base == columns.consensus[column]:
            continue
        depth = np.int64(0)
        for other in range(4):
            depth += msa.q20_reads(columns.sums, column, other)
        if msa.q20_reads(columns.sums, column, base) <= max(1, depth // RARE):
            counters[Q20_ERRORS] += 1


@njit(nogil=True, cache=True)
def edited_hash(
    work: Workspace, reads: ReadArrays, anchor: Integer, edit: Integer, end: Integer
) -> np.uint64:
    """Hash of an anchor's bases with the edits from ``edit`` to ``end``."""
    length = read_length(reads, anchor)
    start = plane_start(reads, anchor)
    words = (length + 63) >> 6
    for word in range(2 * words):
        work.consensus[word] = reads.planes[start + word]
    for i in range(edit, end):
        set_base(work.consensus, 0, words, work.edits[i] >> 2, work.edits[i] & 3)
    return hash_sequence(work.consensus, 0, length)


@njit(nogil=True, cache=True)
def keep_by_forest(
    work: Workspace,
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    length: Integer,
    candidates: Alignments,
    entry: Integer,
) -> None:
    """Put back into ``work.consensus`` the bases of a candidate that its forest does not change."""
    read = candidates.read[entry]
    own_length = read_length(reads, read)
    start = plane_start(reads, read)
    quality = quality_start(reads, read)
    words = (own_length + 63) >> 6
    differing = np.int64(0)
    for word in range(words):
        differing += np.int64(
            popcount(
                (work.consensus[word] ^ reads.planes[start + word])
                | (work.consensus[words + word] ^ reads.planes[start + words + word])
            )
        )
    if differing == 0:
        return
    shift = candidates.shift[entry]
    reverse_complemented = candidates.reverse_complemented[entry]
    features.describe_candidate(
        length, own_length, shift, candidates.weight[entry], differing, work.features
    )
    for word in range(words):
        left = (work.consensus[word] ^ reads.planes[start + word]) | (
            work.consensus[words + word] ^ reads.planes[start + words + word]
        )
        while left:
            lowest = left & (~left + np.uint64(1))
            left ^= lowest
            position = 64 * word + np.int64(popcount(lowest - np.uint64(1)))
            offset = own_length - 1 - position if reverse_complemented else position
            own = base_at(reads.planes, start, words, position)
            features.describe_candidate_position(
                rules,
                work.columns,
                length,
                own_length,
                offset + shift + rules.margin,
                position,
                3 - own if reverse_complemented else own,
                weights[quality_code(reads, quality, position)],
                work.forests.coverage,
                work.features,
            )
            base = base_at(work.consensus, 0, words, position)
            features.record(work.samples, 1, read, position, base, work.features)
            if not accepts(work.forests.candidate, work.features, work.forests.candidate.threshold):
                set_base(work.consensus, 0, words, position, own)


@njit(nogil=True, cache=True)
def vote_for_candidates(
    work: Workspace,
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    length: Integer,
    candidates: Alignments,
    count: Integer,
    vote: Integer,
) -> Integer:
    """Vote for the consensus of each candidate that hardly reaches beyond the anchor.

    Not for those that carry an allele, for which the consensus is not the truth.
    """
    consensus = work.columns.consensus
    by_forest = work.forests.candidate.threshold != NO_FOREST
    for i in range(count):
        read = candidates.read[i]
        own_length = read_length(reads, read)
        shift = candidates.shift[i]
        if not candidates.kept[i] or shift < -rules.margin:
            continue
        if shift + own_length > length + rules.margin:
            continue
        if carries_allele(reads, rules, candidates, i, work.columns):
            continue
        words = (own_length + 63) >> 6
        for word in range(2 * words):
            work.consensus[word] = 0
        reverse_complemented = candidates.reverse_complemented[i]
        for aligned_offset in range(own_length):
            base = consensus[aligned_offset + shift + rules.margin]
            position = own_length - 1 - aligned_offset if reverse_complemented else aligned_offset
            code = np.uint64(3 - base if reverse_complemented else base)
            bit = np.uint64(position & 63)
            work.consensus[position >> 6] |= (code & np.uint64(1)) << bit
            work.consensus[words + (position >> 6)] |= (code >> np.uint64(1)) << bit
        if by_forest:
            keep_by_forest(work, reads, weights, rules, length, candidates, i)
        work.vote_reads[vote] = read
        work.vote_hashes[vote] = hash_sequence(work.consensus, 0, own_length)
        vote += 1
    return vote


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
        )
        work.edit_hashes[record, 0] = edited_hash(work, reads, anchor, edit, end)
        work.edit_hashes[record, 1] = edited_hash(work, reads, anchor, end, complete)
    mark_ambiguous(ambiguous_bases, anchor, 0, work.ambiguous)
    work.edit_reads[record] = anchor
    work.edit_ends[record, 0] = end
    work.edit_ends[record, 1] = complete
    work.classes[record] = HIGH_QUALITY if high or gap[2] else LOW_QUALITY
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
