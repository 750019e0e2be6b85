"""Building databases on GPUs: ``gpu_sketch``, ``gpu_build``, and the CPU where it has to read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import numpy as np

from ngsgpu.classify.database.cpu_build import all_batches
from ngsgpu.classify.database.database import Database, Partition
from ngsgpu.classify.database.plan import window_taxa
from ngsgpu.classify.database.write import store_partition
from ngsgpu.classify.index.gpu_build import IndexBuilder, NewIndex
from ngsgpu.classify.index.gpu_pairs import MAX_PART_BITS
from ngsgpu.classify.index.gpu_plan import BuildPlan, RangeMemory
from ngsgpu.classify.index.index import Limits
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.sketch.gpu import GpuSketches, sketch_unpacked
from ngsgpu.classify.sketch.gpu_files import BATCH_BYTES, sketch_files
from ngsgpu.classify.sketch.gpu_references import PIECE_BYTES
from ngsgpu.classify.sketch.references import TargetSink
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.device.plan import Allocation, gpu_memory
from ngsgpu.device.startup import prepare_cuda
from ngsgpu.device.team import Team
from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.gpu.feed import IrregularInputError, say_read_by_cpu
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.store import FileList
from ngsgpu.run.options import RunOptions

logger = logging.getLogger("ngsgpu")

_SinkT = TypeVar("_SinkT", bound=TargetSink)

_SPARE_BUFFERS: Final = 12
"""Pinned buffers in addition to one per reading thread."""

_SHARE_OF_BATCHES: Final = 16
"""Text batches take at most about a quarter of a GPU's memory: two of text, two of letters."""

_BYTES_PER_FEATURE: Final = 5
"""GPU memory per feature, including its share of the window's data."""


class GpuBuilder:
    """Sketches references and builds indexes on GPUs; a context manager.

    Args:
        parameters: of the database.
        options: how to go about it.
    """

    def __init__(self, parameters: DatabaseParameters, options: RunOptions) -> None:
        self._parameters = parameters
        self._options = options
        self._open = ExitStack()
        self._pinned: PinnedPool | None = None
        self._team: Team

    def __enter__(self) -> Self:
        self._open.enter_context(cuda_errors("building a database on the GPU"))
        self._pool = self._open.enter_context(
            ThreadPoolExecutor(self._options.threads, thread_name_prefix="ngsgpu-build")
        )
        self._limit(Team())
        return self

    def __exit__(self, *error: Any) -> None:
        self._pinned = None
        self._open.__exit__(*error)

    def sketch(
        self, files: Sequence[str], new_sink: Callable[[], _SinkT], advance: Callable[[int], None]
    ) -> tuple[list[GpuSketches], _SinkT]:
        """See ``build.Builder``."""
        sink = new_sink()
        expected = sum(map(unpacked_size, files))
        pinned = self._buffers(expected)
        memory = gpu_memory(self._options.gpu_memory).budget
        self._take_gpus(gpus_for(expected, self._parameters, self._options))
        batch = min(BATCH_BYTES, max(PIECE_BYTES, memory // _SHARE_OF_BATCHES))
        try:
            sketches = sketch_files(
                files,
                sink,
                self._parameters.sketch,
                team=self._team,
                pool=self._pool,
                pinned=pinned,
                threads=self._options.threads,
                batch_bytes=batch,
                key_room=memory // 3,
                advance=advance,
            )
            return sketches, sink
        except (IrregularInputError, InputError) as reason:
            say_read_by_cpu(reason)
        sink = new_sink()
        batches = all_batches(files, sink, self._options)
        return sketch_unpacked(batches, self._parameters.sketch, lambda bases: None), sink

    def index(self, database: Database, number: int, sketches: list[GpuSketches]) -> Partition:
        """See ``build.Builder``."""
        index = NewIndex()
        self._build(database, number, sketches, index)
        target, first_window, _ = database.members(number)
        return Partition(number, target, first_window, index.index())

    def store(
        self,
        database: Database,
        number: int,
        sketches: list[GpuSketches],
        also: Callable[[], Sequence[AtomicFile]] = tuple,
    ) -> None:
        """See ``build.Builder``."""

        def save(folder: Path) -> tuple[FileList, int, int]:
            index = NewIndex(folder)
            self._build(database, number, sketches, index)
            return index.close()

        store_partition(database, number, save, self._options.threads, also)

    def _build(
        self, database: Database, number: int, sketches: Sequence[GpuSketches], index: NewIndex
    ) -> None:
        """Build the index of a partition."""
        IndexBuilder(
            database.members(number),
            database.parameters,
            window_taxa(database, number),
            sketches,
            team=self._team,
            memory=self._options.gpu_memory,
            pool=self._pool,
            pinned=self._buffers(0),
        ).build(index)

    def _take_gpus(self, gpus: int) -> None:
        """Use at least this many GPUs."""
        if gpus > len(self._team):
            prepare_cuda(gpus, "ngsgpu.classify.index.gpu_build", first=len(self._team))
            self._limit(Team(gpus))

    def _limit(self, team: Team) -> None:
        """Use a team, in the limits of the options."""
        self._open.enter_context(team.limited(self._options.gpu_memory))
        self._team = team

    def _buffers(self, expected: int) -> PinnedPool:
        """Pinned buffers for files of this many bytes."""
        if self._pinned is None:
            threads = self._options.threads
            count = min(threads + _SPARE_BUFFERS, _SPARE_BUFFERS + expected // PIECE_BYTES)
            self._pinned = PinnedPool(PIECE_BYTES, count, self._pool)
        return self._pinned


def plan_gpu(locations: int, parameters: DatabaseParameters, options: RunOptions) -> BuildPlan:
    """Plan a build on each GPU from what is free, as if keys were even.

    Args:
        locations: built at a time.
        parameters: of the database.
        options: number of GPUs and their memory.

    Raises:
        DeviceMemoryError: the memory does not suffice.
    """
    memory, gpus = gpu_memory(options.gpu_memory).budget, options.gpus
    text = 4 * min(BATCH_BYTES, max(PIECE_BYTES, memory // _SHARE_OF_BATCHES))
    features = min(memory // 3, _BYTES_PER_FEATURE * locations // gpus)
    ranges = 1 << MAX_PART_BITS
    sizes = np.full(ranges, -(-locations // ranges), dtype=np.int64)
    plan = RangeMemory(sizes, Limits.of(parameters), gpus, memory - features).plan_sorting()
    others = Allocation("text", text, ("reading",)), Allocation("features", features)
    return replace(plan, allocations=(*plan.allocations, *others), budget=memory)


def gpus_for(bases: int, parameters: DatabaseParameters, options: RunOptions) -> int:
    """How many GPUs hold the features of this many bases in half of their memory, if possible.

    Processing ranges of keys one by one takes less time than a context on a further GPU; features
    that wait on the host take more.

    Args:
        bases: bases of all references.
        parameters: of the database.
        options: maximum number of GPUs and their memory.
    """
    if options.gpus == 1:
        return 1
    memory = gpu_memory(options.gpu_memory).budget
    needed = parameters.sketch.expected_features(bases) * _BYTES_PER_FEATURE
    return max(1, min(options.gpus, -(-needed // max(1, memory // 2))))
