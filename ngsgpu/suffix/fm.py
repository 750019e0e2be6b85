"""The FM index: the Burrows-Wheeler transform of both strands, with counts and sampled places.

Rows are the suffixes of the text and an end mark, which is less than any base, in their order: row
0 is the end mark alone, row r > 0 the suffix ``array[r - 1]``. The transform has, for each row, the
base in front of its suffix, without the one row (``primary``) in front of which is the end mark.

``words`` is BWA's layout: for every 128 bases, how often each base occurs before them (4 numbers of
64 bits), then the bases, 16 in a word, the first in the highest bits; and the totals in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all
from ngsgpu.sequence.codec import popcount
from ngsgpu.suffix.array import Places

SAMPLED: Final = 32
"""One in this many rows has its place, as in BWA."""

BLOCK: Final = 128
"""Bases for which the counts before them are kept."""

REBUILD: Final = "make the index again (ngsgpu index build, or bwa index)"

_BLOCK_WORDS: Final = 16
"""Words of a block, with its counts."""

_COUNT_WORDS: Final = 8
_PART_BLOCKS: Final = 1 << 11
_COUNTS = sum(
    (np.arange(256, dtype=np.uint32)[:, None] >> np.arange(0, 8, 2, dtype=np.uint32) & 3 == base)
    .sum(axis=1)
    .astype(np.uint32)
    << np.uint32(8 * base)
    for base in range(4)
)
"""How often each base is among the four of a byte, in eight bits each."""

_LOW_BITS = np.uint64(0x55555555)
_PATTERNS = np.array([0xFFFFFFFF, 0xAAAAAAAA, 0x55555555, 0], dtype=np.uint64)
"""By base, what turns its two bits into 11 (by exclusive or)."""


@dataclass(frozen=True, slots=True)
class FmIndex:
    """An index of a text of bases.

    Attributes:
        primary: row of the whole text.
        totals: int64[5], how many bases of the text are less than 0, 1, 2, 3, 4.
        words: uint32[n], the transform; see above.
        sample: int64[rows / 32 and 1], places of rows 0, 32, 64, ...; -1 for row 0.
        source: its name, for messages.
    """

    primary: int
    totals: NDArray[np.int64]
    words: NDArray[np.uint32]
    sample: NDArray[np.int64]
    source: str = "the index"

    def __len__(self) -> int:
        """Bases of the text."""
        return int(self.totals[4])

    def is_consistent(self) -> bool:
        """Whether the sizes of the parts and their sums fit, so that no look-up leaves them."""
        if len(self.totals) != 5 or int(self.totals[0]) != 0 or len(self.words) < _COUNT_WORDS:
            return False
        size, own = len(self), np.diff(self.totals)
        return bool(
            own.min() >= 0
            and 0 < self.primary <= size
            and len(self.words) == word_count(size)
            and len(self.sample) == size // SAMPLED + 1
            and np.array_equal(self.words[-_COUNT_WORDS:].view(np.int64), own)
            and int(self.sample[1:].min(initial=0)) >= 0
            and int(self.sample[1:].max(initial=0)) < size
        )

    def damage(self) -> InputError:
        """The error for an index in which a look-up went astray."""
        return InputError(self.source, "is damaged: a look-up leads nowhere", REBUILD)


def word_count(size: int) -> int:
    """Words of the transform of a text, by its number of bases."""
    return (size + 15) // 16 + _COUNT_WORDS * ((size + BLOCK - 1) // BLOCK + 1)


def fm_index(text: NDArray[np.uint8], places: Places, threads: int = 1) -> FmIndex:
    """Make the index.

    Args:
        text: uint8[n], bases 0 to 3.
        places: its suffix array.
        threads: number of threads; does not affect the result.
    """
    size = len(text)
    primary = _place_of_zero(places) + 1
    blocks = (size + BLOCK - 1) // BLOCK
    # The last block has room for all of its bases, and behind it, or in it, are the totals.
    rows = np.zeros((blocks + 1, _BLOCK_WORDS), dtype=np.uint32)
    counts = np.empty((blocks, 4), dtype=np.uint8)

    def pack(low: int) -> None:
        high = min(low + _PART_BLOCKS, blocks)
        bases = np.zeros((high - low) * BLOCK, dtype=np.uint8)
        take_bases(text, places, primary, low * BLOCK, bases[: size - low * BLOCK])
        packed = quads(bases)
        rows[low:high, _COUNT_WORDS:] = packed.view(">u4").reshape(high - low, -1)
        counted = _COUNTS[packed].reshape(high - low, -1).sum(axis=1, dtype=np.uint32)
        counts[low:high] = counted.astype("<u4").view(np.uint8).reshape(high - low, 4)

    map_all(threads, pack, range(0, blocks, _PART_BLOCKS), name="transform")
    counts[-1, 0] -= blocks * BLOCK - size
    before = np.zeros(4, dtype=np.int64)
    for low in range(0, blocks, _PART_BLOCKS):
        own = counts[low : low + _PART_BLOCKS]
        sums = np.cumsum(own, axis=0, dtype=np.int64) + before
        rows[low : low + len(own), :_COUNT_WORDS] = (sums - own).view(np.uint32)
        before = sums[-1]
    words = rows.reshape(-1)[: word_count(size)]
    words[len(words) - _COUNT_WORDS :] = before.view(np.uint32)
    totals = np.concatenate(([0], np.cumsum(before)))
    sample = np.empty(size // SAMPLED + 1, dtype=np.int64)
    sample[0] = -1
    sample[1:] = places[SAMPLED - 1 :: SAMPLED]
    return FmIndex(primary, totals, words, sample)


def _place_of_zero(places: Places) -> int:
    """Where 0 is among places; -1 if nowhere."""
    for at in range(0, len(places), _PART_BLOCKS * BLOCK):
        found = np.flatnonzero(places[at : at + _PART_BLOCKS * BLOCK] == 0)
        if len(found):
            return at + int(found[0])
    return -1


def take_bases(
    text: NDArray[np.uint8], places: Places, primary: int, begin: int, out: NDArray[np.uint8]
) -> None:
    """Write bases of the transform.

    Args:
        text: uint8[n].
        places: its suffix array.
        primary: row of the whole text, which has no base.
        begin: the first base that is wanted.
        out: gets them.
    """
    end = begin + len(out)
    cut = min(max(begin, primary), end)
    first = max(begin, 1)
    if begin == 0 < cut:
        out[0] = text[-1]
    for low, high, shift in ((first, cut, 1), (cut, end, 0)):
        if low < high:
            rows = places[low - shift : high - shift] - 1
            np.take(text, rows, out=out[low - begin : high - begin], mode="clip")


def quads(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bases four in a byte, the first in the highest bits.

    Args:
        codes: uint8[n], 0 to 3; n is a multiple of 4.
    """
    packed = codes[0::4] << np.uint8(6)
    for at, bits in ((1, 4), (2, 2), (3, 0)):
        packed |= codes[at::4] << np.uint8(bits)
    return packed


@njit(nogil=True, cache=True, inline="always")
def base_of(words: NDArray[np.uint32], position: Integer) -> np.int64:
    """The base at a position of the transform."""
    at = _BLOCK_WORDS * (position // BLOCK) + _COUNT_WORDS + (position % BLOCK) // 16
    return np.int64((words[at] >> np.uint32(30 - 2 * (position % 16))) & np.uint32(3))


@njit(nogil=True, cache=True)
def count_before(
    words: NDArray[np.uint32], primary: Integer, row: Integer, base: Integer
) -> Integer:
    """How many of the rows before this one have the base in front."""
    position = row - 1 if row > primary else row
    block = position // BLOCK
    at = 16 * block
    total = np.int64(words[at + 2 * base]) | (np.int64(words[at + 2 * base + 1]) << 32)
    return total + count_in_block(words, at + 8, position - BLOCK * block, base)


@njit(nogil=True, cache=True, inline="always")
def count_in_block(
    words: NDArray[np.uint32], at: Integer, rest: Integer, base: Integer
) -> Integer:  # fmt: skip
    """How often a base is among the first ``rest`` from a word on."""
    total = np.int64(0)
    pattern = _PATTERNS[base]
    while rest > 0:
        word = np.uint64(words[at]) ^ pattern
        word = word & (word >> np.uint64(1)) & _LOW_BITS
        if rest < 16:
            word >>= np.uint64(2 * (16 - rest))
        total += np.int64(popcount(word))
        at += 1
        rest -= 16
    return total


@njit(nogil=True, cache=True, inline="always")
def row_before(
    words: NDArray[np.uint32],
    primary: Integer,
    totals: NDArray[np.int64],
    row: Integer,
    base: Integer,
) -> Integer:
    """The row with the base in front of a row's suffix, too; one of the index whatever it holds."""
    found = totals[base] + count_before(words, primary, row, base) + 1
    return min(max(found, np.int64(0)), totals[4] + 1)
