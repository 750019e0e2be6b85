"""Letters to 2-bit codes (A 0, C 1, G 2, T 3) in two bit planes, and back.

A read of length L has ``W = ceil(L / 64)`` words per plane: W words with the low bits of its
codes, then W words with the high bits; base i is bit ``i % 64`` of word ``i // 64``. Bits past the
end are 0. With planes, a Hamming distance costs two XORs, an OR and a population count per 64
bases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, intrinsic, njit

_WordFunction: TypeAlias = Callable[[np.uint64], np.uint64]


def _popcount(typing_context: Any, word: Any) -> Any:
    from numba import types

    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount = cast(_WordFunction, intrinsic(_popcount))
"""Number of bits set in a uint64."""


def _reverse_bits(typing_context: Any, word: Any) -> Any:
    from numba import types

    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitreverse(arguments[0])

    return types.uint64(types.uint64), generate


reverse_bits = cast(_WordFunction, intrinsic(_reverse_bits))
"""The 64 bits of a uint64 in opposite order."""


AMBIGUOUS = 4
"""Code of every letter that is not one of ACGT (either case)."""

LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)


def _code_table() -> NDArray[np.uint8]:
    table = np.full(256, AMBIGUOUS, dtype=np.uint8)
    for code, letter in enumerate(b"ACGT"):
        table[letter] = table[letter | 0x20] = code
    return table


CODES = _code_table()
"""uint8[256]: code of each byte, ``AMBIGUOUS`` where it is not a base."""


def words_for(length: int) -> int:
    """Words of one plane of a read of ``length`` bases."""
    return (length + 63) // 64


@njit(nogil=True, cache=True, inline="always")
def base_at(
    planes: NDArray[np.uint64], start: Integer, words: Integer, position: Integer
) -> np.int64:
    """Code of the base at ``position`` of the read whose planes begin at ``planes[start]``."""
    word = start + (position >> 6)
    bit = np.uint64(position & 63)
    low = (planes[word] >> bit) & np.uint64(1)
    high = (planes[word + words] >> bit) & np.uint64(1)
    return np.int64(low | (high << np.uint64(1)))


@njit(nogil=True, cache=True)
def set_base(
    planes: NDArray[np.uint64], start: Integer, words: Integer, position: Integer, code: Integer
) -> None:
    """Replace the base at ``position`` by ``code``."""
    word = start + (position >> 6)
    bit = np.uint64(1) << np.uint64(position & 63)
    planes[word] = (planes[word] & ~bit) | (bit if code & 1 else np.uint64(0))
    planes[word + words] = (planes[word + words] & ~bit) | (bit if code & 2 else np.uint64(0))


@njit(nogil=True, cache=True)
def reverse_complement_plane(
    source: NDArray[np.uint64],
    start: Integer,
    length: Integer,
    target: NDArray[np.uint64],
    to: Integer,
) -> None:
    """Write one plane of the reverse complement: bits in opposite order, inverted.

    Complementing a base inverts both bits of its code, so both planes are treated alike.
    """
    words = (length + 63) >> 6
    surplus = words * 64 - length
    for word in range(words):
        bits = ~reverse_bits(source[start + words - 1 - word])
        if surplus:
            bits >>= np.uint64(surplus)
            if word + 1 < words:
                following = ~reverse_bits(source[start + words - 2 - word])
                bits |= following << np.uint64(64 - surplus)
        target[to + word] = bits


@njit(nogil=True, cache=True, inline="always")
def bases_from(
    planes: NDArray[np.uint64],
    start: Integer,
    words: Integer,
    length: Integer,
    reverse_complemented: Integer,
    offset: Integer,
) -> tuple[np.uint64, np.uint64]:
    """Both planes of the 64 bases from ``offset`` on of a read, or of its reverse complement.

    The read's planes begin at ``planes[start]`` and at ``planes[start + words]``; ``offset`` is
    from 0 to ``length``. Bits past the end are undefined.
    """
    # Reverse complement: the bases before position ``length - offset``, reversed and inverted.
    first = length - offset - 64 if reverse_complemented else offset
    if first < 0:
        back = np.uint64(-first & 63)
        low = np.uint64(planes[start] << back) if first > -64 else np.uint64(0)
        high = np.uint64(planes[start + words] << back) if first > -64 else np.uint64(0)
    else:
        word = start + (first >> 6)
        bit = np.uint64(first & 63)
        low = np.uint64(planes[word] >> bit)
        high = np.uint64(planes[word + words] >> bit)
        if bit != np.uint64(0) and word + 1 < start + words:
            back = np.uint64(64) - bit
            low |= planes[word + 1] << back
            high |= planes[word + words + 1] << back
    if reverse_complemented:
        return ~reverse_bits(low), ~reverse_bits(high)
    return low, high


def encode(sequence: bytes | str) -> NDArray[np.uint8]:
    """Codes of a sequence, uint8[length]; ``AMBIGUOUS`` for letters outside ACGT."""
    raw = sequence.encode() if isinstance(sequence, str) else sequence
    return CODES[np.frombuffer(raw, dtype=np.uint8)]


def decode(codes: NDArray[np.uint8]) -> bytes:
    """Letters of codes 0 to 3."""
    return LETTERS[codes].tobytes()
