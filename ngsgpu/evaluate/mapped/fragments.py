"""Numba kernel that compares merged reads with the fragments that their pairs' alignments span."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.mapped.aligner import Alignments
from ngsgpu.evaluate.mapped.pileup import BAD, Reads, locate
from ngsgpu.evaluate.truth.indels import oriented_code
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import AMBIGUOUS

NEAR = 3
"""Bases by which the length of a ``near`` merged read may be off."""

OUTCOMES = (
    "pairs",
    "unknown_fragment",
    "unknown_merged",
    "overlapping",
    "right",
    "near",
    "wrong",
    "missed",
    "apart",
    "apart_merged",
)
(
    PAIRS, UNKNOWN, UNKNOWN_MERGED, OVERLAPPING, RIGHT, NEARLY, WRONG, MISSED, APART, APART_MERGED,
) = range(len(OUTCOMES))  # fmt: skip

WHERE = ("agree", "disagree", "alone")
AGREE, DISAGREE, ALONE = range(3)


@njit(nogil=True, cache=True)
def _clipped(aligned: Alignments, row: int, at_end: bool) -> Integer:
    """Bases that are clipped off one end of an alignment, in the direction of the reference."""
    begin, end = aligned.cigar_start[row], aligned.cigar_start[row + 1]
    cigar = aligned.cigar[end - 1 if at_end else begin]
    operation = cigar & np.uint32(15)
    return np.int64(cigar >> np.uint32(4)) if operation == 4 or operation == 5 else 0


@njit(nogil=True, cache=True)
def _inserted(
    aligned: Alignments, row: int, low: Integer, high: Integer
) -> tuple[Integer, Integer, Integer]:
    """First base behind an alignment; bases inserted in it, and deleted, outside a range."""
    position = np.int64(aligned.place[row])
    inserted = deleted = np.int64(0)
    for i in range(aligned.cigar_start[row], aligned.cigar_start[row + 1]):
        size = np.int64(aligned.cigar[i] >> np.uint32(4))
        operation = aligned.cigar[i] & np.uint32(15)
        is_outside = position < low or position >= high
        if operation == 1:
            inserted += size if is_outside else 0
        elif operation == 2 or operation == 3:
            deleted += size if is_outside else 0
            position += size
        elif operation == 0 or operation == 7 or operation == 8:
            position += size
    return position, inserted, deleted


@njit(nogil=True, cache=True)
def fragment(aligned: Alignments, row: int) -> tuple[Integer, Integer, bool]:
    """Fragment of the pair whose first mate is ``row``.

    Returns:
        (first position, length, whether an alignment has a gap); length 0 if a mate does not
        align, the two do not face each other, or an outer end is clipped by more than ``NEAR``.
    """
    left, right = (row + 1, row) if aligned.reverse[row] else (row, row + 1)
    if (
        aligned.place[row] < 0
        or aligned.place[row + 1] < 0
        or aligned.sequence[row] != aligned.sequence[row + 1]
        or aligned.reverse[row] == aligned.reverse[row + 1]
    ):
        return 0, 0, False
    head, tail = _clipped(aligned, left, False), _clipped(aligned, right, True)
    begin = aligned.place[left]
    left_end, inserted, deleted = _inserted(aligned, left, 0, 0)
    end, more, fewer = _inserted(aligned, right, begin, left_end)
    if head > NEAR or tail > NEAR or end <= begin:
        return 0, 0, False
    length = end + tail - (begin - head) + inserted + more - deleted - fewer
    return begin - head, length, inserted + more + deleted + fewer > 0


@njit(nogil=True, cache=True)
def judge(
    codes: NDArray[np.uint8],
    genome: NDArray[np.uint8],
    number: NDArray[np.int32],
    min_overlap: int,
    mates: tuple[Reads, Reads],
    aligned: Alignments,
    first: int,
    merged: Reads,
    rows: NDArray[np.int64],
    where: NDArray[np.int64],
    outcomes: NDArray[np.int64],
    qualities: NDArray[np.int64],
) -> None:
    """Compare merged reads with their fragments.

    Bases are compared in reads merged to the right length whose pair aligns without gaps, outside
    variant sites, where a mate aligns.

    Args:
        codes: uint8[256], letter to code.
        genome: uint8[positions], codes of the reference.
        number: int32[positions], -1 outside variant sites.
        min_overlap: from how many common bases on pairs count as overlapping.
        mates: first and second mates.
        aligned: of these mates, in turn.
        first: the first pair to compare.
        merged: merged reads.
        rows: int64[pairs], the merged read of each pair from ``first`` on, -1 without.
        where: int64[2, longest], scratch.
        outcomes: int64[len(OUTCOMES)], incremented.
        qualities: int64[len(WHERE), QUALITIES, 2], bases and errors by quality, incremented.
    """
    for k in range(len(rows)):
        i = first + k
        outcomes[PAIRS] += 1
        is_merged = rows[k] >= 0
        begin, length, has_gap = fragment(aligned, 2 * i)
        if length <= 0:
            outcomes[UNKNOWN] += 1
            outcomes[UNKNOWN_MERGED] += is_merged
            continue
        length1, length2 = mates[0].length[i], mates[1].length[i]
        if min(length1, length) + min(length2, length) - length < min_overlap:
            outcomes[APART] += 1
            outcomes[APART_MERGED] += is_merged
            continue
        outcomes[OVERLAPPING] += 1
        if not is_merged:
            outcomes[MISSED] += 1
            continue
        off = abs(merged.length[rows[k]] - length)
        outcomes[RIGHT if off == 0 else NEARLY if off <= NEAR else WRONG] += 1
        if off == 0 and not has_gap:
            _count_bases(
                codes, genome, number, mates, aligned, i, begin, length, merged, rows[k], where,
                qualities,
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _count_bases(
    codes: NDArray[np.uint8],
    genome: NDArray[np.uint8],
    number: NDArray[np.int32],
    mates: tuple[Reads, Reads],
    aligned: Alignments,
    i: int,
    begin: int,
    length: int,
    merged: Reads,
    row: int,
    where: NDArray[np.int64],
    qualities: NDArray[np.int64],
) -> None:
    """Count bases and errors of a merged read by what its mates say and by quality."""
    for m in range(2):
        if locate(aligned, 2 * i + m, mates[m].length[i], where[m]) == BAD:
            return
    reverse = aligned.reverse[2 * i]
    calls = np.empty(2, dtype=np.int64)
    for k in range(length):
        position = begin + (length - 1 - k if reverse else k)
        if position < 0 or position >= len(genome) or number[position] >= 0:
            continue
        truth = np.int64(genome[position])
        if truth == AMBIGUOUS:
            continue
        seen = 0
        calls[:] = AMBIGUOUS
        for m in range(2):
            at = k if m == 0 else length - 1 - k
            size = mates[m].length[i]
            if at >= size:
                continue
            own_reverse = aligned.reverse[2 * i + m]
            q = size - 1 - at if own_reverse else at
            seen += where[m, q] == position
            calls[m] = oriented_code(codes, mates[m].data, mates[m].start[i], size, own_reverse, q)
        if seen == 0:
            continue
        base = np.int64(
            oriented_code(codes, merged.data, merged.start[row], length, reverse,
                          length - 1 - k if reverse else k)
        )  # fmt: skip
        if calls[0] == AMBIGUOUS or calls[1] == AMBIGUOUS:
            kind = ALONE
        else:
            kind = AGREE if calls[0] == calls[1] else DISAGREE
        quality = np.int64(merged.scores[merged.quality[row] + k]) - 33
        qualities[kind, quality, 0] += 1
        qualities[kind, quality, 1] += base != truth
