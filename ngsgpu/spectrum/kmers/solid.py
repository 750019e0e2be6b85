"""Sets of solid k-mers: an exact table, or the Bloom filter of Shi and others (2010).

A k-mer is a number of 2k bits, its first base highest; of a k-mer and its reverse complement the
smaller number is in the set. A slot of the table is ``k-mer << 2 | level``, or 0 where it is empty:
k is at most 31 and levels begin with 1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.hashing import free_slot, mix64

# Levels of a k-mer; those unknown to the set have 0.
RARE: Final = 1
SOLID: Final = 2
STRONG: Final = 3

BLOOM_HASHES: Final = 8

_2 = np.uint64(2)
_3 = np.uint64(3)
_6 = np.uint64(6)
_63 = np.uint64(63)
_ONE = np.uint64(1)
_SECOND = np.uint64(0x9E3779B97F4A7C15)


class Solid(NamedTuple):
    """A set of k-mers.

    Attributes:
        words: uint64[2^n], slots of the table or bits of the filter.
        bloom: 1 for a Bloom filter.
    """

    words: NDArray[np.uint64]
    bloom: int


@njit(nogil=True, cache=True)
def level_of(solid: Solid, canonical: np.uint64) -> Integer:
    """Level of a canonical k-mer; a Bloom filter knows ``SOLID`` only."""
    words = solid.words
    mask = np.uint64(len(words) - 1)
    slot = mix64(canonical)
    if solid.bloom:
        step = mix64(canonical ^ _SECOND) | _ONE
        bits = (mask << _6) | _63
        for _ in range(BLOOM_HASHES):
            bit = slot & bits
            if (words[bit >> _6] >> (bit & _63)) & _ONE == 0:
                return 0
            slot += step
        return SOLID
    slot &= mask
    while words[slot] != 0:
        if words[slot] >> _2 == canonical:
            return np.int64(words[slot] & _3)
        slot = (slot + _ONE) & mask
    return 0


@njit(nogil=True, cache=True)
def _insert(
    words: NDArray[np.uint64],
    kmers: NDArray[np.uint64],
    counts: NDArray[np.uint16],
    solid_from: Integer,
    strong_from: Integer,
) -> None:
    for i in range(len(kmers)):
        level = RARE + (counts[i] >= solid_from) + (counts[i] >= strong_from)
        words[free_slot(words, mix64(kmers[i]))] = (kmers[i] << _2) | np.uint64(level)


@njit(nogil=True, cache=True)
def _programme(
    words: NDArray[np.uint64],
    kmers: NDArray[np.uint64],
    counts: NDArray[np.uint16],
    solid_from: Integer,
) -> None:
    bits = (np.uint64(len(words) - 1) << _6) | _63
    for i in range(len(kmers)):
        if counts[i] >= solid_from:
            place = mix64(kmers[i])
            step = mix64(kmers[i] ^ _SECOND) | _ONE
            for _ in range(BLOOM_HASHES):
                bit = place & bits
                words[bit >> _6] |= _ONE << (bit & _63)
                place += step


def table_words(keys: int) -> int:
    """Words of a table for a number of k-mers: at most half of the slots are taken."""
    return 1 << max(4, (2 * keys - 1).bit_length())


def make_solid(
    kmers: NDArray[np.uint64],
    counts: NDArray[np.uint16],
    solid_from: int,
    strong_from: int,
    *,
    bloom: bool,
) -> Solid:
    """The set of distinct canonical k-mers.

    Args:
        kmers: uint64[n], those that occur at least twice.
        counts: uint16[n], how often.
        solid_from: count from which a k-mer is solid.
        strong_from: count from which it is strong; not lower.
        bloom: make a Bloom filter, of 64 bits a solid k-mer at least (8 hash functions).
    """
    if bloom:
        keys = int(np.count_nonzero(counts >= solid_from))
        words = np.zeros(1 << max(4, (keys - 1).bit_length()), dtype=np.uint64)
        _programme(words, kmers, counts, solid_from)
    else:
        words = np.zeros(table_words(len(kmers)), dtype=np.uint64)
        _insert(words, kmers, counts, solid_from, strong_from)
    return Solid(words, int(bloom))
