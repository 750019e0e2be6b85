"""The slots of reads in a GPU's tables, by the CPU (``slots.cuh``)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.minhash import cpu
from ngsgpu.minhash.cpu import NEAR_ENTRIES, TableArrays
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import read_length
from ngsgpu.readset.kmers import canonical_kmers

BUCKET_START: Final = np.uint32(1 << 31)
NEAR_START: Final = np.uint32(1 << 31)


def slot_of_key(tables: TableArrays, table: int, key: np.uint64, read: int) -> int:
    """Entry of a read of a key in a table; -1 where the read is alone in its bucket."""
    cell = int(key) >> tables.below
    first, last = tables.cells[table, cell : cell + 2].tolist()
    return int(cpu.find_slot(tables, table, first, last, read))


def find_slots(
    reads: ReadArrays, tables: TableArrays, k: int, rows: NDArray[Any]
) -> NDArray[np.uint32]:
    """Where reads are in all tables, uint32[rows, tables]: as the kernel of this name writes it.

    Args:
        reads: the read set.
        tables: its tables.
        k: k-mer length.
        rows: numbers of the reads.
    """
    slots = np.full((len(rows), len(tables.ids)), cpu.NO_SLOT, dtype=np.uint32)
    longest = max([int(read_length(reads, int(read))) for read in rows], default=0)
    spaces = np.empty((2, longest + 1), dtype=np.uint64)
    for row, read in enumerate(rows.tolist()):
        kmers = canonical_kmers(reads, read, k, *spaces)
        for table in range(len(tables.ids) if kmers else 0):
            number = np.uint64(tables.first_function + table)
            smallest = np.uint64(cpu.smallest_hash(spaces[0], kmers, number))
            slot = slot_of_key(tables, table, smallest & np.uint64(cpu.key_mask(k)), read)
            if slot >= 0:
                begin = slot
                while tables.ids[table, begin] < BUCKET_START:
                    begin -= 1
                near = slot - begin < NEAR_ENTRIES
                slots[row, table] = np.uint32(begin) | NEAR_START if near else slot
    return slots
