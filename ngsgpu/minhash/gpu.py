"""Building the minhash tables on a GPU: signatures by a kernel, tables by sort and run length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ngsgpu.device.kernels import KernelModule
from ngsgpu.errors import UsageError
from ngsgpu.minhash.cpu import NO_SLOT
from ngsgpu.minhash.params import MinhashParameters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

KERNELS = KernelModule("ngsgpu.minhash")
FUNCTIONS_A_PASS = 16
SHARED_BYTES = 96 << 10
BLOCKS = 132 * 16


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """The tables of a read set on a GPU, as ``ngsgpu.minhash.tables.MinhashTables``.

    Attributes:
        ids: uint32[hashes, reads + 1].
        places: uint16[hashes, reads + 1].
        slots: uint32[reads, hashes].
        entries: entries of each table.
        struct: int64[5], the pointers and sizes that kernels take.
    """

    ids: Any
    places: Any
    slots: Any
    entries: list[int]
    struct: Any


def build_tables_on_gpu(
    reads: DeviceReadSet,
    parameters: MinhashParameters,
    *,
    advance: Callable[[int], None] = lambda tables: None,
) -> DeviceTables:
    """Build all tables; equal to ``ngsgpu.minhash.tables.build_tables``.

    Args:
        reads: the read set.
        parameters: k-mer length, number of tables, hash functions.
        advance: called with the number of tables that were finished since the last call.

    Raises:
        UsageError: a read is too long for the GPU's shared memory.
    """
    import cupy

    count, hashes = reads.reads, parameters.hashes
    ids = cupy.empty((hashes, count + 1), dtype=cupy.uint32)
    places = cupy.empty((hashes, count + 1), dtype=cupy.uint16)
    slots = cupy.full((count, hashes), int(NO_SLOT), dtype=cupy.uint32)
    long_enough = _reads_with_kmers(reads, parameters.kmer)
    entries = []
    for first in range(0, hashes, FUNCTIONS_A_PASS):
        functions = min(FUNCTIONS_A_PASS, hashes - first)
        keys = cupy.empty((functions, count), dtype=cupy.uint64)
        own_places = cupy.empty((functions, count), dtype=cupy.uint16)
        _sign(reads, parameters, first, keys, own_places)
        for function in range(functions):
            table = first + function
            used = keys[function] if long_enough is None else keys[function][long_enough]
            order = cupy.argsort(used, kind="stable")
            sorted_keys = used[order]
            members = order if long_enough is None else long_enough[order]
            entries.append(
                _fill(
                    sorted_keys,
                    members.astype(cupy.uint32),
                    own_places[function],
                    table,
                    hashes,
                    ids[table],
                    places[table],
                    slots,
                )
            )
            advance(1)
        # The next pass takes the memory of this one.
        del keys, own_places
    struct = cupy.array(
        [ids.data.ptr, places.data.ptr, slots.data.ptr, count + 1, hashes], dtype=cupy.int64
    )
    return DeviceTables(ids, places, slots, entries, struct)


def _reads_with_kmers(reads: DeviceReadSet, kmer: int) -> Any:
    """Numbers of the reads that are long enough to have a k-mer; None for all of them."""
    import cupy

    if reads.min_length >= kmer:
        return None
    if reads.max_length < kmer:
        return cupy.zeros(0, dtype=cupy.int64)
    return cupy.flatnonzero(reads.lengths >= kmer)


def _sign(
    reads: DeviceReadSet, parameters: MinhashParameters, first: int, keys: Any, places: Any
) -> None:
    max_kmers = max(1, reads.max_length - parameters.kmer + 1)
    a_read = 16 * max_kmers
    if a_read > SHARED_BYTES:
        raise UsageError(
            f"reads of {reads.max_length:,} bases are too long for the GPU; use --backend cpu"
        )
    if reads.reads == 0:
        return
    block_reads = max(1, min(8, SHARED_BYTES // a_read))
    KERNELS.launch(
        "sign_reads",
        (min(BLOCKS, -(-reads.reads // block_reads)),),
        (len(keys), block_reads),
        (
            reads.struct,
            np.int64(0),
            np.int64(reads.reads),
            np.int32(parameters.kmer),
            np.uint64(parameters.first_function + first),
            np.int32(max_kmers),
            np.int64(keys.shape[1]),
            keys,
            places,
        ),
        shared_bytes=block_reads * a_read,
    )


def _fill(
    keys: Any,
    members: Any,
    own_places: Any,
    table: int,
    tables: int,
    table_ids: Any,
    table_places: Any,
    slots: Any,
) -> int:
    import cupy

    count = len(keys)
    if count == 0:
        table_ids[:1] = 1 << 31
        return 0
    stays = cupy.empty(count, dtype=cupy.int32)
    grid = (min(BLOCKS, -(-count // 256)),)
    KERNELS.launch("mark_shared", grid, (256,), (keys, np.int64(count), stays))
    entry = cupy.cumsum(stays, dtype=cupy.int32)
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
            own_places,
            np.int32(table),
            np.int32(tables),
            table_ids,
            table_places,
            slots,
        ),
    )
    return int(entry[-1])
