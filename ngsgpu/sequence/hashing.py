"""Hash functions: bijections on 64 and on 32 bits; and hash tables with linear probing.

``mix64`` is the finaliser of MurmurHash3, the hash of minhash signatures. Its inverse recovers the
k-mer from a hash value (used to find the position of a minimum k-mer without storing it during
the search). ``mix32`` is Mueller's integer hash, with which MetaCache turns k-mers into features.

Tables have 2^n slots and always a free one. Keys and values stand in arrays of the same length;
a table of indices holds -1 where it is free, and the keys are those of what the indices name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit

FIRST_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
SECOND_FACTOR = np.uint64(0xC4CEB9FE1A85EC53)
# Multiplicative inverses of the two factors modulo 2^64.
FIRST_INVERSE = np.uint64(pow(0xFF51AFD7ED558CCD, -1, 1 << 64))
SECOND_INVERSE = np.uint64(pow(0xC4CEB9FE1A85EC53, -1, 1 << 64))
FOLD = np.uint64(33)
FACTOR_32 = np.uint64(0x45D9F3B)
HALF_32 = np.uint64(16)
LOW_32 = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def mix64(word: np.uint64) -> np.uint64:
    """Hash of a uint64, a bijection."""
    word ^= word >> FOLD
    word *= FIRST_FACTOR
    word ^= word >> FOLD
    word *= SECOND_FACTOR
    return word ^ (word >> FOLD)


@njit(nogil=True, cache=True, inline="always")
def unmix64(word: np.uint64) -> np.uint64:
    """The uint64 whose ``mix64`` is ``word``."""
    word ^= word >> FOLD
    word *= SECOND_INVERSE
    word ^= word >> FOLD
    word *= FIRST_INVERSE
    return word ^ (word >> FOLD)


@njit(nogil=True, cache=True, inline="always")
def mix32(word: np.uint64) -> np.uint64:
    """Hash of 32 bits, kept in a uint64; a bijection on 32 bits."""
    word = (((word >> HALF_32) ^ word) * FACTOR_32) & LOW_32
    word = (((word >> HALF_32) ^ word) * FACTOR_32) & LOW_32
    return (word >> HALF_32) ^ word


_1 = np.uint64(1)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True, inline="always")
def find_slot(
    keys: NDArray[np.uint64], values: NDArray[Any], key: np.uint64, hashed: np.uint64
) -> np.uint64:
    """The slot of a key, or the first free one (value 0) from its hash on."""
    mask = np.uint64(len(keys) - 1)
    slot = hashed & mask
    while values[slot] != 0 and keys[slot] != key:
        slot = (slot + _1) & mask
    return slot


@njit(nogil=True, cache=True, inline="always")
def free_slot(values: NDArray[np.uint64], hashed: np.uint64) -> np.uint64:
    """The first free slot (value 0) from a hash on, for a key that is not in the table."""
    mask = np.uint64(len(values) - 1)
    slot = hashed & mask
    while values[slot] != 0:
        slot = (slot + _1) & mask
    return slot


@njit(nogil=True, cache=True, inline="always")
def find_cell(
    cells: NDArray[np.int32], size: Integer, keys: NDArray[Any], key: Integer
) -> np.int64:
    """The cell (of the first ``size``) of the index of ``key`` in ``keys``, or a free one."""
    cell = home_cell(key, size)
    while cells[cell] >= 0 and keys[cells[cell]] != key:
        cell = (cell + 1) & (size - 1)
    return cell


@njit(nogil=True, cache=True, inline="always")
def home_cell(key: Integer, size: Integer) -> np.int64:
    """The cell, of ``size``, at which the search for a key begins."""
    return np.int64((np.uint64(key) * _FACTOR) >> np.uint64(40)) & (size - 1)
