"""Databases and queries on a GPU: the counterparts of ``sketching``, ``index`` and ``engine``.

The index of a partition is made by one sort of (key, window) words and the lengths of their runs.
A query is a warp's work: it sketches the read, looks the features up, sorts the locations in
shared memory and picks the candidates there. Queries with more locations than fit are sorted
together in device memory (a radix sort by query and window).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database import Database, Partition
from ngsgpu.classify.engine import NO_MATES, Engine, Queries, QueryBlock
from ngsgpu.classify.index import Index, directory_bits
from ngsgpu.classify.params import DatabaseParameters, SketchParameters
from ngsgpu.classify.query import CandidateArrays, PartitionArrays
from ngsgpu.classify.references import windows_of_lengths
from ngsgpu.classify.sketch import unpack_sequences
from ngsgpu.classify.sketching import Unpacked
from ngsgpu.device.gpu_memory import gpu_memory
from ngsgpu.device.kernels import KernelModule
from ngsgpu.sequence.codec import CODES, UNKNOWN

KERNELS: Final = KernelModule("ngsgpu.classify")
THREADS: Final = 256
SHORT_WARPS: Final = 8
_GRID: Final = 132 * 32
_BYTES_A_SLOT: Final = 40
"""Device memory for a feature of a reference window while an index is made."""


def _blocks(units: int, a_block: int) -> tuple[int]:
    """Grid for kernels whose blocks take so many units at a time, over and over."""
    return (max(1, min(-(-units // a_block), _GRID)),)


def _threads(units: int) -> tuple[int]:
    return _blocks(units, THREADS)


def _warps(units: int) -> tuple[int]:
    return _blocks(units, THREADS // 32)


def _code_table(letters: bool) -> Any:
    """Code of each byte, for text (letters) or for codes themselves."""
    import cupy

    if letters:
        return cupy.asarray(CODES)
    table = np.full(256, UNKNOWN, dtype=np.uint8)
    table[:UNKNOWN] = np.arange(UNKNOWN)
    return cupy.asarray(table)


@dataclass(frozen=True, slots=True)
class DeviceSketches:
    """Features of consecutive reference sequences.

    Attributes:
        keys: CuPy uint32[windows * sketch], those of a window in its first places.
        counts: CuPy uint8[windows], features of each window.
        first_window: CuPy int64[n + 1], where each sequence's windows begin.
        target: int64[n], number of each one's target.
    """

    keys: Any
    counts: Any
    first_window: Any
    target: NDArray[np.int64]


def sketch_on_gpu(
    batches: Iterable[Unpacked], parameters: SketchParameters, advance: Any
) -> list[DeviceSketches]:
    """Sketch reference sequences; equal to ``sketch_batches``, but for where the result is."""
    import cupy

    codes_of = _code_table(letters=False)
    done = []
    for batch in batches:
        windows = windows_of_lengths(np.diff(batch.start), parameters)
        first = np.zeros(len(windows) + 1, dtype=np.int64)
        np.cumsum(windows, out=first[1:])
        total = int(first[-1])
        keys = cupy.empty(total * parameters.sketch, dtype=cupy.uint32)
        counts = cupy.empty(total, dtype=cupy.uint8)
        first_window = cupy.asarray(first)
        if total > 0:
            KERNELS.launch(
                "sketch_sequences",
                _warps(total),
                (THREADS,),
                (
                    cupy.asarray(batch.codes),
                    cupy.asarray(batch.start),
                    first_window,
                    np.int64(len(windows)),
                    np.int64(total),
                    codes_of,
                    *_numbers(parameters),
                    keys,
                    counts,
                ),
            )
        done.append(DeviceSketches(keys, counts, first_window, batch.target))
        advance(len(batch.codes))
    return done


def _numbers(parameters: SketchParameters) -> tuple[np.int32, ...]:
    rules = parameters.rules
    return tuple(map(np.int32, (rules.kmer, rules.sketch, rules.window, rules.stride)))


def index_on_gpu(database: Database, number: int, sketches: list[DeviceSketches]) -> Partition:
    """Build the index of a partition; equal to ``ngsgpu.classify.build.index_partition``.

    Raises:
        DeviceError: the GPU's memory does not suffice.
    """
    import cupy

    target, first_window = database.members(number)
    shift = np.full(len(database.targets) + 1, -1, dtype=np.int64)
    shift[target] = first_window[:-1]
    own = [one for one in sketches if (shift[one.target] >= 0).any()]
    slots = sum(len(one.keys) for one in own)
    gpu_memory().require(_BYTES_A_SLOT * slots, f"sorting partition {number}")
    words = cupy.empty(slots, dtype=cupy.uint64)
    at = 0
    for one in own:
        size = len(one.keys)
        KERNELS.launch(
            "make_words",
            _threads(size),
            (THREADS,),
            (
                one.keys,
                one.counts,
                np.int64(len(one.counts)),
                np.int32(database.parameters.sketch.sketch),
                one.first_window,
                np.int64(len(one.target)),
                cupy.asarray(shift[one.target]),
                words[at : at + size],
            ),
        )
        at += size
    words.sort()
    # Places without a feature have come last.
    pairs = int(cupy.searchsorted(words, cupy.array([2**64 - 1], dtype=cupy.uint64))[0])
    index = _condense(words[:pairs], database.parameters)
    return Partition(number, target, first_window, index)


def _condense(words: Any, parameters: DatabaseParameters) -> Index:
    """Runs of equal keys as entries and locations, copied to the host."""
    import cupy

    begins = cupy.empty(len(words), dtype=cupy.uint8)
    KERNELS.launch(
        "mark_keys", _threads(len(words)), (THREADS,), (words, np.int64(len(words)), begins)
    )
    starts = cupy.flatnonzero(begins).astype(cupy.int64)
    del begins
    keys = len(starts)
    first = cupy.concatenate([starts, cupy.array([len(words)], dtype=cupy.int64)])
    kept = cupy.empty(keys, dtype=cupy.int64)
    entries_of = cupy.empty(keys, dtype=cupy.int64)
    KERNELS.launch(
        "limit_keys",
        _threads(keys),
        (THREADS,),
        (
            first,
            np.int64(keys),
            np.int64(parameters.max_locations),
            np.int32(parameters.remove_overfull),
            kept,
            entries_of,
        ),
    )
    entry_end = cupy.cumsum(entries_of)
    location_end = cupy.cumsum(kept)
    entry_count = int(entry_end[-1]) if keys else 0
    location_count = int(location_end[-1]) if keys else 0
    bits = directory_bits(entry_count)
    entries = cupy.empty(entry_count, dtype=cupy.uint32)
    locations = cupy.empty(location_count, dtype=cupy.uint32)
    directory = cupy.zeros(((1 << bits) + 1, 2), dtype=cupy.uint32)
    if keys:
        ends = (entry_end, location_end, np.int32(bits))
        head = (words, first, np.int64(keys))
        KERNELS.launch(
            "write_keys", _warps(keys), (THREADS,), (*head, kept, *ends, entries, locations)
        )
        KERNELS.launch(
            "write_directory", _threads(len(directory)), (THREADS,), (*head, *ends, directory)
        )
    return Index(to_host(directory), to_host(entries), to_host(locations))


def to_host(array: Any) -> NDArray[Any]:
    """Copy an array from the device, through page-locked memory."""
    import cupyx

    host: NDArray[Any] = cupyx.empty_pinned(array.shape, dtype=array.dtype)
    if array.size > 0:
        array.get(out=host)
    return host


class DeviceMates(NamedTuple):
    """Where sequences of reads, or of a mate of pairs, lie on the device; see ``kernels.cu``.

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
        self.letters = _code_table(letters=True)
        self._codes = _code_table(letters=False)
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
        numbers = _numbers(sketch)
        struct = cupy.asarray(_struct_of(mates))
        windows = cupy.empty(queries, dtype=cupy.int64)
        KERNELS.launch(
            "count_windows",
            _threads(queries),
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
                _warps(queries),
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
            _blocks(queries, SHORT_WARPS),
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
            _warps(count),
            (THREADS,),
            (*head, sketch, window_end, place[0], place[1], partition.struct, words),
        )
        words.sort()
        found = words.astype(cupy.uint32)
        hits = cupy.empty(len(found), dtype=cupy.uint32)
        group = cupy.empty(len(found), dtype=cupy.int32)
        KERNELS.launch(
            "pick_longer",
            _warps(count),
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
