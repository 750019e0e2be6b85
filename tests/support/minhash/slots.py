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
    reads = np.flatnonzero(slots != NO_SLOT)
    is_near = entries[reads] >= NEAR_START
    near, far = reads[is_near], reads[~is_near]
    begins = (entries[near] - NEAR_START).astype(np.int64)
    assert (ids[begins] >= BUCKET_START).all()
    found = padded[begins[:, None] + np.arange(NEAR_ENTRIES)] == near[:, None]
    assert found.any(axis=1).all()
    own = entries[far].astype(np.int64)
    assert (own - starts[np.searchsorted(starts, own, side="right") - 1] >= NEAR_ENTRIES).all()
    assert (padded[own] == far).all()
    entries[near] = begins + found.argmax(axis=1)
    return entries
