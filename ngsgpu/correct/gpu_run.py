"""Corrects a read set on GPUs: plan, placement, tables, correction.

Each GPU has the reads and the tables, of which each of several GPUs that are linked well builds
some and copies the others. Where they do not fit on each, such GPUs have the tables in common, or
the reads as well: each has a part of them in its memory, and reads those of the others. What is on
the host is there once for all. Anchors are distributed batch by batch,
and the decisions are combined at the end. The result does not depend on the number of GPUs.

Meanwhile other threads copy the inputs to the outputs; the corrections are then written into these
copies.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.cpu_run import CorrectionOnCpu, Run
from ngsgpu.correct.gpu import AnchorCorrector, BatchSizes, results_on_host
from ngsgpu.correct.gpu_combine import combine
from ngsgpu.correct.gpu_plan import GpuPlan, plan_for_this_gpu, plan_team
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.arena import Arena, persistent
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import available_memory
from ngsgpu.device.plan import out_of_memory, retry_with_less
from ngsgpu.device.team import Team, free_unused, limited_gpu_memory
from ngsgpu.minhash.gpu import DeviceTable, DeviceTables, build_some_tables
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory
from ngsgpu.readset.gpu_divided import (
    are_linked,
    budget_with_reads,
    common_arena,
    place_reads,
    where,
)
from ngsgpu.run.gpu_run import EditingGpuRun


class AnchorBatches:
    """Hands out batches of anchors, by their places in the list; safe among threads.

    Args:
        anchors: number of anchors.
        batch: how many are handed out at a time.
    """

    def __init__(self, anchors: int, batch: int) -> None:
        self._starts = iter(range(0, anchors, batch))
        self._batch = batch
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """Hand out no more."""
        self._stopped = True

    def __iter__(self) -> Iterator[slice]:
        while not self._stopped:
            with self._lock:
                start = next(self._starts, None)
            if start is None:
                return
            yield slice(start, start + self._batch)


logger = logging.getLogger("ngsgpu")

_Advance = Callable[[int], None]


class GpuCorrection:
    """A correction on GPUs, step by step; a context manager, which frees the memory.

    The result equals that of ``ngsgpu.correct.cpu_run.correct_on_cpu``.

    Args:
        reads: the read set; its arrays on the GPU may be moved to the host.
        parameters: correction parameters.
        coverage: reads per genome position.
        gpu_memory: memory budget per GPU in bytes; None: free memory.
        host_memory: pinned host memory budget in bytes; None: free memory.
        gpus: number of GPUs, from the current one on.
        batches: the largest batches.

    Attributes:
        plan: placement of the data; known after ``place_reads``.
    """

    def __init__(
        self,
        reads: ReadSet | DeviceReadSet,
        parameters: CorrectionParameters,
        coverage: float,
        *,
        gpu_memory: int | None = None,
        host_memory: int | None = None,
        gpus: int = 1,
        batches: BatchSizes | None = None,
    ) -> None:
        self._reads = reads
        self._parameters = parameters
        self._coverage = coverage
        self._gpu_memory = gpu_memory
        self._host_memory = host_memory
        self._batches = batches or BatchSizes()
        self._team = Team(gpus)
        self._linked = are_linked(self._team)
        self._held: list[_Held] = []
        self._in_common: Arena | None = None
        self._results: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._open = ExitStack()
        self.plan: GpuPlan

    def __enter__(self) -> Self:
        self._open.enter_context(limited_gpu_memory(self._gpu_memory, len(self._team)))
        return self

    def __exit__(self, *error: object) -> None:
        self._held.clear()
        self._in_common = self._results = None
        if error[0] is None:  # CUDA may be of no use any more
            self._team.each(lambda member: free_unused())
        self._open.close()

    def place_reads(self) -> None:
        """Plan, allocate the memory, and copy or move the reads according to the plan.

        Raises:
            DeviceError: the memory does not suffice.
            UnsuitableError: a read is too long for the GPU's shared memory.
        """
        with cuda_errors("copying the reads to the GPU"):
            retry_with_less(self._place_reads, "taking GPU memory", needed=lambda: self.plan.total)
        logger.info("GPU memory: %s", self.plan.line())

    def _place_reads(self, less: bool) -> None:
        self._held.clear()
        self._in_common = None
        host = available_memory() if self._host_memory is None else self._host_memory
        self.plan = plan_team(
            ReadMemory.of(self._reads),
            self._parameters,
            len(self._team),
            linked=self._linked,
            budget=min(self._team.each(self._budget)),
            host_budget=host,
            batches=self._batches.smaller() if less else self._batches,
            arrived=where(self._reads),
        )
        placed = place_reads(self._reads, self._team, self.plan, self.plan.placement.moved)
        if placed[0].divided:
            self._reads = placed[0]
        if self.plan.divided_over > 1:
            self._in_common = common_arena(self.plan, self._team)

        def hold(member: int) -> None:
            self._held.append(_Held(placed[member], Arena(self.plan.arena)))

        self._team.each(hold)

    def _budget(self, member: int) -> int:
        return budget_with_reads(self._reads, member, len(self._team), self._gpu_memory)

    def build_tables(self, advance: _Advance = lambda tables: None) -> None:
        """Build the tables.

        Args:
            advance: called with the number of tables that were finished since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        with cuda_errors("building the tables"), ThreadPoolExecutor(1) as beside:
            # It takes a while to touch the pages of so much memory.
            results = None if self.plan.placement.results else beside.submit(self._take_results)
            try:
                self._build_tables(self._locked(advance))
                self._results = None if results is None else results.result()
            except MemoryError as error:
                raise out_of_memory("building the tables", self.plan.total, error) from error

    def _take_results(self) -> dict[str, Any]:
        with self._team.devices[0]:
            return results_on_host(self._reads.reads)

    def _build_tables(self, advance: _Advance) -> None:
        """Build each table on one GPU, for all; without links, those in GPU memory on each."""
        on_device, gpus = self.plan.placement.tables, len(self._team)
        in_common, hashes = self._in_common, self.plan.hashes
        shared = self._linked or in_common is not None

        def share(first: int, last: int, member: int) -> range:
            size = last - first
            return range(first + size * member // gpus, first + size * (member + 1) // gpus)

        def build(member: int) -> dict[int, DeviceTable]:
            held = self._held[member]
            own = share(0, on_device, member) if shared else range(on_device)
            on_host = share(on_device, hashes, member)
            built: dict[int, DeviceTable] = {}
            for tables, counts in ((own, shared or member == 0), (on_host, True)):
                with held.arena.in_use():
                    made = build_some_tables(
                        held.reads,
                        self._parameters.minhash,
                        tables,
                        on_device=on_device,
                        keeping=persistent if in_common is None else in_common.in_use,
                        # What all build, they build at about the same speed.
                        advance=advance if counts else lambda tables: None,
                    )
                built |= dict(zip(tables, made, strict=True))
            self._team.devices[member].synchronize()
            return built

        built = self._team.at_once(build)

        def join(member: int) -> None:
            held = self._held[member]
            tables = []
            with held.arena.in_use(), persistent():
                for table in range(hashes):
                    own = built[member].get(table)
                    if own is None or in_common is not None:
                        there = next(one[table] for one in built if table in one)
                        own = there.on_current_device(divided=in_common is not None)
                    tables.append(own)
                minhash = self._parameters.minhash
                held.tables = DeviceTables.of(tables, minhash, held.reads.reads)
            self._team.devices[member].synchronize()

        self._team.each(join)

    def correct(self, advance: _Advance = lambda reads: None) -> Corrections:
        """Correct every read.

        Args:
            advance: called with the number of reads corrected since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        with cuda_errors("correcting"):

            def prepare(member: int) -> AnchorCorrector:
                corrector = self._corrector(member)
                with self._held[member].arena.in_use():
                    corrector.observe()
                self._team.devices[member].synchronize()
                return corrector

            correctors = self._team.at_once(prepare)

            def clear(member: int) -> None:
                correctors[member].clear()
                self._team.devices[member].synchronize()

            self._team.each(clear)
            batch = min(corrector.batch for corrector in correctors)
            batches = AnchorBatches(len(correctors[0].anchors), batch)
            seen = self._locked(advance)

            def run(member: int) -> None:
                with self._held[member].arena.in_use():
                    correctors[member].run(batches, seen)
                    correctors[member].release()

            self._team.at_once(run, batches.stop)
            with self._held[0].arena.in_use():
                return combine(correctors)

    def _corrector(self, member: int) -> AnchorCorrector:
        """The corrector of a GPU; allocates all its memory."""
        held, sizes = self._held[member], self.plan.batches
        tables = held.tables
        assert tables is not None

        def prepare(less: bool) -> AnchorCorrector:
            with held.arena.in_use():
                return AnchorCorrector(
                    held.reads,
                    tables,
                    self._parameters,
                    self._coverage,
                    sizes.smaller() if less else sizes,
                    self._results,
                    member,
                )

        return retry_with_less(prepare, "preparing the correction", needed=lambda: self.plan.total)

    def _locked(self, advance: _Advance) -> _Advance:
        def advance_alone(count: int) -> None:
            with self._lock:
                advance(count)

        return advance_alone


@dataclass(slots=True)
class _Held:
    """Arrays of one GPU."""

    reads: DeviceReadSet
    arena: Arena
    tables: DeviceTables | None = None


class CorrectionOnGpu(EditingGpuRun[CorrectionParameters], Run):
    """See ``Run``."""

    ON_CPU = CorrectionOnCpu
    PLAN = staticmethod(plan_for_this_gpu)

    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            UnsuitableError: a read is too long for the GPU.
        """
        with GpuCorrection(
            self.reads,
            self.parameters,
            coverage,
            gpu_memory=self.options.gpu_memory,
            host_memory=self.options.memory,
            gpus=self.options.gpus,
        ) as correction:
            with self.timed("place"):
                correction.place_reads()
            self.gpu = correction.plan.document()
            with self.building_tables() as stage:
                correction.build_tables(stage.advance)
            self.load_writers()
            with self.correcting() as stage:
                return correction.correct(stage.advance)
