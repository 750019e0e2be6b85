"""Bytes of reads: letters in one case, reverse complements, scores, copies.

Plain loops over unsigned indices, which Numba does not check for being negative, so that the
compiler makes vector instructions of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.sequence.types import Integer

_N = np.uint8(ord("N"))
_UPPER = np.uint8(0xDF)
_A, _C, _G, _T = (np.uint8(letter) for letter in b"ACGT")
_A_OR_T = np.uint8(ord("A") ^ ord("T"))
_C_OR_G = np.uint8(ord("C") ^ ord("G"))


@njit(nogil=True, cache=True, inline="always")
def copy(
    out: NDArray[np.uint8], at: Integer, data: NDArray[np.uint8], start: Integer, end: Integer
) -> int:
    """Append bytes; return where the next go."""
    begin, source = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(max(0, end - start))):
        out[begin + i] = data[source + i]
    return at + max(0, end - start)


@njit(nogil=True, cache=True)
def copy_letters(
    data: NDArray[np.uint8], start: Integer, count: Integer, out: NDArray[np.uint8], at: Integer
) -> None:
    """Write letters in upper case, and N for all that are not A, C, G or T."""
    begin, source = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(count)):
        letter = data[source + i] & _UPPER
        is_base = (letter == _A) | (letter == _C) | (letter == _G) | (letter == _T)
        out[begin + i] = letter if is_base else _N


@njit(nogil=True, cache=True)
def copy_complement(
    data: NDArray[np.uint8], last: Integer, count: Integer, out: NDArray[np.uint8], at: Integer
) -> None:
    """Write the complements of ``count`` letters, the one at ``last`` first, going back."""
    begin, source = np.uint64(at), np.uint64(last)
    for i in range(np.uint64(count)):
        letter = data[source - i] & _UPPER
        if_cg = letter ^ _C_OR_G if (letter == _C) | (letter == _G) else _N
        out[begin + i] = letter ^ _A_OR_T if (letter == _A) | (letter == _T) else if_cg


@njit(nogil=True, cache=True)
def copy_scores(
    data: NDArray[np.uint8], start: Integer, count: Integer, offset: Integer, out: NDArray[np.uint8]
) -> None:
    """Write the scores of quality characters; negative ones become zero."""
    source, lowest = np.uint64(start), np.uint8(offset)
    for i in range(np.uint64(count)):
        byte = data[source + i]
        out[i] = byte - lowest if byte > lowest else np.uint8(0)


@njit(nogil=True, cache=True)
def copy_scores_back(
    data: NDArray[np.uint8], last: Integer, count: Integer, offset: Integer, out: NDArray[np.uint8]
) -> None:
    """The same, the character at ``last`` first, going back."""
    source, lowest = np.uint64(last), np.uint8(offset)
    for i in range(np.uint64(count)):
        byte = data[source - i]
        out[i] = byte - lowest if byte > lowest else np.uint8(0)


@njit(nogil=True, cache=True, inline="always")
def put_scores(
    out: NDArray[np.uint8], at: Integer, scores: NDArray[np.uint8], start: Integer, end: Integer,
    offset: Integer,
) -> int:  # fmt: skip
    """Append scores as characters; return where the next go."""
    begin, source, lowest = np.uint64(at), np.uint64(start), np.uint8(offset)
    for i in range(np.uint64(max(0, end - start))):
        out[begin + i] = scores[source + i] + lowest
    return at + max(0, end - start)


@njit(nogil=True, cache=True)
def put_scores_back(
    out: NDArray[np.uint8], at: Integer, scores: NDArray[np.uint8], last: Integer, count: Integer,
    offset: Integer,
) -> int:  # fmt: skip
    """The same for ``count`` scores, the one at ``last`` first, going back."""
    begin, source, lowest = np.uint64(at), np.uint64(last), np.uint8(offset)
    for i in range(np.uint64(count)):
        out[begin + i] = scores[source - i] + lowest
    return at + count
