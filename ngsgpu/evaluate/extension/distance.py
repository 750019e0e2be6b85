"""Edit distance of two sequences, for gaps that are nearly equal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit


@njit(nogil=True, cache=True)
def edit_distance(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> int:
    """Fewest substitutions, insertions and deletions that make one sequence the other.

    What both have in common at their ends is left out; of the rest a band of the table is filled
    that is doubled until the distance lies within it (Ukkonen 1985).

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
