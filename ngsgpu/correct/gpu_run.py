"""Correcting a read set on GPUs: plan, placement, tables, correction.

With several GPUs each holds the reads and the tables; anchors are handed out to them batch by
batch, and what they decided is combined in the end. The result does not depend on their number.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.gpu import AnchorCorrector
from ngsgpu.correct.gpu_batches import AnchorBatches, BatchSizes
from ngsgpu.correct.gpu_combine import combine
from ngsgpu.correct.gpu_plan import GpuPlan, ReadMemory, plan_gpu
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.arena import Arena
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.gpu_memory import (
    free_unused,
    largest_array_bytes,
    limited_gpu_memory,
    out_of_memory,
    retry_with_less,
)
from ngsgpu.device.memory import available_memory
from ngsgpu.minhash.gpu import DeviceTables, build_tables_on_gpu
from ngsgpu.readset.gpu import DeviceReadSet

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
        from cupy import cuda

        self._reads = reads
        self._parameters = parameters
        self._coverage = coverage
        self._gpu_memory = gpu_memory
        self._host_memory = host_memory
        self._batches = batches or BatchSizes()
        first = cuda.runtime.getDevice()
        self._gpus = [_Gpu(number) for number in range(first, first + gpus)]
        self._lock = threading.Lock()
        self._open = ExitStack()
        self.plan: GpuPlan

    def __enter__(self) -> Self:
        self._open.enter_context(limited_gpu_memory(self._gpu_memory, len(self._gpus)))
        return self

    def __exit__(self, *error: object) -> None:
        for gpu in self._gpus:
            gpu.forget()
            if error[0] is None:  # CUDA may be of no use any more
                gpu.free_unused()
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
        for gpu in self._gpus:
            gpu.forget()
        host = available_memory() if self._host_memory is None else self._host_memory
        self.plan = plan_gpu(
            ReadMemory.of(self._reads),
            self._parameters,
            budget=min(gpu.budget(self._gpu_memory, self._reads) for gpu in self._gpus),
            host_budget=host // len(self._gpus),
            batches=self._batches.smaller() if less else self._batches,
        )
        # One after the other, because copies between GPUs want both idle.
        for gpu in self._gpus:
            gpu.place(self._reads, self.plan)

    def build_tables(self, advance: _Advance = lambda tables: None) -> None:
        """Build the tables.

        Args:
            advance: called with the number of tables that were finished since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """

        def build(gpu: _Gpu) -> None:
            # All build all tables, at about the same speed.
            first = gpu is self._gpus[0]
            gpu.build_tables(self._parameters, self.plan, advance if first else lambda tables: None)

        with cuda_errors("building the tables"):
            try:
                self._on_each(build)
            except MemoryError as error:
                raise out_of_memory("building the tables", self.plan.total, error) from error

    def correct(self, advance: _Advance = lambda reads: None) -> Corrections:
        """Correct every read.

        Args:
            advance: called with the number of reads corrected since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        sizes = self.plan.batches

        def prepare(gpu: _Gpu) -> None:
            retry_with_less(
                lambda less: gpu.prepare(
                    self._parameters, self._coverage, sizes.smaller() if less else sizes
                ),
                "preparing the correction",
                needed=lambda: self.plan.total,
            )

        with cuda_errors("correcting"):
            self._on_each(prepare)
            correctors = [gpu.corrector for gpu in self._gpus]
            batch = min(corrector.batch for corrector in correctors)
            batches = AnchorBatches(len(correctors[0].anchors), batch)
            seen = self._locked(advance)
            self._on_each(lambda gpu: gpu.correct(batches, seen), batches.stop)
            with self._gpus[0].in_use():
                return combine(correctors)

    def _locked(self, advance: _Advance) -> _Advance:
        def advance_alone(count: int) -> None:
            with self._lock:
                advance(count)

        return advance_alone

    def _on_each(self, do: Callable[[_Gpu], None], stop: Callable[[], None] = lambda: None) -> None:
        """Do something on each GPU, at the same time; where one fails, stop the others."""
        if len(self._gpus) == 1:
            do(self._gpus[0])
            return
        with ThreadPoolExecutor(len(self._gpus), thread_name_prefix="ngsgpu-gpu") as pool:
            running = [pool.submit(do, gpu) for gpu in self._gpus]
            try:
                for one in as_completed(running):
                    one.result()
            except BaseException:
                stop()
                raise


class _Gpu:
    """What one GPU holds.

    Attributes:
        corrector: what corrects, from ``prepare`` on.
    """

    def __init__(self, number: int) -> None:
        import cupy

        self._device = cupy.cuda.Device(number)
        self._arena: Arena | None = None
        self._reads: DeviceReadSet | None = None
        self._tables: DeviceTables | None = None
        self._corrector: AnchorCorrector | None = None

    @property
    def corrector(self) -> AnchorCorrector:
        assert self._corrector is not None
        return self._corrector

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Make it the current one, and its arena that of new arrays."""
        assert self._arena is not None
        with self._device, self._arena.in_use():
            yield

    def budget(self, limit: int | None, reads: ReadSet | DeviceReadSet) -> int:
        """Bytes that a correction may take, with those that its reads take already."""
        there = 0
        if isinstance(reads, DeviceReadSet) and reads.device == self._device:
            there = reads.device_nbytes
        with self._device:
            free_unused()
            return largest_array_bytes(limit, there) + there

    def forget(self) -> None:
        """Let go of what was taken here."""
        self._corrector = self._tables = self._reads = self._arena = None

    def free_unused(self) -> None:
        """Give back what nothing refers to."""
        with self._device:
            free_unused()

    def place(self, reads: ReadSet | DeviceReadSet, plan: GpuPlan) -> None:
        """Place the reads and take the memory for all else."""
        moved = plan.placement.moved
        with self._device:
            if not isinstance(reads, DeviceReadSet):
                self._reads = DeviceReadSet.from_host(reads, on_host=moved)
            elif reads.device == self._device:
                reads.keep_on_host(moved)
                self._reads = reads
            else:
                self._reads = reads.on_current_device()
            # Made here, since it outlives the arena.
            _ = self._reads.struct
            free_unused()
            self._arena = Arena(plan.arena)

    def build_tables(
        self, parameters: CorrectionParameters, plan: GpuPlan, advance: _Advance
    ) -> None:
        """Build all tables."""
        assert self._reads is not None
        with self.in_use():
            self._tables = build_tables_on_gpu(
                self._reads,
                parameters.minhash,
                on_device=plan.placement.tables,
                slots_on_device=plan.placement.slots,
                advance=advance,
            )

    def prepare(self, parameters: CorrectionParameters, coverage: float, sizes: BatchSizes) -> None:
        """Take what correcting needs."""
        assert self._reads is not None and self._tables is not None
        with self.in_use():
            self._corrector = AnchorCorrector(
                self._reads, self._tables, parameters, coverage, sizes
            )

    def correct(self, batches: AnchorBatches, advance: _Advance) -> None:
        """Correct batches of anchors until there are no more."""
        with self.in_use():
            self.corrector.run(batches, advance)
            self.corrector.release()
