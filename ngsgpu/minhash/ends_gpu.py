"""Builds the tables of read ends on a GPU, one function at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ngsgpu.device.arena import persistent
from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.sort import ARGSORT_BYTES, radix_argsort
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.spread import seen_from_here
from ngsgpu.device.team import here
from ngsgpu.minhash.ends import ENTRY_BYTES, NO_KEY, cell_bits_for
from ngsgpu.minhash.gpu import BLOCKS_PER_MULTIPROCESSOR
from ngsgpu.minhash.gpu_memory import SMALL_BYTES
from ngsgpu.minhash.params import EndParameters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

KERNELS: Final = KernelModule("ngsgpu.minhash", "ends.cu")
THREADS: Final = 256
TABLE_ARRAYS: Final = 2
"""Arrays that the tables consist of."""

SIGNATURE_BYTES: Final = 8 + 1
"""Bytes of an end's signature: key and position."""

LISTED_BYTES: Final = 8 + 8 + 1 + 8
"""Additional bytes per end if some reads are too short: a mask, a list of the others, their keys,
and the list sorted by key."""


END_TABLES: Final = Struct(__name__, "EndTables", {
    "entries": "const uint64_t*",
    "cells": "const uint32_t*",
    "entries_per_table": "int64_t",
    "first_function": "int64_t",
    "hashes": "int32_t",
    "kmer": "int32_t",
    "window": "int32_t",
    "cell_bits": "int32_t",
})  # fmt: skip
"""``DeviceEndTables``, and their shape."""


class DeviceEndTables(NamedTuple):
    """``ngsgpu.minhash.ends.EndTables`` in CuPy arrays.

    Attributes:
        entries: uint64[hashes, entries], mark << 40 | place << 32 | end.
        cells: uint32[hashes, 2^cell_bits + 1], first entry of each cell.
        kmer: k-mer length.
        window: bases of an end whose k-mers count.
        first_function: what the first hash function adds to a k-mer.
        cell_bits: bits of a key that choose the cell.
    """

    entries: Any
    cells: Any
    kmer: int
    window: int
    first_function: int
    cell_bits: int

    @property
    def nbytes(self) -> int:
        """Size of the tables in bytes."""
        return int(self.entries.nbytes) + int(self.cells.nbytes)

    def struct(self) -> Any:
        """The struct ``END_TABLES`` on the device."""
        hashes, entries = self.entries.shape
        return END_TABLES.on_device(**self._asdict(), entries_per_table=entries, hashes=hashes)

    def on_current_device(self, *, divided: bool = False) -> DeviceEndTables:
        """Tables of another GPU for the current one: a copy.

        Args:
            divided: whether they are divided over both; then they stay where they are.
        """
        there = seen_from_here if divided else here
        return self._replace(entries=there(self.entries), cells=there(self.cells))


def table_bytes(reads: int, parameters: EndParameters) -> int:
    """Maximum size in bytes of the tables of ``reads`` reads."""
    cells = 4 * ((1 << cell_bits_for(reads, parameters.kmer)) + 1)
    return parameters.hashes * (2 * reads * ENTRY_BYTES + cells)


def building_bytes(reads: int, *, uniform: bool) -> int:
    """Additional bytes for building."""
    an_end = SIGNATURE_BYTES + ARGSORT_BYTES + (0 if uniform else LISTED_BYTES)
    return 2 * reads * an_end + SMALL_BYTES


def build_end_tables_on_gpu(
    reads: DeviceReadSet,
    parameters: EndParameters,
    *,
    keeping: Callable[[], AbstractContextManager[None]] = persistent,
    advance: Callable[[int], None] = lambda tables: None,
) -> DeviceEndTables:
    """Build all tables; equal to ``ngsgpu.minhash.ends.build_end_tables``.

    Args:
        reads: the read set.
        parameters: k-mer length, window, number of tables, hash functions.
        keeping: in its block, the arrays of the tables are made.
        advance: called with the number of tables that were finished since the last call.
    """
    import cupy

    count, hashes = 2 * reads.reads, parameters.hashes
    bits = cell_bits_for(reads.reads, parameters.kmer)
    all_long = reads.reads == 0 or reads.min_length >= parameters.window
    long_enough = None
    entries = None
    with keeping():
        cells = cupy.empty((hashes, (1 << bits) + 1), dtype=cupy.uint32)
    for function in range(hashes):
        keys = cupy.empty(count, dtype=cupy.uint64)
        positions = cupy.empty(count, dtype=cupy.uint8)
        _sign(reads, parameters, function, keys, positions)
        if not all_long:
            if long_enough is None:
                long_enough = cupy.flatnonzero(keys != NO_KEY)
            keys = keys[long_enough]
        if entries is None:
            with keeping():
                entries = cupy.empty((hashes, len(keys)), dtype=cupy.uint64)
        _fill(keys, positions, long_enough, parameters, bits, entries[function], cells[function])
        advance(1)
    return DeviceEndTables(
        entries, cells, parameters.kmer, parameters.window, parameters.first_function, bits
    )


def _sign(
    reads: DeviceReadSet, parameters: EndParameters, function: int, keys: Any, positions: Any
) -> None:
    KERNELS.launch(
        "sign_ends",
        _grid(len(keys)),
        (THREADS,),
        (
            reads.struct,
            np.int64(len(keys)),
            np.int32(parameters.kmer),
            np.int32(parameters.window),
            np.uint64(parameters.first_function + function),
            keys,
            positions,
        ),
    )


def _fill(
    keys: Any,
    positions: Any,
    long_enough: Any,
    parameters: EndParameters,
    bits: int,
    entries: Any,
    cells: Any,
) -> None:
    """Sort the keys and make a table of them."""
    count, below = len(keys), np.int32(2 * parameters.kmer - bits)
    if count:
        members = radix_argsort(keys)
        if long_enough is not None:
            members = long_enough[members]
        arguments = (keys, members, np.int64(count), positions, below, entries)
        KERNELS.launch("fill_ends", _grid(count), (THREADS,), arguments)
    KERNELS.launch(
        "find_cells",
        _grid(len(cells)),
        (THREADS,),
        (keys, np.int64(count), below, np.int64(len(cells) - 1), cells),
    )


def _grid(count: int) -> tuple[int]:
    return grid_for(count, THREADS, BLOCKS_PER_MULTIPROCESSOR)
