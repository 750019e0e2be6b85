"""The slots of reads in a GPU's tables, read as kernels read them (``slots.cuh``)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.minhash.cpu import NO_SLOT

BUCKET_START: Final = np.uint32(1 << 31)
NEAR_START: Final = np.uint32(1 << 31)
NEAR_ENTRIES: Final = 64


def own_entries(ids: NDArray[Any], slots: NDArray[Any]) -> NDArray[np.uint32]:
    """The entries of reads in a table, as in ``MinhashTables``.

    Every slot has to say where the read's bucket begins, if that is near.

    Args:
        ids: uint32[entries + 1], of the table.
        slots: uint32[reads], of the same table.
    """
    entries = slots.astype(np.uint32)
    starts = np.flatnonzero(ids >= BUCKET_START)
    padded = np.concatenate([ids & ~BUCKET_START, np.zeros(NEAR_ENTRIES, np.uint32)])
    for read in np.flatnonzero(slots != NO_SLOT):
        slot = int(slots[read])
        if slot >= NEAR_START:
            begin = slot - int(NEAR_START)
            assert ids[begin] >= BUCKET_START
            entries[read] = begin + list(padded[begin : begin + NEAR_ENTRIES]).index(read)
        else:
            begin = int(starts[np.searchsorted(starts, slot, side="right") - 1])
            assert slot - begin >= NEAR_ENTRIES
            assert padded[slot] == read
    return entries
