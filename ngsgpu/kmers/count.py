"""Counting the k-mers of files, on the CPU or on GPUs, into a database, a histogram or memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import HostPlan, MemoryPlan, gpu_memory
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, is_stream, listed
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers.cpu_run import ShortCounter, plan_arena
from ngsgpu.kmers.database import KIND, DatabaseWriter, KmerDatabase, Source, Tally, open_database
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.long.cpu_run import LongCounter
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.stats import CountStatistics
from ngsgpu.kmers.stretches import offset_to_read
from ngsgpu.kmers.text import SHOWN_COUNTS, histogram_lines
from ngsgpu.run.driver import FilesDriver, folder_beside
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Run
from ngsgpu.run.trimming import warn_of_adapters

Choice = Callable[[NDArray[np.int64]], int]
"""Chooses the lowest count from a histogram."""


def count_files(
    in1: Paths,
    out: str | Path | None,
    parameters: CountParameters | None = None,
    *,
    in2: Paths = (),
    histo_file: str | Path | None = None,
    stats: str | Path | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> CountStatistics:
    """Count the canonical k-mers of files into a database, a histogram, or both.

    Args:
        in1: FASTQ or FASTA files of reads or first mates, or of other sequences; ``-`` is standard
            input.
        out: folder of the database.
        parameters: which k-mers are counted.
        in2: further files, which may be those of second mates.
        histo_file: file of the histogram; ``-`` is standard output.
        stats: JSON file for the statistics.
        phred_offset: of the qualities.
        options: backend, threads, memory and progress; do not affect the result.

    Raises:
        InputError: a file cannot be read, or the folder holds something else.
        OutputError: an output cannot be written; none is then.
        HostMemoryError: the memory is too small to count at all.
        DeviceError: the GPU failed, and the CPU may not take over.
        UsageError: there is no file, or neither database nor histogram.
    """
    first, second = listed(in1), listed(in2)
    paths = _DRIVER.given([*first, *second])
    if out is None and histo_file is None:
        raise UsageError("no output given; name a folder with `out`, or a file with `histo_file`")

    def counted(run: Run[CountParameters], files: OutputSet) -> CountStatistics:
        sample = ReadSample()
        if out is not None:
            database = count_to(files.folder, run, paths, run.parameters, sample)
            source, distinct = database.source, len(database)
            if source.sequences > 0 and source.kmers == 0:
                raise InputError(
                    paths[0],
                    f"no k-mer of {run.parameters.kmer} bases in {source.sequences:,} sequences",
                    "give longer or better sequences, or a smaller k",
                )
            histogram = partial(database.histogram, run.options.threads)
        else:
            assert histo_file is not None
            tally = Tally()
            with folder_beside(histo_file) as folder:
                source = count_into(tally, run, paths, run.parameters, folder, sample)
            distinct = tally.size
            histogram = partial(np.copy, tally.histogram)
        if histo_file is not None:
            for line in histogram_lines(histogram(), SHOWN_COUNTS):
                files.write(0, line.encode())
        return CountStatistics.after(
            run,
            sequences=source.sequences,
            bases=source.bases,
            kmers=source.kmers,
            distinct=distinct,
            adapters=_adapters(sample, first, second),
        )

    return _DRIVER.run_files(
        paths, [histo_file], counted, parameters=parameters, options=options, stats=stats,
        phred_offset=phred_offset, folder=None if out is None else (out, KIND),
    )  # fmt: skip


def _adapters(
    sample: ReadSample, first: Sequence[str | Path], second: Sequence[str | Path]
) -> dict[str, Any]:
    """What the sample of the reads says of adapters, with a warning if there are many."""
    # A file of second mates for each of first ones is the rule, but none is known to be one.
    paired = len(second) == len(first)
    lanes = zip(first, second, strict=True) if paired else ((path,) for path in [*first, *second])
    files = [ReadFiles(tuple(map(str, lane))) for lane in lanes]
    return warn_of_adapters(sample, files, "their k-mers are counted as well")


def count_to(
    folder: Path,
    run: Run[Any],
    paths: Sequence[str | Path],
    parameters: CountParameters,
    sample: ReadSample,
    least: Choice | None = None,
) -> KmerDatabase:
    """Count the k-mers of files into a database, as a step of a run.

    Args:
        folder: of the database.
        run: the run, whose backend counts.
        paths: FASTQ or FASTA files.
        parameters: which k-mers are counted.
        sample: gets the sample of the reads.
        least: chooses the lowest count of a k-mer that is kept from the histogram of all of them;
            called only where that is known before anything is written, in which case the database
            has the choice as its ``min_count``.

    Raises:
        NgsgpuError: as of ``count_files``.
    """
    chosen = parameters

    def choose(histogram: NDArray[np.int64]) -> int:
        nonlocal chosen
        assert least is not None
        chosen = replace(parameters, min_count=max(parameters.min_count, least(histogram)))
        return chosen.min_count

    writer = DatabaseWriter(folder, parameters)
    source = count_into(
        writer, run, paths, parameters, folder, sample, None if least is None else choose
    )
    writer.close(chosen, source)
    return open_database(folder, check=False)


def count_into(
    writer: DatabaseWriter | Tally | KeptKmers,
    run: Run[Any],
    paths: Sequence[str | Path],
    parameters: CountParameters,
    folder: Path,
    sample: ReadSample,
    least: Choice | None = None,
) -> Source:
    """Count the k-mers of files, as a step of a run.

    Args:
        writer: takes the k-mers; one that keeps them in memory only on a GPU.
        run: see ``count_to``.
        paths: likewise.
        parameters: likewise.
        folder: for what does not fit into memory.
        sample: see ``count_to``.
        least: likewise.

    Returns:
        What was counted.

    Raises:
        NgsgpuError: as of ``count_files``.
    """
    phred_offset = offset_to_read(parameters, run.phred_offset)
    letters = most_letters(paths)
    if run.backend == "cuda":
        from ngsgpu.kmers.gpu_run import count_on_gpu

        return count_on_gpu(
            paths, writer, folder, parameters, phred_offset, run.options, letters, run.progress,
            sample, least,
        )  # fmt: skip
    assert not isinstance(writer, KeptKmers)
    kind = _counter(parameters.words)
    counter = kind(paths, parameters, phred_offset, run.options, folder, sample, letters)
    with run.progress.stage("counting", unit="bases") as stage:
        counter.count(writer, stage.advance)
    for own in counter.runs:
        own.remove()
    return counter.source()


def _counter(words: int) -> type[ShortCounter | LongCounter]:
    return ShortCounter if words == 1 else LongCounter


def plan_counting(
    paths: Sequence[str | Path], parameters: CountParameters, options: RunOptions
) -> HostPlan:
    """Plan the memory of counting the k-mers of files; see ``count_files``."""
    letters, words = most_letters(paths), parameters.words

    def on_gpu() -> MemoryPlan:
        from ngsgpu.kmers.gpu import plan_counting

        budget = gpu_memory(options.gpu_memory).budget
        count_bytes = np.dtype(parameters.count_type).itemsize
        return plan_counting(letters, words, budget, count_bytes)

    plan = plan_arena(letters, _counter(words).bytes_of_row(words), options)
    return replace(plan, on_gpu=on_gpu)


def most_letters(paths: Sequence[str | Path]) -> int | None:
    """Most letters that files have, about; None if that is unknown, as of pipes."""
    if any(map(is_stream, paths)):
        return None
    return sum(map(unpacked_size, paths))


_DRIVER = FilesDriver(CountParameters, plan=plan_counting)
plan_files = _DRIVER.plan_files
