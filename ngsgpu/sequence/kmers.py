"""K-mers as numbers, two bits a base: rolled, turned, compared and searched.

A k-mer of at most 32 bases is a uint64 whose lowest bits are its last base. Longer ones are rows of
``words`` uint64 whose highest bits are the first base and whose unused bits are 0, so that rows of
any k are in order as their sequences are. Of a k-mer and its reverse complement the smaller one is
canonical.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import reverse_bits
from ngsgpu.sequence.hashing import mix64

_1 = np.uint64(1)
_2 = np.uint64(2)
_3 = np.uint64(3)
_62 = np.uint64(62)
_64 = np.uint64(64)
_ALL = ~np.uint64(0)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(0x5555555555555555)


@njit(nogil=True, cache=True, inline="always")
def append(kmer: np.uint64, code: np.uint64, k: Integer) -> np.uint64:
    """A k-mer without its first base, and with one more at its end."""
    return ((kmer << _2) | code) & (_ALL >> (_64 - np.uint64(2 * k)))


@njit(nogil=True, cache=True, inline="always")
def roll(
    forward: np.uint64, backward: np.uint64, code: np.uint64, k: Integer
) -> tuple[np.uint64, np.uint64]:
    """A k-mer and its reverse complement, with one more base at the end of the k-mer.

    Both begin as 0, and are those of the last ``k`` bases as soon as there are as many.
    """
    return append(forward, code, k), (backward >> _2) | ((_3 - code) << np.uint64(2 * k - 2))


@njit(nogil=True, cache=True)
def reverse_complement(kmer: np.uint64, k: Integer) -> np.uint64:
    """The reverse complement of a k-mer."""
    word = reverse_bits(~kmer)
    return (((word >> _1) & _ODD) | ((word & _ODD) << _1)) >> (_64 - np.uint64(2 * k))


@njit(nogil=True, cache=True, inline="always")
def unused_bits(k: Integer) -> np.uint64:
    """Bits of the last word of a row that no base has."""
    return np.uint64(62 - 2 * ((k - 1) % 32))


@njit(nogil=True, cache=True, inline="always")
def roll_words(
    forward: NDArray[np.uint64], backward: NDArray[np.uint64], code: np.uint64, k: Integer
) -> None:
    """``roll`` for a row, ``forward``, and its reverse complement, ``backward``, which change."""
    last = len(forward) - 1
    unused = unused_bits(k)
    for j in range(last):
        forward[j] = (forward[j] << _2) | (forward[j + 1] >> _62)
    forward[last] = (forward[last] << _2) | (code << unused)
    for j in range(last, 0, -1):
        backward[j] = (backward[j] >> _2) | (backward[j - 1] << _62)
    backward[0] = (backward[0] >> _2) | ((_3 - code) << _62)
    backward[last] &= _ALL << unused


@njit(nogil=True, cache=True)
def turn(
    kmers: NDArray[np.uint64], i: Integer, k: Integer, out: NDArray[np.uint64], o: Integer
) -> None:
    """Write the reverse complement of row ``i`` into row ``o`` of ``out``."""
    words = kmers.shape[1]
    unused = unused_bits(k)
    for j in range(words):
        out[o, j] = reverse_complement(kmers[i, words - 1 - j], 32)
    if unused > 0:
        for j in range(words):
            rest = out[o, j + 1] >> (_64 - unused) if j + 1 < words else np.uint64(0)
            out[o, j] = (out[o, j] << unused) | rest


@njit(nogil=True, cache=True)
def is_less(
    a: NDArray[np.uint64], i: Integer, b: NDArray[np.uint64], k: Integer, words: Integer
) -> bool:
    """Whether the row ``a[i]`` comes before the row ``b[k]``."""
    for j in range(words):
        if a[i, j] != b[k, j]:
            return a[i, j] < b[k, j]
    return False


@njit(nogil=True, cache=True)
def find_row(
    kmers: NDArray[np.uint64],
    low: Integer,
    high: Integer,
    wanted: NDArray[np.uint64],
    row: Integer,
) -> Integer:
    """The place of ``wanted[row]`` among the ascending rows ``low`` up to ``high``, or -1."""
    words = kmers.shape[1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if is_less(kmers, middle, wanted, row, words):
            low = middle + 1
        else:
            high = middle
    return low if low < end and not is_less(wanted, row, kmers, low, words) else -1


@njit(nogil=True, cache=True, inline="always")
def hash_row(kmers: NDArray[np.uint64], i: Integer, words: Integer) -> np.uint64:
    """Hash of the row ``kmers[i]``."""
    value = kmers[i, 0]
    for j in range(1, words):
        value = value * _FACTOR + kmers[i, j]
    return mix64(value)


def distinct(kmers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Different k-mers, or hashes, ascending; the array itself is sorted.

    ``np.unique`` of NumPy 2.3 and later takes sixty times as long, since it puts them into a table
    first.
    """
    kmers.sort()
    first = np.ones(len(kmers), dtype=np.bool_)
    np.not_equal(kmers[1:], kmers[:-1], out=first[1:])
    return kmers[first]
