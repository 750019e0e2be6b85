"""The driver of stages that need all reads in memory, and read their inputs twice.

A stage has a run on either backend (``staged``): reading, and steps. The driver checks
and opens the files, chooses the run, falls back to the CPU, and writes the statistics, for all
stages alike; ``write`` and the like of a run read the inputs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ngsgpu.device.memory import format_size
from ngsgpu.errors import UsageError
from ngsgpu.io.compress.source import is_compressed
from ngsgpu.io.inputs import ReadFiles, keep_streams, pair_inputs, warn_of_mates
from ngsgpu.io.names import check_names
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.driver import Driver
from ngsgpu.run.options import Contents, ReadSetPlan, RunOptions, chunk_bytes_within
from ngsgpu.run.progress import Progress, say_if_compiling
from ngsgpu.run.staged import Parameters, StagedRun
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
            run.read(kept)
            return steps(run, OpenFiles(kept, files))

        return self.write(
            [path for lane in lanes for path in lane.inputs], outputs, read_first, _kept(lanes),
            parameters, options or RunOptions(), phred_offset=phred_offset, stats=stats,
        )  # fmt: skip

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
        """Read the inputs and plan a run without doing anything else.

        Raises:
            InputError: an input cannot be read.
            UsageError: the files are inconsistent.
        """
        chosen, options = parameters or self.parameters(), options or RunOptions()
        budget = options.budget
        contents = _measure(self.lanes(in1, in2, interleaved), options, phred_offset, budget)
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


@contextmanager
def _kept(lanes: Sequence[ReadFiles]) -> Iterator[list[ReadFiles]]:
    """The lanes with streams kept in files; none may change until the end."""
    warn_of_mates(lanes)
    say_if_compiling()
    with keep_streams(lanes) as kept, unchanged(path for lane in kept for path in lane.inputs):
        yield kept


def _measure(
    lanes: Sequence[ReadFiles], options: RunOptions, phred_offset: PhredOffset, budget: int
) -> Contents:
    """Contents of the inputs of a run that only plans.

    Raises:
        InputError: an input cannot be read.
    """
    reads = bases = longest = inflated = 0
    with keep_streams(lanes) as kept:
        for lane in kept:
            compressed = {path for path in lane.inputs if is_compressed(path)}
            for batch in chain.from_iterable(
                lane.batches(
                    threads=options.threads,
                    phred_offset=phred_offset,
                    chunk_bytes=chunk_bytes_within(budget, options.chunk_bytes),
                )
            ):
                reads += len(batch)
                bases += int(batch.seq_len.sum(dtype=np.int64))
                longest = max(longest, int(batch.seq_len.max(initial=0)))
                inflated += len(batch.text) if batch.path in compressed else 0
    return Contents(reads, bases, longest, lanes[0].paired, inflated=inflated)
