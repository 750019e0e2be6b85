"""Finds where an anchor is shifted against its consensus: an insertion or deletion in the read.

The candidates are aligned without gaps, so behind an insertion or deletion every base of the anchor
is compared with its neighbour's column. Sliding the part before or behind one place over the
consensus shows it: hardly any base differs any more.
"""

from __future__ import annotations

import numpy as np

from ngsgpu.align.msa import COUNT_SHIFT, Columns
from ngsgpu.align.rules import Rules
from ngsgpu.jit import Integer, njit

MAX_SHIFT = 6
"""Longest insertion or deletion, in bases."""

MIN_GAIN = 4
"""Mismatches that a gap must save."""

SURE_GAIN = 8
"""Mismatches that are not saved by chance; a gap that saves fewer must save half of all."""

BESIDE = 8
"""Bases on either side of where a shift begins or ends whose columns are not sure."""

MIN_COVERED = 2
"""Reads besides the anchor without which a column tells nothing."""


@njit(nogil=True, cache=True)
def covered(columns: Columns, column: Integer, inside: bool | np.bool) -> bool | np.bool:
    """Whether a column has ``MIN_COVERED`` reads besides the anchor if that is ``inside``."""
    reads = np.int64(0)
    for base in range(4):
        reads += columns.sums[4 * column + base] >> COUNT_SHIFT
    return reads - inside >= MIN_COVERED


@njit(nogil=True, cache=True)
def differs(
    rules: Rules, columns: Columns, length: Integer, position: Integer, shift: Integer
) -> int:
    """1 if the anchor's base is not the consensus ``shift`` columns further on, where covered."""
    column = position + shift + rules.margin
    if columns.anchor[position] != columns.consensus[column]:
        return 1
    inside = 0 <= position + shift < length
    return 0 if shift == 0 or covered(columns, column, inside) else 1


@njit(nogil=True, cache=True)
def find_gap(rules: Rules, columns: Columns, length: Integer) -> tuple[Integer, Integer, Integer]:
    """The positions that are shifted against the consensus: first, end, and by how many columns.

    The run of positions that saves most mismatches; of equally good ones the smallest shift and
    then the first end.
    """
    best: tuple[Integer, Integer, Integer] = (0, 0, 0)
    if rules.variant_reads == 0:
        return best
    mismatches = 0
    for position in range(length):
        mismatches += differs(rules, columns, length, position, 0)
    most = MIN_GAIN - 1
    if mismatches <= most:
        return best
    furthest = min(MAX_SHIFT, rules.margin)
    for shift in range(-furthest, furthest + 1):
        if shift == 0:
            continue
        gain = 0
        first = 0
        for position in range(length):
            gain += differs(rules, columns, length, position, 0) - differs(
                rules, columns, length, position, shift
            )
            if gain > most:
                most = gain
                best = (first, position + 1, shift)
            if gain < 0:
                gain = 0
                first = position + 1
    return best if most >= SURE_GAIN or 2 * most >= mismatches else (0, 0, 0)


@njit(nogil=True, cache=True)
def in_gap(gap: tuple[Integer, Integer, Integer], position: Integer) -> bool | np.bool:
    """Whether a position is shifted, or so near to those that are that it may be."""
    return gap[2] != 0 and gap[0] - BESIDE <= position < gap[1] + BESIDE
