"""Correcting a read set on GPUs: plan, placement, tables, correction.

With several GPUs each holds the reads and the tables; anchors are handed out to them batch by
batch, and what they decided is combined in the end. The result does not depend on their number.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.gpu import AnchorCorrector
from ngsgpu.correct.gpu_batches import AnchorBatches, BatchSizes
from ngsgpu.correct.gpu_combine import combine
from ngsgpu.correct.gpu_plan import GpuPlan, plan_gpu
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.arena import Arena
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import available_memory
from ngsgpu.device.plan import largest_array_bytes, out_of_memory, retry_with_less
from ngsgpu.device.team import Team, free_unused, limited_gpu_memory
from ngsgpu.minhash.gpu import DeviceTables, build_tables_on_gpu
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_plan import ReadMemory

if TYPE_CHECKING:
    from ngsgpu.readset import ReadSet

logger = logging.getLogger("ngsgpu")

_Advance = Callable[[int], None]


def correct_with_gpu(
    reads: ReadSet | DeviceReadSet,
    parameters: CorrectionParameters,
    coverage: float,
    *,
    gpu_memory: int | None = None,
    gpus: int = 1,
    advance_tables: _Advance = lambda tables: None,
    advance_reads: _Advance = lambda reads: None,
) -> Corrections:
    """Correct all reads of a read set; equal to ``ngsgpu.correct.host.correct_on_cpu``.

    Args:
        reads: the read set; arrays of one on the GPU may be moved to the host.
        parameters: how reads are corrected.
        coverage: reads per position of the genome.
        gpu_memory: bytes of each GPU's memory that may be taken; None for what is free.
        gpus: how many GPUs work, the current one and those after it.
        advance_tables: called with the number of tables that were finished since the last call.
        advance_reads: called with the number of reads corrected since the last call.

    Raises:
        DeviceError: the memory does not suffice, or CUDA fails.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    with GpuCorrection(reads, parameters, coverage, gpu_memory=gpu_memory, gpus=gpus) as run:
        run.place_reads()
        run.build_tables(advance_tables)
        return run.correct(advance_reads)


class GpuCorrection:
    """A correction on GPUs, step by step; a context manager, which frees the memory.

    Args:
        reads: the read set; arrays of one on the GPU may be moved to the host.
        parameters: how reads are corrected.
        coverage: reads per position of the genome.
        gpu_memory: bytes of each GPU's memory that may be taken; None for what is free.
        host_memory: bytes of page-locked host memory that may be taken; None for what is free.
        gpus: how many GPUs work, the current one and those after it.
        batches: the largest batches.

    Attributes:
        plan: what lies where; known from ``place_reads`` on.
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
        self._held: list[_Held] = []
        self._lock = threading.Lock()
        self._open = ExitStack()
        self.plan: GpuPlan

    def __enter__(self) -> Self:
        self._open.enter_context(limited_gpu_memory(self._gpu_memory, len(self._team)))
        return self

    def __exit__(self, *error: object) -> None:
        self._held.clear()
        if error[0] is None:  # CUDA may be of no use any more
            self._team.each(lambda member: free_unused())
        self._open.close()

    def place_reads(self) -> None:
        """Plan, take the memory, and copy or move the reads to where the plan has them.

        Raises:
            DeviceError: the memory does not suffice.
            UnsuitableError: a read is too long for the GPU's shared memory.
        """
        with cuda_errors("copying the reads to the GPU"):
            retry_with_less(self._place_reads, "taking GPU memory", needed=lambda: self.plan.total)
        logger.info("GPU memory: %s", self.plan.line())

    def _place_reads(self, less: bool) -> None:
        self._held.clear()
        host = available_memory() if self._host_memory is None else self._host_memory
        self.plan = plan_gpu(
            ReadMemory.of(self._reads),
            self._parameters,
            budget=min(self._team.each(self._budget)),
            host_budget=host // len(self._team),
            batches=self._batches.smaller() if less else self._batches,
        )
        self._team.each(self._place)

    def _budget(self, member: int) -> int:
        """Bytes of a GPU that a correction may take, with those that its reads take already."""
        there = 0
        if member == 0 and isinstance(self._reads, DeviceReadSet):
            there = self._reads.device_nbytes
        free_unused()
        return largest_array_bytes(self._gpu_memory, there) + there

    def _place(self, member: int) -> None:
        """Place the reads on a GPU and take the memory for all else."""
        reads, moved = self._reads, self.plan.placement.moved
        if not isinstance(reads, DeviceReadSet):
            reads = DeviceReadSet.from_host(reads, on_host=moved)
        elif member == 0:
            reads.keep_on_host(moved)
        else:
            reads = reads.on_current_device()
        # Made here, since it outlives the arena.
        _ = reads.struct
        free_unused()
        self._held.append(_Held(reads, Arena(self.plan.arena)))

    def build_tables(self, advance: _Advance = lambda tables: None) -> None:
        """Build the tables.

        Args:
            advance: called with the number of tables that were finished since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """

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

        with cuda_errors("building the tables"):
            try:
                self._team.at_once(build)
            except MemoryError as error:
                raise out_of_memory("building the tables", self.plan.total, error) from error

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
        """What corrects on a GPU; takes all that it needs."""
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
    """What one GPU holds."""

    reads: DeviceReadSet
    arena: Arena
    tables: DeviceTables | None = None
