"""The driver of stages that need all reads in memory, and read their inputs twice.

A stage has a run on either backend (``staged``): reading, and steps. The driver checks
and opens the files, chooses the run, falls back to the CPU, and writes the statistics, for all
stages alike; ``write`` and the like of a run read the inputs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from ngsgpu.device.memory import format_size
from ngsgpu.errors import DeviceMemoryError, HostMemoryError, UsageError
from ngsgpu.io.endings import check_names
from ngsgpu.io.inputs import ReadFiles, keep_streams, pair_inputs, warn_of_mates
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.contents import SAMPLED_BYTES, contents_of, lanes_text
from ngsgpu.run.driver import Driver
from ngsgpu.run.options import ReadSetPlan, RunOptions
from ngsgpu.run.progress import Progress, say_if_compiling
from ngsgpu.run.staged import CpuRun, Parameters, StagedRun
from ngsgpu.run.statistics import RunStatistics

P = TypeVar("P", bound=Parameters)
R = TypeVar("R", bound=StagedRun[Any])
S = TypeVar("S", bound=RunStatistics)
T = TypeVar("T")


class OpenFiles(NamedTuple):
    """Inputs and outputs of a run.

    Attributes:
        lanes: the inputs; streams are kept in files.
        outputs: written together, when all has gone well.
    """

    lanes: list[ReadFiles]
    outputs: OutputSet


@dataclass(frozen=True)
class ReadSetDriver(Driver[P, R]):
    """Runs a stage.

    Attributes:
        needs_pairs: the error for reads without mates; empty if they do.
    """

    needs_pairs: str = ""

    def lanes(self, in1: Paths, in2: Paths, interleaved: bool) -> list[ReadFiles]:
        """The inputs of a run whose outputs are of other reads.

        Raises:
            UsageError: the files are inconsistent.
        """
        lanes = pair_inputs(in1, in2, interleaved=interleaved)
        if self.needs_pairs and not lanes[0].paired:
            raise UsageError(self.needs_pairs)
        return lanes

    def run_files(
        self,
        lanes: Sequence[ReadFiles],
        outputs: Sequence[str],
        steps: Callable[[R, OpenFiles], S],
        *,
        parameters: P | None,
        phred_offset: PhredOffset,
        stats: str | Path | None,
        options: RunOptions | None,
        keeps_format: bool = False,
    ) -> S:
        """Run from files to files.

        Args:
            lanes: the inputs.
            outputs: files of reads.
            steps: all that follows reading, up to the statistics.
            parameters: of the stage; None: the default ones, as for ``options``.
            phred_offset: 33, 64 or ``auto``.
            stats: JSON file for the statistics.
            options: threads, memory and so on.
            keeps_format: whether outputs are FASTA only if the inputs are.

        Raises:
            InputError: an input cannot be read; no output was written.
            UsageError: an output is named as FASTA and gets FASTQ, or would overwrite an input or
                another output.
            HostMemoryError: the memory does not suffice.
            DeviceError: the GPU failed, and the CPU may not take over.
            OutputError: an output cannot be written; none was.
        """

        def read_first(run: R, files: OutputSet, kept: list[ReadFiles]) -> S:
            if keeps_format:
                check_names((path for lane in kept for path in lane.inputs), outputs)
            self._check_early(run, kept)
            run.read(kept)
            return steps(run, OpenFiles(kept, files))

        return self.write(
            [path for lane in lanes for path in lane.inputs], outputs, read_first, _kept(lanes),
            parameters, options or RunOptions(), phred_offset=phred_offset, stats=stats,
        )  # fmt: skip

    def _check_early(self, run: R, lanes: Sequence[ReadFiles]) -> None:
        """Refuse what is clearly too large before it is read, by an estimate from its beginning.

        Raises:
            InputError: an input cannot be read.
            HostMemoryError: the memory does not suffice; also where the CPU would have to take over
                what takes it hours.
            DeviceError: that of the GPUs does not suffice.
        """
        options = run.options
        if lanes_text(lanes) < options.budget // _SMALL_SHARE:
            return
        contents = contents_of(lanes, options, run.phred_offset, counted_bytes=SAMPLED_BYTES)
        contents = contents.times(_CERTAIN)
        plan: ReadSetPlan = self.on_cpu.PLAN(
            run.parameters, contents, threads=options.threads, budget_bytes=options.budget
        )
        if isinstance(run, CpuRun):
            plan.check()
            return
        try:
            self.on_gpu().PLAN(plan, run.parameters, options)
        except DeviceMemoryError as error:
            if contents.bases < _HOURS_OF_CPU:
                raise
            raise HostMemoryError(
                f"{error}; choose `backend='cpu'` if {contents.count()} may take hours"
            ) from error

    def run_reads(
        self,
        reads: ReadSet,
        steps: Callable[[R], T],
        parameters: P | None,
        options: RunOptions | None,
    ) -> T:
        """Run on reads that are in memory.

        Args:
            reads: the reads.
            steps: all that is done with them.
            parameters: of the stage; None: the default ones, as for ``options``.
            options: threads, memory and so on.
        """
        how = options or RunOptions()

        def attempt(run: R) -> T:
            run.take(reads)
            return steps(run)

        with Progress(how.progress) as progress:
            return self._on_backend(attempt, parameters, how, "auto", progress)

    def plan_files(
        self,
        in1: Paths,
        in2: Paths = (),
        *,
        interleaved: bool = False,
        parameters: P | None = None,
        phred_offset: PhredOffset = "auto",
        options: RunOptions | None = None,
    ) -> ReadSetPlan:
        """Read the inputs, of large ones the beginning, and plan a run; do nothing else.

        Raises:
            InputError: an input cannot be read.
            UsageError: the files are inconsistent.
        """
        chosen, options = parameters or self.parameters(), options or RunOptions()
        budget = options.budget
        with keep_streams(self.lanes(in1, in2, interleaved)) as lanes:
            contents = contents_of(lanes, options, phred_offset)
        plan: ReadSetPlan = self.on_cpu.PLAN(
            chosen, contents, threads=options.threads, budget_bytes=budget
        )
        if text := contents.inflated:
            kept = options.kept_bytes
            how = "once, and kept for the second reading"
            if text > kept:
                how = f"; {format_size(kept)} are kept for the second reading, the rest again"
            plan = replace(plan, notes=(*plan.notes, f"inflates {format_size(text)} {how}"))
        return replace(plan, on_gpu=lambda: self.on_gpu().PLAN(plan, chosen, options))


_SMALL_SHARE: Final = 16
"""Inputs whose text is smaller than the memory by this factor are read without an estimate."""

_CERTAIN: Final = 0.9
"""Share of the estimated reads that there are for certain."""

_HOURS_OF_CPU: Final = 20_000_000_000
"""Bases that the CPU does not take over from a GPU by itself."""


@contextmanager
def _kept(lanes: Sequence[ReadFiles]) -> Iterator[list[ReadFiles]]:
    """The lanes with streams kept in files; none may change until the end."""
    warn_of_mates(lanes)
    say_if_compiling()
    with keep_streams(lanes) as kept, unchanged(path for lane in kept for path in lane.inputs):
        yield kept
