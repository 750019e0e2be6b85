"""The proof that an FM index is that of a text, in linear time and without its suffix array.

From each row one comes to that of the suffix one base longer. If the counts are those of the bases,
this leads from row 0 through all rows, and if the bases on the way are those of the text, from its
end to its beginning, then the transform is that of the text, for it can be turned back into no
other. The way is walked in pieces, each from a sampled row to the next, whose places must agree.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.pool import map_all
from ngsgpu.suffix.fm import BLOCK, SAMPLED, FmIndex, base_of, count_in_block, row_before

_PART_BLOCKS: Final = 1 << 16


def is_index(index: FmIndex, text: NDArray[np.uint8]) -> bool:
    """Whether an index is that of a text.

    Args:
        index: the index.
        text: uint8[n], bases 0 to 3.
    """
    if not has_right_sizes(index, len(text)):
        return False
    return bool(
        has_right_counts(index)
        and _spells(index.words, index.primary, index.totals, index.sample, text)
    )


def has_right_sizes(index: FmIndex, size: int) -> bool:
    """Whether the parts of an index have the sizes that a text of this length needs."""
    return len(index) == size and index.is_consistent()


def has_right_counts(index: FmIndex, threads: int = 1) -> bool:
    """Whether the counts before each block of a consistent index are those of its bases.

    A changed byte of the transform is so found unless it has the same bases in another order.

    Args:
        index: the index.
        threads: number of threads; does not affect the result.
    """
    size = len(index)
    blocks = (size + BLOCK - 1) // BLOCK

    def check(low: int) -> bool:
        return bool(_counts_agree(index.words, size, low, min(blocks, low + _PART_BLOCKS)))

    return all(map_all(threads, check, range(0, blocks, _PART_BLOCKS), name="check"))


@njit(nogil=True, cache=True)
def _counts_agree(words: NDArray[np.uint32], size: int, low: int, high: int) -> bool:
    """Whether the counts of the blocks from ``low`` to ``high`` lead to those that follow."""
    for block in range(low, high):
        own = min(BLOCK, size - BLOCK * block)
        at = 16 * block
        after = at + 16 if own == BLOCK else at + 8 + (own + 15) // 16
        for base in range(4):
            before = np.int64(words[at + 2 * base]) | (np.int64(words[at + 2 * base + 1]) << 32)
            behind = after + 2 * base
            then = np.int64(words[behind]) | (np.int64(words[behind + 1]) << 32)
            if block == 0 and before != 0:
                return False
            if before + count_in_block(words, at + 8, own, base) != then:
                return False
    return True


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
        row = min(row_before(words, primary, totals, row, base), totals[4])
    return False
