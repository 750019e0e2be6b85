"""Queries on a GPU: the counterpart of ``engine``.

A query is a warp's work: it sketches the reads, looks the features up, sorts the locations in
registers and picks the candidates. Queries with more locations than a warp holds are sorted
together in device memory (a radix sort by query and window).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.engine import Engine, Queries, QueryBlock
from ngsgpu.classify.gpu import THREADS, grid_of_warps, sketch_numbers
from ngsgpu.classify.query import CandidateArrays, Mates, PartitionArrays
from ngsgpu.classify.sketch import unpack_sequences
from ngsgpu.device.gpu_memory import gpu_memory, pinned_empty
from ngsgpu.device.kernels import KernelModule

KERNELS: Final = KernelModule("ngsgpu.classify", "query.cu")
QUERY_WARPS: Final = 8
NAME_TILE: Final = 256
NULL: Final = np.uint64(0)
"""For kernels: no array."""

LETTERS: Final = np.frombuffer(b"ACGTN", dtype=np.uint8)

_PAD: Final = 64
"""Bytes after sequences that kernels may read."""

_LOCATIONS_AT_ONCE: Final = 1 << 26
"""Locations that are sorted together in device memory, about; each takes some 32 bytes."""

_SIZES: Final = 3
_DEVICE_TO_HOST: Final = 2


class DeviceMates(NamedTuple):
    """Where sequences of reads, or of a mate of pairs, lie on the device; see ``batch.cuh``.

    Attributes:
        raw: uint8, text; ``_PAD`` bytes more than are used.
        start: uint32[records].
        length: int32[records].
        first: record of the first query.
    """

    raw: Any
    start: Any
    length: Any
    first: int

    def arguments(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return self.raw, self.start, self.length, np.uint32(self.first)


class DeviceNames(NamedTuple):
    """Names of queries on the device.

    Attributes:
        text: uint8; names need not lie in the order of the queries.
        start: uint32[queries].
        length: uint32[queries].
        used: int, bytes of ``text``; or uint32[1] on the device.
    """

    text: Any
    start: Any
    length: Any
    used: Any


@dataclass(slots=True)
class DeviceBatch:
    """Queries on the device without their sequences, but with their candidates.

    Attributes:
        queries: how many.
        paired: whether queries are pairs.
        names: their names.
        sizes: int32[3, queries]: features, bases of the first and of the second mate (or 0).
        candidates: int32[queries, m, 4]: target, hits, first and last window; see
            ``CandidateArrays``.
    """

    queries: int
    paired: bool
    names: DeviceNames
    sizes: Any
    candidates: Any

    def __len__(self) -> int:
        return self.queries

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, once they are compact."""
        return int(self.names.used + 8 * self.queries + self.sizes.nbytes + self.candidates.nbytes)

    def compact(self) -> DeviceBatch:
        """The same with no more memory for names than they need."""
        text = self.names.text[: self.names.used].copy()
        return DeviceBatch(
            self.queries, self.paired, self.names._replace(text=text), self.sizes, self.candidates
        )

    def to_host(self, taxon_of_target: NDArray[np.int32]) -> QueryBlock:
        """Copy the batch to the host.

        Args:
            taxon_of_target: see ``Engine``.
        """
        best = self.candidates.get()
        target, hits, begin, end = (np.ascontiguousarray(best[:, :, i]) for i in range(4))
        taxon = np.full_like(target, -1)
        if len(taxon_of_target) > 0:
            taxon = np.where(target >= 0, taxon_of_target[target], taxon)
        start = self.names.start.get().astype(np.int64)
        sizes = self.sizes.get()
        return QueryBlock(
            names=self.names.text[: self.names.used].get(),
            name_start=start,
            name_end=start + self.names.length.get(),
            length1=sizes[1],
            length2=sizes[2],
            features=sizes[0].astype(np.int64),
            candidates=CandidateArrays(target, hits, begin, end, taxon),
            paired=self.paired,
        )


def batch_of_block(block: QueryBlock) -> DeviceBatch:
    """Copy a block to the device."""
    import cupy

    best = block.candidates
    fields = (best.target, best.hits, best.window_begin, best.window_end)
    return DeviceBatch(
        queries=len(block),
        paired=block.paired,
        names=names_on_device(block.names, block.name_start, block.name_end),
        sizes=cupy.asarray(
            np.stack([block.features, block.length1, block.length2]).astype(np.int32)
        ),
        candidates=cupy.asarray(np.stack(fields, axis=-1)),
    )


def names_on_device(
    data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> DeviceNames:
    """Copy names, which lie in some bytes on the host, to the device."""
    import cupy

    lengths = (end - start).astype(np.uint32)
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total) + np.repeat(start - (ends - lengths), lengths)
    return DeviceNames(
        cupy.asarray(data[places]),
        cupy.asarray((ends - lengths).astype(np.uint32)),
        cupy.asarray(lengths),
        total,
    )


class DeviceEngine:
    """Finds candidates on the current GPU.

    Args:
        engine: the database, and how to classify with it.

    Raises:
        DeviceError: the partitions do not fit into the GPU's memory.
    """

    def __init__(self, engine: Engine) -> None:
        import cupy

        self.engine = engine
        size = sum(
            array.nbytes
            for partition in engine.partitions
            for array in partition
            if isinstance(array, np.ndarray)
        )
        gpu_memory().require(size, "the partitions of the database")
        taxa = engine.taxon_of_target
        self._taxa = cupy.asarray(taxa) if len(taxa) > 0 else None
        self._partitions = [
            _DevicePartition(partition, self._taxa) for partition in engine.partitions
        ]
        self._counters = pinned_empty(4 * (1 + 2 * len(self._partitions))).view(np.uint32)
        self._grid = (KERNELS.resident_blocks("find_candidates", 32 * QUERY_WARPS),)

    def find_candidates(self, queries: Queries) -> DeviceBatch:
        """Find the candidates of queries that the host has read; as ``Engine.find_candidates``."""
        mates = [self._upload(queries.first)]
        if queries.paired:
            mates.append(self._upload(queries.second))
        names = names_on_device(queries.first.data, queries.name_start, queries.name_end)
        return self.find(mates, len(queries), 1, names)

    @staticmethod
    def _upload(mates: Mates) -> DeviceMates:
        """Copy sequences to the device, as letters without line ends."""
        import cupy

        start = np.zeros(len(mates.length) + 1, dtype=np.int64)
        np.cumsum(mates.length, out=start[1:])
        codes = np.zeros(int(start[-1]) + _PAD, dtype=np.uint8)
        unpack_sequences(mates.data, mates.start, mates.end, codes)
        return DeviceMates(
            cupy.asarray(LETTERS[codes]),
            cupy.asarray(start[:-1].astype(np.uint32)),
            cupy.asarray(mates.length),
            0,
        )

    def find(
        self, mates: list[DeviceMates], queries: int, step: int, names: DeviceNames
    ) -> DeviceBatch:
        """Find the candidates of queries; waits for the kernels.

        Args:
            mates: the reads, or first and second mates.
            queries: how many.
            step: from a query's record to the next one's.
            names: of the queries.
        """
        import cupy

        engine = self.engine
        numbers = sketch_numbers(engine.sketch)
        most = engine.parameters.candidates
        batch = DeviceBatch(
            queries,
            len(mates) == 2,
            names,
            cupy.empty((_SIZES, queries), dtype=cupy.int32),
            cupy.empty((queries, most, 4), dtype=cupy.int32),
        )
        second = mates[1].arguments() if len(mates) == 2 else (NULL, NULL, NULL, np.uint32(0))
        reads = (*mates[0].arguments(), *second, np.uint32(step))
        insert_size = np.int32(engine.rules.insert_size)
        counters = cupy.empty(1 + 2 * len(self._partitions), dtype=cupy.uint32)
        counters.data.memset_async(0, counters.nbytes)
        longer = cupy.empty((len(self._partitions), queries), dtype=cupy.uint64)
        for number, partition in enumerate(self._partitions):
            KERNELS.launch(
                "find_candidates",
                self._grid,
                (32 * QUERY_WARPS,),
                (
                    *reads, np.uint32(queries), *numbers, insert_size, partition.struct,
                    np.int32(most), np.int32(number == 0), batch.candidates, batch.sizes,
                    counters[1 + 2 * number :], longer[number],
                ),
            )  # fmt: skip
        counts = self._fetch(counters, names)
        if not isinstance(names.used, int):
            batch.names = names._replace(used=int(counts[0]))
        for number, partition in enumerate(self._partitions):
            if count := int(counts[2 + 2 * number]):
                self._find_longer(partition, number == 0, longer[number, :count], reads, batch)
        return batch

    def _fetch(self, counters: Any, names: DeviceNames) -> NDArray[np.uint32]:
        """Bring the counters home, the bytes of the names among them."""
        import cupy

        stream = cupy.cuda.get_current_stream()
        host = self._counters
        copy = cupy.cuda.runtime.memcpyAsync
        copy(host.ctypes.data, counters.data.ptr, host.nbytes, _DEVICE_TO_HOST, stream.ptr)
        if not isinstance(names.used, int):
            copy(host.ctypes.data, names.used.data.ptr, 4, _DEVICE_TO_HOST, stream.ptr)
        stream.synchronize()
        return host

    def _find_longer(
        self,
        partition: _DevicePartition,
        is_first: bool,
        longer: Any,
        reads: tuple[Any, ...],
        batch: DeviceBatch,
    ) -> None:
        """Sort the locations of queries with many, and pick candidates."""
        import cupy

        engine = self.engine
        _, _, _, stride = numbers = sketch_numbers(engine.sketch)
        insert_size = np.int32(engine.rules.insert_size)
        ends = np.cumsum(longer.get() >> np.uint64(32), dtype=np.int64)
        begin, done = 0, 0
        while begin < len(ends):
            # A group of queries with about as many locations as are sorted at a time.
            limit = np.searchsorted(ends, done + _LOCATIONS_AT_ONCE, side="right")
            cut = slice(begin, max(begin + 1, int(limit)))
            end = cupy.asarray(ends[cut] - done)
            count = np.uint32(len(end))
            total = int(ends[cut][-1]) - done
            words = cupy.empty(total, dtype=cupy.uint64)
            grid = grid_of_warps(int(count))
            KERNELS.launch(
                "gather_longer",
                grid,
                (THREADS,),
                (*reads, *numbers, partition.struct, longer[cut], count, end, words),
            )
            words.sort()
            KERNELS.launch(
                "pick_longer",
                grid,
                (THREADS,),
                (
                    batch.sizes, np.uint32(batch.queries), insert_size, stride, partition.struct,
                    longer[cut], count, end, words, cupy.empty(total, dtype=cupy.uint32),
                    cupy.empty(total, dtype=cupy.int32), np.int32(engine.parameters.candidates),
                    np.int32(is_first), batch.candidates,
                ),
            )  # fmt: skip
            begin, done = cut.stop, int(ends[cut][-1])


class _DevicePartition:
    """A partition on the device.

    Attributes:
        struct: int64[9], the struct ``Partition``.
    """

    def __init__(self, partition: PartitionArrays, taxa: Any) -> None:
        import cupy

        self._arrays = [
            cupy.asarray(array)
            for array in (
                partition.directory, partition.entries, partition.locations,
                partition.first_window, partition.block_target, partition.target,
                partition.taxon,
            )
        ]  # fmt: skip
        pointers = [array.data.ptr for array in self._arrays] + [0]
        if taxa is None:
            pointers[-2] = 0
        else:
            pointers[-1] = taxa.data.ptr
        self.struct = cupy.asarray(np.array([*pointers, partition.bits], dtype=np.int64))
