"""A spectrum correction on GPUs, from files to files.

Meanwhile other threads copy the inputs to the outputs; the corrections are then written into these
copies, unless reads are trimmed or split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ngsgpu.device.errors import cuda_errors
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.run.gpu_run import EditingGpuRun
from ngsgpu.spectrum.cpu_run import Run, SpectrumCorrections, SpectrumOnCpu
from ngsgpu.spectrum.gpu_plan import plan_for_this_gpu
from ngsgpu.spectrum.gpu_team import SpectrumTeam
from ngsgpu.spectrum.params import SpectrumParameters


class SpectrumOnGpu(EditingGpuRun[SpectrumParameters], Run):
    """See ``Run``."""

    ON_CPU = SpectrumOnCpu
    PLAN = staticmethod(plan_for_this_gpu)
    _team: SpectrumTeam | None = None

    def copy_inputs(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> None:
        """See ``EditingGpuRun``."""
        super().copy_inputs(lanes, outputs)
        # What is left to do on the GPU takes hardly longer.
        self.load_writers()

    def count(self) -> None:
        """Place the reads, count their k-mers and make the set of solid ones.

        Raises:
            DeviceError: the GPUs' memory does not suffice.
        """
        with self.timed("size"):
            self.choose_kmer()
        with self.timed("place"), cuda_errors("copying the reads to the GPU"):
            team = self._team = SpectrumTeam(self.parameters, self.options)
            self.reads = team.place(self.reads)
            self.gpu = team.plan.document()
        with cuda_errors("counting k-mers"):
            with self.step("count", "counting k-mers", unit="k-mers") as stage:
                histogram = team.count(self.kmer, stage.advance)
            with self.timed("table"):
                self.choose_thresholds(histogram)
                team.make_solid(self.thresholds)

    def correct(self, *, trim: bool = False) -> SpectrumCorrections:
        """Correct every read.

        Raises:
            DeviceError: the GPUs' memory does not suffice, or CUDA fails.
        """
        assert self._team is not None
        with self.correcting() as stage, cuda_errors("correcting"):
            return self._team.correct(self.kmer, trim=trim, advance=stage.advance)

    def __exit__(self, *error: Any) -> None:
        if self._team is not None:
            self._team.close()
            if error[0] is None:  # CUDA may be of no use any more
                self._team.free_unused()
        super().__exit__(*error)
