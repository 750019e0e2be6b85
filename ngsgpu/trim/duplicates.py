"""Equal reads and pairs, known by a hash, as fastp 0.23.2 counts them.

Its hash of all letters addresses a bit; what finds it set is a duplicate. (fastp has several hashes
and a table for each, of which the last one decides.)
"""

from __future__ import annotations

import mmap
import threading
from contextlib import suppress
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit

_PRIMES: Final = 512
"""Of each hash."""

_PERIOD: Final = 2048
"""Positions of a read after which factors are used again, at most."""

_STEP: Final = 10_000
_BITS: Final = (32, 33, 33, 34, 35, 35)
_HASHES: Final = (2, 2, 4, 4, 4, 6)
"""By level, from 1."""

_OTHER: Final = 13


def _codes() -> NDArray[np.uint64]:
    table = np.full(256, _OTHER, dtype=np.uint64)
    for letter, code in zip(b"ATCG", (7, 222, 74, 31), strict=True):
        table[letter] = code
    return table


CODES: Final = _codes()
"""uint64 [256], of each letter."""


@lru_cache(maxsize=6)
def _factors(level: int) -> NDArray[np.uint64]:
    """uint64 [_PERIOD], factor of each position: primes, each the first 10,000 behind another."""
    hashes = _HASHES[level - 1]
    count = _PRIMES * hashes
    is_prime = np.ones(_STEP + count * (_STEP + 200), dtype=np.bool_)
    is_prime[:2] = False
    for number in range(2, int(len(is_prime) ** 0.5) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = False
    primes = np.flatnonzero(is_prime)
    found = np.empty(count, dtype=np.uint64)
    number = _STEP
    for at in range(count):
        prime = int(primes[np.searchsorted(primes, number + 1)])
        found[at] = prime
        number = prime + _STEP
    # With six hashes the mask is none of a power of two, and some primes are never used.
    return found[(np.arange(_PERIOD) * hashes + hashes - 1) & (count - 1)]


@njit(nogil=True, cache=True)
def _hash_units(
    first: Mates, second: Mates, paired: bool, begin: Integer, end: Integer, mask: np.uint64,
    codes: NDArray[np.uint64], factors: NDArray[np.uint64], out: NDArray[np.uint64],
) -> None:  # fmt: skip
    """Write the hash of each read or pair."""
    for i in range(begin, end):
        key = np.uint64(0)
        place = np.uint64(0)
        for mate in range(2 if paired else 1):
            mates = second if mate else first
            start = mates.seq_start[i]
            for at in range(mates.seq_len[i]):
                code = codes[mates.data[start + at]] + place
                key += factors[place & np.uint64(_PERIOD - 1)] * code
                place += np.uint64(1)
        out[i - begin] = key & mask


@njit(nogil=True, cache=True)
def _mark(keys: NDArray[np.uint64], bits: NDArray[np.uint8], seen: NDArray[np.bool_]) -> Integer:
    """Set the bits of keys in order; note those that were set, and return how many they were."""
    count = 0
    for at in range(len(keys)):
        byte, bit = np.int64(keys[at] >> np.uint64(3)), np.uint8(1 << (keys[at] & np.uint64(7)))
        was = bits[byte] & bit != 0
        bits[byte] |= bit
        seen[at] = was
        count += was
    return count


def table_bytes(level: int) -> int:
    """Bytes of the bits of a level, 1 to 6."""
    return 1 << (_BITS[level - 1] - 3)


def _zeros(size: int) -> NDArray[np.uint8]:
    """Zeros, uint8[size], in pages of 4 KiB.

    NumPy asks for pages of 2 MiB. Few reads would touch all of them, and clear the whole table.
    """
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of kernels that know no other pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=np.uint8)


class Duplicates:
    """Tells which reads or pairs are equal to an earlier one; safe to use from several threads.

    It takes as much memory as there are different reads, in pages, up to 512 MiB (more with a
    higher level).

    Args:
        level: how many bits of the hash there are: 1 to 6.

    Attributes:
        mask: bits of the hash.
        factors: uint64 [_PERIOD], of each position.
    """

    def __init__(self, level: int) -> None:
        self.mask = np.uint64((1 << _BITS[level - 1]) - 1)
        self.factors = _factors(level)
        self._bits = _zeros(table_bytes(level))
        self._lock = threading.Lock()

    def find(self, mates: tuple[Mates, ...], begin: int, end: int) -> tuple[NDArray[np.bool_], int]:
        """Which of records ``begin`` up to ``end`` are equal to one before, and their number."""
        keys = np.empty(end - begin, dtype=np.uint64)
        _hash_units(
            mates[0], mates[-1], len(mates) == 2, begin, end, self.mask, CODES, self.factors, keys
        )
        return self.mark(keys)

    def mark(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], int]:
        """Which hashes are equal to one before, and their number."""
        seen = np.empty(len(keys), dtype=np.bool_)
        with self._lock:
            count = _mark(keys, self._bits, seen)
        return seen, int(count)
