"""Queries on a GPU: the counterpart of ``engine``.

A query is a warp's work: it sketches the read, looks the features up, sorts the locations in
shared memory and picks the candidates there. Queries with more locations than fit are sorted
together in device memory (a radix sort by query and window).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.engine import NO_MATES, Engine, Queries, QueryBlock
from ngsgpu.classify.gpu import (
    THREADS,
    code_table,
    grid_of,
    grid_of_threads,
    grid_of_warps,
    sketch_numbers,
    to_host,
)
from ngsgpu.classify.query import CandidateArrays, PartitionArrays
from ngsgpu.classify.sketch import unpack_sequences
from ngsgpu.device.gpu_memory import gpu_memory
from ngsgpu.device.kernels import KernelModule

KERNELS: Final = KernelModule("ngsgpu.classify", "query.cu")
SHORT_WARPS: Final = 8


class DeviceMates(NamedTuple):
    """Where sequences of reads, or of a mate of pairs, lie on the device; see ``query.cu``.

    Attributes:
        raw: uint8, text or codes.
        start: uint32[records].
        length: int32[records].
        first: record of the first query.
        step: records from query to query.
    """

    raw: Any
    start: Any
    length: Any
    first: int
    step: int

    def lengths(self, queries: int) -> Any:
        """Bases of each query's read, int32."""
        return self.length[self.first : self.first + queries * self.step : self.step]


class Found(NamedTuple):
    """Candidates of queries, on the host.

    Attributes:
        candidates: the best.
        features: int64[n], features of each query.
        length1: int32[n], bases of the read or first mate.
        length2: int32[n], bases of the second mate, or 0.
    """

    candidates: CandidateArrays
    features: NDArray[np.int64]
    length1: NDArray[np.int32]
    length2: NDArray[np.int32]


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
        self.letters = code_table(letters=True)
        self._codes = code_table(letters=False)
        self._counter = cupy.zeros(1, dtype=cupy.uint64)
        size = sum(
            array.nbytes
            for partition in engine.partitions
            for array in partition
            if isinstance(array, np.ndarray)
        )
        gpu_memory().require(size, "the partitions of the database")
        self._partitions = [_DevicePartition(partition) for partition in engine.partitions]

    def find_candidates(self, queries: Queries) -> QueryBlock:
        """Find the candidates of queries that the host has read; as ``Engine.find_candidates``."""
        first = self._upload(queries.first)
        mates = [first] if queries.second is NO_MATES else [first, self._upload(queries.second)]
        found = self.find(mates, len(queries), self._codes)
        return QueryBlock(
            names=queries.first.data,
            name_start=queries.name_start,
            name_end=queries.name_end,
            length1=found.length1,
            length2=found.length2,
            features=found.features,
            candidates=found.candidates,
            paired=queries.paired,
        )

    def _upload(self, mates: Any) -> DeviceMates:
        """Copy sequences to the device, as codes without line ends."""
        import cupy

        start = np.zeros(len(mates.length) + 1, dtype=np.int64)
        np.cumsum(mates.length, out=start[1:])
        codes = np.empty(int(start[-1]), dtype=np.uint8)
        unpack_sequences(mates.data, mates.start, mates.end, codes)
        return DeviceMates(
            cupy.asarray(codes),
            cupy.asarray(start[:-1].astype(np.uint32)),
            cupy.asarray(mates.length),
            0,
            1,
        )

    def find(self, mates: list[DeviceMates], queries: int, codes_of: Any) -> Found:
        """Find the candidates of queries.

        Args:
            mates: the reads, or first and second mates.
            queries: how many.
            codes_of: CuPy uint8[256], code of each byte of the sequences.
        """
        import cupy

        sketch = self.engine.sketch
        numbers = sketch_numbers(sketch)
        struct = cupy.asarray(_struct_of(mates))
        windows = cupy.empty(queries, dtype=cupy.int64)
        KERNELS.launch(
            "count_windows",
            grid_of_threads(queries),
            (THREADS,),
            (struct, np.int64(queries), numbers[0], numbers[2], numbers[3], windows),
        )
        window_end = cupy.cumsum(windows)
        slots = int(window_end[-1]) * sketch.sketch
        length1 = cupy.ascontiguousarray(mates[0].lengths(queries))
        length2 = cupy.zeros(queries, dtype=cupy.int32)
        if len(mates) == 2:
            length2 = cupy.ascontiguousarray(mates[1].lengths(queries))
        bases = cupy.maximum(length1.astype(cupy.int64) + length2, self.engine.rules.insert_size)
        span = (2 + bases // sketch.stride).astype(cupy.uint32)
        best = _DeviceBest(queries, self.engine.parameters.candidates)
        place = cupy.empty((2, slots), dtype=cupy.uint32)
        total, features = cupy.empty((2, queries), dtype=cupy.int64)
        for partition in self._partitions:
            KERNELS.launch(
                "look_up_queries",
                grid_of_warps(queries),
                (THREADS,),
                (
                    struct, np.int64(queries), codes_of, *numbers, window_end, partition.struct,
                    place[0], place[1], total, features,
                ),
            )  # fmt: skip
            self._rank(queries, window_end, place, total, span, partition, best)
        return Found(
            best.to_host(),
            to_host(features),
            to_host(length1),
            to_host(length2),
        )

    def _rank(
        self,
        queries: int,
        window_end: Any,
        place: Any,
        total: Any,
        span: Any,
        partition: _DevicePartition,
        best: _DeviceBest,
    ) -> None:
        """Sort the locations of each query and pick candidates."""
        import cupy

        sketch = np.int32(self.engine.sketch.sketch)
        longer = cupy.empty(queries, dtype=cupy.int64)
        self._counter.fill(0)
        KERNELS.launch(
            "find_candidates",
            grid_of(queries, SHORT_WARPS),
            (32 * SHORT_WARPS,),
            (
                np.int64(queries), sketch, window_end, place[0], place[1], total, span,
                partition.struct, best.struct, longer, self._counter,
            ),
        )  # fmt: skip
        count = int(self._counter[0])
        if count == 0:
            return
        longer = longer[:count]
        end = cupy.cumsum(total[longer])
        words = cupy.empty(int(end[-1]), dtype=cupy.uint64)
        head = (longer, np.int64(count), end)
        KERNELS.launch(
            "gather_longer",
            grid_of_warps(count),
            (THREADS,),
            (*head, sketch, window_end, place[0], place[1], partition.struct, words),
        )
        words.sort()
        found = words.astype(cupy.uint32)
        hits = cupy.empty(len(found), dtype=cupy.uint32)
        group = cupy.empty(len(found), dtype=cupy.int32)
        KERNELS.launch(
            "pick_longer",
            grid_of_warps(count),
            (THREADS,),
            (*head, found, hits, group, span, partition.struct, best.struct),
        )


def _struct_of(mates: list[DeviceMates]) -> NDArray[np.int64]:
    """int64[10]: two structs ``Mates``; a step of 0 says that there are none."""
    struct = np.zeros((2, 5), dtype=np.int64)
    for row, own in zip(struct, mates, strict=False):
        row[:] = own.raw.data.ptr, own.start.data.ptr, own.length.data.ptr, own.first, own.step
    return struct.reshape(-1)


class _DevicePartition:
    """A partition on the device.

    Attributes:
        struct: int64[8], the struct ``Partition``.
    """

    def __init__(self, partition: PartitionArrays) -> None:
        import cupy

        self._arrays = [
            cupy.asarray(array)
            for array in (
                partition.directory, partition.entries, partition.locations,
                partition.first_window, partition.block_target, partition.target,
                partition.taxon,
            )
        ]  # fmt: skip
        pointers = [array.data.ptr for array in self._arrays]
        if len(partition.taxon) == 0:
            pointers[-1] = 0
        self.struct = cupy.array([*pointers, partition.bits], dtype=cupy.int64)


class _DeviceBest:
    """Lists of candidates on the device.

    Attributes:
        struct: int64[6], the struct ``Best``.
    """

    def __init__(self, queries: int, most: int) -> None:
        import cupy

        self._arrays = cupy.zeros((5, queries, most), dtype=cupy.int32)
        self._arrays[0].fill(-1)
        self._arrays[4].fill(-1)
        pointers = [array.data.ptr for array in self._arrays]
        self.struct = cupy.array([*pointers, most], dtype=cupy.int64)

    def to_host(self) -> CandidateArrays:
        """Copy the lists to the host."""
        return CandidateArrays(*to_host(self._arrays))
