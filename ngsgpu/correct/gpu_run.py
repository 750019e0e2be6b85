"""Corrects a read set on GPUs: plan, placement, tables, correction.

Each GPU has the reads and the tables, of which each of several GPUs that are linked well builds
some and copies the others. Where they do not fit on each, such GPUs have them in common: each has a
part of them in its memory, and reads those of the others. Anchors are distributed batch by batch,
and the decisions are combined at the end. The result does not depend on the number of GPUs.

Meanwhile other threads copy the inputs to the outputs; the corrections are then written into these
copies.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Self

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.cpu_run import CorrectionOnCpu, Run
from ngsgpu.correct.gpu import AnchorCorrector, BatchSizes
from ngsgpu.correct.gpu_combine import combine
from ngsgpu.correct.gpu_plan import GpuPlan, plan_for_this_gpu, plan_team
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.arena import Arena, persistent
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import available_memory
from ngsgpu.device.plan import out_of_memory, retry_with_less
from ngsgpu.device.spread import seen_from_here
from ngsgpu.device.team import Team, free_unused, limited_gpu_memory
from ngsgpu.minhash.gpu import (
    BuiltTables,
    DeviceTables,
    build_some_tables,
    build_tables_on_gpu,
    empty_slots,
    join_tables,
)
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory
from ngsgpu.readset.gpu_divided import are_linked, budget_with_reads, common_arena, divide_reads
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
        self._lock = threading.Lock()
        self._open = ExitStack()
        self.plan: GpuPlan

    def __enter__(self) -> Self:
        self._open.enter_context(limited_gpu_memory(self._gpu_memory, len(self._team)))
        return self

    def __exit__(self, *error: object) -> None:
        self._held.clear()
        self._in_common = None
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
            are_divided=isinstance(self._reads, DeviceReadSet) and self._reads.divided,
        )
        if self.plan.divided_over > 1:
            self._reads = divide_reads(self._reads, self._team, self.plan.placement.moved)
            self._in_common = common_arena(self.plan, self._team)
        self._team.each(self._place)

    def _budget(self, member: int) -> int:
        return budget_with_reads(self._reads, member, len(self._team), self._gpu_memory)

    def _place(self, member: int) -> None:
        """Place the reads on a GPU and allocate the memory for everything else."""
        reads, moved = self._reads, self.plan.placement.moved
        if not isinstance(reads, DeviceReadSet):
            reads = DeviceReadSet.from_host(reads, on_host=moved)
        elif member == 0 and not reads.divided:
            reads.keep_on_host(moved)
        else:
            reads = reads.on_current_device()
        # First, lest it take a little of what has been moved.
        free_unused()
        # Made here, since it outlives the arena.
        _ = reads.struct
        self._team.devices[member].synchronize()  # other GPUs copy from this one
        self._held.append(_Held(reads, Arena(self.plan.arena)))

    def build_tables(self, advance: _Advance = lambda tables: None) -> None:
        """Build the tables.

        Args:
            advance: called with the number of tables that were finished since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        with cuda_errors("building the tables"):
            try:
                if self._in_common is not None:
                    self._build_in_common(self._in_common, self._locked(advance))
                elif self._linked and not self.plan.moved:
                    self._build_for_each_other(self._locked(advance))
                else:
                    self._build_on_each(advance)
            except MemoryError as error:
                raise out_of_memory("building the tables", self.plan.total, error) from error

    def _build_on_each(self, advance: _Advance) -> None:
        """Build all tables on each GPU."""

        def build(member: int) -> None:
            held = self._held[member]
            with held.arena.in_use():
                held.tables = build_tables_on_gpu(
                    held.reads,
                    self._parameters.minhash,
                    on_device=self.plan.placement.tables,
                    slots_on_device=self.plan.placement.slots,
                    # All build all tables, at about the same speed.
                    advance=advance if member == 0 else lambda tables: None,
                )

        self._team.at_once(build)

    def _build_for_each_other(self, advance: _Advance) -> None:
        """Build some of the tables on each GPU, and copy those of the others there."""
        hashes = self._parameters.minhash.hashes

        def build(member: int) -> tuple[Any, BuiltTables]:
            held = self._held[member]
            with held.arena.in_use(), persistent():
                slots = empty_slots(held.reads.reads, hashes, True)
            return slots, self._build_share(member, slots, persistent, advance)

        each = self._team.at_once(build)
        parts = [built for _, built in each]

        def join(member: int) -> None:
            held = self._held[member]
            with held.arena.in_use():
                held.tables = join_tables(parts, member, each[member][0])
            self._team.devices[member].synchronize()

        self._team.at_once(join)

    def _build_share(
        self, member: int, slots: Any, keeping: Callable[[], AbstractContextManager[object]],
        advance: _Advance,
    ) -> BuiltTables:  # fmt: skip
        """The tables that a GPU builds for all; see ``build_some_tables``."""
        held, place, gpus = self._held[member], self.plan.placement, len(self._team)
        hashes = self._parameters.minhash.hashes
        own = range(hashes * member // gpus, hashes * (member + 1) // gpus)
        with held.arena.in_use():
            built = build_some_tables(
                held.reads, self._parameters.minhash, own, slots, on_device=place.tables,
                slots_on_device=place.slots, keeping=keeping, advance=advance,
            )  # fmt: skip
        self._team.devices[member].synchronize()
        return built

    def _build_in_common(self, arena: Arena, advance: _Advance) -> None:
        """Build some of the tables on each GPU, for all."""
        place, minhash = self.plan.placement, self._parameters.minhash
        with self._team.devices[0] as first:
            with arena.in_use():
                slots = empty_slots(self._reads.reads, minhash.hashes, place.slots)
            first.synchronize()

        def build(member: int) -> BuiltTables:
            return self._build_share(member, seen_from_here(slots), arena.in_use, advance)

        parts = self._team.at_once(build)

        def show(member: int) -> None:
            held = self._held[member]
            with held.arena.in_use():
                held.tables = DeviceTables.of(
                    [seen_from_here(ids) for part in parts for ids in part.ids],
                    [seen_from_here(places) for part in parts for places in part.positions],
                    seen_from_here(slots),
                    [entries for part in parts for entries in part.entries],
                )

        self._team.each(show)

    def correct(self, advance: _Advance = lambda reads: None) -> Corrections:
        """Correct every read.

        Args:
            advance: called with the number of reads corrected since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        with cuda_errors("correcting"):
            correctors = self._team.at_once(self._corrector)
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
