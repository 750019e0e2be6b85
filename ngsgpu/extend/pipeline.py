"""Extension from files to files.

The inputs are read twice: first into a read set that provides the candidates; then again, piece by
piece, for the names, bases and qualities of the output. Memory therefore holds the read set and its
tables, but results only of the active pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.cpu_run import ExtensionOnCpu, ExtensionPlan, Run, plan_extension
from ngsgpu.extend.insert import InsertSize
from ngsgpu.extend.outputs import ExtensionOutputs, TextMaker
from ngsgpu.extend.params import ExtensionParameters, Rules
from ngsgpu.extend.stats import ExtensionStatistics
from ngsgpu.io.inputs import ReadFiles, plan_lanes
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress
from ngsgpu.run.staged import OpenFiles, measure, open_files

T = TypeVar("T")


def extend_files(
    in1: Paths,
    in2: Paths = (),
    *,
    outputs: ExtensionOutputs,
    interleaved: bool = False,
    parameters: ExtensionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> ExtensionStatistics:
    """Extend the pairs of files to long reads.

    Args:
        in1: files of first mates, or of interleaved mates; ``-`` is standard input.
        in2: files of second mates, as many as ``in1``, or none.
        outputs: output files.
        interleaved: whether ``in1`` holds both mates.
        parameters: extension parameters.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        options: threads, memory and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent.
        HostMemoryError: the memory does not suffice.
        OutputError: an output cannot be written; none was.
        DeviceError: the GPU's memory does not suffice, or CUDA fails.
    """
    in1, in2 = listed(in1), listed(in2)
    parameters = parameters or ExtensionParameters()
    options = options or RunOptions()
    lanes = _paired_lanes(in1, in2, interleaved)
    outputs.check()
    with open_files(lanes, outputs.paths, options) as files:

        def extended(kind: type[Run]) -> ExtensionStatistics:
            with kind(parameters, options, phred_offset, files.progress) as run:
                run.read(files.lanes)
                run.build()
                insert = run.insert_size()
                rules = parameters.rules(insert.mean, insert.sd)
                lengths = _extend(run, rules, outputs, files)
                run.seconds["total"] = files.seconds
                return ExtensionStatistics.of(run, rules, insert, lengths)

        statistics = _on_backend(extended, options, lambda: not files.outputs.started)
        if outputs.stats is not None:
            files.outputs.write(len(outputs.paths) - 1, statistics.to_json().encode())
    return statistics


def _on_backend(
    do: Callable[[type[Run]], T],
    options: RunOptions,
    may_begin_again: Callable[[], bool] = lambda: True,
) -> T:
    def on_gpu() -> T:
        from ngsgpu.extend.gpu_run import ExtensionOnGpu

        return do(ExtensionOnGpu)

    return on_backend(options, on_gpu, lambda: do(ExtensionOnCpu), may_begin_again=may_begin_again)


def _extend(
    run: Run, rules: Rules, outputs: ExtensionOutputs, files: OpenFiles
) -> NDArray[np.int64]:
    """Extend all pairs and write them; returns how many extended reads there are of each length."""
    maker = TextMaker(outputs, run.offset, rules.reverse_complemented_input)
    lengths = np.zeros(1, dtype=np.int64)
    with run.step("extend", "extending", run.reads.reads // 2, "pairs") as stage:
        for text in run.texts(files.lanes, rules, maker):
            maker.write(text, files.outputs)
            counts = np.bincount(text.lengths, minlength=len(lengths))
            counts[: len(lengths)] += lengths
            lengths = counts
            stage.advance(text.pairs)
    return lengths


def extend_reads(
    reads: ReadSet,
    parameters: ExtensionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[Extensions, InsertSize]:
    """Extend all pairs of a read set in memory.

    Returns:
        The results, one row per pair, and the insert size used.
    """
    parameters = parameters or ExtensionParameters()
    options = options or RunOptions()

    def extended(kind: type[Run]) -> tuple[Extensions, InsertSize]:
        with (
            Progress(options.progress) as progress,
            kind(parameters, options, "auto", progress) as run,
        ):
            run.take(reads)
            run.build()
            insert = run.insert_size()
            rules = parameters.rules(insert.mean, insert.sd)
            pairs = np.arange(reads.reads // 2, dtype=np.int64)
            parts = list(run.results(rules, pairs)) or [Extensions.allocate(0, rules)]
        return Extensions.concatenate(parts), insert

    return _on_backend(extended, options)


def plan_files(
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: ExtensionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> ExtensionPlan:
    """Read the inputs and plan their extension without extending anything.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files are inconsistent.
    """
    in1, in2 = listed(in1), listed(in2)
    options = options or RunOptions()
    budget, contents = measure(_paired_lanes(in1, in2, interleaved), options, phred_offset)
    return plan_extension(
        parameters or ExtensionParameters(),
        contents,
        threads=options.threads,
        budget_bytes=budget,
    )


def _paired_lanes(
    in1: Sequence[str | Path], in2: Sequence[str | Path], interleaved: bool
) -> list[ReadFiles]:
    lanes, _ = plan_lanes(in1, in2, in1[:1], in2[:1], interleaved=interleaved)
    if not lanes[0].paired:
        raise UsageError("extension needs pairs: give second mates with -I, or --interleaved")
    return lanes
