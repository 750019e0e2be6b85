"""The symbols of deflate: what stands for bytes, lengths and distances."""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.jit import njit

WINDOW: Final = 1 << 15
"""Bytes that deflate's matches reach back."""

LITERALS: Final = 286
"""Symbols of a block's first code: bytes, its end, and lengths."""

DISTANCES: Final = 30
SYMBOLS: Final = LITERALS + 2 + DISTANCES
"""Counted symbols: those of the first code, two that do not exist, distances."""

FIRST_LENGTH: Final = 257
FIRST_DISTANCE: Final = LITERALS + 2


def _symbols(first: list[int], last: int) -> list[int]:
    """For each value from 0 to ``last`` its symbol, whose values begin with those of ``first``."""
    values = np.arange(last + 1)
    return (np.searchsorted(first, values, side="right") - 1).clip(0).tolist()


LENGTH_EXTRA: Final = np.array([0] * 8 + [n for n in range(1, 6) for _ in range(4)] + [0])
"""Bits that follow on the symbols of lengths."""

LENGTH_FIRST: Final = np.array(
    [*(3 + np.concatenate([[0], np.cumsum(1 << LENGTH_EXTRA[:27])])).tolist(), 258]
)
"""The least length of each symbol."""

DISTANCE_EXTRA: Final = np.array([0, 0, *(n for n in range(14) for _ in range(2))])
"""Bits that follow on the symbols of distances."""

DISTANCE_FIRST: Final = 1 + np.concatenate([[0], np.cumsum(1 << DISTANCE_EXTRA[:29])])
"""The least distance of each symbol."""

LENGTH_SYMBOL: Final = np.array(_symbols(LENGTH_FIRST.tolist(), 258), dtype=np.uint8)
"""The symbol of each length."""

_NEAR = _symbols(DISTANCE_FIRST.tolist(), 256)[1:]
_FAR = _symbols(DISTANCE_FIRST.tolist(), WINDOW)[1::128]
DISTANCE_SYMBOL: Final = np.array(_NEAR + _FAR, dtype=np.uint8)
"""The symbols of distances: of up to 256 by the distance less 1, of others by its 128th."""


@njit(nogil=True, cache=True, _nrt=False)
def distance_symbol(distance):  # type: ignore[no-untyped-def]
    """The symbol of a distance."""
    before = distance - 1
    return np.int64(DISTANCE_SYMBOL[before if before < 256 else 256 + (before >> 7)])
