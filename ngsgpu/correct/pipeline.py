"""Correction from files to files.

The inputs are read twice: first into a read set, from which everything is decided; then again,
batch by batch, to be written with some bases replaced. So nothing but bases can change.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ngsgpu.correct import cpu
from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.host_run import HostRun
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.plan import CorrectionPlan, chunk_bytes_within, plan_correction
from ngsgpu.correct.run import Run, RunOptions
from ngsgpu.correct.stats import CorrectionStatistics
from ngsgpu.device.fallback import on_backend
from ngsgpu.device.inventory import numba_cache
from ngsgpu.io.inputs import ReadFiles, keep_streams, measure_lanes, plan_lanes
from ngsgpu.io.mates import warn_of_mates
from ngsgpu.io.output.atomic import check_distinct
from ngsgpu.io.output.patch import EditCounts
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum, estimate_coverage
from ngsgpu.run.progress import Progress

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

logger = logging.getLogger("ngsgpu")

PACKAGE = Path(__file__).parents[1]
T = TypeVar("T")


def correct_files(
    in1: Sequence[str | Path],
    out1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    out2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    parameters: CorrectionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> CorrectionStatistics:
    """Correct the reads of files and write them to files of the same order and layout.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        out1: one output for each of ``in1``, or one for all; ``-`` is standard output. A name
            that ends in ``.gz`` is compressed.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: how reads are corrected; CARE's values by default.
        phred_offset: 33, 64, or ``auto`` (33, unless the file looks like 64, which is refused).
        stats: where to write the statistics as JSON.
        options: threads, memory and the like.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent, or the memory does not suffice.
        OutputError: an output cannot be written; none was.
    """
    parameters = parameters or CorrectionParameters()
    options = options or RunOptions()
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    paths = outputs if stats is None else [*outputs, str(stats)]
    check_distinct([*in1, *in2], paths)
    warn_of_mates(lanes)
    begin = time.monotonic()
    if numba_cache(PACKAGE).files == 0:
        logger.info("compiling kernels (first start only, up to half a minute)")
    with (
        OutputSet(paths, threads=options.threads) as output_set,
        keep_streams(lanes) as kept,
        unchanged(path for lane in kept for path in lane.inputs),
        Progress(options.progress) as progress,
    ):

        def corrected(kind: type[Run]) -> CorrectionStatistics:
            with kind(parameters, options, phred_offset, progress) as run:
                return _run(run, kept, output_set)

        statistics = _on_backend(corrected, options, lambda: not output_set.started)
        statistics.time_s["total"] = round(time.monotonic() - begin, 3)
        if stats is not None:
            output_set.write(len(outputs), statistics.to_json().encode())
    return statistics


def _on_backend(
    do: Callable[[type[Run]], T],
    options: RunOptions,
    may_begin_again: Callable[[], bool] = lambda: True,
) -> T:
    """Do something on the backend of the options, or on the CPU where that may stand in."""

    def on_gpu() -> T:
        from ngsgpu.correct.device_run import DeviceRun

        return do(DeviceRun)

    return on_backend(options, on_gpu, lambda: do(HostRun), may_begin_again=may_begin_again)


def _run(run: Run, lanes: Sequence[ReadFiles], outputs: OutputSet) -> CorrectionStatistics:
    """All stages of a run."""
    reads = run.read(lanes, outputs)
    spectrum = run.count()
    coverage = _coverage(run.parameters, spectrum)
    corrections = run.correct(coverage)
    counts = run.write(lanes, corrections, outputs)
    return _statistics(run, reads, spectrum, coverage, corrections, counts)


def _coverage(parameters: CorrectionParameters, spectrum: KmerSpectrum) -> float:
    """The coverage given, or estimated."""
    if parameters.coverage is not None:
        return parameters.coverage
    coverage = max(1.0, estimate_coverage(spectrum))
    logger.info("estimated coverage: %.1f", coverage)
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
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    parameters: CorrectionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> CorrectionPlan:
    """Read the inputs, correct nothing, and say what correcting them takes.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files are inconsistent.
    """
    parameters = parameters or CorrectionParameters()
    options = options or RunOptions()
    budget = options.budget
    chunk_bytes = chunk_bytes_within(budget, options.chunk_bytes)
    lanes, _ = plan_lanes(in1, in2, in1[:1], in2[:1], interleaved=interleaved)
    with keep_streams(lanes) as kept:
        sizes = measure_lanes(
            kept,
            threads=options.threads,
            phred_offset=phred_offset,
            chunk_bytes=chunk_bytes,
        )
    return plan_correction(
        parameters,
        reads=sizes.reads,
        bases=sizes.bases,
        max_length=sizes.longest,
        paired=lanes[0].paired,
        threads=options.threads,
        budget_bytes=budget,
    )


def _statistics(
    run: Run,
    reads: ReadSet | DeviceReadSet,
    spectrum: KmerSpectrum,
    coverage: float,
    corrections: Corrections,
    counts: EditCounts,
) -> CorrectionStatistics:
    """What the run saw and did."""
    options = run.options
    counters = corrections.counters
    ambiguous = len(reads.ambiguous.positions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    note = f" ({options.backend_note})" if options.backend_note else ""
    where = f"{options.threads} CPU threads"
    if run.backend == "cuda":
        where = "GPU" if options.gpus == 1 else f"{options.gpus} GPUs"
    return CorrectionStatistics(
        backend=run.backend,
        device=where + note,
        command=list(options.command),
        parameters=asdict(run.parameters) | {"phred_offset": run.phred_offset},
        coverage={
            "value": round(coverage, 3),
            "estimated": run.parameters.coverage is None,
        },
        reads={
            "total": reads.reads,
            "paired": int(reads.paired),
            "bases": reads.bases,
            "min_length": reads.min_length,
            "max_length": reads.max_length,
            "with_unknown": len(reads.ambiguous.reads),
        },
        anchors={
            "total": int(counters[cpu.ANCHORS]),
            "without_candidates": int(counters[cpu.ALONE]),
            "in_repeats": int(counters[cpu.CROWDED]),
            "high_quality": int(counters[cpu.HIGH]),
            "low_quality": int(counters[cpu.LOW]),
        },
        candidates={
            "found": int(counters[cpu.FOUND]),
            "aligned": int(counters[cpu.ALIGNED]),
            "kept": int(counters[cpu.KEPT]),
            "removed_by_refinement": int(counters[cpu.REFINED_AWAY]),
        },
        corrected={
            "reads": counts.reads,
            "bases": int(counts.by_position.sum()),
            "high_quality_reads": corrections.high_quality,
            "confirmed_reads": corrections.confirmed,
            "completed_reads": corrections.completed,
            "anchor_only_reads": corrections.anchor_only,
            "rejected_reads": corrections.rejected,
            "unknown_decided": counts.ambiguous,
            "unknown_left": ambiguous - counts.ambiguous,
        },
        corrected_bases_by_position=counts.by_position.tolist(),
        spectrum={
            "k": spectrum.k,
            "sampled": spectrum.sampled,
            "histogram": np.stack([spectrum.multiplicity, spectrum.count], axis=1).tolist(),
        },
        time_s=run.seconds,
        memory={"peak_rss_bytes": peak} | run.memory,
        gpu_memory=run.gpu_plan,
    )
