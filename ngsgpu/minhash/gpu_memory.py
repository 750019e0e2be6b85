"""The memory of tables on a GPU, and of building them."""

from __future__ import annotations

from typing import Final

from ngsgpu.device.cuda.sort import ARGSORT_BYTES
from ngsgpu.minhash.tables import cells_bytes, entry_bytes

LOOK_AHEAD = 32
"""Entries behind the last of a table that kernels may read, whatever there is; of
``slots.cuh``."""

SLOT_BYTES = 4

SMALL_BYTES = 2 << 20
"""Fixed memory in addition, independent of the number of reads."""

LONG_SHARE: Final = 8
"""Long buckets have more than 64 entries, and are listed by 8 bytes each: a byte for 8 entries."""

READS_MARKED: Final = 1 << 24
"""Reads of which those of a part are listed at a time."""

_MARKING_BYTES: Final = 1 + 8 + 8
"""Bytes per read of those: a mark, and CuPy's scratch and list."""

_SORTING_BYTES: Final = ARGSORT_BYTES + 8
"""Bytes per read of a part that is sorted, in addition to its keys: order, scratch, reads."""

_MARGIN: Final = 1.25
"""The largest part, in parts of average size, that is planned for; hashes spread them evenly."""

PASSES: Final = ((16, 1), (8, 1), (4, 1), (2, 1), (1, 1), (1, 4), (1, 16), (1, 64))
"""Functions in a pass over the reads, and parts in which each table is then sorted, from what takes
most memory to what takes least."""


def table_bytes(entries: int, max_length: int, k: int) -> int:
    """Bytes of a table's entries, and the list of its long buckets.

    Args:
        entries: number of entries.
        max_length: bases of the longest read.
        k: k-mer length.
    """
    return (entries + 1 + LOOK_AHEAD) * entry_bytes(max_length, k) + entries // LONG_SHARE


def building_bytes(
    reads: int, max_length: int, k: int, functions: int, parts: int, *, uniform: bool
) -> int:
    """Bytes for building tables, in addition to them.

    Args:
        reads: number of reads.
        max_length: bases of the longest one.
        k: k-mer length.
        functions: of a pass.
        parts: in which a table is sorted.
        uniform: whether all reads have the same length.
    """
    signatures = functions * reads * (8 + entry_bytes(max_length, k) - 4) + reads // LONG_SHARE
    return signatures + sorting_bytes(reads, parts, listed=not uniform)


def sorting_bytes(keys: int, parts: int, *, listed: bool) -> int:
    """Bytes for sorting keys in parts, in addition to them.

    Args:
        keys: their number.
        parts: number of parts.
        listed: whether some keys may be left out, for which the others are listed.
    """
    if parts == 1 and not listed:
        return _SORTING_BYTES * keys + SMALL_BYTES
    # Other keys and their numbers are copied.
    part = min(keys, int(_MARGIN * keys / parts) + 1024)
    return (_SORTING_BYTES + 8 + 8) * part + _MARKING_BYTES * min(keys, READS_MARKED) + SMALL_BYTES


def all_cells_bytes(reads: int, hashes: int, k: int) -> int:
    """Bytes of the cells of all tables, which are always on the GPU.

    Args:
        reads: number of reads.
        hashes: number of tables.
        k: k-mer length.
    """
    return hashes * (cells_bytes(reads, k) + 512)
