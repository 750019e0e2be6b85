"""Building the minhash tables on a GPU: signatures by a kernel, tables by sort and run length."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ngsgpu.device.arena import persistent, room
from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import mapped_empty
from ngsgpu.device.spread import seen_from_here
from ngsgpu.device.team import free_unused, here
from ngsgpu.errors import UnsuitableError
from ngsgpu.minhash.gpu_memory import LOOK_AHEAD, PASSES, building_bytes, table_bytes
from ngsgpu.minhash.gpu_parts import sorted_keys, sorted_parts
from ngsgpu.minhash.params import MinhashParameters
from ngsgpu.minhash.tables import cell_bits_for, place_type

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

logger = logging.getLogger("ngsgpu")

KERNELS = KernelModule("ngsgpu.minhash")

SHARED_BYTES = 96 << 10
BLOCKS_PER_MULTIPROCESSOR = 16
THREADS = 128
"""Of a block that makes signatures: a thread for each of its reads and functions."""

SLOT_FUNCTIONS: Final = 16
"""Tables that a block looks for slots in at a time."""

TABLE = Struct(__name__, "Table", {
    "ids": "const uint32_t*",
    "positions": "const uint8_t*",
    "cells": "const uint32_t*",
    "long_buckets": "const uint64_t*",
    "long_count": "int64_t",
})  # fmt: skip
"""A table in device or pinned host memory; ``ids`` and ``positions`` have ``LOOK_AHEAD`` undefined
entries after the last."""

TABLES = Struct(__name__, "Tables", {
    "table": "const Table*",
    "first_function": "int64_t",
    "hashes": "int32_t",
    "below": "int32_t",
    "wide": "int32_t",
})  # fmt: skip
"""All tables; ``wide``: whether a position takes two bytes."""


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """A table on a GPU, as in ``ngsgpu.minhash.cpu.TableArrays``.

    Attributes:
        ids: uint32[its entries + 1 + LOOK_AHEAD].
        positions: uint8 or uint16[the same]; undefined after the entries.
        cells: uint32[cells + 1].
        long_buckets: uint64, first entry << 32 | end of each, ascending.
        entries: number of entries.
        on_host: whether ``ids`` and ``positions`` are in pinned host memory, and read over the bus.
    """

    ids: Any
    positions: Any
    cells: Any
    long_buckets: Any
    entries: int
    on_host: bool

    def on_current_device(self, *, divided: bool = False) -> DeviceTable:
        """The table for the current GPU: a copy, but for what is on the host.

        Args:
            divided: whether it is in memory that both GPUs divide; then it stays where it is.
        """
        there = seen_from_here if divided else here
        entries = seen_from_here if self.on_host else there
        return DeviceTable(
            entries(self.ids),
            entries(self.positions),
            there(self.cells),
            there(self.long_buckets),
            self.entries,
            self.on_host,
        )


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """The tables of a read set on a GPU, as ``ngsgpu.minhash.tables.MinhashTables``.

    Attributes:
        tables: one for each hash function.
        kmer: k-mer length.
        struct: the struct ``TABLES``, on the device.
        rows: the structs ``TABLE``, likewise.
    """

    tables: list[DeviceTable]
    kmer: int
    struct: Any
    rows: Any

    @classmethod
    def of(
        cls, tables: list[DeviceTable], parameters: MinhashParameters, reads: int
    ) -> DeviceTables:
        """Tables for kernels of the current GPU.

        Args:
            tables: one for each hash function.
            parameters: with which they were built.
            reads: number of reads.
        """
        import cupy

        rows = np.concatenate([
            TABLE.pack(
                ids=own.ids, positions=own.positions, cells=own.cells,
                long_buckets=own.long_buckets, long_count=len(own.long_buckets),
            )
            for own in tables
        ])  # fmt: skip
        with persistent():
            on_device = cupy.asarray(rows.view(np.uint8))
            struct = TABLES.on_device(
                table=on_device,
                first_function=parameters.first_function,
                hashes=len(tables),
                below=2 * parameters.k - cell_bits_for(reads, parameters.k),
                wide=int(tables[0].positions.dtype.itemsize == 2),
            )
        return cls(tables, parameters.k, struct, on_device)

    def find_slots(self, reads: DeviceReadSet, anchors: Any, mates: int, slots: Any) -> None:
        """Write where reads are in the tables.

        Args:
            reads: the read set.
            anchors: uint32, the reads, or the first mates of pairs.
            mates: 2 for pairs, otherwise 1.
            slots: uint32[mates x anchors, tables], set to where the read's bucket begins if that is
                near, otherwise to the read's own entry (``slots.cuh``).
        """
        if len(anchors) == 0:
            return
        max_kmers = max(1, reads.max_length - self.kmer + 1)
        rows = THREADS // SLOT_FUNCTIONS
        while 8 * max_kmers * rows > SHARED_BYTES and rows > 2:
            rows //= 2
        KERNELS.launch(
            "find_slots",
            grid_for(mates * len(anchors), rows, BLOCKS_PER_MULTIPROCESSOR),
            (SLOT_FUNCTIONS, rows),
            (
                reads.struct,
                self.struct,
                np.int32(self.kmer),
                np.int32(max_kmers),
                anchors,
                np.int64(len(anchors)),
                np.int32(mates),
                slots,
            ),
            shared_bytes=8 * max_kmers * rows,
        )


def build_tables_on_gpu(
    reads: DeviceReadSet,
    parameters: MinhashParameters,
    *,
    on_device: int | None = None,
    advance: Callable[[int], None] = lambda tables: None,
) -> DeviceTables:
    """Build all tables; equal to ``ngsgpu.minhash.tables.build_tables``.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        on_device: number of tables in GPU memory, the first ones; None for all. The others are in
            pinned host memory.
        advance: called with the number of tables finished since the last call.

    Raises:
        DeviceError: could not allocate pinned memory.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    hashes = parameters.tables
    built = build_some_tables(
        reads, parameters, range(hashes),
        on_device=hashes if on_device is None else on_device, keeping=persistent, advance=advance,
    )  # fmt: skip
    return DeviceTables.of(built, parameters, reads.reads)


def build_some_tables(
    reads: DeviceReadSet,
    parameters: MinhashParameters,
    tables: range,
    *,
    on_device: int,
    keeping: Callable[[], AbstractContextManager[object]],
    advance: Callable[[int], None],
) -> list[DeviceTable]:
    """Build some of the tables, as ``build_tables_on_gpu`` does.

    If GPU memory runs out, the pass is repeated with less.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        tables: numbers of the tables, consecutive.
        on_device: tables in GPU memory, the first ones of all.
        keeping: entered to make the arrays of tables in GPU memory.
        advance: called with the number of tables finished since the last call.
    """
    builder = _Builder(reads, parameters, tables, on_device, keeping)
    made, reported, most = builder.made, 0, 0
    while (first := len(made)) < len(tables):
        most = max(most, builder.pass_that_fits())
        functions, parts = PASSES[most]
        failed = False
        try:
            builder.build(first, min(functions, len(tables) - first), parts)
        except MemoryError as error:
            if most + 1 == len(PASSES):
                raise
            message = "building tables: GPU memory ran out (%s); going on with less"
            logger.warning(message, str(error))
            del made[first:]
            failed = True
        if failed:  # behind the handler, where the failed pass's arrays are gone
            most += 1
            free_unused()
        advance(len(made) - reported)
        reported = len(made)
    return made


class _Builder:
    """Tables that are being built, a pass over the reads after the other."""

    def __init__(
        self,
        reads: DeviceReadSet,
        parameters: MinhashParameters,
        tables: range,
        on_device: int,
        keeping: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._reads = reads
        self._parameters = parameters
        self._tables = tables
        self._on_device = on_device
        self._keeping = keeping
        self._bits = cell_bits_for(reads.reads, parameters.k)
        self._place = place_type(reads.max_length, parameters.k)
        self.made: list[DeviceTable] = []

    def pass_that_fits(self) -> int:
        """Number of the first of ``PASSES`` that fits into the arena in use, or of the last one."""
        free, reads, k = room(), self._reads, self._parameters.k
        if free is None or reads.reads == 0:
            return 0
        left = len(self._tables) - len(self.made)
        for number, (most, parts) in enumerate(PASSES):
            functions = min(most, left)
            needed = building_bytes(
                reads.reads, reads.max_length, k, functions, parts,
                uniform=reads.uniform_length >= 0,
            )  # fmt: skip
            if self._next_is_on_device and self._keeping is persistent:
                needed += functions * table_bytes(reads.reads, reads.max_length, k)
            if needed <= free:
                return number
        return len(PASSES) - 1

    @property
    def _next_is_on_device(self) -> bool:
        return self._tables.start + len(self.made) < self._on_device

    def build(self, first: int, functions: int, parts: int) -> None:
        """Build tables in one pass, beginning with the table of a given number."""
        import cupy

        count = self._reads.reads
        keys = [cupy.empty(count, dtype=cupy.uint64) for _ in range(functions)]
        positions = [cupy.empty(count, dtype=self._place) for _ in range(functions)]
        _sign(self._reads, self._parameters, self._tables.start + first, keys, positions)
        for _ in range(functions):
            # Taken out of the lists, so that each is gone when its table is there.
            self._build_table(keys.pop(0), positions.pop(0), parts)

    def _build_table(self, keys: Any, places: Any, parts: int) -> None:
        import cupy

        count, on_device = self._reads.reads, self._next_is_on_device
        with self._keeping():
            cells = cupy.empty((1 << self._bits) + 1, dtype=cupy.uint32)
        listed = cupy.empty(count // 64 + 1, dtype=cupy.uint64)
        long_count = cupy.zeros(1, dtype=cupy.uint64)
        parts = min(parts, 1 << self._bits)
        ids = positions = None
        base = 0
        own_cells = (1 << self._bits) // parts
        below = 2 * self._parameters.k - self._bits
        wide = np.int32(self._place.itemsize == 2)
        sorted_parts = self._parts(keys, parts)
        del keys
        for part, (own, members) in enumerate(sorted_parts):
            grid = grid_for(len(own), 256, BLOCKS_PER_MULTIPROCESSOR)
            stays = cupy.empty(len(own), dtype=cupy.int32)
            KERNELS.launch("mark_shared", grid, (256,), (own, np.int64(len(own)), stays))
            entry = cupy.cumsum(stays, dtype=cupy.int32)
            kept = int(entry[-1]) if len(own) else 0
            if ids is None:
                # Of how many entries it consists is only known of a table that is in one part.
                ids, positions = self._append(kept if parts == 1 else count, on_device)
            KERNELS.launch(
                "fill_table",
                grid,
                (256,),
                (
                    own, members, np.int64(len(own)), stays, entry, places, wide, np.int64(base),
                    ids, positions, listed, long_count,
                ),
            )  # fmt: skip
            KERNELS.launch(
                "find_cells",
                grid_for(own_cells, 256, BLOCKS_PER_MULTIPROCESSOR),
                (256,),
                (
                    own, np.int64(len(own)), entry, np.int32(below), np.int64(base),
                    np.int64(part * own_cells), np.int64(own_cells),
                    cells[part * own_cells :],
                ),
            )  # fmt: skip
            base += kept
            del own, members, stays, entry
        assert ids is not None
        ids[base : base + 1] = 1 << 31
        cells[-1:] = base
        with self._keeping():
            long_buckets = cupy.empty(int(long_count[0]), dtype=cupy.uint64)
        listed = listed[: len(long_buckets)]
        radix_sort(listed)
        long_buckets[...] = listed
        self.made.append(DeviceTable(ids, positions, cells, long_buckets, base, not on_device))

    def _parts(self, keys: Any, parts: int) -> Iterator[tuple[Any, Any]]:
        """Sorted keys and their reads, of one part of the keys after the other."""
        reads, k = self._reads, self._parameters.k

        def mark(own: Any, first: int, part: int, marks: Any) -> None:
            KERNELS.launch(
                "mark_part",
                grid_for(len(marks), 256, BLOCKS_PER_MULTIPROCESSOR),
                (256,),
                (
                    reads.struct, own, np.int64(first), np.int64(len(marks)), np.int32(k),
                    np.int32(2 * k - (parts.bit_length() - 1)), np.uint64(part), marks,
                ),
            )  # fmt: skip

        if parts == 1 and reads.min_length >= k:
            return sorted_keys(keys)
        return sorted_parts(keys, parts, mark)

    def _append(self, entries: int, on_device: bool) -> tuple[Any, Any]:
        """Room for the next table's ids and places, in one piece."""
        import cupy

        places = entries + 1 + LOOK_AHEAD
        size = places * (4 + self._place.itemsize)
        if on_device:
            with self._keeping():
                table = cupy.empty(size, dtype=cupy.uint8)
        else:
            table = mapped_empty(size, cupy.uint8)
        return table[: 4 * places].view(cupy.uint32), table[4 * places :].view(self._place)


def _sign(
    reads: DeviceReadSet,
    parameters: MinhashParameters,
    first: int,
    keys: list[Any],
    positions: list[Any],
) -> None:
    import cupy

    max_kmers = max(1, reads.max_length - parameters.k + 1)
    a_read = 16 * max_kmers
    if a_read > SHARED_BYTES:
        raise UnsuitableError(
            f"reads of {reads.max_length:,} bases are too long for the GPU; use `backend='cpu'`"
        )
    if reads.reads == 0:
        return
    block_reads = max(1, min(THREADS // len(keys), SHARED_BYTES // a_read))
    pointers = cupy.array([[array.data.ptr for array in arrays] for arrays in (keys, positions)])
    KERNELS.launch(
        "sign_reads",
        grid_for(reads.reads, block_reads, BLOCKS_PER_MULTIPROCESSOR),
        (len(keys), block_reads),
        (
            reads.struct,
            np.int64(0),
            np.int64(reads.reads),
            np.int32(parameters.k),
            np.uint64(parameters.first_function + first),
            np.int32(max_kmers),
            np.int32(positions[0].dtype.itemsize == 2),
            pointers[0],
            pointers[1],
        ),
        shared_bytes=block_reads * a_read,
    )
