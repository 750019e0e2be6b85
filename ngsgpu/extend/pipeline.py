"""Extension from files to files.

The inputs are read twice: first into a read set, among which candidates are looked for; then
again, piece by piece, for names, letters and qualities of what is written. So memory holds the
read set and its tables, and results only of the pairs under way.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.plan import chunk_bytes_within
from ngsgpu.correct.run import RunOptions
from ngsgpu.device.fallback import on_backend
from ngsgpu.device.inventory import numba_cache
from ngsgpu.errors import UsageError
from ngsgpu.extend import cpu
from ngsgpu.extend.host_run import HostRun
from ngsgpu.extend.insert import InsertSize
from ngsgpu.extend.joining import NOT_CONNECTED
from ngsgpu.extend.outputs import ExtensionOutputs, TextMaker
from ngsgpu.extend.params import ExtensionParameters, Rules
from ngsgpu.extend.plan import ExtensionPlan, plan_extension
from ngsgpu.extend.records import KIND_WORDS
from ngsgpu.extend.run import Run
from ngsgpu.extend.stats import ExtensionStatistics
from ngsgpu.io.inputs import ReadFiles, keep_streams, measure_lanes, plan_lanes
from ngsgpu.io.mates import warn_of_mates
from ngsgpu.io.output.atomic import check_distinct
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.progress import Progress

logger = logging.getLogger("ngsgpu")

PACKAGE = Path(__file__).parents[1]
T = TypeVar("T")


def extend_files(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
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
        outputs: where results go.
        interleaved: whether ``in1`` holds both mates.
        parameters: how pairs are extended.
        phred_offset: 33, 64, or ``auto`` (33, unless the file looks like 64, which is refused).
        options: threads, memory and the like.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent, or the memory does not suffice.
        OutputError: an output cannot be written; none was.
        DeviceError: the GPU's memory does not suffice, or CUDA fails.
    """
    parameters = parameters or ExtensionParameters()
    options = options or RunOptions()
    lanes = _paired_lanes(in1, in2, interleaved)
    outputs.check()
    check_distinct([*in1, *in2], outputs.paths)
    warn_of_mates(lanes)
    begin = time.monotonic()
    if numba_cache(PACKAGE).files == 0:
        logger.info("compiling kernels (first start only, up to half a minute)")

    with (
        OutputSet(outputs.paths, threads=options.threads) as files,
        keep_streams(lanes) as kept,
        unchanged(path for lane in kept for path in lane.inputs),
        Progress(options.progress) as progress,
    ):

        def extended(kind: type[Run]) -> ExtensionStatistics:
            with kind(parameters, options, phred_offset, progress) as run:
                run.read(kept)
                run.build()
                insert = run.insert_size()
                rules = parameters.rules(insert.mean, insert.sd)
                lengths = _extend(run, kept, rules, outputs, files)
                run.seconds["total"] = round(time.monotonic() - begin, 3)
                return _statistics(run, rules, insert, lengths)

        statistics = _on_backend(extended, options, lambda: not files.started)
        if outputs.stats is not None:
            files.write(len(outputs.paths) - 1, statistics.to_json().encode())
    return statistics


def _on_backend(
    do: Callable[[type[Run]], T],
    options: RunOptions,
    may_begin_again: Callable[[], bool] = lambda: True,
) -> T:
    """Do something on the backend of the options, or on the CPU where that may stand in."""

    def on_gpu() -> T:
        from ngsgpu.extend.device_run import DeviceRun

        return do(DeviceRun)

    return on_backend(options, on_gpu, lambda: do(HostRun), may_begin_again=may_begin_again)


def _extend(
    run: Run, lanes: Sequence[ReadFiles], rules: Rules, outputs: ExtensionOutputs, files: OutputSet
) -> NDArray[np.int64]:
    """Extend all pairs and write them; returns how many extended reads there are of each length."""
    maker = TextMaker(outputs, run.offset, rules.reverse_complemented_input)
    lengths = np.zeros(1, dtype=np.int64)
    pairs = run.reads.reads // 2
    with run.timed("extend"), run.progress.stage("extending", pairs, "pairs") as stage:
        for text in run.texts(lanes, rules, maker):
            maker.write(text, files)
            counts = np.bincount(text.lengths, minlength=len(lengths))
            counts[: len(lengths)] += lengths
            lengths = counts
            stage.advance(text.pairs)
    return lengths


def extend_reads(
    reads: ReadSet,
    parameters: ExtensionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[cpu.Extensions, InsertSize]:
    """Extend all pairs of a read set in memory.

    Returns:
        The results, one row a pair, and the fragments' length they were made with.
    """
    parameters = parameters or ExtensionParameters()
    options = options or RunOptions()

    def extended(kind: type[Run]) -> tuple[cpu.Extensions, InsertSize]:
        with (
            Progress(options.progress) as progress,
            kind(parameters, options, "auto", progress) as run,
        ):
            run.take(reads)
            run.build()
            insert = run.insert_size()
            rules = parameters.rules(insert.mean, insert.sd)
            pairs = np.arange(reads.reads // 2, dtype=np.int64)
            parts = list(run.results(rules, pairs)) or [cpu.Extensions.allocate(0, rules)]
        return cpu.Extensions.joined(parts), insert

    return _on_backend(extended, options)


def plan_files(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    parameters: ExtensionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> ExtensionPlan:
    """Read the inputs, extend nothing, and say what extending them takes.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files are inconsistent.
    """
    options = options or RunOptions()
    budget = options.budget
    chunk_bytes = chunk_bytes_within(budget, options.chunk_bytes)
    with keep_streams(_paired_lanes(in1, in2, interleaved)) as lanes:
        sizes = measure_lanes(
            lanes,
            threads=options.threads,
            phred_offset=phred_offset,
            chunk_bytes=chunk_bytes,
        )
    return plan_extension(
        parameters or ExtensionParameters(),
        pairs=sizes.reads // 2,
        bases=sizes.bases,
        max_length=sizes.longest,
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


def _statistics(
    run: Run, rules: Rules, insert: InsertSize, lengths: NDArray[np.int64]
) -> ExtensionStatistics:
    """What the run saw and did."""
    reads, options = run.reads, run.options
    counters = run.counters.tolist()
    kinds = counters[: len(KIND_WORDS)]
    found = np.flatnonzero(lengths)
    bases = int((lengths * np.arange(len(lengths))).sum())
    connected = sum(kinds[1:])
    note = f" ({options.backend_note})" if options.backend_note else ""
    where = f"{options.threads} CPU threads"
    if run.backend == "cuda":
        where = "GPU" if options.gpus == 1 else f"{options.gpus} GPUs"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return ExtensionStatistics(
        backend=run.backend,
        device=where + note,
        command=list(options.command),
        parameters=asdict(run.parameters) | {"phred_offset": run.phred_offset},
        insert=asdict(insert) | {"min_length": rules.min_length, "max_length": rules.max_length},
        reads={
            "total": reads.reads,
            "bases": reads.bases,
            "min_length": reads.min_length,
            "max_length": reads.max_length,
            "with_unknown": len(reads.ambiguous.reads),
        },
        pairs={
            "total": reads.reads // 2,
            "connected": connected,
            "remaining": kinds[NOT_CONNECTED],
        }
        | dict(zip(KIND_WORDS[1:], kinds[1:], strict=True)),
        lengths={
            "min": int(found[0]) if len(found) else 0,
            "mean": round(bases / max(1, connected), 3),
            "max": int(found[-1]) if len(found) else 0,
            "bases": bases,
        },
        length_histogram=[[int(length), int(lengths[length])] for length in found],
        tasks={
            "primary_iterations": counters[cpu.PRIMARY_STEPS],
            "auxiliary_iterations": counters[cpu.AUXILIARY_STEPS],
            "auxiliary_tasks": counters[cpu.AUXILIARY_TASKS],
            "candidates": counters[cpu.CANDIDATES_TAKEN],
        },
        time_s=run.seconds,
        memory={"peak_rss_bytes": peak} | run.memory,
        gpu_memory=run.gpu,
    )
