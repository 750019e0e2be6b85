"""Suffix arrays of bytes, and the proof that an array is one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError, install_extra
from ngsgpu.jit import njit

Places = NDArray[Any]
"""Places in a text, int32 or, of 2^31 bytes and more, int64."""

_MOST_32: Final = (1 << 31) - 1


def place_bytes(size: int) -> int:
    """Bytes of a place in a text of this size."""
    return 4 if size <= _MOST_32 else 8


def suffix_array(text: NDArray[np.uint8]) -> Places:
    """Start positions of the suffixes of a text, in lexicographic order.

    Suffixes are compared byte by byte; one that is the start of another comes first.

    Args:
        text: uint8[n].

    Returns:
        int32[n], or int64[n] of 2^31 bytes and more.

    Raises:
        UsageError: pydivsufsort is missing.
    """
    if len(text) == 0:
        return np.empty(0, dtype=np.int32)
    try:
        from pydivsufsort import divsufsort
    except ImportError as error:
        raise UsageError(f"indexing needs pydivsufsort; {install_extra('index')}") from error
    found: Places = divsufsort(np.require(text, requirements=["C", "W"]))
    return found


def is_suffix_array(text: NDArray[np.uint8], places: Places) -> bool:
    """Whether an array is the suffix array of a text, in linear time.

    It is if it is a permutation, the first bytes ascend, and of suffixes with the same first byte
    the rests ascend by their own ranks [Burkhardt and Kaerkkaeinen 2003].

    Args:
        text: uint8[n].
        places: int[n].
    """
    if len(text) != len(places):
        return False
    ranks = np.full(len(text) + 1, -1, dtype=np.int64)
    return bool(_is_sorted(text, places, ranks))


@njit(nogil=True, cache=True)
def _is_sorted(text: NDArray[np.uint8], places: Places, ranks: NDArray[np.int64]) -> bool:
    """See ``is_suffix_array``; the rank of the empty suffix is the last of ``ranks``, -1."""
    size = len(text)
    for i in range(size):
        place = places[i]
        if place < 0 or place >= size or ranks[place] >= 0:
            return False
        ranks[place] = i
    for i in range(1, size):
        before = places[i - 1]
        own = places[i]
        if text[before] > text[own]:
            return False
        if text[before] == text[own] and ranks[before + 1] > ranks[own + 1]:
            return False
    return True
