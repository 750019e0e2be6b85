"""Correction from files to files.

The inputs are read twice: first into a read set, from which everything is decided; then again,
batch by batch, to be written with some bases replaced. So nothing but bases can change, and with
``--quality`` their qualities.
"""

from __future__ import annotations

import logging
from pathlib import Path

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.cpu_run import CorrectionOnCpu, Run
from ngsgpu.correct.params import USEFUL_COVERAGE, CorrectionParameters
from ngsgpu.correct.stats import CorrectionStatistics
from ngsgpu.io.inputs import plan_lanes
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum
from ngsgpu.run.options import RunOptions
from ngsgpu.run.read_set import OpenFiles, ReadSetDriver

logger = logging.getLogger("ngsgpu")


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
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)

    def corrected(run: Run, files: OpenFiles) -> CorrectionStatistics:
        run.copy_inputs(files.lanes, files.outputs)
        run.fill_unknown()
        spectrum, coverage = run.count()
        _tell_coverage(run.parameters, spectrum, coverage)
        corrections = run.correct(coverage)
        counts = run.write(files.lanes, corrections.all_edits, files.outputs)
        statistics = CorrectionStatistics.of(run, spectrum, coverage, corrections, counts)
        if statistics.kept["nearly_all"]:
            _warn_of_differences_kept(statistics)
        return statistics

    return _DRIVER.run_files(
        lanes,
        outputs,
        corrected,
        parameters=parameters,
        phred_offset=phred_offset,
        stats=stats,
        options=options,
        keeps_format=True,
    )


def _tell_coverage(
    parameters: CorrectionParameters, spectrum: KmerSpectrum, coverage: float
) -> None:
    """Log an estimated coverage, and warn of one that is too low."""
    if parameters.coverage is None and len(spectrum.count):
        logger.info("estimated coverage: %.1f", coverage)
    if coverage < USEFUL_COVERAGE and len(spectrum.count):
        logger.warning(
            "the coverage of %.1f (%s) is too low: below %.1f, correction finds about half of the "
            "errors at best",
            coverage,
            "estimated" if parameters.coverage is None else "given",
            USEFUL_COVERAGE,
        )


def _warn_of_differences_kept(statistics: CorrectionStatistics) -> None:
    """Say that next to nothing was corrected, although many reads overlap, and why."""
    anchors, coverage = statistics.anchors, statistics.coverage["value"]
    if 2 * anchors["without_candidates"] >= anchors["total"]:
        logger.warning(
            "%s of %s reads were left unchanged: they overlap others, but fewer similar ones than "
            "a coverage of %.0f lets expect, as where coverage is uneven; give a lower `coverage`",
            f"{anchors['without_candidates']:,}",
            f"{anchors['total']:,}",
            coverage,
        )
        return
    logger.warning(
        "nearly all differences between reads were kept: %s bases of Q20 or above are in hardly "
        "any other read, but only %s bases were corrected. At a coverage of %.0f, as of amplicons, "
        "several reads have the same error by chance, and bases on which reads agree are taken for "
        "alleles. Give the reads with the sequencer's qualities, merge mates that overlap, or give "
        "`keep_variants` a higher number",
        f"{statistics.kept['rare']:,}",
        f"{statistics.corrected['bases']:,}",
        coverage,
    )


def correct_reads(
    reads: ReadSet,
    parameters: CorrectionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[Corrections, float]:
    """Correct a read set in memory.

    Returns:
        The corrections, and the coverage (reads per position) they were made with.
    """

    def corrected(run: Run) -> tuple[Corrections, float]:
        run.fill_unknown()
        spectrum, coverage = run.count()
        _tell_coverage(run.parameters, spectrum, coverage)
        return run.correct(coverage), coverage

    return _DRIVER.run_reads(reads, corrected, parameters, options)


def _on_gpu() -> type[Run]:
    from ngsgpu.correct.gpu_run import CorrectionOnGpu

    return CorrectionOnGpu


_DRIVER = ReadSetDriver[CorrectionParameters, Run](CorrectionParameters, CorrectionOnCpu, _on_gpu)
plan_files = _DRIVER.plan_files
