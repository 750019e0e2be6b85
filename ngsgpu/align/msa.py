"""The multiple sequence alignment of an anchor and its candidates (CARE, section 4.3.2).

For each column and base only one int64 is stored: the number of reads in its high bits, the number
of Q20 reads below, and their summed weight in the low bits, so that one addition adds or removes a
read, with the same result in any order. Columns run from ``margin`` bases before the anchor to
``margin`` bases after it; entry 4 x (column + margin) + base.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Q20_WEIGHT, WEIGHT_BITS, Alignments
from ngsgpu.align.rules import SUPPORT_BITS, Rules
from ngsgpu.declared.limits import MAX_AGREEING
from ngsgpu.jit import Integer, njit
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import plane_start, quality_code, quality_start, read_length
from ngsgpu.sequence.codec import base_at

Q20_SHIFT = 30
COUNT_SHIFT = 46
ONE_READ = 1 << COUNT_SHIFT
ONE_Q20 = 1 << Q20_SHIFT
Q20_MASK = (1 << (COUNT_SHIFT - Q20_SHIFT)) - 1
WEIGHT_MASK = ONE_Q20 - 1


class Columns(NamedTuple):
    """Workspace of one MSA.

    Attributes:
        sums: int64[4 x columns], reads and weights of each base.
        consensus: int64[columns], the base of largest weight, the first of equals.
        anchor: int64[anchor length], the anchor's bases.
        alleles: uint8[columns], a bit for each base that is an allele beside the consensus.
        distinct: int64[2, MAX_AGREEING], distinct ends and fragments of the reads with a base.
    """

    sums: NDArray[np.int64]
    consensus: NDArray[np.int64]
    anchor: NDArray[np.int64]
    alleles: NDArray[np.uint8]
    distinct: NDArray[np.int64]

    @classmethod
    def allocate(cls, max_length: int, margin: int) -> Columns:
        """Workspace for anchors of up to ``max_length`` bases."""
        columns = max_length + 2 * margin
        return cls(
            sums=np.zeros(4 * columns, dtype=np.int64),
            consensus=np.zeros(columns, dtype=np.int64),
            anchor=np.zeros(max(max_length, 1), dtype=np.int64),
            alleles=np.zeros(columns, dtype=np.uint8),
            distinct=np.zeros((2, MAX_AGREEING), dtype=np.int64),
        )


@njit(nogil=True, cache=True)
def add_read(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    read: Integer,
    shift: Integer,
    reverse_complemented: Integer,
    weight: np.int64,
    sign: int,
    length: Integer,
    margin: int,
    sums: NDArray[np.int64],
) -> None:
    """Add a read to the columns of an anchor of ``length`` bases, or remove it (sign -1)."""
    own_length = read_length(reads, read)
    start = plane_start(reads, read)
    words = (own_length + 63) >> 6
    quality = quality_start(reads, read)
    begin = max(0, -margin - shift)
    end = min(own_length, length + margin - shift)
    for aligned_offset in range(begin, end):
        position = own_length - 1 - aligned_offset if reverse_complemented else aligned_offset
        base = base_at(reads.planes, start, words, position)
        if reverse_complemented:
            base = 3 - base
        own = np.int64(weights[quality_code(reads, quality, position)])
        share = ONE_READ + max(np.int64(1), weight * own >> WEIGHT_BITS)
        if own >= Q20_WEIGHT:
            share += ONE_Q20
        sums[4 * (shift + aligned_offset + margin) + base] += sign * share


@njit(nogil=True, cache=True)
def build(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    anchor: Integer,
    candidates: Alignments,
    count: Integer,
    margin: int,
    columns: Columns,
) -> None:
    """Fill the columns with the anchor (weight 1) and its kept candidates."""
    length = read_length(reads, anchor)
    columns.sums[: 4 * (length + 2 * margin)] = 0
    add_read(
        reads, weights, anchor, 0, 0, np.int64(1 << WEIGHT_BITS), 1, length, margin, columns.sums
    )
    for i in range(count):
        if candidates.kept[i]:
            add_read(
                reads,
                weights,
                candidates.read[i],
                candidates.shift[i],
                candidates.reverse_complemented[i],
                candidates.weight[i],
                1,
                length,
                margin,
                columns.sums,
            )
    start = plane_start(reads, anchor)
    words = (length + 63) >> 6
    for position in range(length):
        columns.anchor[position] = base_at(reads.planes, start, words, position)


@njit(nogil=True, cache=True)
def find_consensus(columns: Columns, width: Integer) -> None:
    """Set the consensus of the first ``width`` columns."""
    for column in range(width):
        best = 0
        best_weight = columns.sums[4 * column] & WEIGHT_MASK
        for base in range(1, 4):
            weight = columns.sums[4 * column + base] & WEIGHT_MASK
            if weight > best_weight:
                best = base
                best_weight = weight
        columns.consensus[column] = best


@njit(nogil=True, cache=True)
def q20_reads(sums: NDArray[np.int64], column: Integer, base: Integer) -> np.int64:
    """Number of reads with a base in a column at Q20 or above.

    In a repeat with many copies the same error occurs in many reads; the quality distinguishes
    them from a copy's own base.
    """
    return np.int64((sums[4 * column + base] >> Q20_SHIFT) & Q20_MASK)


@njit(nogil=True, cache=True)
def q20_depth(sums: NDArray[np.int64], column: Integer) -> np.int64:
    """Number of reads with any base in a column at Q20 or above."""
    depth = np.int64(0)
    for base in range(4):
        depth += q20_reads(sums, column, base)
    return depth


@njit(nogil=True, cache=True)
def support_of(sums: NDArray[np.int64], column: Integer, base: Integer) -> np.int64:
    """Weight of a base as a part of the column's weight, in 2^-20, rounded down."""
    total = 0
    for other in range(4):
        total += sums[4 * column + other] & WEIGHT_MASK
    return np.int64(((sums[4 * column + base] & WEIGHT_MASK) << SUPPORT_BITS) // total)


@njit(nogil=True, cache=True)
def repeat_column(rules: Rules, columns: Columns, length: Integer) -> tuple[int, int]:
    """First column of the anchor that enough reads with another base cover, and that base.

    Of several such bases the last in the order A, C, G, T; (-1, 0) where there is none.
    """
    for position in range(length):
        column = position + rules.margin
        for base in range(3, -1, -1):
            if base == columns.consensus[column]:
                continue
            if q20_reads(columns.sums, column, base) >= rules.refine_reads:
                return position, base
    return -1, 0


@njit(nogil=True, cache=True)
def base_under(
    reads: ReadArrays, candidates: Alignments, entry: Integer, position: Integer
) -> Integer:
    """Base of a candidate under a position of the anchor, or -1 where it does not reach."""
    read = candidates.read[entry]
    length = read_length(reads, read)
    aligned_offset = position - candidates.shift[entry]
    if aligned_offset < 0 or aligned_offset >= length:
        return -1
    start = plane_start(reads, read)
    words = (length + 63) >> 6
    if candidates.reverse_complemented[entry]:
        return 3 - base_at(reads.planes, start, words, length - 1 - aligned_offset)
    return base_at(reads.planes, start, words, aligned_offset)


@njit(nogil=True, cache=True)
def refine(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    candidates: Alignments,
    count: Integer,
    length: Integer,
    columns: Columns,
) -> int:
    """Remove candidates from other copies of a repeat; return how many.

    The consensus is up to date afterwards.
    """
    removed = 0
    width = length + 2 * rules.margin
    find_consensus(columns, width)
    for _ in range(rules.refine_rounds):
        agrees = True
        for position in range(length):
            if columns.anchor[position] != columns.consensus[position + rules.margin]:
                agrees = False
                break
        if agrees:
            break
        position, base = repeat_column(rules, columns, length)
        if position < 0:
            break
        own = columns.anchor[position] == base
        # A candidate that aligns this well is from this copy: then no candidate is removed.
        trusted = False
        for i in range(count):
            if candidates.kept[i] and candidates.weight[i] >= rules.refine_keep_weight:
                under = base_under(reads, candidates, i, position)
                if under >= 0 and (under == base) != own:
                    trusted = True
                    break
        if trusted:
            break
        for i in range(count):
            if not candidates.kept[i]:
                continue
            under = base_under(reads, candidates, i, position)
            if under >= 0 and (under == base) != own:
                candidates.kept[i] = 0
                removed += 1
                add_read(
                    reads,
                    weights,
                    candidates.read[i],
                    candidates.shift[i],
                    candidates.reverse_complemented[i],
                    candidates.weight[i],
                    -1,
                    length,
                    rules.margin,
                    columns.sums,
                )
        find_consensus(columns, width)
    return removed
