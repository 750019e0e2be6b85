"""What the forests see of a position: integers that every backend computes from the same sums.

After table 4.1 of CARE (Kallenborn 2024, section 4.4.7), o being the read's own base, x the
consensus, c the coverage of the run. Ratios are in 2^-12, those to c in 2^-8, weights in 2^-14;
all are rounded down. The anchor's own candidates are counted one by one; of a candidate's column
only the sums are used, which the GPU has for every column where reads differ.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align import msa
from ngsgpu.align.alignment import Alignments
from ngsgpu.align.msa import Columns, q20_reads, support_of
from ngsgpu.align.rules import SUPPORT_BITS, Rules
from ngsgpu.jit import Integer, njit
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import quality_code, quality_start, read_length

RATIO_BITS: Final = 12
COVERAGE_BITS: Final = 4
"""The coverage of the run is given to the kernels in 2^-4."""

NEAR: Final = 10
"""Bases to each side within which other differing positions are counted."""

OF_THE_MSA: Final = ("mean_support", "min_support", "min_coverage", "max_coverage", "differing")
"""Features that all positions of an anchor share, the first of both forests."""

ANCHOR_FEATURES: Final = (
    *OF_THE_MSA,
    "reads_o",  # counts, as they are
    "reads_x",
    "q20_o",
    "q20_x",
    "share_reads_o",  # of the reads that cover the column
    "share_reads_x",
    "share_weight_o",  # of the column's weight
    "support",
    "weight_per_read_o",
    "weight_per_read_x",
    "weight_per_read",
    "coverage",  # to c
    "weight",  # to c
    "own_weight",  # of the base's own quality
    "best_o",  # the largest weight among the candidates with o
    "best_x",
    "near",  # other differing positions at most NEAR bases away
    "from_end",  # bases to the nearer end of the read
    "crowded",
)
CANDIDATE_FEATURES: Final = (
    *OF_THE_MSA,  # differing: positions of the candidate
    "overlap",  # columns of both as a part of those of either
    "q20_o",
    "q20_x",
    "share_weight_o",
    "support",
    "weight_per_read",
    "coverage",
    "weight",
    "own_weight",
    "alignment_weight",
    "from_end",
    "outside",  # bases beyond the anchor
)
MOST_FEATURES: Final = max(len(ANCHOR_FEATURES), len(CANDIDATE_FEATURES))


class Samples(NamedTuple):
    """Positions that a training run records, by either forest; without rows: none.

    Attributes:
        rows: int32[., 4 + features]: whether of a candidate, read, position in it, the base that
            the consensus has there, then the features.
        used: int64[1], number of rows.
        every: one in this number of candidate positions is recorded, chosen by read and position.
    """

    rows: NDArray[np.int32]
    used: NDArray[np.int64]
    every: int

    @classmethod
    def allocate(cls, rows: int, every: int = 1) -> Samples:
        """Room for ``rows`` positions."""
        return cls(
            np.zeros((rows, 4 + MOST_FEATURES), dtype=np.int32), np.zeros(1, dtype=np.int64), every
        )


@njit(nogil=True, cache=True)
def reads_in(columns: Columns, column: Integer) -> np.int64:
    """Number of reads that cover a column."""
    reads = np.int64(0)
    for base in range(4):
        reads += columns.sums[4 * column + base] >> msa.COUNT_SHIFT
    return reads


@njit(nogil=True, cache=True)
def weight_in(columns: Columns, column: Integer) -> np.int64:
    """Weight of a column."""
    weight = np.int64(0)
    for base in range(4):
        weight += columns.sums[4 * column + base] & msa.WEIGHT_MASK
    return weight


@njit(nogil=True, cache=True)
def to_coverage(reads: Integer, coverage: int) -> Integer:
    """A number of reads as a part of the run's coverage, in 2^-8."""
    return (reads << (8 + COVERAGE_BITS)) // coverage


@njit(nogil=True, cache=True)
def describe_msa(
    rules: Rules, columns: Columns, length: Integer, coverage: int, features: NDArray[np.int64]
) -> None:
    """Set the features that all positions of an anchor share."""
    support_sum = np.int64(0)
    smallest = np.int64(1) << 62
    fewest = np.int64(1) << 62
    most = np.int64(0)
    differing = 0
    for position in range(length):
        column = position + rules.margin
        support = support_of(columns.sums, column, columns.consensus[column])
        support_sum += support
        smallest = min(smallest, support)
        reads = reads_in(columns, column)
        fewest = min(fewest, reads)
        most = max(most, reads)
        differing += columns.anchor[position] != columns.consensus[column]
    features[0] = (support_sum // length) >> (SUPPORT_BITS - RATIO_BITS)
    features[1] = smallest >> (SUPPORT_BITS - RATIO_BITS)
    features[2] = to_coverage(fewest, coverage)
    features[3] = to_coverage(most, coverage)
    features[4] = differing


@njit(nogil=True, cache=True)
def describe_anchor_position(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    candidates: Alignments,
    count: Integer,
    crowded: bool,
    columns: Columns,
    position: Integer,
    coverage: int,
    features: NDArray[np.int64],
) -> None:
    """Set the features of a position at which the anchor differs from the consensus."""
    length = read_length(reads, anchor)
    column = position + rules.margin
    own, other = columns.anchor[position], columns.consensus[column]
    best_own = np.int64(0)
    best_other = np.int64(0)
    for i in range(count):
        if not candidates.kept[i]:
            continue
        under = msa.base_under(reads, candidates, i, position)
        if under == own:
            best_own = max(best_own, candidates.weight[i])
        elif under == other:
            best_other = max(best_other, candidates.weight[i])
    near = 0
    for at in range(max(0, position - NEAR), min(length, position + NEAR + 1)):
        near += at != position and columns.anchor[at] != columns.consensus[at + rules.margin]
    reads_own = columns.sums[4 * column + own] >> msa.COUNT_SHIFT
    reads_other = columns.sums[4 * column + other] >> msa.COUNT_SHIFT
    weight_own = columns.sums[4 * column + own] & msa.WEIGHT_MASK
    weight_other = columns.sums[4 * column + other] & msa.WEIGHT_MASK
    all_reads = reads_in(columns, column)
    weight = weight_in(columns, column)
    features[5] = reads_own
    features[6] = reads_other
    features[7] = q20_reads(columns.sums, column, own)
    features[8] = q20_reads(columns.sums, column, other)
    features[9] = (reads_own << RATIO_BITS) // all_reads
    features[10] = (reads_other << RATIO_BITS) // all_reads
    features[11] = (weight_own << RATIO_BITS) // weight
    features[12] = (weight_other << RATIO_BITS) // weight
    features[13] = weight_own // reads_own
    features[14] = weight_other // reads_other
    features[15] = weight // all_reads
    features[16] = to_coverage(all_reads, coverage)
    features[17] = weight // (4 * coverage)
    features[18] = weights[quality_code(reads, quality_start(reads, anchor), position)]
    features[19] = best_own
    features[20] = best_other
    features[21] = near
    features[22] = min(position, length - 1 - position)
    features[23] = crowded


@njit(nogil=True, cache=True)
def describe_candidate(
    length: Integer,
    own_length: Integer,
    shift: Integer,
    alignment_weight: Integer,
    differing: Integer,
    features: NDArray[np.int64],
) -> None:
    """Set the features that all positions of a candidate share, beside those of the MSA."""
    both = min(length, shift + own_length) - max(np.int64(0), shift)
    features[4] = differing
    features[5] = (both << RATIO_BITS) // (length + own_length - both)
    features[14] = alignment_weight


@njit(nogil=True, cache=True)
def describe_candidate_position(
    rules: Rules,
    columns: Columns,
    length: Integer,
    own_length: Integer,
    column: Integer,
    position: Integer,
    own: Integer,
    own_weight: Integer,
    coverage: int,
    features: NDArray[np.int64],
) -> None:
    """Set the features of a position of a candidate; ``own`` is its base in the column."""
    other = columns.consensus[column]
    all_reads = reads_in(columns, column)
    weight = weight_in(columns, column)
    features[6] = q20_reads(columns.sums, column, own)
    features[7] = q20_reads(columns.sums, column, other)
    features[8] = ((columns.sums[4 * column + own] & msa.WEIGHT_MASK) << RATIO_BITS) // weight
    features[9] = ((columns.sums[4 * column + other] & msa.WEIGHT_MASK) << RATIO_BITS) // weight
    features[10] = weight // all_reads
    features[11] = to_coverage(all_reads, coverage)
    features[12] = weight // (4 * coverage)
    features[13] = own_weight
    features[15] = min(position, own_length - 1 - position)
    features[16] = max(rules.margin - column, column - rules.margin - (length - 1), 0)


@njit(nogil=True, cache=True)
def record(
    samples: Samples,
    of_candidate: int,
    read: Integer,
    position: Integer,
    base: Integer,
    features: NDArray[np.int64],
) -> None:
    """Record a position, if there is room and, of a candidate, if it is chosen."""
    row = samples.used[0]
    if row >= len(samples.rows):
        return
    mixed = np.uint64(read * 1000003 + position) * np.uint64(0x9E3779B97F4A7C15)
    if of_candidate and (mixed >> np.uint64(40)) % np.uint64(samples.every) != np.uint64(0):
        return
    samples.rows[row, 0] = of_candidate
    samples.rows[row, 1] = read
    samples.rows[row, 2] = position
    samples.rows[row, 3] = base
    for i in range(len(features)):
        samples.rows[row, 4 + i] = features[i]
    samples.used[0] = row + 1
