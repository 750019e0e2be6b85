"""Which reads have insertions or deletions, according to alignments and sequences.

The truth of a reverse-strand read is stored in the direction of the reference, so it is read
reverse-complemented.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES

GAP_OPEN = 3
"""What the first base of an insertion or deletion costs, in mismatches (each further one: 1)."""

BAND = 8
"""Longest sum of insertions less deletions that the rule can see, in bases."""

CLAIM_NONE = -1
"""No alignment is given for the read: the sequences decide."""

CLAIM_INDEL = -2
"""The alignment has an insertion or a deletion."""

CLAIM_NO_INDEL = -3
"""The alignment has no indel. Values of 0 and more: it has none and that many mismatches, which is
trusted if the sequences have as many."""


@njit(nogil=True, cache=True)
def oriented_code(
    codes: NDArray[np.uint8],
    data: NDArray[np.uint8],
    start: int,
    length: int,
    reverse: bool,
    position: int,
) -> np.uint8:
    """Code of one base in the direction of the read; ``reverse``: the text is the complement."""
    if not reverse:
        return codes[data[start + position]]
    code = codes[data[start + length - 1 - position]]
    return code if code == AMBIGUOUS else np.uint8(3 - code)


@njit(nogil=True, cache=True)
def gapped_mismatches(
    read: NDArray[np.uint8],
    truth: NDArray[np.uint8],
    length: int,
    rows: NDArray[np.int64],
    free_start: bool,
) -> int:
    """Minimum cost of an alignment of a read with its truth.

    A mismatch costs 1, a gap of g bases ``GAP_OPEN + g - 1``; the rest of one sequence after the
    other ends is free, and with ``free_start`` also the part before the other begins; otherwise
    they start together. Positions with ``AMBIGUOUS`` truth match everything. Diagonals farther than
    ``BAND`` from the main one are ignored.

    Args:
        read: codes, at least ``length``.
        truth: codes, at least ``length``.
        length: bases of each.
        rows: int64[6, 2 * BAND + 1], scratch.
        free_start: whether either may begin before the other.
    """
    width = 2 * BAND + 1
    far = 4 * length + 100
    rows[:] = far
    rows[0, BAND] = 0
    for gap in range(1, BAND + 1):
        rows[2, BAND + gap] = 0 if free_start else GAP_OPEN + gap - 1
    best = 0 if free_start and length <= BAND else far
    for i in range(1, length + 1):
        old = 0 if i % 2 == 1 else 3
        new = 3 - old
        for d in range(width):
            rows[new, d] = rows[new + 1, d] = rows[new + 2, d] = far
            j = i + d - BAND
            if j < 0 or j > length:
                continue
            if free_start and j == 0:
                rows[new, d] = 0
            if j >= 1:
                # Row 0 matched, 1 extra base in the read, 2 base missing from the read.
                before = min(rows[old, d], rows[old + 1, d], rows[old + 2, d])
                same = read[i - 1] == truth[j - 1] or truth[j - 1] == AMBIGUOUS
                rows[new, d] = before + (0 if same else 1)
            if d + 1 < width:
                opened = min(rows[old, d + 1], rows[old + 2, d + 1]) + GAP_OPEN
                rows[new + 1, d] = min(opened, rows[old + 1, d + 1] + 1)
            if d >= 1:
                opened = min(rows[new, d - 1], rows[new + 1, d - 1]) + GAP_OPEN
                rows[new + 2, d] = min(opened, rows[new + 2, d - 1] + 1)
            if (i == length or j == length) and rows[new, d] < best:
                best = rows[new, d]
    return best


@njit(nogil=True, cache=True)
def _reverse(codes: NDArray[np.uint8], length: int, target: NDArray[np.uint8]) -> None:
    for p in range(length):
        target[p] = codes[length - 1 - p]


@njit(nogil=True, cache=True)
def has_indel(
    read: NDArray[np.uint8],
    truth: NDArray[np.uint8],
    length: int,
    mismatches: int,
    scratch: NDArray[np.uint8],
    rows: NDArray[np.int64],
) -> bool:
    """Whether gaps explain a read better than its mismatches do.

    The alignment starts at either end, because the truth of a read starts where the read does on
    the forward strand and ends where it does on the reverse strand.

    Args:
        read: codes of the input read.
        truth: codes of the true read, in the same direction.
        length: bases of each.
        mismatches: positions where they differ (known truth only).
        scratch: uint8[2, length] or longer.
        rows: int64[6, 2 * BAND + 1], scratch.
    """
    if mismatches <= GAP_OPEN:
        return False
    if gapped_mismatches(read, truth, length, rows, False) < mismatches:
        return True
    _reverse(read, length, scratch[0])
    _reverse(truth, length, scratch[1])
    return gapped_mismatches(scratch[0], scratch[1], length, rows, False) < mismatches


def find_indels(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    lengths: NDArray[np.int64],
    truth: NDArray[np.uint8],
    truth_start: NDArray[np.int64],
    reverse: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Whether each read has an indel, by the sequences alone.

    Args:
        data: uint8, text with the reads' bases.
        start: int64[n], where each read's bases start.
        lengths: int64[n], bases of each read and of its truth.
        truth: uint8, text with the true bases.
        truth_start: int64[n], where they start.
        reverse: bool[n], whether the truth is stored as the reverse complement.
    """
    found = np.empty(len(lengths), dtype=np.bool_)
    scratch = np.empty((4, int(lengths.max(initial=0))), dtype=np.uint8)
    rows = np.empty((6, 2 * BAND + 1), dtype=np.int64)
    _find(CODES, data, start, lengths, truth, truth_start, reverse, scratch, rows, found)
    return found


@njit(nogil=True, cache=True)
def _find(  # type: ignore[no-untyped-def]
    codes, data, start, lengths, truth, truth_start, reverse, scratch, rows, found
):
    for r in range(lengths.size):
        length = lengths[r]
        mismatches = 0
        for p in range(length):
            scratch[0, p] = codes[data[start[r] + p]]
            scratch[1, p] = oriented_code(codes, truth, truth_start[r], length, reverse[r], p)
            mismatches += scratch[1, p] != AMBIGUOUS and scratch[0, p] != scratch[1, p]
        found[r] = has_indel(scratch[0], scratch[1], length, mismatches, scratch[2:], rows)
