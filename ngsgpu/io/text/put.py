"""Bytes and numbers as text, for kernels that write lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit


@njit(nogil=True, cache=True)
def put_bytes(
    out: NDArray[np.uint8], at: Integer, source: NDArray[np.uint8], begin: Integer, end: Integer
) -> Integer:
    """Copy bytes to ``at``; return where the next go."""
    # Unsigned indices are not looked at for being negative.
    into = np.uintp(at)
    origin = np.uintp(begin)
    for i in range(np.uintp(end - begin)):
        out[into + i] = source[origin + i]
    return at + end - begin


@njit(nogil=True, cache=True)
def put_number(out: NDArray[np.uint8], at: Integer, value: Integer) -> Integer:
    """Write a number that is not negative; return where the next bytes go."""
    rest = np.uint64(value)
    digits = np.uintp(1)
    power = np.uint64(10)
    while rest >= power:
        digits += np.uintp(1)
        power *= np.uint64(10)
    place = np.uintp(at) + digits
    for _ in range(digits):
        place -= np.uintp(1)
        tens = rest // np.uint64(10)
        out[place] = np.uint8(rest - tens * np.uint64(10) + np.uint64(48))
        rest = tens
    return at + np.int64(digits)
