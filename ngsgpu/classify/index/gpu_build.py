"""Indexes of partitions built on GPUs: the counterpart of ``index``.

Every feature becomes a (key, window) word, words are sorted, and runs of equal keys become entries
and locations. Keys may be split into ranges by their top bits: one per GPU, and, if the words do
not fit into a GPU's memory, ranges that are processed one by one (``gpu_plan``); the features
themselves take a quarter of the memory for words and sorting. Since the total number of entries
determines how a key is split into a directory line and the rest, the ranges are counted first, and
made a second time if they cannot be kept. A range that runs out of memory despite the plan is
split in half.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.gpu_pairs import (
    KERNELS,
    MAX_PART_BITS,
    KeyRange,
    PairSource,
    SketchPairs,
)
from ngsgpu.classify.index.gpu_plan import BuildPlan, TablePairs, plan_build
from ngsgpu.classify.index.index import Index, Limits, Members, WindowTaxa, directory_bits
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.sketch.gpu import KERNELS as SKETCH_KERNELS
from ngsgpu.classify.sketch.gpu import GpuSketches
from ngsgpu.device.cuda.kernels import THREADS, TILE, grid_of_warps
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.errors import device_error
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.device.plan import largest_array_bytes
from ngsgpu.device.team import Team, free_unused
from ngsgpu.io.output.store import ArrayFile, FileList

_LOG = logging.getLogger(__name__)

_CERTAINLY_FITS: Final = 1 << 28
"""Bytes of features for which memory is not looked at where nothing limits it."""


@dataclass(slots=True)
class _Part:
    """A range of keys.

    Attributes:
        keys: the range.
        pairs: CuPy uint64, sorted; None if they are made again.
        removed: CuPy uint64, keys that lose all locations, in the upper halves.
        sums: two arrays of CuPy, uint32: entries and locations before each tile of words.
        sizes: int64[2], entries and locations of the part.
    """

    keys: KeyRange
    pairs: Any = None
    removed: Any = None
    sums: Any = None
    sizes: Any = None

    def forget(self) -> None:
        """Give up the arrays on the GPU."""
        self.pairs = self.removed = self.sums = None

    def halves(self) -> Iterator[_Part]:
        """Two parts that are this one."""
        for keys in self.keys.halves():
            yield _Part(keys)


class NewIndex:
    """Collects the arrays of an index, pieces of them in any order and from several threads.

    Args:
        folder: directory for files; None for memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._sizes = 0, 0
        self._arrays: dict[str, NDArray[np.uint32]] = {}
        self._files: dict[str, ArrayFile] = {}

    def open(self, entries: int, locations: int) -> None:
        """Set the sizes."""
        self._sizes = entries, locations
        lines = (1 << directory_bits(entries)) + 1
        shapes = {"directory": (lines, 2), "entries": (entries,), "locations": (locations,)}
        for name, shape in shapes.items():
            if self._folder is None:
                self._arrays[name] = np.empty(shape, dtype=np.uint32)
            else:
                self._files[name] = ArrayFile(self._folder, name, np.uint32, shape)

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Write bytes of the array ``name``, the first one at ``at``.

        Args:
            name: name of the array.
            at: offset of the first byte.
            data: the bytes, uint8[n].
        """
        if self._files:
            self._files[name].put(at, data)
        else:
            self._arrays[name].reshape(-1).view(np.uint8)[at : at + len(data)] = data

    def index(self) -> Index:
        """The index in memory."""
        return Index(**self._arrays)

    def close(self) -> tuple[FileList, int, int]:
        """Close the files; see ``write.store_partition``."""
        return {f"{name}.npy": file.close() for name, file in self._files.items()}, *self._sizes

    def copy(
        self, arrays: dict[str, tuple[int, Any]], pool: ThreadPoolExecutor, pinned: PinnedPool
    ) -> None:
        """Copy arrays from the current GPU, all at the same time, and wait for them.

        Args:
            arrays: byte offset and data of each, by name.
            pool: copying threads.
            pinned: pinned buffers; up to one per thread is used.
        """
        import cupy

        device = cupy.cuda.Device()
        cupy.cuda.Stream.null.synchronize()

        def copy(name: str, to: int, array: Any, begin: int) -> None:
            size = min(pinned.size, array.nbytes - begin)
            with pinned.borrowed() as buffer, device:
                stream = cupy.cuda.Stream(non_blocking=True)
                array[begin : begin + size].get(stream, out=buffer[:size])
                self.put(name, to + begin, buffer[:size])

        pieces = [
            (begin / array.nbytes, name, to, array, begin)
            for name, (to, own) in arrays.items()
            for array in (own.reshape(-1).view(cupy.uint8),)
            for begin in range(0, array.nbytes, pinned.size)
        ]
        # The files grow side by side, for only one thread at a time gets into each.
        pieces.sort(key=lambda piece: piece[:2])
        tasks = [pool.submit(copy, *piece[1:]) for piece in pieces]
        errors = [error for task in tasks if (error := task.exception()) is not None]
        if errors:
            raise errors[0]


class IndexBuilder:
    """Builds the index of a partition.

    Args:
        members: the targets of the partition.
        parameters: of the database.
        taxa: of the windows, if features of many taxa are removed.
        sketches: of (at least) the targets.
        team: the participating GPUs.
        memory: memory budget per GPU in bytes; None: free memory.
        pool: threads that copy to the host.
        pinned: pinned buffers; up to one per thread is used.
        use_table: whether to use hash tables if memory is limited; None: whichever is faster.
    """

    def __init__(
        self,
        members: Members,
        parameters: DatabaseParameters,
        taxa: WindowTaxa | None,
        sketches: Sequence[GpuSketches],
        *,
        team: Team,
        memory: int | None,
        pool: ThreadPoolExecutor,
        pinned: PinnedPool,
        use_table: bool | None = None,
    ) -> None:
        self._taxa = taxa
        self._team = team
        self._memory = memory
        self._pool = pool
        self._pinned = pinned
        self._use_table = use_table
        self._limits = Limits.of(parameters)
        self._first_window = members.first_window
        sketch_pairs = SketchPairs(members, sketches, team)
        self._plan = self._planned(sketch_pairs)
        self._keep = self._plan.keep
        self._source: PairSource = sketch_pairs
        if self._plan.table is not None:
            self._source = TablePairs(sketch_pairs, self._plan.table, self._limits)

    def build(self, index: NewIndex) -> None:
        """Build the index; equal to that of ``cpu.build_index``."""
        parts = self._team.at_once(self._count)
        sizes = np.array([np.sum([part.sizes for part in own], axis=0) for own in parts])
        entries, locations = sizes.sum(axis=0).tolist()
        index.open(entries, locations)
        bits = directory_bits(entries)
        before = np.cumsum(sizes, axis=0) - sizes
        self._team.at_once(lambda member: self._write(parts[member], bits, before[member], index))
        last = np.array([entries, locations], dtype=np.uint32)
        index.put("directory", 8 << bits, last.view(np.uint8))

    def _planned(self, pairs: SketchPairs) -> BuildPlan:
        """Plan the build, by the free memory unless all is sure to fit."""
        room = None
        if self._memory is not None or 4 * int(pairs.sizes.sum()) > _CERTAINLY_FITS:
            room = min(self._team.each(self._free_bytes))
        gpus = len(self._team)
        return plan_build(pairs, self._limits, gpus, room, use_table=self._use_table)

    def _free_bytes(self, member: int) -> int:
        """GPU memory available for an array."""
        free_unused()
        return largest_array_bytes(self._memory)

    def _count(self, member: int) -> list[_Part]:
        """Count the entries and locations of the parts of a GPU."""
        ranges = self._plan.ranges(len(self._team))
        return self._counted([_Part(keys) for keys in ranges[member]])

    def _counted(self, parts: Iterable[_Part]) -> list[_Part]:
        """The parts with their entries and locations counted; some may come back as halves."""
        counted: list[_Part] = []
        for part in parts:
            if not self._fits(part, self._make):
                counted += self._counted(part.halves())
                continue
            if not self._keep:
                part.forget()
            counted.append(part)
        return counted

    def _write(
        self, parts: Iterable[_Part], bits: int, before: NDArray[np.int64], index: NewIndex
    ) -> NDArray[np.int64]:
        """Make the arrays of the parts of a GPU and store them.

        Args:
            parts: in ascending order.
            bits: of the directory.
            before: int64[2], entries and locations before the first part.
            index: destination of the arrays.

        Returns:
            Entries and locations before what follows the parts.
        """
        for part in parts:
            arrays: dict[str, tuple[int, Any]] = {}
            if not self._fits(part, partial(self._add_arrays, arrays, bits, before)):
                before = self._write(part.halves(), bits, before, index)
                continue
            part.forget()
            index.copy(arrays, self._pool, self._pinned)
            before = before + part.sizes
        return before

    def _fits(self, part: _Part, work: Callable[[_Part], None]) -> bool:
        """Do work for a part; False if the memory of the GPU runs out.

        Raises:
            DeviceError: it does, and the part cannot be cut in halves.
        """
        try:
            work(part)
        except MemoryError as error:
            if part.keys.bits == MAX_PART_BITS:
                raise device_error("building an index", error) from error
            _LOG.debug("%s is split in half: %s", part.keys, error)
        else:
            return True
        # Only now do the frames of the failed attempt hold no arrays any more.
        part.forget()
        self._keep = False
        free_unused()
        return False

    def _free_unused(self) -> None:
        """Release CuPy's cached blocks if memory is scarce, since it keeps pieces of any size."""
        if self._plan.is_scarce:
            free_unused()

    def _make(self, part: _Part) -> None:
        """Make and sort the words of a part, and count what becomes of them."""
        import cupy

        self._free_unused()
        part.pairs = pairs = self._source.pairs(part.keys)
        radix_sort(pairs)
        self._free_unused()
        part.removed = self._ambiguous(pairs)
        tiles = -(-len(pairs) // TILE)
        part.sums = [cupy.empty(tiles + 1, dtype=cupy.uint32) for _ in range(2)]
        KERNELS.launch(
            "count_entries", grid_of_warps(tiles), (THREADS,), (*self._rule(part), *part.sums)
        )
        for sums in part.sums:
            SKETCH_KERNELS.launch("sum_up", (1,), (THREADS,), (sums, np.uint32(tiles)))
        part.sizes = np.array([sums[tiles:].get()[0] for sums in part.sums], dtype=np.int64)

    def _rule(self, part: _Part) -> tuple[Any, ...]:
        """Words, and the rule for keeping their locations, as passed to kernels."""
        return (
            part.pairs, np.int64(len(part.pairs)), np.int64(self._limits.locations),
            np.int32(self._limits.remove_overfull), part.removed, np.int64(len(part.removed)),
        )  # fmt: skip

    def _ambiguous(self, pairs: Any) -> Any:
        """Keys of too many taxa: CuPy uint64, ascending, in the upper halves."""
        import cupy

        if self._taxa is None or len(pairs) == 0:
            return cupy.empty(0, dtype=cupy.uint64)
        marked = cupy.empty(len(pairs), dtype=cupy.uint64)
        KERNELS.launch_threads(
            "mark_taxa",
            len(pairs),
            pairs,
            np.int64(len(pairs)),
            cupy.asarray(self._first_window),
            np.int64(len(self._taxa.taxon)),
            cupy.asarray(self._taxa.taxon),
            marked,
        )
        radix_sort(marked)
        return _chosen(_chosen(marked, 0), self._limits.taxa)

    def _add_arrays(
        self,
        arrays: dict[str, tuple[int, Any]],
        bits: int,
        base: NDArray[np.int64],
        part: _Part,
    ) -> None:
        """Add byte offset and data of the arrays of a part, by name."""
        import cupy

        if part.pairs is None:
            self._make(part)
        lines = (1 << bits) >> part.keys.bits
        first_line = lines * part.keys.number
        directory = cupy.empty((lines, 2), dtype=cupy.uint32)
        entries = cupy.empty(int(part.sizes[0]), dtype=cupy.uint32)
        locations = cupy.empty(int(part.sizes[1]), dtype=cupy.uint32)
        if len(part.pairs) == 0:
            directory.set(np.tile(base.astype(np.uint32), (lines, 1)))
        else:
            tiles = len(part.sums[0]) - 1
            KERNELS.launch(
                "write_entries", grid_of_warps(tiles), (THREADS,),
                (
                    *self._rule(part), *part.sums, np.int32(bits),
                    np.uint32(first_line), np.uint32(lines), np.uint32(base[0]),
                    np.uint32(base[1]), entries, locations, directory,
                ),
            )  # fmt: skip
        arrays["directory"] = 8 * first_line, directory
        arrays["entries"] = 4 * int(base[0]), entries
        arrays["locations"] = 4 * int(base[1]), locations


def _chosen(pairs: Any, most: int) -> Any:
    """The sorted words that ``choose_words`` keeps, CuPy uint64."""
    import cupy

    tiles = -(-len(pairs) // TILE)
    sums = cupy.empty(tiles + 1, dtype=cupy.uint32)
    null = np.uint64(0)
    rule = pairs, np.int64(len(pairs)), np.int64(most)
    KERNELS.launch("choose_words", grid_of_warps(tiles), (THREADS,), (*rule, null, sums, null))
    SKETCH_KERNELS.launch("sum_up", (1,), (THREADS,), (sums, np.uint32(tiles)))
    chosen = cupy.empty(int(sums[-1:].get()[0]), dtype=cupy.uint64)
    KERNELS.launch("choose_words", grid_of_warps(tiles), (THREADS,), (*rule, sums, null, chosen))
    return chosen


def prepare() -> None:
    """Load all that building needs onto the current GPU, so that it is there in time."""
    import cupy

    SKETCH_KERNELS.load()
    KERNELS.load()
    radix_sort(cupy.empty(1 << 20, dtype=cupy.uint64))
