"""The proof that an FM index is that of a text, in linear time and without its suffix array.

From each row one comes to that of the suffix one base longer. If the counts are those of the bases,
this leads from row 0 through all rows, and if the bases on the way are those of the text, from its
end to its beginning, then the transform is that of the text, for it can be turned back into no
other. The way is walked in pieces, each from a sampled row to the next, whose places must agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.suffix.fm import BLOCK, SAMPLED, FmIndex, base_of, count_before, word_count


def is_index(index: FmIndex, text: NDArray[np.uint8]) -> bool:
    """Whether an index is that of a text.

    Args:
        index: the index.
        text: uint8[n], bases 0 to 3.
    """
    if not has_right_sizes(index, len(text)):
        return False
    return bool(
        _has_right_counts(index.words, index.totals)
        and _spells(index.words, index.primary, index.totals, index.sample, text)
    )


def has_right_sizes(index: FmIndex, size: int) -> bool:
    """Whether the parts of an index have the sizes that they have for so many bases."""
    before = index.words[len(index.words) - 8 :].view(np.int64)
    return (
        len(index) == size
        and 0 < index.primary <= size
        and len(index.words) == word_count(size)
        and len(index.sample) == size // SAMPLED + 1
        and np.array_equal(np.cumsum(before), index.totals[1:])
        and index.totals[0] == 0
    )


@njit(nogil=True, cache=True)
def _has_right_counts(words: NDArray[np.uint32], totals: NDArray[np.int64]) -> bool:
    counts = np.zeros(4, dtype=np.int64)
    for position in range(totals[4]):
        if position % BLOCK == 0:
            at = 16 * (position // BLOCK)
            for base in range(4):
                low, high = np.int64(words[at + 2 * base]), np.int64(words[at + 2 * base + 1])
                if low | (high << 32) != counts[base]:
                    return False
        counts[base_of(words, position)] += 1
    return bool(np.all(counts == totals[1:] - totals[:-1]))


@njit(nogil=True, cache=True)
def _spells(
    words: NDArray[np.uint32],
    primary: int,
    totals: NDArray[np.int64],
    sample: NDArray[np.int64],
    text: NDArray[np.uint8],
) -> bool:
    row = np.int64(0)
    for place in range(len(text), -1, -1):
        if row > 0 and row % SAMPLED == 0 and sample[row // SAMPLED] != place:
            return False
        if row == primary:
            return place == 0
        if place == 0:
            return False
        base = base_of(words, row - 1 if row > primary else row)
        if base != text[place - 1]:
            return False
        row = totals[base] + count_before(words, primary, row, base) + 1
    return False
