"""Which reads are kept (fastp 0.23.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.jit import njit
from ngsgpu.trim.cuts import N, Read, length_of
from ngsgpu.trim.rules import LOWEST, Rules

PASSED: Final = 0
MANY_N: Final = 12
SHORT: Final = 16
LONG: Final = 17
POOR: Final = 20
SIMPLE: Final = 24
RESULTS: Final = 32
"""Results are fastp's numbers, below this: of those of two mates the larger counts for both."""

REASONS: Final = {
    MANY_N: "failed_too_many_n_bases",
    SHORT: "failed_too_short",
    LONG: "failed_too_long",
    POOR: "failed_quality_filter",
    SIMPLE: "failed_low_complexity",
}
"""What is added to the names of reads that are not kept."""

MATE_FAILED: Final = "paired_read_is_failing"


@njit(nogil=True, cache=True)
def result_of(read: Read, rules: Rules) -> int:
    """Whether a read is kept (``PASSED``), or why not."""
    length = length_of(read)
    if length == 0:
        return SHORT
    poor = unknown = total = differing = np.int64(0)
    begin = np.uintp(read.span[0])
    before = read.bases[begin]
    for i in range(np.uintp(length)):
        letter, quality = read.bases[begin + i], read.qualities[begin + i]
        total += quality - LOWEST
        poor += quality < rules.qualified
        unknown += letter == N
        differing += letter != before
        before = letter
    if rules.by_quality:
        if 100 * poor > rules.unqualified * length:
            return POOR
        if rules.mean > 0 and total // length < rules.mean:
            return POOR
        if unknown > rules.most_n:
            return MANY_N
    if rules.by_length:
        if length < rules.shortest:
            return SHORT
        if 0 < rules.most_length < length:
            return LONG
    if rules.complexity >= 0 and (length == 1 or 100 * differing < rules.complexity * (length - 1)):
        return SIMPLE
    return PASSED
