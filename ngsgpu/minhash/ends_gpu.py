"""Builds the tables of read ends on a GPU, one function at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ngsgpu.device.arena import persistent
from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import mapped_empty
from ngsgpu.device.spread import seen_from_here
from ngsgpu.device.team import here
from ngsgpu.minhash.ends import ENTRY_BYTES, cell_bits_for
from ngsgpu.minhash.gpu import BLOCKS_PER_MULTIPROCESSOR
from ngsgpu.minhash.gpu_memory import sorting_bytes
from ngsgpu.minhash.gpu_parts import sorted_keys, sorted_parts
from ngsgpu.minhash.params import EndParameters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

KERNELS: Final = KernelModule("ngsgpu.minhash", "ends.cu")
THREADS: Final = 256
TABLE_ARRAYS: Final = 2
"""Arrays that the tables consist of."""

SIGNATURE_BYTES: Final = 8 + 1
"""Bytes of an end's signature: key and position."""

PARTS: Final = (1, 4, 16, 64)
"""In which a table may be sorted, from what takes most memory to what takes least."""


END_TABLES: Final = Struct(__name__, "EndTables", {
    "entries": "const uint64_t*",
    "cells": "const uint32_t*",
    "entries_per_table": "int64_t",
    "host_start": "int64_t",
    "on_device": "int32_t",
    "first_function": "int64_t",
    "hashes": "int32_t",
    "kmer": "int32_t",
    "window": "int32_t",
    "cell_bits": "int32_t",
})  # fmt: skip
"""``DeviceEndTables``, and their shape; the first ``on_device`` tables are behind ``entries``, the
others ``host_start`` entries further."""


class DeviceEndTables(NamedTuple):
    """``ngsgpu.minhash.ends.EndTables`` in CuPy arrays.

    Attributes:
        entries: uint64[tables on the GPU, entries], mark << 40 | place << 32 | end.
        on_host: uint64[other tables, entries], in pinned host memory.
        cells: uint32[hashes, 2^cell_bits + 1], first entry of each cell.
        kmer: k-mer length.
        window: bases of an end whose k-mers count.
        first_function: what the first hash function adds to a k-mer.
        cell_bits: bits of a key that choose the cell.
    """

    entries: Any
    on_host: Any
    cells: Any
    kmer: int
    window: int
    first_function: int
    cell_bits: int

    @property
    def nbytes(self) -> int:
        """Size of the tables on the GPU in bytes."""
        return int(self.entries.nbytes) + int(self.cells.nbytes)

    def struct(self) -> Any:
        """The struct ``END_TABLES`` on the device."""
        fields = self._asdict()
        on_host, (on_device, entries) = fields.pop("on_host"), self.entries.shape
        first = self.entries if on_device else on_host
        return END_TABLES.on_device(
            **fields | {"entries": first},
            entries_per_table=entries,
            host_start=(on_host.data.ptr - first.data.ptr) // 8 if len(on_host) else 0,
            on_device=on_device,
            hashes=on_device + len(on_host),
        )

    def on_current_device(self, *, divided: bool = False) -> DeviceEndTables:
        """Tables of another GPU for the current one: a copy.

        Args:
            divided: whether they are divided over both; then they stay where they are.
        """
        there = seen_from_here if divided else here
        return self._replace(
            entries=there(self.entries),
            on_host=seen_from_here(self.on_host),
            cells=there(self.cells),
        )


def table_bytes(reads: int) -> int:
    """Maximum size in bytes of the entries of a table of ``reads`` reads."""
    return 2 * reads * ENTRY_BYTES


def all_cells_bytes(reads: int, parameters: EndParameters) -> int:
    """Bytes of the cells of all tables, which are always on the GPU."""
    return parameters.hashes * 4 * ((1 << cell_bits_for(reads, parameters.kmer)) + 1)


def building_bytes(reads: int, parts: int, *, uniform: bool) -> int:
    """Additional bytes for building.

    Args:
        reads: number of reads.
        parts: in which a table is sorted.
        uniform: whether all reads have the same length.
    """
    sorting = sorting_bytes(2 * reads, parts, listed=not uniform)
    return 2 * reads * SIGNATURE_BYTES + sorting


def build_end_tables_on_gpu(
    reads: DeviceReadSet,
    parameters: EndParameters,
    *,
    on_device: int | None = None,
    parts: int = 1,
    keeping: Callable[[], AbstractContextManager[None]] = persistent,
    advance: Callable[[int], None] = lambda tables: None,
) -> DeviceEndTables:
    """Build all tables; equal to ``ngsgpu.minhash.ends.build_end_tables``.

    Args:
        reads: the read set.
        parameters: k-mer length, window, number of tables, hash functions.
        on_device: number of tables in GPU memory, the first ones; None for all. The others are in
            pinned host memory.
        parts: in which a table is sorted, a power of two.
        keeping: in its block, the arrays of the tables in GPU memory are made.
        advance: called with the number of tables that were finished since the last call.

    Raises:
        DeviceError: could not allocate pinned memory.
    """
    import cupy

    count, hashes = 2 * reads.reads, parameters.hashes
    bits = cell_bits_for(reads.reads, parameters.kmer)
    long_ends = count
    if reads.reads and reads.min_length < parameters.window:
        long_ends = 2 * int((reads.lengths >= parameters.window).sum())
    own = hashes if on_device is None else on_device
    with keeping():
        cells = cupy.empty((hashes, (1 << bits) + 1), dtype=cupy.uint32)
        entries = cupy.empty((own, long_ends), dtype=cupy.uint64)
    on_host = mapped_empty((hashes - own, long_ends), cupy.uint64)
    for function in range(hashes):
        keys = cupy.empty(count, dtype=cupy.uint64)
        positions = cupy.empty(count, dtype=cupy.uint8)
        _sign(reads, parameters, function, keys, positions)
        table = entries[function] if function < own else on_host[function - own]
        pieces = sorted_keys(keys)
        own_parts = min(parts, 1 << bits)
        if own_parts > 1 or long_ends < count:
            pieces = sorted_parts(keys, own_parts, _mark(parameters.kmer, own_parts))
        del keys
        _fill(pieces, own_parts, positions, 2 * parameters.kmer - bits, table, cells[function])
        advance(1)
    return DeviceEndTables(
        entries, on_host, cells, parameters.kmer, parameters.window, parameters.first_function, bits
    )


def _mark(kmer: int, parts: int) -> Callable[[Any, int, int, Any], None]:
    """Marks the ends of a part, for ``sorted_parts``."""
    shift = np.int32(2 * kmer - (parts.bit_length() - 1))

    def mark(keys: Any, first: int, part: int, marks: Any) -> None:
        arguments = (keys, np.int64(first), np.int64(len(marks)), shift, np.uint64(part), marks)
        KERNELS.launch("mark_ends", _grid(len(marks)), (THREADS,), arguments)

    return mark


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
    pieces: Iterator[tuple[Any, Any]],
    parts: int,
    positions: Any,
    below: int,
    entries: Any,
    cells: Any,
) -> None:
    """Make a table of the sorted keys of its parts."""
    base, own_cells = 0, (len(cells) - 1) // parts
    for part, (keys, members) in enumerate(pieces):
        count = len(keys)
        if count:
            table = entries[base : base + count]
            arguments = (keys, members, np.int64(count), positions, np.int32(below), table)
            KERNELS.launch("fill_ends", _grid(count), (THREADS,), arguments)
        KERNELS.launch(
            "find_cells",
            _grid(own_cells),
            (THREADS,),
            (
                keys, np.int64(count), np.int32(below), np.int64(base),
                np.int64(part * own_cells), np.int64(own_cells), cells[part * own_cells :],
            ),
        )  # fmt: skip
        base += count
        del keys, members
    cells[-1:] = base


def _grid(count: int) -> tuple[int]:
    return grid_for(count, THREADS, BLOCKS_PER_MULTIPROCESSOR)
