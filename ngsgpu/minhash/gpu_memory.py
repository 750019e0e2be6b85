"""The memory of tables on a GPU, and of building them."""

from __future__ import annotations

ENTRY_BYTES = 4 + 2
"""Bytes per table entry: read and position."""

LOOK_AHEAD = 32
"""Entries behind the last of a table that kernels may read, whatever there is; of
``slots.cuh``."""

SLOT_BYTES = 4
SIGNATURE_BYTES = 8 + 2
"""Bytes of a read's signature under one function: key and position."""

SMALL_BYTES = 2 << 20
"""Fixed memory in addition, independent of the number of reads."""


def table_bytes(entries: int) -> int:
    """Bytes of a table."""
    return (entries + 1 + LOOK_AHEAD) * ENTRY_BYTES


def pass_bytes(slots_on_device: bool) -> int:
    """Bytes per read and function in a pass, in addition to the tables."""
    return SIGNATURE_BYTES + (0 if slots_on_device else SLOT_BYTES)
