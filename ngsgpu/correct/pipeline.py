"""Correction from files to files.

The inputs are read twice: first into a read set, from which everything is decided; then again,
batch by batch, to be written with some bases replaced. So nothing but bases can change, and with
``--quality`` their qualities.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.cpu_run import CorrectionOnCpu, CorrectionPlan, Run, plan_correction
from ngsgpu.correct.params import USEFUL_COVERAGE, CorrectionParameters
from ngsgpu.correct.stats import CorrectionStatistics
from ngsgpu.io.inputs import plan_lanes
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum, estimate_coverage
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress
from ngsgpu.run.staged import measure, open_files

logger = logging.getLogger("ngsgpu")

T = TypeVar("T")


def correct_files(
    in1: Paths,
    out1: Paths,
    in2: Paths = (),
    out2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: CorrectionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> CorrectionStatistics:
    """Correct the reads of files and write them in the same order and layout.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        out1: one output for each of ``in1``, or one for all; ``-`` is standard output. Names ending
            in ``.gz`` or ``.zst`` are compressed.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: correction parameters; CARE's values by default.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        stats: JSON file for the statistics.
        options: threads, memory and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent.
        HostMemoryError: the memory does not suffice.
        OutputError: an output cannot be written; none was.
    """
    in1, out1, in2, out2 = listed(in1), listed(out1), listed(in2), listed(out2)
    parameters = parameters or CorrectionParameters()
    options = options or RunOptions()
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    paths = outputs if stats is None else [*outputs, str(stats)]
    with open_files(lanes, paths, options) as files:

        def corrected(kind: type[Run]) -> CorrectionStatistics:
            with kind(parameters, options, phred_offset, files.progress) as run:
                run.read(files.lanes)
                run.copy_inputs(files.lanes, files.outputs, run.style())
                spectrum = run.count()
                coverage = _coverage(parameters, spectrum)
                corrections = run.correct(coverage)
                counts = run.write(files.lanes, corrections, files.outputs)
                return CorrectionStatistics.of(run, spectrum, coverage, corrections, counts)

        statistics = _on_backend(corrected, options, lambda: not files.outputs.started)
        statistics.time_s["total"] = files.seconds
        if stats is not None:
            files.outputs.write(len(outputs), statistics.to_json().encode())
    return statistics


def _on_backend(
    do: Callable[[type[Run]], T],
    options: RunOptions,
    may_begin_again: Callable[[], bool] = lambda: True,
) -> T:
    def on_gpu() -> T:
        from ngsgpu.correct.gpu_run import CorrectionOnGpu

        return do(CorrectionOnGpu)

    return on_backend(options, on_gpu, lambda: do(CorrectionOnCpu), may_begin_again=may_begin_again)


def _coverage(parameters: CorrectionParameters, spectrum: KmerSpectrum) -> float:
    """The coverage given, or estimated; warns where it is too low."""
    coverage = parameters.coverage
    if coverage is None:
        coverage = max(1.0, estimate_coverage(spectrum))
        logger.info("estimated coverage: %.1f", coverage)
    if coverage < USEFUL_COVERAGE and len(spectrum.count):
        logger.warning(
            "the coverage of %.1f (%s) is too low: below %.1f, correction finds about half of the "
            "errors at best",
            coverage,
            "estimated" if parameters.coverage is None else "given",
            USEFUL_COVERAGE,
        )
    return coverage


def correct_reads(
    reads: ReadSet,
    parameters: CorrectionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[Corrections, float]:
    """Correct a read set in memory.

    Returns:
        The corrections, and the coverage (reads per position) they were made with.
    """
    parameters = parameters or CorrectionParameters()
    options = options or RunOptions()

    def corrected(kind: type[Run]) -> tuple[Corrections, float]:
        with (
            Progress(options.progress) as progress,
            kind(parameters, options, "auto", progress) as run,
        ):
            run.take(reads)
            coverage = _coverage(parameters, run.count())
            return run.correct(coverage), coverage

    return _on_backend(corrected, options)


def plan_files(
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: CorrectionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> CorrectionPlan:
    """Read the inputs and plan their correction without correcting anything.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files are inconsistent.
    """
    in1, in2 = listed(in1), listed(in2)
    options = options or RunOptions()
    lanes, _ = plan_lanes(in1, in2, in1[:1], in2[:1], interleaved=interleaved)
    budget, contents = measure(lanes, options, phred_offset)
    return plan_correction(
        parameters or CorrectionParameters(),
        contents,
        threads=options.threads,
        budget_bytes=budget,
    )
