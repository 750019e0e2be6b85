"""Which bases of a column are alleles: carried by more reads than sequencing errors explain.

A base other than the consensus is an allele if enough reads of a quality of at least Q20 carry it.
Copies of one molecule repeat the same error, so only different fragments with different ends count;
where fragments share their ends, as in amplicons, two reads more do instead. Two fragments suffice
where both have the base at Q30 or above and so few reads cover the column that two such errors
hardly ever meet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Q20_WEIGHT, Q30_WEIGHT, Alignments
from ngsgpu.align.msa import Columns, base_under, q20_depth, q20_reads
from ngsgpu.align.rules import Rules
from ngsgpu.declared.limits import MAX_AGREEING
from ngsgpu.jit import Integer, njit
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import quality_code, quality_start, read_length

RARE_READS = 8
"""Q20 reads of a rare allele, at most; another one of its strain may stand in a single read."""

# What the columns with rare alleles say of an anchor.
CARRIES_RARE = 1
SHOWS_RARE = 2
"""Carries one at Q20 or above."""
LACKS_RARE = 4
"""Has the consensus where others carry one, at Q20 or above."""


@njit(nogil=True, cache=True)
def reads_needed(rules: Rules, depth: Integer) -> Integer:
    """Reads that must carry a base among ``depth`` Q20 reads for it to be an allele.

    Beyond the last depth, extrapolate linearly.
    """
    depths = rules.variant_depths
    needed: Integer = rules.variant_reads
    for step in depths:
        needed += depth >= step
    if depth >= depths[7]:
        needed += (depth - depths[7]) // max(1, depths[7] - depths[6])
    return needed


@njit(nogil=True, cache=True)
def add_distinct(values: NDArray[np.int64], count: int, limit: Integer, value: Integer) -> int:
    """Add a value to the first ``count`` distinct ones, of which ``limit`` suffice."""
    for i in range(count):
        if values[i] == value:
            return count
    if count < limit:
        values[count] = value
        return count + 1
    return count


@njit(nogil=True, cache=True)
def independent_reads(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    candidates: Alignments,
    count: Integer,
    columns: Columns,
    column: Integer,
    base: Integer,
    needed: Integer,
    least_weight: int,
) -> int:
    """Fragments with different ends that carry a base well, counted up to ``needed``.

    Well is with a quality of at least ``least_weight``.
    """
    position = column - rules.margin
    ends = columns.distinct[0]
    fragments = columns.distinct[1]
    distinct_ends = 0
    distinct_fragments = 0
    length = read_length(reads, anchor)
    quality = quality_start(reads, anchor)
    if (
        0 <= position < length
        and columns.anchor[position] == base
        and weights[quality_code(reads, quality, position)] >= least_weight
    ):
        distinct_ends = add_distinct(ends, 0, needed, np.int64(0))
        distinct_fragments = add_distinct(fragments, 0, needed, anchor >> rules.paired)
    for i in range(count):
        if not candidates.kept[i] or base_under(reads, candidates, i, position) != base:
            continue
        read = candidates.read[i]
        own_length = read_length(reads, read)
        shift = candidates.shift[i]
        offset = position - shift
        reverse_complemented = candidates.reverse_complemented[i]
        if reverse_complemented:
            offset = own_length - 1 - offset
        if weights[quality_code(reads, quality_start(reads, read), offset)] < least_weight:
            continue
        end = 2 * (shift + own_length) + 1 if reverse_complemented else 2 * shift
        distinct_ends = add_distinct(ends, distinct_ends, needed, end)
        distinct_fragments = add_distinct(
            fragments, distinct_fragments, needed, read >> rules.paired
        )
    return min(distinct_ends, distinct_fragments)


@njit(nogil=True, cache=True)
def find_alleles(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    candidates: Alignments,
    count: Integer,
    width: Integer,
    columns: Columns,
) -> None:
    """Set ``columns.alleles`` of the first ``width`` columns: a bit for each base to be kept."""
    for column in range(width):
        columns.alleles[column] = 0
        if rules.variant_reads == 0:
            continue
        depth = q20_depth(columns.sums, column)
        needed = reads_needed(rules, depth)
        for base in range(4):
            carried = q20_reads(columns.sums, column, base)
            by_pair = carried < needed
            if by_pair and (carried < 2 or depth > rules.pair_depth):
                continue
            if base == columns.consensus[column]:
                continue
            wanted: Integer = np.int64(2) if by_pair else needed
            if (not by_pair and carried >= needed + 2) or min(
                wanted, MAX_AGREEING + 1
            ) <= independent_reads(
                reads,
                weights,
                rules,
                anchor,
                candidates,
                count,
                columns,
                column,
                base,
                min(wanted, MAX_AGREEING),
                Q30_WEIGHT if by_pair else Q20_WEIGHT,
            ):
                columns.alleles[column] |= np.uint8(1 << base)


@njit(nogil=True, cache=True)
def carries_allele(
    reads: ReadArrays, rules: Rules, candidates: Alignments, entry: Integer, columns: Columns
) -> bool | np.bool:
    """Whether a candidate within the columns has a base that is an allele."""
    first = candidates.shift[entry] + rules.margin
    for column in range(first, first + read_length(reads, candidates.read[entry])):
        if columns.alleles[column]:
            base = base_under(reads, candidates, entry, column - rules.margin)
            if (columns.alleles[column] >> base) & 1:
                return True
    return False


@njit(nogil=True, cache=True)
def is_rare_allele(
    rules: Rules, ambiguous: NDArray[np.uint8], columns: Columns, position: Integer
) -> bool | np.bool:
    """Whether the anchor's base at a position is known, and an allele that few reads carry."""
    column = position + rules.margin
    own = columns.anchor[position]
    return (
        (columns.alleles[column] >> own) & 1 != 0
        and not ambiguous[position]
        and q20_reads(columns.sums, column, own) <= RARE_READS
    )


@njit(nogil=True, cache=True)
def rare_alleles_of(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    ambiguous: NDArray[np.uint8],
    columns: Columns,
) -> int:
    """``CARRIES_RARE``, ``SHOWS_RARE`` and ``LACKS_RARE``, those that are true of the anchor.

    Args:
        reads: the reads.
        weights: of each quality code.
        rules: of the run.
        anchor: number of the read.
        ambiguous: uint8, by position, whether the base of the anchor is not known.
        columns: of the anchor, with alleles.
    """
    quality = quality_start(reads, anchor)
    found = 0
    for position in range(read_length(reads, anchor)):
        column = position + rules.margin
        if columns.alleles[column] == 0 or ambiguous[position]:
            continue
        own = columns.anchor[position]
        is_good = weights[quality_code(reads, quality, position)] >= Q20_WEIGHT
        for base in range(4):
            if (columns.alleles[column] >> base) & 1 == 0:
                continue
            if q20_reads(columns.sums, column, base) > RARE_READS:
                continue
            if base == own:
                found |= CARRIES_RARE | (SHOWS_RARE if is_good else 0)
            elif is_good and own == columns.consensus[column]:
                found |= LACKS_RARE
    return found


@njit(nogil=True, cache=True)
def verdict_of_strain(
    reads: ReadArrays,
    rules: Rules,
    length: Integer,
    ambiguous: NDArray[np.uint8],
    candidates: Alignments,
    count: Integer,
    columns: Columns,
    position: Integer,
) -> int:
    """What the reads that share a rare allele with the anchor say of its base at a position.

    Returns:
        -1 if one of them has the consensus there, otherwise 1 if one has the anchor's base, 0 if
        none has either.
    """
    consensus = columns.consensus[position + rules.margin]
    verdict = 0
    for place in range(length):
        if not is_rare_allele(rules, ambiguous, columns, place):
            continue
        for i in range(count):
            if (
                not candidates.kept[i]
                or base_under(reads, candidates, i, place) != columns.anchor[place]
            ):
                continue
            base = base_under(reads, candidates, i, position)
            if base == consensus:
                return -1
            if base == columns.anchor[position]:
                verdict = 1
    return verdict
