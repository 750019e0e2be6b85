"""Numba kernels for evaluating extension: positions in headers, gaps, outer sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.extension.positions import TruePairs
from ngsgpu.evaluate.extension.result import (
    DIFFERENCE,
    EDITS,
    GAP,
    OUTWARD_BASES,
    OUTWARD_EDITS,
)  # fmt: skip
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.jit import njit


def positions_of(batch: RecordBatch) -> NDArray[np.int64]:
    """Positions of both reads in each extended read, int64[n, 4]; -1 if the header has none."""
    positions = np.empty((len(batch), 4), dtype=np.int64)
    read_positions(batch.data, batch.header_start, batch.header_end, positions)
    wrong = (positions[:, 3] > batch.seq_len) | (positions[:, 0] > positions[:, 1])
    positions[wrong] = -1
    return positions


@njit(nogil=True, cache=True)
def read_positions(
    data: NDArray[np.uint8],
    header_start: NDArray[np.int64],
    header_end: NDArray[np.int64],
    positions: NDArray[np.int64],
) -> None:
    """Parse ``read1=A-B read2=C-D`` from headers; ``positions[i]`` becomes A, B, C, D or -1s."""
    for i in range(len(header_start)):
        positions[i, :] = -1
        for p in range(header_start[i], header_end[i] - 6):
            if not (
                data[p] == ord("r")
                and data[p + 1] == ord("e")
                and data[p + 2] == ord("a")
                and data[p + 3] == ord("d")
                and (data[p + 4] == ord("1") or data[p + 4] == ord("2"))
                and data[p + 5] == ord("=")
            ):
                continue
            field = 2 * (data[p + 4] - ord("1"))
            number = 0
            for q in range(p + 6, header_end[i] + 1):
                digit = q < header_end[i] and ord("0") <= data[q] <= ord("9")
                if digit:
                    number = 10 * number + data[q] - ord("0")
                    continue
                positions[i, field] = number
                number = 0
                field += 1
                if q == header_end[i] or data[q] != ord("-") or field % 2 == 0:
                    break


@njit(nogil=True, cache=True)
def edit_distance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> int:
    """Edit distance of two sequences.

    Common prefixes and suffixes are removed; for the rest a band of the table is filled, which is
    doubled until it contains the distance (Ukkonen 1985).

    Args:
        first: uint8[n], letters or codes.
        second: uint8[m].
    """
    begin = 0
    end, other_end = len(first), len(second)
    while begin < min(end, other_end) and first[begin] == second[begin]:
        begin += 1
    while min(end, other_end) > begin and first[end - 1] == second[other_end - 1]:
        end -= 1
        other_end -= 1
    rows, columns = end - begin, other_end - begin
    if rows == 0 or columns == 0:
        return max(rows, columns)
    far = rows + columns
    row = np.empty(columns + 1, dtype=np.int64)
    band = abs(rows - columns) + 1
    while True:
        for j in range(columns + 1):
            row[j] = j if j <= band else far
        for i in range(1, rows + 1):
            low, high = max(0, i - band), min(columns, i + band)
            diagonal = row[low - 1] if low > 0 else far
            left = far
            for j in range(low, high + 1):
                above = row[j] if j < i + band else far
                if j == 0:
                    value = i
                else:
                    same = first[begin + i - 1] == second[begin + j - 1]
                    value = min(diagonal + (0 if same else 1), above + 1, left + 1)
                diagonal = row[j]
                row[j] = value
                left = value
        if row[columns] <= band or band >= max(rows, columns):
            return int(row[columns])
        band *= 2


@njit(nogil=True, cache=True)
def oriented_reference(
    codes: NDArray[np.uint8], begin: int, end: int, low: int, high: int, reverse: bool
) -> NDArray[np.uint8]:
    """A piece of the reference within ``low`` to ``high``, optionally reverse-complemented."""
    begin, end = max(begin, low), min(end, high)
    size = max(0, end - begin)
    piece = np.empty(size, dtype=np.uint8)
    for i in range(size):
        code = codes[end - 1 - i] if reverse else codes[begin + i]
        piece[i] = 3 - code if reverse and code < 4 else code
    return piece


@njit(nogil=True, cache=True)
def compare_pairs(
    sequence: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    seq_len: NDArray[np.int32],
    positions: NDArray[np.int64],
    rows: NDArray[np.int64],
    pairs: TruePairs,
    reference: NDArray[np.uint8],
    reference_start: NDArray[np.int64],
    compared: NDArray[np.int64],
) -> None:
    """Compare extended reads with the true sequence of their pairs.

    Args:
        sequence: uint8, codes of the extended reads.
        seq_start: int64[n].
        seq_len: int32[n].
        positions: int64[n, 4], positions of both reads, or -1s: at both ends.
        rows: int64[n], the pair of each.
        pairs: their true positions.
        reference: uint8, codes of all sequences.
        reference_start: int64, where each begins.
        compared: int64[n, 5], zeros, set; columns as in ``result``.
    """
    for i in range(len(rows)):
        begin, end = pairs.begin[rows[i]], pairs.end[rows[i]]
        reverse, place = pairs.reverse[rows[i]], pairs.sequence[rows[i]]
        read = sequence[seq_start[i] : seq_start[i] + seq_len[i]]
        low, high = reference_start[place], reference_start[place + 1]
        first_length = end[0] - begin[0]
        second_length = end[1] - begin[1]
        if positions[i, 3] >= 0:
            first_begin, gap_begin = positions[i, 0], positions[i, 1]
            gap_end, second_end = positions[i, 2], positions[i, 3]
        else:
            first_begin, gap_begin = 0, min(first_length, len(read))
            gap_end, second_end = max(0, len(read) - second_length), len(read)
        # In the direction of the reference, and as offsets into it.
        if reverse:
            true_begin, true_end = low + end[1], low + begin[0]
            outer_begin, outer_end = low + begin[1], low + end[0]
        else:
            true_begin, true_end = low + end[0], low + begin[1]
            outer_begin, outer_end = low + begin[0], low + end[1]
        true_gap = true_end - true_begin
        compared[i, GAP] = true_gap
        # For overlapping pairs, the total length shows the errors.
        difference = compared[i, DIFFERENCE] = (second_end - first_begin) - (
            outer_end - outer_begin
        )
        if true_gap < 0 or gap_end < gap_begin:
            compared[i, EDITS] = abs(difference)
        else:
            piece = oriented_reference(reference, true_begin, true_end, low, high, reverse)
            compared[i, EDITS] = edit_distance(read[gap_begin:gap_end], piece)
        left, right = first_begin, len(read) - second_end
        before = right if reverse else left
        after = left if reverse else right
        for side in range(2):
            count = before if side == 0 else after
            if count == 0:
                continue
            at = outer_begin - count if side == 0 else outer_end
            piece = oriented_reference(reference, at, at + count, low, high, reverse)
            at_left = (side == 0) != reverse
            part = read[:first_begin] if at_left else read[second_end:]
            compared[i, OUTWARD_BASES] += count
            compared[i, OUTWARD_EDITS] += edit_distance(part, piece)
