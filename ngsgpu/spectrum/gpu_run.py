"""A spectrum correction on a GPU: plan, placement of the reads, counting, correction.

Meanwhile other threads copy the inputs to the outputs; the corrections are then written into these
copies, unless reads are trimmed or split.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ngsgpu.device.arena import Arena
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import format_size
from ngsgpu.device.plan import ADVICE, largest_array_bytes
from ngsgpu.device.team import free_unused
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import EditCounts, Edits
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory, count_kmers_on_gpu
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers
from ngsgpu.run.edited import Render
from ngsgpu.run.gpu_run import EditingGpuRun
from ngsgpu.spectrum.cpu_run import RULES, Run, SpectrumCorrections, SpectrumOnCpu
from ngsgpu.spectrum.gpu import (
    Batches,
    Corrector,
    DeviceSolid,
    batches_within,
    count_on_gpu,
    filter_words,
    make_solid_on_gpu,
    most_blocks,
    table_bytes,
)
from ngsgpu.spectrum.gpu_plan import BATCH_BYTES, SPARE_BYTES, SpectrumGpuPlan, plan_gpu
from ngsgpu.spectrum.params import SpectrumParameters
from ngsgpu.spectrum.reads import scores_of_codes

_LOG = logging.getLogger("ngsgpu")

_START_BYTES = 16
"""Of a read, for where its edits begin, after all others."""


class SpectrumOnGpu(EditingGpuRun[SpectrumParameters], Run):
    """See ``Run``."""

    _arena: Arena
    _placed: DeviceReadSet
    _solid: DeviceSolid

    def on_cpu(self) -> SpectrumOnCpu:
        """The same run on the CPU."""
        return SpectrumOnCpu(self.parameters, self.options, self.phred_offset, self.progress)

    def sampled_spectrum(self, k: int) -> KmerSpectrum:
        """The spectrum of a sample of the k-mers."""
        if isinstance(self.reads, ReadSet):
            return count_kmers(self.reads, k, threads=self.options.threads)
        with cuda_errors("counting k-mers"):
            return count_kmers_on_gpu(self.reads, k)

    def count(self) -> None:
        """Place the reads, count their k-mers and make the set of solid ones.

        Raises:
            DeviceError: the GPU's memory does not suffice.
        """
        with self.timed("size"):
            self.choose_kmer()
        with self.timed("place"), cuda_errors("copying the reads to the GPU"):
            plan = self._place()
        with cuda_errors("counting k-mers"), self._arena.in_use():
            with self.step("count", "counting k-mers", unit="k-mers") as stage:
                kept = count_on_gpu(self._placed, self.kmer, plan.rows, plan.kept, stage.advance)
            with self.timed("table"):
                self.choose_thresholds(kept.histogram)
                self._make_solid(kept)

    def _place(self) -> SpectrumGpuPlan:
        """Plan, copy or move the reads accordingly, and allocate all other memory."""
        reads = self.reads
        there = reads.device_nbytes if isinstance(reads, DeviceReadSet) else 0
        free_unused()
        plan = plan_gpu(
            ReadMemory.of(reads),
            reads.bases,
            self.parameters,
            budget=largest_array_bytes(self.options.gpu_memory, there) + there,
            host_budget=self.options.budget,
            blocks=most_blocks(),
        )
        _LOG.info("GPU memory: %s", plan.line())
        self.gpu = plan.document()
        if isinstance(reads, DeviceReadSet):
            reads.keep_on_host(plan.moved_reads)
        else:
            reads = self.reads = DeviceReadSet.from_host(reads, on_host=plan.moved_reads)
        # First, lest it take a little of what has been moved.
        free_unused()
        # Made here, since it outlives the arena.
        _ = reads.struct
        self._placed = reads
        self._arena = Arena(plan.arena)
        return plan

    def _make_solid(self, kept: KeptKmers) -> None:
        """Make the set of solid k-mers, if there is room for it."""
        bloom = self.parameters.filter == "bloom"
        solid, strong = self.thresholds.solid, self.thresholds.strong
        needed = table_bytes(kept.size)
        if bloom:
            needed = 8 * filter_words(int(kept.histogram[solid:].sum()))
        if needed + SPARE_BYTES > self._arena.room:
            kept.move_to_host()
        self._require(needed, f"the set of {kept.size:,} k-mers")
        self._solid = make_solid_on_gpu(kept, solid, strong, bloom=bloom)

    def _require(self, needed: int, what: str) -> None:
        room = self._arena.room
        if needed > room:
            raise DeviceMemoryError(
                f"{what} takes {format_size(needed)} of GPU memory and {format_size(room)} are "
                f"left; {ADVICE}"
            )

    def correct(self, *, trim: bool = False) -> SpectrumCorrections:
        """Correct every read.

        Raises:
            DeviceError: the GPU's memory does not suffice, or CUDA fails.
        """
        reads = self._placed
        with self.correcting() as stage, cuda_errors("correcting"), self._arena.in_use():
            corrector = Corrector(
                reads,
                self._solid,
                self.parameters.search_rules(self.kmer),
                rule=RULES[self.parameters.rule],
                mutations=self.parameters.mutations,
                trim=trim,
                scores=scores_of_codes(reads.quality_bits),
            )
            listed = corrector.weak_reads()
            stage.advance(reads.reads - len(listed))
            edits = corrector.correct(listed, self._batches(len(listed)), stage.advance)
            del listed
            found, starts = corrector.results(edits)
        return SpectrumCorrections(
            Edits(starts, found.counts, found.edits), found.classes, found.begin, found.end
        )

    def _batches(self, listed: int) -> Batches:
        """How the listed reads are corrected in the memory that is left."""
        reads = self._placed
        left = self._arena.room - _START_BYTES * reads.reads
        found = batches_within(min(BATCH_BYTES, left), listed, reads.max_length, most_blocks())
        if found is None:
            raise DeviceMemoryError(
                f"correcting reads of up to {reads.max_length:,} bases takes more GPU memory than "
                f"the {format_size(max(0, left))} that are left; {ADVICE}"
            )
        return found

    def write(
        self,
        lanes: Sequence[ReadFiles],
        corrections: SpectrumCorrections,
        outputs: OutputSet,
        render: Render | None = None,
    ) -> EditCounts:
        """Write the corrections into the copies of the inputs, if there are any.

        Raises:
            InputError: a file has changed.
        """
        if self.precopy is None:
            return super().write(lanes, corrections, outputs, render)
        with self.writing() as stage:
            return self.write_into_copies(
                lanes, corrections.edits, self.style(), outputs, stage.advance
            )

    def __exit__(self, *error: Any) -> None:
        for name in ("_solid", "_placed", "_arena"):
            self.__dict__.pop(name, None)
        if error[0] is None:  # CUDA may be of no use any more
            free_unused()
        super().__exit__(*error)
