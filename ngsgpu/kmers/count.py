"""Counting the k-mers of files, on the CPU or on GPUs, into a database, a histogram or memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import HostPlan, MemoryPlan, gpu_memory
from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.temporary import temporary_folder
from ngsgpu.io.paths import Paths, is_stream, listed
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers.cpu_run import ShortCounter, plan_arena
from ngsgpu.kmers.database import (
    DatabaseWriter,
    KmerDatabase,
    Source,
    Tally,
    new_database,
    open_database,
)
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.long_run import LongCounter
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.stats import Observed
from ngsgpu.kmers.stretches import (
    offset_to_read,
)
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress, say_if_compiling

Choice = Callable[[NDArray[np.int64]], int]
"""Chooses the lowest count from a histogram."""

_Writer = TypeVar("_Writer", DatabaseWriter, Tally)


def count_files(
    paths: Paths,
    out: str | Path,
    parameters: CountParameters | None = None,
    *,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
    least: Choice | None = None,
    also: Callable[[KmerDatabase], Sequence[AtomicFile]] | None = None,
    observed: Observed | None = None,
) -> Source:
    """Count the canonical k-mers of files into a database.

    Args:
        paths: FASTQ or FASTA files; ``-`` is standard input.
        out: folder of the database; appears whole or not at all.
        parameters: which k-mers are counted.
        phred_offset: of the qualities.
        options: backend, threads, memory and progress; do not affect the result.
        least: chooses the lowest count of a k-mer that is kept from the histogram of all of them;
            called only where that is known before anything is written, in which case the database
            has the choice as its ``min_count``.
        also: writes files from the database, and closes them; they are committed together with it.
        observed: gets the sample of the reads, and the backend.

    Returns:
        What was counted.

    Raises:
        InputError: a file cannot be read, or the folder holds something else.
        OutputError: the database cannot be written.
        HostMemoryError: the memory is too small to count at all.
        DeviceError: the GPU failed, and the CPU may not take over.
        UsageError: there is no file.
    """
    paths = listed(paths)
    parameters, options = parameters or CountParameters(), options or RunOptions()
    together: list[AtomicFile] = []
    with new_database(out, together) as folder:
        source = _count_to(folder, paths, parameters, phred_offset, options, least, observed)
        if also is not None:
            together += also(open_database(folder, check=False))
    return source


def _count_to(
    folder: Path,
    paths: Sequence[str | Path],
    parameters: CountParameters,
    phred_offset: PhredOffset,
    options: RunOptions,
    least: Choice | None,
    observed: Observed | None,
) -> Source:
    chosen = parameters

    def choose(histogram: NDArray[np.int64]) -> int:
        nonlocal chosen
        assert least is not None
        chosen = replace(parameters, min_count=max(parameters.min_count, least(histogram)))
        return chosen.min_count

    writer, source = _count_into(
        lambda: DatabaseWriter(folder, parameters),
        paths, folder, parameters, phred_offset, options, choose if least is not None else None,
        observed,
    )  # fmt: skip
    writer.close(chosen, source)
    return source


def histogram_of_files(
    paths: Paths,
    parameters: CountParameters | None = None,
    *,
    beside: str | Path,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
    observed: Observed | None = None,
) -> tuple[NDArray[np.int64], Source]:
    """Distinct k-mers of files by count, as ``KmerDatabase.histogram``, without a database.

    Args:
        paths: see ``count_files``.
        parameters: likewise.
        beside: a path; what does not fit into memory goes to a temporary folder beside it.
        phred_offset: see ``count_files``.
        options: likewise.
        observed: likewise.

    Raises:
        OutputError: the temporary folder cannot be written.
        InputError: see ``count_files``, and likewise other errors.
    """
    paths = listed(paths)
    try:
        with temporary_folder(Path(beside)) as folder:
            tally, source = _count_into(
                Tally,
                paths, folder, parameters or CountParameters(), phred_offset,
                options or RunOptions(), observed=observed,
            )  # fmt: skip
    except OSError as error:
        raise output_error(beside, error) from error
    return tally.histogram, source


def kmers_on_gpu(
    paths: Sequence[str | Path],
    parameters: CountParameters,
    *,
    beside: str | Path,
    phred_offset: PhredOffset,
    options: RunOptions,
    least: Choice | None = None,
) -> tuple[KeptKmers, Source]:
    """The k-mers of files, counted on the current GPU and kept in memory, without a database.

    Args:
        paths: see ``count_files``.
        parameters: likewise.
        beside: see ``histogram_of_files``.
        phred_offset: see ``count_files``.
        options: likewise.
        least: chooses the lowest count of a k-mer that is kept from the histogram of all of them.

    Raises:
        OutputError: the temporary folder cannot be written.
        InputError: see ``count_files``, and likewise other errors.
    """
    from ngsgpu.kmers.gpu_run import count_on_gpu

    kept = KeptKmers(parameters.words)
    phred_offset = offset_to_read(parameters, phred_offset)
    letters = most_letters(paths)
    try:
        with temporary_folder(Path(beside)) as folder, Progress(options.progress) as progress:
            source = count_on_gpu(
                paths, kept, folder, parameters, phred_offset, options, letters, progress,
                ReadSample(), least,
            )  # fmt: skip
    except OSError as error:
        raise output_error(beside, error) from error
    return kept, source


def _count_into(
    make: Callable[[], _Writer],
    paths: Sequence[str | Path],
    folder: Path,
    parameters: CountParameters,
    phred_offset: PhredOffset,
    options: RunOptions,
    least: Choice | None = None,
    observed: Observed | None = None,
) -> tuple[_Writer, Source]:
    """Count on the backend of the options; what has taken the k-mers, and what was counted.

    Args:
        make: makes what takes them.
        paths: see ``count_files``.
        folder: for runs.
        parameters: see ``count_files``.
        phred_offset: likewise.
        options: likewise.
        least: likewise.
        observed: likewise.
    """
    observed = observed or Observed()
    sample = observed.sample
    phred_offset = offset_to_read(parameters, phred_offset)
    if not paths:
        raise UsageError("no reads given; name files with `in1`")
    letters = most_letters(paths)
    with Progress(options.progress) as progress:

        def on_cpu() -> tuple[_Writer, Source]:
            say_if_compiling()
            sample.clear()
            kind = _counter(parameters.words)
            counter = kind(paths, parameters, phred_offset, options, folder, sample, letters)
            writer = make()
            with progress.stage("counting", unit="bases") as stage:
                counter.count(writer, stage.advance)
            for run in counter.runs:
                run.remove()
            return writer, counter.source()

        def on_gpu() -> tuple[_Writer, Source]:
            from ngsgpu.kmers.gpu_run import count_on_gpu

            writer = make()
            return writer, count_on_gpu(
                paths, writer, folder, parameters, phred_offset, options, letters, progress,
                sample, least,
            )  # fmt: skip

        return on_backend(
            options,
            on_gpu,
            on_cpu,
            may_begin_again=lambda: not any(map(is_stream, paths)),
            note=observed.set_backend,
        )


def _counter(words: int) -> type[ShortCounter | LongCounter]:
    return ShortCounter if words == 1 else LongCounter


def plan_files(paths: Paths, parameters: CountParameters, options: RunOptions) -> HostPlan:
    """Plan the memory of ``count_files``, whose arguments these are."""
    letters, words = most_letters(listed(paths)), parameters.words

    def on_gpu() -> MemoryPlan:
        from ngsgpu.kmers.gpu_run import plan_counting

        budget = gpu_memory(options.gpu_memory).budget
        count_bytes = np.dtype(parameters.count_type).itemsize
        return plan_counting(letters, words, budget, options.gpus, count_bytes)

    plan = plan_arena(letters, _counter(words).bytes_of_row(words), options)
    return replace(plan, on_gpu=on_gpu)


def most_letters(paths: Sequence[str | Path]) -> int | None:
    """Most letters that files have, about; None if that is unknown, as of pipes."""
    if any(map(is_stream, paths)):
        return None
    return sum(map(unpacked_size, paths))
