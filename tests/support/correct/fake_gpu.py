"""GPUs for machines without one: CuPy's calls by NumPy, kernels by those of the CPU.

What is tested with them is what the host does: which memory is taken and where, batches, threads,
and what happens where memory runs out. The kernels get their arrays by the same pointers as on a
GPU, and memory is counted as CuPy counts it.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

from ngsgpu.align.alignment import quality_weights
from ngsgpu.align.rules import RULES, Rules
from ngsgpu.correct import CorrectionParameters, cpu, gpu_combine
from ngsgpu.correct import gpu as correct_gpu
from ngsgpu.correct.rules.cpu_witnesses import ReadAsker
from ngsgpu.correct.workspace import CLASS, COUNTERS, LOW_QUALITY, Workspace
from ngsgpu.device import spread
from ngsgpu.minhash import MinhashTables, build_tables
from ngsgpu.minhash import cpu as minhash_cpu
from ngsgpu.minhash import gpu as minhash_gpu
from ngsgpu.minhash.cpu import TableArrays
from ngsgpu.readset import ReadArrays, ReadSet, gpu_divided
from ngsgpu.readset.fill import fill_unknown
from ngsgpu.readset.gpu import READS, DeviceReadSet
from ngsgpu.run import gpu_run
from tests.support.minhash.slots import NEAR_ENTRIES, find_slots

ALIGNMENT = 512
CROWDED_TIERS = {512: 2}
"""Hash cells of the tiers from which every so manieth anchor is sent on to the next."""

_here = threading.local()


def resident_blocks(kernel: str, threads: int, shared_bytes: int = 0) -> int:
    """Fewer of those that take more, so that each tier is of use."""
    return 4 + (1 << 30) // (shared_bytes + 1)


class OutOfMemoryError(MemoryError):
    """As CuPy's."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated {total:,})")


class Device:
    """As CuPy's; which one is current is known of each thread."""

    attributes = MappingProxyType({"MultiProcessorCount": 4})

    def __init__(self, number: int | None = None) -> None:
        self.id = _stack()[-1] if number is None else number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def synchronize(self) -> None:
        """All work is done at once."""

    def __enter__(self) -> Self:
        _stack().append(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        assert _stack().pop() == self.id


def _stack() -> list[int]:
    if not hasattr(_here, "devices"):
        _here.devices = [0]
    stack: list[int] = _here.devices
    return stack


class Memory:
    """Memory that is freed by a function when it is no longer referred to."""

    def __init__(self, pointer: int, size: int, device: int, free: Callable[[], None]) -> None:
        self.ptr, self.size, self.device = pointer, size, device
        self._free = free

    def __del__(self) -> None:
        self._free()


class Array(np.ndarray[Any, Any]):
    """An array of CuPy's."""

    gpu = 0

    def __array_finalize__(self, other: object) -> None:
        self.gpu = getattr(other, "gpu", 0)

    @property
    def data(self) -> Any:  # type: ignore[override]
        """A pointer."""

        def copy_from_device(source: Any, size: int, stream: Any = None) -> None:
            ctypes.memmove(self.ctypes.data, source.ptr, size)

        pointer = self.ctypes.data if self.size else 0
        return SimpleNamespace(
            ptr=pointer, copy_from_device=copy_from_device, copy_from_device_async=copy_from_device
        )

    @property
    def device(self) -> Device:  # type: ignore[override]
        """Whose memory it is."""
        return Device(self.gpu)

    def copy(self, order: object = "C") -> Array:  # type: ignore[override]
        """A copy in the memory of the current GPU."""
        copy: Array = sys.modules["cupy"].asarray(self)
        return copy

    def get(self, stream: object = None, out: Any = None) -> Any:
        """A copy on the host."""
        if out is not None:
            assert (out.dtype, out.shape) == (self.dtype, self.shape)
            out[...] = self
        return np.array(self) if out is None else out


def place(shape: Any, dtype: Any, memory: Memory | None) -> Array:
    """An array in memory."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if memory is None or size == 0:
        array = np.empty(shape, dtype).view(Array)
    else:
        raw: Any = (ctypes.c_uint8 * size).from_address(memory.ptr)
        raw.memory = memory
        array = np.frombuffer(memoryview(raw), dtype).reshape(shape).view(Array)
    array.gpu = Device().id if memory is None else memory.device
    return array


def at(pointer: int, dtype: Any, count: int) -> Any:
    """What lies at an address."""
    size = count * np.dtype(dtype).itemsize
    if size == 0:
        return np.empty(0, dtype)
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(int(pointer))), dtype)


class Pool:
    """CuPy's pool of one GPU, without keeping anything."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = self.peak = self.limit = 0

    def take(self, size: int) -> Memory:
        if self.used + size > (self.limit or self.size):
            raise OutOfMemoryError(size, self.used, self.limit)
        self.used += size
        self.peak = max(self.peak, self.used)
        buffer, pointer = aligned(size)

        def free(buffer: Any = buffer) -> None:
            self.used -= size

        return Memory(pointer, size, Device().id, free)


def aligned(size: int) -> tuple[Array, int]:
    """Host memory for so many bytes, and where they begin."""
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    return buffer, -(-buffer.ctypes.data // ALIGNMENT) * ALIGNMENT


def fill_on_host(reads: DeviceReadSet) -> int:
    """As ``ngsgpu.readset.gpu_fill``, by the CPU."""
    host = reads.to_host()
    count = fill_unknown(host)
    reads.planes[...] = host.arrays.planes
    return count


class FakeGpus:
    """GPUs that correct one read set.

    Args:
        reads: the read set.
        parameters: how it is corrected.
        coverage: with which coverage.
        sizes: memory of each GPU, in bytes.
        linked: whether they can have memory in common.

    Attributes:
        pools: the memory of each.
        host_bytes: pinned host memory in use.
        refuse: called with the size of each array; those for which it says True are refused.
        corrected: how many anchors each GPU corrected.
    """

    def __init__(
        self,
        reads: ReadSet,
        parameters: CorrectionParameters,
        coverage: float,
        sizes: tuple[int, ...] = (1 << 40,),
        linked: bool = False,
    ) -> None:
        self.reads, self.parameters, self.coverage = reads, parameters, coverage
        fill_unknown(reads)  # as every correction of them does
        self.tables: MinhashTables = build_tables(reads, parameters.minhash)
        self.pools = [Pool(size) for size in sizes]
        self.linked = linked
        self.host_bytes = 0
        self.refuse: Callable[[int], bool] = lambda size: False
        self.corrected = [0] * len(sizes)
        self._found: dict[int, Any] = {}
        self._lock = threading.Lock()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """Stand in for CuPy and the kernels."""
        for name, module in self._modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        kernels = SimpleNamespace(launch=self._launch, resident_blocks=resident_blocks)
        monkeypatch.setattr(minhash_gpu, "KERNELS", kernels)
        monkeypatch.setattr(correct_gpu, "KERNELS", SimpleNamespace(of=lambda reads: kernels))
        monkeypatch.setattr(gpu_run, "fill_unknown_on_gpu", fill_on_host)
        monkeypatch.setattr(gpu_combine, "DeviceAsker", lambda reads: ReadAsker(reads.to_host(), 1))
        monkeypatch.setattr(gpu_divided, "can_spread", lambda devices: self.linked)
        monkeypatch.setattr(spread, "SpreadMemory", self._spread)
        return self

    def _spread(self, size: int, devices: Sequence[int]) -> Memory:
        """Memory of several GPUs, of which it takes what it would of theirs."""
        share = spread.share_bytes(size, len(devices))
        shares = []
        for device in devices:
            with Device(device):
                shares.append(self._pool.take(share))
        stripe = spread.stripe_bytes(size, len(devices))
        whole = -(-size // stripe) * stripe
        buffer, pointer = aligned(whole)
        return unowned(pointer, whole, (buffer, shares), 0)

    def _alloc(self, size: int) -> Memory | None:
        if self.refuse(size):
            raise OutOfMemoryError(size, 0)
        allocator = getattr(_here, "allocator", None)
        if size == 0:
            return None
        memory: Memory = allocator(size) if allocator else self._pool.take(size)
        return memory

    @property
    def _pool(self) -> Pool:
        return self.pools[Device().id]

    def _empty(self, shape: Any, dtype: Any = np.float64) -> Array:
        return place(shape, dtype, self._alloc(int(np.prod(shape)) * np.dtype(dtype).itemsize))

    def _asarray(self, values: Any, dtype: Any = None) -> Array:
        source = np.asarray(values, dtype)
        array = self._empty(source.shape, source.dtype)
        array[...] = source
        return array

    def _modules(self) -> dict[str, ModuleType]:
        cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
        memory, runtime = ModuleType("cupy.cuda.memory"), ModuleType("cupy.cuda.runtime")
        driver = ModuleType("cupy.cuda.driver")

        def filled(value: Any) -> Callable[..., Array]:
            return lambda shape, dtype: self._asarray(np.full(shape, value, dtype))

        def full(shape: Any, value: Any, dtype: Any) -> Array:
            return self._asarray(np.full(shape, value, dtype))

        def ours(function: Callable[..., Any]) -> Callable[..., Array]:
            return lambda *args, **more: self._asarray(function(*args, **more))

        for name in ("uint8", "uint16", "uint32", "uint64", "int32", "int64"):
            setattr(cupy, name, getattr(np, name))
        cupy.__dict__.update(
            empty=self._empty, zeros=filled(0), full=full, asarray=self._asarray,
            array=self._asarray, asnumpy=np.array, concatenate=ours(np.concatenate),
            cumsum=ours(np.cumsum), flatnonzero=ours(np.flatnonzero), where=ours(np.where),
            stack=ours(np.stack), cuda=cuda, get_default_memory_pool=self._pool_facade,
            ndarray=lambda shape, dtype, memptr: place(shape, dtype, memptr),
        )  # fmt: skip
        cuda.__dict__.update(
            Device=Device, Stream=lambda non_blocking: None,
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
            memory=memory, runtime=runtime,
            driver=driver, PinnedMemory=self._pinned, thrust=SimpleNamespace(argsort=self._argsort),
            UnownedMemory=unowned,
            MemoryPointer=lambda memory, offset: memory, using_allocator=using_allocator,
            PythonFunctionAllocator=function_allocator,
        )  # fmt: skip
        memory.__dict__.update(OutOfMemoryError=OutOfMemoryError)
        runtime.__dict__.update(
            CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
            getDevice=lambda: Device().id,
            memGetInfo=lambda: (self._pool.size - self._pool.used, self._pool.size),
        )
        driver.__dict__.update(CUDADriverError=type("CUDADriverError", (RuntimeError,), {}))
        modules = (cupy, cuda, memory, runtime, driver)
        return {module.__name__: module for module in modules}

    def _pool_facade(self) -> Any:
        pool = self._pool
        return SimpleNamespace(
            free_all_blocks=lambda: None,
            free_bytes=lambda: 0,
            total_bytes=lambda: pool.used,
            get_limit=lambda: pool.limit,
            set_limit=lambda size: setattr(pool, "limit", size),
        )

    def _pinned(self, size: int) -> Memory:
        buffer = np.empty(size, np.uint8)
        with self._lock:
            self.host_bytes += size

        def free(buffer: Any = buffer) -> None:
            self.host_bytes -= size

        return Memory(buffer.ctypes.data, size, Device().id, free)

    def _argsort(self, dtype: Any, order: int, keys: int, _: int, shape: tuple[int, ...]) -> None:
        # Thrust's copy of keys and values; the rest of its scratch is small.
        scratch = self._alloc(16 * shape[0] + shape[0] // 2)
        values = at(keys, dtype, shape[0])
        by_key = np.argsort(values, kind="stable")
        at(order, np.int64, shape[0])[:] = by_key
        values[:] = values[by_key]
        del scratch

    def _launch(
        self, kernel: str, grid: Any, block: Any, arguments: Any, shared_bytes: int = 0
    ) -> None:
        for array in arguments:
            assert not isinstance(array, Array) or array.gpu == Device().id
        if 0 not in grid:
            getattr(self, f"_{kernel}")(*arguments)

    def _read_arrays(self, struct: Any) -> ReadArrays:
        """The reads as the kernels find them."""
        fields = READS.unpack(struct)
        for name, array in self.reads.arrays._asdict().items():
            if isinstance(array, np.ndarray):
                fields[name] = at(fields[name], array.dtype, array.size)
            else:
                assert fields[name] == array
        return ReadArrays(**fields)

    def _sign_reads(
        self, struct: Any, first: Any, last: Any, k: Any, function: Any, kmers: Any, wide: Any,
        keys: Any, positions: Any,
    ) -> None:  # fmt: skip
        place = np.uint16 if wide else np.uint8
        own_keys = np.empty((len(keys), last), np.uint64)
        own_positions = np.empty((len(keys), last), place)
        spaces = [np.empty(kmers, np.uint64) for _ in range(2)]
        arrays = self._read_arrays(struct)
        minhash_cpu.sign_reads(
            arrays, int(first), int(last), int(k), int(function), own_keys, own_positions, *spaces
        )
        for row in range(len(keys)):
            at(keys[row], np.uint64, last)[:] = own_keys[row]
            at(positions[row], place, last)[:] = own_positions[row]

    def _mark_part(
        self, struct: Any, keys: Any, first: Any, count: Any, k: Any, shift: Any, part: Any,
        marks: Any,
    ) -> None:  # fmt: skip
        reads = slice(int(first), int(first + count))
        arrays = self._read_arrays(struct)
        lengths = arrays.lengths[reads] if arrays.uniform_length < 0 else arrays.uniform_length
        own = np.asarray(keys)[reads] >> np.uint64(shift)
        marks[:] = (lengths >= k) & (own == part)

    def _mark_shared(self, keys: Any, count: Any, stays: Any) -> None:
        assert len(keys) == count
        same = keys[1:] == keys[:-1]
        stays[:] = 0
        stays[1:] |= same
        stays[:-1] |= same

    def _fill_table(
        self, keys: Any, ids: Any, count: Any, stays: Any, entry: Any, positions: Any, wide: Any,
        base: Any, table_ids: Any, table_positions: Any, long_buckets: Any, long_count: Any,
    ) -> None:  # fmt: skip
        assert table_positions.dtype == (np.uint16 if wide else np.uint8)
        table_ids[base + entry[-1]] = 1 << 31
        kept = np.flatnonzero(stays)
        begins = np.ones(len(keys), bool)
        begins[1:] = keys[1:] != keys[:-1]
        reads = ids[kept].astype(np.uint32)
        own = slice(int(base), int(base) + len(kept))
        table_ids[own] = reads | (begins[kept].astype(np.uint32) << np.uint32(31))
        table_positions[own] = positions[reads]
        starts = np.append(np.flatnonzero(begins[kept]), len(kept))
        for begin, end in itertools.pairwise((starts + base).tolist()):
            if end - begin > NEAR_ENTRIES:
                long_buckets[int(long_count[0])] = begin << 32 | end
                long_count[0] += np.uint64(1)

    def _find_cells(
        self, keys: Any, count: Any, entry: Any, below: Any, base: Any, first_cell: Any,
        cells: Any, first: Any,
    ) -> None:  # fmt: skip
        own = keys >> np.uint64(below) if below < 64 else np.zeros(len(keys), np.uint64)
        wanted = np.arange(cells, dtype=np.uint64) + np.uint64(first_cell)
        sums = np.concatenate([[0], np.asarray(entry)])
        first[: int(cells)] = sums[np.searchsorted(own, wanted)] + base

    def table_arrays(self, struct: Any) -> TableArrays:
        """The tables as the kernels find them."""
        fields = minhash_gpu.TABLES.unpack(struct)
        hashes, count = fields["hashes"], self.reads.reads
        place = np.uint16 if fields["wide"] else np.uint8
        ids = np.zeros((hashes, count + 1), np.uint32)
        positions = np.zeros((hashes, count + 1), place)
        cells = np.zeros_like(self.tables.arrays.cells)
        long_buckets, long_start = [np.zeros((0, 2), np.uint32)], np.zeros(hashes + 1, np.int64)
        rows = at(fields["table"], minhash_gpu.TABLE.dtype, hashes)
        for table, entries in enumerate(self.tables.entries):
            ids[table, : entries + 1] = at(rows["ids"][table], np.uint32, entries + 1)
            positions[table, :entries] = at(rows["positions"][table], place, entries)
            cells[table] = at(rows["cells"][table], np.uint32, cells.shape[1])
            listed = at(rows["long_buckets"][table], np.uint64, rows["long_count"][table])
            long_buckets.append(
                np.stack([listed >> np.uint64(32), listed & np.uint64(0xFFFFFFFF)], axis=1).astype(
                    np.uint32
                )
            )
            long_start[table + 1] = long_start[table] + len(listed)
        return TableArrays(
            ids, positions, cells, np.concatenate(long_buckets), long_start,
            fields["first_function"], fields["below"],
        )  # fmt: skip

    def _find_slots(
        self, reads: Any, tables: Any, k: Any, kmers: Any, anchors: Any, count: Any, mates: Any,
        slots: Any,
    ) -> None:  # fmt: skip
        arrays, own = self._read_arrays(reads), self.table_arrays(tables)
        rows = (np.asarray(anchors)[:, None].astype(np.int64) + np.arange(mates)).ravel()
        assert len(rows) == count * mates <= len(slots)
        found = find_slots(arrays, own, int(k), rows)
        slots[: len(rows)] = found
        for read, row in zip(rows.tolist(), found, strict=True):
            self._found[read] = row

    def _correct_anchors(
        self, reads: Any, ambiguous: Any, tables: Any, weights: Any, rules: Any, forests: Any,
        results: Any, numbers: Any, anchors: Any, slots: Any, places: Any, count: Any,
        workspace: Any, size: Any,
    ) -> None:  # fmt: skip
        if not isinstance(places, np.ndarray):
            places = np.arange(len(anchors), dtype=np.uint32)
        places = np.array(places)
        assert count == len(places)
        mates = 2 if self.reads.paired else 1
        for place in places.tolist():
            for mate in range(mates):
                expected = self._found[int(anchors[place]) + mate]
                assert np.array_equal(slots[place * mates + mate], expected)
        result = _Results(correct_gpu.RESULT_ARRAYS.unpack(results), self.reads.reads)
        every = CROWDED_TIERS.get(correct_gpu.SIZES.unpack(numbers)["cells"])
        if every:
            later = places[::every]
            at(result.crowded, np.uint32, len(later))[:] = later
            result.crowded_count[0] = len(later)
            places = np.delete(places, slice(None, None, every))
        anchors = np.array(anchors)[places]
        with self._lock:
            self.corrected[Device().id] += len(anchors)
        numbers = RULES.unpack(rules)
        lists = {name: tuple(kept) for name, kept in numbers.items() if isinstance(kept, list)}
        chosen = Rules(**{**numbers, **lists})
        self._correct(self._read_arrays(reads), self.table_arrays(tables), chosen, anchors, result)

    def _correct(
        self, reads: ReadArrays, tables: TableArrays, rules: Rules, anchors: Any, result: _Results
    ) -> None:
        parameters, host = self.parameters, self.reads
        space = Workspace.allocate(
            host.max_length,
            parameters.minhash.tables,
            parameters.margin,
            parameters.forests(self.coverage, with_qualities=self.reads.arrays.quality_bits > 0),
        )
        weights = quality_weights(reads.quality_bits)
        done: Any = 0
        while done < len(anchors):
            done, records, votes = cpu.correct_anchors(
                reads, host.ambiguous, tables, weights, rules, anchors, done, space
            )
            result.add_records(space, records)
            for read, vote in zip(space.vote_reads[:votes], space.vote_hashes[:votes], strict=True):
                result.vote(read, vote)
        result.counters[:] += space.counters.astype(np.uint64)


class _Results:
    """The struct of results that the kernel takes."""

    def __init__(self, pointers: dict[str, int], reads: int) -> None:
        kinds = correct_gpu.RESULTS.items()
        self.by_read = {name: at(pointers[name], kind, reads) for name, kind in kinds}
        self.edits = pointers["edits"]
        self.edit_total = at(pointers["edit_total"], np.uint64, 1)
        self.counters = at(pointers["counters"], np.uint64, COUNTERS)
        self.crowded = pointers["crowded"]
        self.crowded_count = at(pointers["crowded_count"], np.int32, 1)

    def __getattr__(self, name: str) -> Any:
        return self.by_read[name]

    def _append(self, edits: Any) -> int:
        begin = int(self.edit_total[0])
        at((self.edits + 4 * begin) % (1 << 64), np.uint32, len(edits))[:] = edits
        self.edit_total[0] += np.uint64(len(edits))
        return begin

    def add_records(self, space: Workspace, records: Any) -> None:
        ends = [0, *space.edit_ends[:records].ravel().tolist()]
        parts = [space.edits[begin:end] for begin, end in itertools.pairwise(ends)]
        for record in range(int(records)):
            read, kind = space.edit_reads[record], space.classes[record]
            own, complete = parts[2 * record], parts[2 * record + 1]
            self.classes[read] = kind
            self.edit_start[read] = self._append(own)
            self.edit_count[read] = len(own)
            if kind & CLASS == LOW_QUALITY:
                self.edit_hash[read], self.complete_hash[read] = space.edit_hashes[record]
                self.complete_start[read] = self._append(complete)
                self.complete_count[read] = len(complete)

    def vote(self, read: Any, vote: Any) -> None:
        if self.vote_hash[read] == 0:
            self.vote_hash[read] = vote
        elif self.vote_hash[read] != vote:
            self.vote_state[read] |= np.uint32(1 << 31)
        self.vote_state[read] += np.uint32(1)


@contextmanager
def using_allocator(allocator: Callable[[int], Memory]) -> Iterator[None]:
    """As CuPy's, for this thread."""
    before = getattr(_here, "allocator", None)
    _here.allocator = allocator
    try:
        yield
    finally:
        _here.allocator = before


def unowned(pointer: int, size: int, owner: object, device: int) -> Memory:
    """As CuPy's ``UnownedMemory``."""

    def free(owner: object = owner) -> None:
        """Only keeps the owner."""

    return Memory(pointer, size, device, free)


def function_allocator(take: Callable[[int, int], int], free: Callable[[int, int], None]) -> Any:
    """As CuPy's ``PythonFunctionAllocator``."""

    def malloc(size: int) -> Memory:
        device = Device().id
        pointer = take(size, device)
        return Memory(pointer, size, device, lambda: free(pointer, device))

    return SimpleNamespace(malloc=malloc)
