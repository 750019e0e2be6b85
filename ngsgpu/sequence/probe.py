"""Hash tables with linear probing: where a key is, or the free slot where it belongs.

Tables have 2^n slots and always a free one. Keys and values stand in arrays of the same length;
a table of indices holds -1 where it is free, and the keys are those of what the indices name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit

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
