"""Indexes of partitions built on GPUs: the counterpart of ``index``.

A (key, window) word is made of every feature, words are sorted, and runs of equal keys become
entries and locations. Keys may be cut into parts by their top bits: the parts of several GPUs, and
where the words do not fit into a GPU's memory, parts that are handled one after the other; the
features themselves take a quarter of what the words and sorting them take. As the number of all
entries decides how a key is cut into a line of the directory and the rest, parts are counted
first, and made a second time if they cannot stay.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database import Database, Partition
from ngsgpu.classify.gpu import THREADS, grid_of, grid_of_threads
from ngsgpu.classify.gpu_sketch import KERNELS, DeviceSketches
from ngsgpu.classify.index import FEWEST_BITS, Index, Limits, WindowTaxa, directory_bits
from ngsgpu.classify.store import ArrayFile, FileList
from ngsgpu.device.gpu_memory import (
    PinnedPool,
    free_for_one_array,
    free_unused,
)
from ngsgpu.device.memory import format_size
from ngsgpu.errors import DeviceError

_WORD_TILE: Final = 256
"""Words that a warp handles at a time; as in ``build.cu``."""

_BYTES_A_WORD: Final = 17
"""Device memory for a word while it is sorted, or its entry and location are written."""

_BYTES_A_WORD_WITH_TAXA: Final = 34
_DEVICE_TO_HOST: Final = 2
_NAMES: Final = ("directory", "entries", "locations")


class Destination(Protocol):
    """Takes the arrays of an index; pieces of them in any order, from several threads."""

    def open(self, entries: int, locations: int) -> None:
        """The sizes are known."""

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Some bytes of the array ``name``, the first one at ``at``."""


class HostIndex:
    """Arrays in memory."""

    def open(self, entries: int, locations: int) -> None:
        """The sizes are known."""
        lines = (1 << directory_bits(entries)) + 1
        self._arrays = {
            "directory": np.empty((lines, 2), dtype=np.uint32),
            "entries": np.empty(entries, dtype=np.uint32),
            "locations": np.empty(locations, dtype=np.uint32),
        }

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Some bytes of the array ``name``, the first one at ``at``."""
        flat = self._arrays[name].reshape(-1).view(np.uint8)
        flat[at : at + len(data)] = data

    def index(self) -> Index:
        """What they are."""
        return Index(**self._arrays)


class StoredIndex:
    """Files in a folder.

    Args:
        folder: where they are made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes = 0, 0

    def open(self, entries: int, locations: int) -> None:
        """The sizes are known."""
        self._sizes = entries, locations
        lines = (1 << directory_bits(entries)) + 1
        shapes = {"directory": (lines, 2), "entries": (entries,), "locations": (locations,)}
        self._files = {
            name: ArrayFile(self._folder, name, np.uint32, shape) for name, shape in shapes.items()
        }

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Some bytes of the array ``name``, the first one at ``at``."""
        self._files[name].put(at, data)

    def files(self) -> tuple[FileList, int, int]:
        """Close the files; see ``database.store_partition``."""
        return {f"{name}.npy": self._files[name].close() for name in _NAMES}, *self._sizes


@dataclass(slots=True)
class _Part:
    """The keys with the top ``bits`` bits ``number``.

    Attributes:
        device: number of the GPU that handles it.
        number: the bits.
        bits: how many.
        words: CuPy uint64, sorted; None where they are made anew.
        removed: CuPy uint64, keys that lose all locations, in the upper halves.
        sums: two arrays of CuPy, uint32: entries and locations before each tile of words.
        entries: of the part.
        locations: of the part.
    """

    device: int
    number: int
    bits: int
    words: Any = None
    removed: Any = None
    sums: Any = None
    entries: int = 0
    locations: int = 0


class IndexBuilder:
    """Builds the indexes of a database's partitions.

    Args:
        database: says which targets a partition has.
        sketches: of (at least) the targets.
        gpus: how many GPUs take part, from the first one on.
        memory: bytes of each GPU's memory that may be taken; None for what is free.
        pool: threads that copy to the host.
        pinned: page-locked buffers; as many as there are threads may be taken.
    """

    def __init__(
        self,
        database: Database,
        sketches: Sequence[DeviceSketches],
        *,
        gpus: int,
        memory: int | None,
        pool: ThreadPoolExecutor,
        pinned: PinnedPool,
    ) -> None:
        self._database = database
        self._sketches = sketches
        self._gpus = gpus
        self._memory = memory
        self._pool = pool
        self._pinned = pinned

    def in_memory(self, number: int, taxa: WindowTaxa | None) -> Partition:
        """Build a partition; equal to ``build.index_partition``."""
        index = HostIndex()
        self._build(number, taxa, index)
        target, first_window = self._database.members(number)
        return Partition(number, target, first_window, index.index())

    def stored(
        self, number: int, taxa: WindowTaxa | None, folder: Path
    ) -> tuple[FileList, int, int]:
        """Build a partition into files of a folder; for ``database.store_partition``."""
        index = StoredIndex(folder)
        self._build(number, taxa, index)
        return index.files()

    def _build(self, number: int, taxa: WindowTaxa | None, destination: Destination) -> None:
        run = _PartitionRun(self, number, taxa)
        parts = run.parts()
        on_gpu = [[part for part in parts if part.device == gpu] for gpu in range(self._gpus)]
        with ThreadPoolExecutor(self._gpus, thread_name_prefix="ngsgpu-gpu") as threads:
            list(threads.map(run.count, on_gpu))
            entries = sum(part.entries for part in parts)
            locations = sum(part.locations for part in parts)
            destination.open(entries, locations)
            bases = np.cumsum([[0, 0], *([part.entries, part.locations] for part in parts)], axis=0)
            write = run.writer(directory_bits(entries), bases, destination)
            list(threads.map(write, on_gpu))
        last = np.array([entries, locations], dtype=np.uint32)
        destination.put("directory", 8 << directory_bits(entries), last.view(np.uint8))


class _PartitionRun:
    """The way from the sketches to the index of one partition."""

    def __init__(self, builder: IndexBuilder, number: int, taxa: WindowTaxa | None) -> None:
        self._builder = builder
        self._taxa = taxa
        database = builder._database
        target, first_window = database.members(number)
        parameters = database.parameters
        self._sketch = parameters.sketch.sketch
        self._limits = Limits(
            parameters.max_locations, int(parameters.remove_overfull), parameters.max_taxa
        )
        self._first_window = first_window
        first_of = np.full(len(database.targets) + 1, -1, dtype=np.int64)
        first_of[target] = first_window[:-1]
        self._sources = [
            (own, (first - own.first_window + own.bias), first >= 0)
            for own in builder._sketches
            if ((first := first_of[own.target]) >= 0).any()
        ]
        self._keep = True

    def parts(self) -> list[_Part]:
        """Cut the keys into parts.

        Raises:
            DeviceError: the GPUs' memory does not suffice for parts as small as they can be.
        """
        import cupy

        gpus, memory = self._builder._gpus, self._builder._memory
        slots = sum(own.windows for own, _, _ in self._sources) * self._sketch
        bytes_a_word = _BYTES_A_WORD if self._taxa is None else _BYTES_A_WORD_WITH_TAXA
        bits = math.ceil(math.log2(gpus))
        if memory is not None or bytes_a_word * slots > 8 << 30:
            room = 1 << 60
            for gpu in range(gpus):
                with cupy.cuda.Device(gpu):
                    free_unused()
                    room = min(room, free_for_one_array(memory))
            while self._needed(slots, bits, gpus, bytes_a_word) > room:
                bits += 1
                self._keep = False
                if bits > FEWEST_BITS or slots >> bits < 1 << 12:
                    wanted = format_size(self._needed(slots, bits, gpus, bytes_a_word))
                    raise DeviceError(
                        f"building an index needs {wanted} of GPU memory beside the features, and "
                        f"{format_size(room)} may be used; cut the database into more partitions, "
                        "raise --gpu-memory, or use --backend cpu"
                    )
        number = 1 << bits
        return [_Part(part * gpus // number, part, bits) for part in range(number)]

    def _needed(self, slots: int, bits: int, gpus: int, bytes_a_word: int) -> int:
        """Bytes of a GPU's memory for a part, and for the words that others wait for."""
        part = math.ceil(slots / (1 << bits) * 1.05) + (1 << 16)
        lent = 8 * part if gpus > 1 else 0
        directory = (8 << directory_bits(slots)) >> bits
        return bytes_a_word * part + lent + directory

    def count(self, parts: Sequence[_Part]) -> None:
        """Count the entries and locations of the parts of a GPU."""
        for part in parts:
            with _on(part.device):
                self._make(part)
                if not self._keep:
                    part.words = part.removed = part.sums = None

    def writer(
        self, bits: int, bases: NDArray[np.int64], destination: Destination
    ) -> Callable[[Sequence[_Part]], None]:
        """What makes the arrays of the parts of a GPU and puts them into their place.

        Args:
            bits: of the directory.
            bases: int64[parts + 1, 2], entries and locations before each part.
            destination: takes the arrays.
        """

        def write(parts: Sequence[_Part]) -> None:
            for part in parts:
                with _on(part.device):
                    if part.words is None:
                        self._make(part)
                    arrays = self._arrays(part, bits, bases[part.number])
                    part.words = part.removed = part.sums = None
                    self._copy(part.device, arrays, destination)

        return write

    def _make(self, part: _Part) -> None:
        """Make and sort the words of a part, and count what becomes of them."""
        import cupy

        part.words = words = self._words(part)
        _sort(words)
        part.removed = self._ambiguous(words)
        tiles = -(-len(words) // _WORD_TILE)
        part.sums = [cupy.empty(tiles + 1, dtype=cupy.uint32) for _ in range(2)]
        KERNELS.launch("count_entries", _grid(tiles), (THREADS,), (*self._rule(part), *part.sums))
        for sums in part.sums:
            KERNELS.launch("sum_up", (1,), (THREADS,), (sums, np.uint32(tiles)))
        part.entries, part.locations = (int(sums[tiles:].get()[0]) for sums in part.sums)

    def _rule(self, part: _Part) -> tuple[Any, ...]:
        """Words, and which of their locations stay, as kernels take them."""
        return (
            part.words, np.int64(len(part.words)), np.int64(self._limits.locations),
            np.int32(self._limits.remove_overfull), part.removed, np.int64(len(part.removed)),
        )  # fmt: skip

    def _words(self, part: _Part) -> Any:
        """The words of a part, from the features on all GPUs, in no order."""
        import cupy
        from cupy.cuda import runtime

        sources = [
            (gpu, [own for own in self._sources if own[0].device == gpu])
            for gpu in range(self._builder._gpus)
        ]
        counts = [self._emit(gpu, own, part, None) for gpu, own in sources]
        words = cupy.empty(sum(counts), dtype=cupy.uint64)
        at = 0
        for (gpu, own), count in zip(sources, counts, strict=True):
            if gpu == part.device:
                self._emit(gpu, own, part, words[at : at + count])
            elif count > 0:
                with _on(gpu):
                    lent = cupy.empty(count, dtype=cupy.uint64)
                    self._emit(gpu, own, part, lent)
                runtime.memcpyPeer(
                    words.data.ptr + 8 * at, part.device, lent.data.ptr, gpu, 8 * count
                )
            at += count
        return words

    def _emit(self, gpu: int, sources: Sequence[Any], part: _Part, words: Any) -> int:
        """Make the words of a part of the features on a GPU; without ``words`` only count them."""
        import cupy

        if not sources:
            return 0
        with _on(gpu):
            count = cupy.empty(1, dtype=cupy.uint64)
            count.data.memset_async(0, count.nbytes)
            for own, shift, taken in sources:
                slots = own.windows * self._sketch
                KERNELS.launch(
                    "make_words", grid_of(slots, THREADS * 8), (THREADS,),
                    (
                        own.keys, own.counts, own.piece, np.int64(own.windows),
                        np.int32(self._sketch), cupy.asarray(shift), cupy.asarray(taken),
                        np.int32(part.bits), np.uint32(part.number),
                        np.uint64(0) if words is None else words, count,
                    ),
                )  # fmt: skip
            return int(count.get()[0])

    def _ambiguous(self, words: Any) -> Any:
        """Keys of too many taxa: CuPy uint64, ascending, in the upper halves."""
        import cupy

        if self._taxa is None or len(words) == 0:
            return cupy.empty(0, dtype=cupy.uint64)
        marked = cupy.empty(len(words), dtype=cupy.uint64)
        KERNELS.launch(
            "mark_taxa", grid_of_threads(len(words)), (THREADS,),
            (
                words, np.int64(len(words)), cupy.asarray(self._first_window),
                np.int64(len(self._taxa.taxon)), cupy.asarray(self._taxa.taxon), marked,
            ),
        )  # fmt: skip
        _sort(marked)
        return _chosen(_chosen(marked, 0), self._limits.taxa)

    def _arrays(self, part: _Part, bits: int, base: NDArray[np.int64]) -> dict[str, Any]:
        """Where the arrays of a part belong in bytes, and what they are, by name."""
        import cupy

        lines = (1 << bits) >> part.bits
        first_line = lines * part.number
        directory = cupy.empty((lines, 2), dtype=cupy.uint32)
        entries = cupy.empty(part.entries, dtype=cupy.uint32)
        locations = cupy.empty(part.locations, dtype=cupy.uint32)
        if len(part.words) == 0:
            directory.set(np.tile(base.astype(np.uint32), (lines, 1)))
        else:
            tiles = len(part.sums[0]) - 1
            KERNELS.launch(
                "write_entries", _grid(tiles), (THREADS,),
                (
                    *self._rule(part), *part.sums, np.int32(bits),
                    np.uint32(first_line), np.uint32(lines), np.uint32(base[0]),
                    np.uint32(base[1]), entries, locations, directory,
                ),
            )  # fmt: skip
        return {
            "directory": (8 * first_line, directory),
            "entries": (4 * int(base[0]), entries),
            "locations": (4 * int(base[1]), locations),
        }

    def _copy(self, device: int, arrays: dict[str, Any], destination: Destination) -> None:
        """Copy arrays to the host, all at the same time, and wait until they are there."""
        import cupy

        cupy.cuda.Stream.null.synchronize()
        pinned = self._builder._pinned

        def copy(name: str, to: int, array: Any, begin: int) -> None:
            size = min(pinned.size, array.nbytes - begin)
            with pinned.borrowed() as buffer, cupy.cuda.Device(device):
                stream = cupy.cuda.Stream(non_blocking=True)
                cupy.cuda.runtime.memcpyAsync(
                    buffer.ctypes.data, array.data.ptr + begin, size, _DEVICE_TO_HOST, stream.ptr
                )
                stream.synchronize()
                destination.put(name, to + begin, buffer[:size])

        pieces = [
            (begin / array.nbytes, name, to, array, begin)
            for name, (to, array) in arrays.items()
            for begin in range(0, array.nbytes, pinned.size)
        ]
        # The files grow side by side, for only one thread at a time gets into each.
        pieces.sort(key=lambda piece: piece[:2])
        tasks = [self._builder._pool.submit(copy, *piece[1:]) for piece in pieces]
        _wait(tasks)


def _wait(tasks: Sequence[Future[None]]) -> None:
    """Wait for all tasks, also where one fails."""
    errors = [error for task in tasks if (error := task.exception()) is not None]
    if errors:
        raise errors[0]


def _chosen(words: Any, most: int) -> Any:
    """What ``choose_words`` chooses of sorted words, CuPy uint64."""
    import cupy

    tiles = -(-len(words) // _WORD_TILE)
    sums = cupy.empty(tiles + 1, dtype=cupy.uint32)
    null = np.uint64(0)
    rule = words, np.int64(len(words)), np.int64(most)
    KERNELS.launch("choose_words", _grid(tiles), (THREADS,), (*rule, null, sums, null))
    KERNELS.launch("sum_up", (1,), (THREADS,), (sums, np.uint32(tiles)))
    chosen = cupy.empty(int(sums[-1:].get()[0]), dtype=cupy.uint64)
    KERNELS.launch("choose_words", _grid(tiles), (THREADS,), (*rule, sums, null, chosen))
    return chosen


def _sort(words: Any) -> None:
    """Sort words in place, by a radix sort (of CuPy)."""
    if len(words) > 1:
        words.sort()


def prepare() -> None:
    """Load all that building needs onto the current GPU, so that it is there in time."""
    import cupy

    KERNELS.load()
    _sort(cupy.empty(1 << 20, dtype=cupy.uint64))


def _grid(tiles: int) -> tuple[int]:
    """Grid where a warp takes a tile of words."""
    return grid_of(max(1, tiles), THREADS // 32)


@contextlib.contextmanager
def _on(device: int) -> Iterator[None]:
    """Work on a GPU."""
    import cupy

    with cupy.cuda.Device(device):
        yield
