"""Building the minhash tables on a GPU: signatures by a kernel, tables by sort and run length."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ngsgpu.device.arena import persistent, room
from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.sort import ARGSORT_BYTES, radix_argsort
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import mapped_empty
from ngsgpu.device.team import free_unused, here
from ngsgpu.errors import UnsuitableError
from ngsgpu.minhash.cpu import NO_SLOT
from ngsgpu.minhash.gpu_memory import ENTRY_BYTES, SMALL_BYTES, pass_bytes, table_bytes
from ngsgpu.minhash.params import MinhashParameters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

logger = logging.getLogger("ngsgpu")

KERNELS = KernelModule("ngsgpu.minhash")
FUNCTIONS_PER_PASS = 16
"""Maximum number of functions per pass over the reads."""

SHARED_BYTES = 96 << 10
BLOCKS_PER_MULTIPROCESSOR = 16
THREADS = 128
"""Of a block that makes signatures: a thread for each of its reads and functions."""

TABLE = Struct(__name__, "Table", {"ids": "const uint32_t*", "positions": "const uint16_t*"})
"""A table in device or pinned host memory; ``ids`` and ``positions`` have ``LOOK_AHEAD`` undefined
entries after the last."""

TABLES = Struct(__name__, "Tables", {
    "table": "const Table*",
    "slots": "const uint32_t*",
    "hashes": "int32_t",
})  # fmt: skip
"""All tables; ``slots`` is a matrix of reads and hashes: where the read's bucket begins if that is
near, otherwise its own entry (``fill_table``)."""


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """The tables of a read set on a GPU, as ``ngsgpu.minhash.tables.MinhashTables``.

    Arrays in pinned host memory are read over the bus.

    Attributes:
        ids: for each table uint32[its entries + 1 + LOOK_AHEAD].
        positions: for each table uint16[the same]; undefined after the entries.
        slots: uint32[reads, hashes].
        entries: entries of each table.
        table: the structs ``TABLE``, on the device.
        struct: the struct ``TABLES``, likewise.
    """

    ids: list[Any]
    positions: list[Any]
    slots: Any
    entries: list[int]
    table: Any
    struct: Any

    @classmethod
    def of(
        cls, ids: list[Any], positions: list[Any], slots: Any, entries: list[int]
    ) -> DeviceTables:
        """Tables for kernels of the current GPU.

        Args:
            ids: read numbers of each table.
            positions: positions of each table's k-mers.
            slots: slot of each read in each table, uint32[reads, tables].
            entries: number of entries of each table.
        """
        import cupy

        rows = np.concatenate([
            TABLE.pack(ids=own_ids, positions=own_positions)
            for own_ids, own_positions in zip(ids, positions, strict=True)
        ])  # fmt: skip
        with persistent():
            table = cupy.asarray(rows.view(np.uint8))
            struct = TABLES.on_device(table=table, slots=slots, hashes=len(entries))
        return cls(ids, positions, slots, entries, table, struct)


def empty_slots(reads: int, hashes: int, on_device: bool) -> Any:
    """The slots of reads that are in no table yet, uint32[reads, hashes].

    Args:
        reads: number of reads.
        hashes: number of tables.
        on_device: on the GPU; otherwise in pinned memory of the host.

    Raises:
        DeviceError: could not allocate pinned memory.
    """
    import cupy

    if on_device:
        return cupy.full((reads, hashes), int(NO_SLOT), dtype=cupy.uint32)
    return mapped_empty((reads, hashes), cupy.uint32)


def build_tables_on_gpu(
    reads: DeviceReadSet,
    parameters: MinhashParameters,
    *,
    on_device: int | None = None,
    slots_on_device: bool = True,
    advance: Callable[[int], None] = lambda tables: None,
) -> DeviceTables:
    """Build all tables; equal to ``ngsgpu.minhash.tables.build_tables``.

    If GPU memory runs out, the build is repeated once with smaller passes.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        on_device: number of tables in GPU memory, the first ones; None for all. The others are in
            pinned host memory.
        slots_on_device: whether the slots are in GPU memory.
        advance: called with the number of tables finished since the last call.

    Raises:
        DeviceError: could not allocate pinned memory.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    hashes = parameters.hashes
    with persistent():
        slots = empty_slots(reads.reads, hashes, slots_on_device)
    built = build_some_tables(
        reads, parameters, range(hashes), slots,
        on_device=hashes if on_device is None else on_device, slots_on_device=slots_on_device,
        keeping=persistent, advance=advance,
    )  # fmt: skip
    return DeviceTables.of(built.ids, built.positions, slots, built.entries)


def join_tables(parts: Sequence[BuiltTables], own: int, slots: Any) -> DeviceTables:
    """All tables, of which each of several GPUs has built some, on the current one.

    Args:
        parts: what the GPUs have built, in the order of the tables.
        own: which of them this GPU has; the others are copied here.
        slots: of all tables, in which this GPU's own are filled in; the others are filled in here.
    """
    joined = BuiltTables()
    for number, part in enumerate(parts):
        for ids, positions, entries in zip(part.ids, part.positions, part.entries, strict=True):
            column = len(joined.entries)
            with persistent():
                joined.ids.append(here(ids))
                joined.positions.append(here(positions))
            joined.entries.append(entries)
            if number != own and entries:
                arguments = (joined.ids[-1], np.int64(entries), np.int32(column))
                grid = grid_for(entries, 256, BLOCKS_PER_MULTIPROCESSOR)
                KERNELS.launch(
                    "fill_slots", grid, (256,), (*arguments, np.int32(slots.shape[1]), slots)
                )
    return DeviceTables.of(joined.ids, joined.positions, slots, joined.entries)


@dataclass(slots=True)
class BuiltTables:
    """Some of the tables, as in ``DeviceTables``."""

    ids: list[Any] = field(default_factory=list)
    positions: list[Any] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)


def build_some_tables(
    reads: DeviceReadSet,
    parameters: MinhashParameters,
    tables: range,
    slots: Any,
    *,
    on_device: int,
    slots_on_device: bool,
    keeping: Callable[[], AbstractContextManager[object]],
    advance: Callable[[int], None],
) -> BuiltTables:
    """Build some of the tables, as ``build_tables_on_gpu`` does.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        tables: numbers of the tables, consecutive.
        slots: of all tables, from ``empty_slots``; those of these tables are filled in.
        on_device: tables in GPU memory, the first ones of all.
        slots_on_device: whether the slots are in GPU memory.
        keeping: entered to make the arrays of tables in GPU memory.
        advance: called with the number of tables finished since the last call.
    """
    builder = _Builder(reads, parameters, tables, slots, on_device, slots_on_device, keeping)
    made = builder.made.entries
    most, reported = FUNCTIONS_PER_PASS, 0
    may_shrink = True
    while (first := len(made)) < len(tables):
        functions = min(most, len(tables) - first, builder.functions_that_fit())
        try:
            builder.build(first, functions)
        except MemoryError as error:
            if not may_shrink or functions == 1:
                raise
            message = "building tables: GPU memory ran out (%s); going on with less"
            logger.warning(message, str(error))
            builder.forget(first)
            most, may_shrink = functions // 2, False
        if most < functions:  # behind the handler, where the failed pass's arrays are gone
            free_unused()
        advance(len(made) - reported)
        reported = len(made)
    return builder.made


class _Builder:
    """Tables that are being built, a pass over the reads after the other."""

    def __init__(
        self,
        reads: DeviceReadSet,
        parameters: MinhashParameters,
        tables: range,
        slots: Any,
        on_device: int,
        slots_on_device: bool,
        keeping: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._reads = reads
        self._parameters = parameters
        self._tables = tables
        self._slots = slots
        self._on_device = on_device
        self._slots_on_device = slots_on_device
        self._keeping = keeping
        self.made = BuiltTables()
        self._long_enough = _reads_with_kmers(reads, parameters.k)

    def functions_that_fit(self) -> int:
        """Functions whose signatures, and then tables, fit into the arena in use; at least 1."""
        free = room()
        if free is None or self._reads.reads == 0:
            return FUNCTIONS_PER_PASS
        left = free - SMALL_BYTES - ARGSORT_BYTES * self._reads.reads
        a_read = pass_bytes(self._slots_on_device)
        if self._next_is_on_device:
            a_read += ENTRY_BYTES
        return max(1, left // (a_read * self._reads.reads))

    @property
    def _next_is_on_device(self) -> bool:
        return self._tables.start + len(self.made.entries) < self._on_device

    def forget(self, first: int) -> None:
        """Drop the tables from ``first`` on."""
        made = self.made
        del made.entries[first:], made.ids[first:], made.positions[first:]

    def build(self, first: int, functions: int) -> None:
        """Build tables in one pass, beginning with the table of a given number."""
        import cupy

        first += self._tables.start
        count = self._reads.reads
        keys = [cupy.empty(count, dtype=cupy.uint64) for _ in range(functions)]
        positions = [cupy.empty(count, dtype=cupy.uint16) for _ in range(functions)]
        _sign(self._reads, self._parameters, first, keys, positions)
        # Slots are written at random, for which the bus is too slow: they cross it in order.
        slots = self._slots
        if not self._slots_on_device:
            slots = cupy.full((count, functions), int(NO_SLOT), dtype=cupy.uint32)
        for function in range(functions):
            column = first + function if self._slots_on_device else function
            # Taken out of the lists, so that each is gone when its table is there.
            self._build_table(keys.pop(0), positions.pop(0), slots, column)
        if not self._slots_on_device:
            self._slots[:, first : first + functions] = slots

    def _build_table(self, keys: Any, own_positions: Any, slots: Any, column: int) -> None:
        import cupy

        if self._long_enough is not None:
            keys = keys[self._long_enough]
        count = len(keys)
        if count == 0:
            self._append(0)[0][:1] = 1 << 31
            return
        members = radix_argsort(keys)
        if self._long_enough is not None:
            members = self._long_enough[members]
        grid = grid_for(count, 256, BLOCKS_PER_MULTIPROCESSOR)
        stays = cupy.empty(count, dtype=cupy.int32)
        KERNELS.launch("mark_shared", grid, (256,), (keys, np.int64(count), stays))
        entry = cupy.cumsum(stays, dtype=cupy.int32)
        table_ids, table_positions = self._append(int(entry[-1]))
        KERNELS.launch(
            "fill_table",
            grid,
            (256,),
            (
                keys,
                members,
                np.int64(count),
                stays,
                entry,
                own_positions,
                np.int32(column),
                np.int32(slots.shape[1]),
                table_ids,
                table_positions,
                slots,
            ),
        )

    def _append(self, entries: int) -> tuple[Any, Any]:
        """Room for the next table's ids and places, in one piece."""
        import cupy

        size = table_bytes(entries)
        if self._next_is_on_device:
            with self._keeping():
                table = cupy.empty(size, dtype=cupy.uint8)
        else:
            table = mapped_empty(size, cupy.uint8)
        ids_bytes = size // ENTRY_BYTES * 4
        made = self.made
        made.ids.append(table[:ids_bytes].view(cupy.uint32))
        made.positions.append(table[ids_bytes:].view(cupy.uint16))
        made.entries.append(entries)
        return made.ids[-1], made.positions[-1]


def _reads_with_kmers(reads: DeviceReadSet, kmer: int) -> Any:
    """Numbers of the reads that are long enough to have a k-mer; None for all of them."""
    import cupy

    if reads.min_length >= kmer:
        return None
    if reads.max_length < kmer:
        return cupy.zeros(0, dtype=cupy.int64)
    return cupy.flatnonzero(reads.lengths >= kmer)


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
            pointers[0],
            pointers[1],
        ),
        shared_bytes=block_reads * a_read,
    )
