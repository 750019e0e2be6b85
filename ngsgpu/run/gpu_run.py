"""A run on GPUs: the inputs go to the device as they are and are split into records there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.plan import gpu_memory
from ngsgpu.device.team import Team, limited_gpu_memory
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.gpu.feed import say_read_by_cpu
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import EditCounts, Edits, load_kernels
from ngsgpu.io.output.patch import write_patched
from ngsgpu.io.output.precopy import Precopy
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.reread import ReadFilesLayout
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.readset import ReadSet
from ngsgpu.readset.fill import fill_unknown
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory, count_kmers_on_gpu
from ngsgpu.readset.gpu_divided import are_linked
from ngsgpu.readset.gpu_fill import fill_unknown_on_gpu
from ngsgpu.readset.gpu_plan import TeamPlan, reading_bytes
from ngsgpu.readset.gpu_read import read_to_device
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers
from ngsgpu.run.again.edited import E, EditingRun, Render
from ngsgpu.run.options import ReadSetPlan, RunOptions
from ngsgpu.run.staged import CpuRun, P, Parameters, StagedRun

_LOG = logging.getLogger("ngsgpu")
_Plan = TypeVar("_Plan", bound=TeamPlan)


def plan_free_memory(
    plan_team: Callable[..., _Plan], run: ReadSetPlan, parameters: Parameters, options: RunOptions
) -> _Plan:
    """Plan a run on the current GPU, and those after it, from its free memory.

    Args:
        plan_team: plans the stage's memory, of reads, parameters, the number of GPUs, whether
            they are ``linked``, ``budget`` and ``host_budget``.
        run: what is known about the run.
        parameters: of the stage.
        options: memory budgets, and the number of GPUs.

    Raises:
        DeviceError: it does not suffice, or CUDA does not respond.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    found = run.contents
    reads = ReadMemory.expected(
        found.reads,
        found.bases,
        found.longest,
        paired=found.paired,
        quality_bits=min(parameters.quality_bits, found.quality_bits),
    )
    budget = gpu_memory(options.gpu_memory).budget
    plan = plan_team(
        reads,
        parameters,
        options.gpus,
        linked=are_linked(Team(options.gpus)),
        budget=budget,
        host_budget=options.budget,
    )
    return replace(plan, reading=reading_bytes(found.paired, options.gpu_memory, budget))


class GpuRun(StagedRun[P]):
    """A run on GPUs.

    Attributes:
        reads: the reads, after reading; on the host if they do not fit on the GPU.
        layouts: positions of their sequences in the files; None if unknown.
    """

    backend = "cuda"
    ON_CPU: ClassVar[type[CpuRun[Any]]]
    """The same run on the CPU."""
    PLAN: ClassVar[Callable[..., TeamPlan]]
    """Plans the memory from what is free, of a plan for the CPU, parameters and options."""
    reads: DeviceReadSet | ReadSet
    layouts: tuple[ReadFilesLayout, ...] | None = None

    def __enter__(self) -> Self:
        """Limit the memory of the GPUs."""
        super().__enter__()
        self._open.enter_context(limited_gpu_memory(self.options.gpu_memory, self.options.gpus))
        return self

    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into a read set on the GPU, or on the host where it does not fit.

        Raises:
            InputError: an input cannot be read.
            DeviceError: CUDA fails.
        """
        sample, team = ReadSample(), Team(self.options.gpus)
        text = sum(unpacked_size(path) for lane in lanes for path in lane.inputs)
        kept = self.options.kept_bytes
        try:
            with self.step("read", "reading") as stage:
                found = read_to_device(
                    lanes,
                    quality_bits=self.parameters.quality_bits,
                    phred_offset=self.phred_offset,
                    threads=self.options.threads,
                    memory=self.options.gpu_memory,
                    # What is not kept as a whole is inflated again, as fast as it is copied.
                    keep_bytes=kept if text <= kept else 0,
                    sample=sample,
                    advance=stage.advance,
                    devices=[one.id for one in team.devices] if are_linked(team) else None,
                )
            self.reads, self.layouts = found.reads, found.layouts
            self.look_at(sample, lanes)
            return
        except DeviceMemoryError as error:
            say_read_by_cpu(error)
        # Only now are the frames of the failed attempt gone, and its arrays with them.
        run = self.ON_CPU(self.parameters, self.options, self.phred_offset, self.progress)
        run.read(lanes)
        self.reads, self.adapters, self.kept = run.reads, run.adapters, run.kept
        self.seconds |= run.seconds

    def _fill_unknown(self) -> None:
        if isinstance(self.reads, ReadSet):
            fill_unknown(self.reads, threads=self.options.threads)
            return
        with cuda_errors("looking for unknown bases in other reads"):
            fill_unknown_on_gpu(self.reads)

    def sampled_spectrum(self, k: int) -> KmerSpectrum:
        """See ``StagedRun``."""
        if isinstance(self.reads, ReadSet):
            return count_kmers(self.reads, k, threads=self.options.threads)
        with cuda_errors("counting k-mers"):
            return count_kmers_on_gpu(self.reads, k)

    def meanwhile(self, load: Callable[[], None]) -> None:
        """Have a thread load kernels of the CPU, which would otherwise wait for that later on.

        Args:
            load: calls them; if it fails, so will those who need them.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-load")
        self._open.enter_context(thread).submit(load)

    def take(self, reads: ReadSet) -> None:
        """Use reads that are already in memory."""
        self.reads = reads


class EditingGpuRun(GpuRun[E], EditingRun[E]):
    """A run on GPUs whose outputs are the inputs with some bases replaced.

    Attributes:
        precopy: copies the inputs meanwhile, where the places of their sequences are known.
    """

    precopy: Precopy | None = None

    def take(self, reads: ReadSet) -> None:
        """Copy reads to the GPU, unless its memory does not suffice."""
        self.reads = reads
        try:
            with cuda_errors("copying the reads to the GPU"):
                self.reads = DeviceReadSet.from_host(reads)
        except DeviceMemoryError as error:
            _LOG.info("%s; leaving them on the host", error)

    def copy_inputs(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> None:
        """Begin to copy the inputs to the outputs, where that is possible."""
        if self.layouts is not None:
            targets = [lane.outputs for lane in lanes]
            precopy = Precopy(self.layouts, targets, outputs, self.options.threads)
            self.precopy = self._open.enter_context(precopy)

    def load_writers(self) -> None:
        """Load what is going to write edits into copies; before the GPU works for long.

        Numba is imported, which keeps other threads from launching kernels.
        """
        if self.precopy is not None:
            reads, style = self.reads, self.style()
            self.meanwhile(lambda: load_kernels(reads.reads, 2 if reads.paired else 1, style))

    def _write(
        self,
        lanes: Sequence[ReadFiles],
        edits: Edits,
        outputs: OutputSet,
        advance: Callable[[int], None],
        render: Render | None,
    ) -> EditCounts:
        """Write edits into the copies of the inputs, if there are any."""
        if self.precopy is None:
            return super()._write(lanes, edits, outputs, advance, render)
        assert self.layouts is not None
        return write_patched(
            self.layouts,
            [lane.outputs for lane in lanes],
            outputs,
            edits,
            paired=self.reads.paired,
            max_length=self.reads.max_length,
            threads=self.options.threads,
            copied=self.precopy.finish(),
            style=self.style(),
            advance=advance,
        )
