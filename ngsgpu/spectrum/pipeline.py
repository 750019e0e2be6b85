"""Spectrum correction from files to files.

As with the other method, the inputs are read twice, and only bases change (with ``--quality``
also their qualities).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ngsgpu.io.compress.packing import packing_of
from ngsgpu.io.inputs import plan_lanes
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress
from ngsgpu.run.staged import measure, open_files
from ngsgpu.spectrum.cpu_run import (
    Run,
    SpectrumCorrections,
    SpectrumOnCpu,
    SpectrumPlan,
    plan_spectrum,
)
from ngsgpu.spectrum.outputs import ByClass, class_paths
from ngsgpu.spectrum.params import SpectrumParameters
from ngsgpu.spectrum.stats import SpectrumStatistics

T = TypeVar("T")


def correct_files(
    in1: Paths,
    out1: Paths,
    in2: Paths = (),
    out2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: SpectrumParameters | None = None,
    phred_offset: PhredOffset = "auto",
    trim: bool = False,
    split: str | Path | None = None,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> SpectrumStatistics:
    """Correct the reads of files by their k-mers and write them in the same order and layout.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        out1: one output for each of ``in1``, or one for all; ``-`` is standard output. Names ending
            in ``.gz`` or ``.zst`` are compressed.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: of the correction.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        trim: cut reads that are not fixed to their longest part of solid k-mers, and leave out
            those without any (unless their mate has some).
        split: prefix of further outputs, one (or two, of mates) for each class of reads.
        stats: JSON file for the statistics.
        options: threads, memory and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent.
        HostMemoryError: the memory does not suffice.
        DeviceError: the GPU failed, and the CPU may not take over.
        OutputError: an output cannot be written; none was.
    """
    in1, out1, in2, out2 = listed(in1), listed(out1), listed(in2), listed(out2)
    parameters = parameters or SpectrumParameters()
    options = options or RunOptions()
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    width = len(lanes[0].inputs)
    packing = packing_of(outputs[0])
    ending = packing.endings[0] if packing is not None else ""
    by_class = [] if split is None else class_paths(str(split), width, ending)
    paths = [*outputs, *by_class]
    numbers = range(len(outputs), len(paths), width)
    classes = [range(first, first + width) for first in numbers]
    if stats is not None:
        paths.append(str(stats))
    with open_files(lanes, paths, options) as files:

        def corrected(kind: type[Run]) -> SpectrumStatistics:
            with kind(parameters, options, phred_offset, files.progress) as run:
                run.read(files.lanes)
                if not trim and not classes:
                    run.copy_inputs(files.lanes, files.outputs, run.style())
                run.count()
                corrections = run.correct(trim=trim)
                render = ByClass(corrections, trim, classes) if trim or classes else None
                counts = run.write(files.lanes, corrections, files.outputs, render)
                return SpectrumStatistics.of(run, corrections, counts)

        statistics = _on_backend(corrected, options, lambda: not files.outputs.started)
        statistics.time_s["total"] = files.seconds
        if stats is not None:
            files.outputs.write(len(paths) - 1, statistics.to_json().encode())
    return statistics


def _on_backend(
    do: Callable[[type[Run]], T],
    options: RunOptions,
    may_begin_again: Callable[[], bool] = lambda: True,
) -> T:
    def on_gpu() -> T:
        from ngsgpu.spectrum.gpu_run import SpectrumOnGpu

        return do(SpectrumOnGpu)

    return on_backend(options, on_gpu, lambda: do(SpectrumOnCpu), may_begin_again=may_begin_again)


def correct_reads(
    reads: ReadSet,
    parameters: SpectrumParameters | None = None,
    options: RunOptions | None = None,
    *,
    trim: bool = False,
) -> SpectrumCorrections:
    """Correct a read set in memory; see ``correct_files``."""
    chosen, how = parameters or SpectrumParameters(), options or RunOptions()

    def corrected(kind: type[Run]) -> SpectrumCorrections:
        with Progress(how.progress) as progress, kind(chosen, how, "auto", progress) as run:
            run.take(reads)
            run.count()
            return run.correct(trim=trim)

    return _on_backend(corrected, how)


def plan_files(
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: SpectrumParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> SpectrumPlan:
    """Read the inputs and plan their correction without correcting anything.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files are inconsistent.
    """
    in1, in2 = listed(in1), listed(in2)
    options = options or RunOptions()
    lanes, _ = plan_lanes(in1, in2, in1[:1], in2[:1], interleaved=interleaved)
    budget, contents = measure(lanes, options, phred_offset)
    return plan_spectrum(
        parameters or SpectrumParameters(),
        contents,
        threads=options.threads,
        budget_bytes=budget,
    )
