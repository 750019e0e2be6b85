"""Hash functions: bijections on 64 and on 32 bits.

``mix64`` is the finaliser of MurmurHash3, the hash of minhash signatures. Its inverse recovers the
k-mer from a hash value (used to find the position of a minimum k-mer without storing it during
the search). ``mix32`` is Mueller's integer hash, with which MetaCache turns k-mers into features.
"""

from __future__ import annotations

import numpy as np

from ngsgpu.jit import njit

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
