"""A set of read ends that a sequence has met: a hash table that is cleared in O(1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.hashing import home_cell

END_MASK = np.uint64(0xFFFFFFFF)


MAX_ENDS = 1 << 12
"""Default number of ends recorded per sequence."""


class EndSet(NamedTuple):
    """Ends that a sequence has met, each with a flag; cleared in O(1).

    Attributes:
        cells: uint64[2^n], open-addressing hash table of generation << 33 | end << 1 | flag; what
            is of an earlier generation counts as free.
        state: int64[2], generation and number of ends.
    """

    cells: NDArray[np.uint64]
    state: NDArray[np.int64]

    @classmethod
    def allocate(cls, most: int = MAX_ENDS) -> EndSet:
        """Room for up to ``most`` ends, a power of two."""
        return cls(np.zeros(2 * most, dtype=np.uint64), np.zeros(2, dtype=np.int64))


@njit(nogil=True, cache=True)
def empty_set(ends: EndSet) -> None:
    """Forget all ends."""
    ends.state[0] += 1
    ends.state[1] = 0
    if ends.state[0] >> 31:
        ends.cells[:] = 0
        ends.state[0] = 1


@njit(nogil=True, cache=True, inline="always")
def cell_of(ends: EndSet, end: Integer) -> np.int64:
    """Cell where an end is or belongs."""
    generation = np.uint64(ends.state[0])
    cell = home_cell(end, len(ends.cells))
    while True:
        value = ends.cells[cell]
        if value >> np.uint64(33) != generation:
            return np.int64(cell)
        if (value >> np.uint64(1)) & END_MASK == np.uint64(end):
            return np.int64(cell)
        cell = (cell + 1) & (len(ends.cells) - 1)


@njit(nogil=True, cache=True, inline="always")
def add_end(ends: EndSet, end: Integer) -> bool:
    """Add an end without its flag; whether it is new and there was room."""
    cell = cell_of(ends, end)
    if ends.cells[cell] >> np.uint64(33) == np.uint64(ends.state[0]):
        return False
    if 2 * ends.state[1] >= len(ends.cells):
        return False
    ends.state[1] += 1
    ends.cells[cell] = (np.uint64(ends.state[0]) << np.uint64(33)) | (
        np.uint64(end) << np.uint64(1)
    )
    return True


@njit(nogil=True, cache=True, inline="always")
def set_flag(ends: EndSet, end: Integer, flag: bool) -> None:
    """Set or clear the flag of an end that was added."""
    cell = cell_of(ends, end)
    value = ends.cells[cell] & ~np.uint64(1)
    ends.cells[cell] = value | np.uint64(1) if flag else value


@njit(nogil=True, cache=True, inline="always")
def has_flag(ends: EndSet, end: Integer) -> bool:
    """Whether an end was added and its flag is set."""
    value = ends.cells[cell_of(ends, end)]
    generation = value >> np.uint64(33)
    return bool(generation == np.uint64(ends.state[0]) and value & np.uint64(1))
