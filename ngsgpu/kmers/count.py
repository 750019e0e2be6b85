"""Counting the k-mers of files.

Threads write the k-mers of a stretch of text into the arena, ordered by bucket. When the arena is
full, or the files end, the k-mers of every bucket are counted. If there is more to come, the sorted
counts (a run) go to files beside the output; in the end, those of all runs are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import AT_LEAST, Allocation, HostPlan, MemoryPlan, gpu_memory
from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.temporary import temporary_folder
from ngsgpu.io.paths import Paths, is_stream, listed
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.reader import read_batches
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, into_buckets, sorted_counts
from ngsgpu.kmers.database import (
    DatabaseWriter,
    KmerDatabase,
    Source,
    Tally,
    new_database,
    open_database,
)
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.runs import Run, write_run
from ngsgpu.kmers.stats import Observed
from ngsgpu.kmers.stretches import (
    Stretches,
    kmers_in,
    lowest_quality,
    offset_to_read,
    stretches_of,
)
from ngsgpu.pool import Shared, working
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions, chunk_bytes_within, on_backend
from ngsgpu.run.progress import Progress, say_if_compiling

_STRETCH: Final = 1 << 20
"""Most letters that a task takes: its k-mers stay near the core."""

_KMERS_PER_BUCKET: Final = 1 << 18
_MIN_BITS: Final = 4
_MAX_BITS: Final = 12
_ARENA_SHARE: Final = 2
"""Part of the memory that the arena takes at most, 1 / this: the rest is for tables and counts."""
_ARENA: Final = "arena"

Choice = Callable[[NDArray[np.int64]], int]
"""Chooses the lowest count from a histogram."""

_Writer = TypeVar("_Writer", DatabaseWriter, Tally)


class Task(NamedTuple):
    """Stretches, and where in the arena their k-mers go."""

    stretches: Stretches
    at: int


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
            counter = _Counter(paths, parameters, phred_offset, options, folder, sample)
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


def most_letters(paths: Sequence[str | Path]) -> int | None:
    """Most letters that files have, about; None if that is unknown, as of pipes."""
    if any(map(is_stream, paths)):
        return None
    return sum(map(unpacked_size, paths))


def _rows(letters: int | None, words: int, options: RunOptions) -> int:
    """K-mers that the arena has room for, those of a stretch at least."""
    row = 8 * words
    room = (options.budget - INTERPRETER_BYTES) // _ARENA_SHARE - options.threads * _STRETCH * row
    rows = room // row if letters is None else min(letters + _STRETCH, room // row)
    return max(_STRETCH, rows)


def plan_files(paths: Paths, parameters: CountParameters, options: RunOptions) -> HostPlan:
    """Plan the memory of ``count_files``, whose arguments these are.

    The arena takes what files may fill of its share of the budget.
    """
    row = 8 * parameters.words
    arena = row * _rows(most_letters(listed(paths)), parameters.words, options)
    scratch = row * options.threads * _STRETCH
    return HostPlan(
        doing="counting k-mers",
        about=AT_LEAST,
        allocations=(
            Allocation("program", INTERPRETER_BYTES),
            Allocation(_ARENA, arena),
            Allocation("scratch", scratch),
            Allocation("tables", (_ARENA_SHARE - 1) * (arena + scratch)),
        ),
        budget=options.budget,
        remedies=("fewer threads",),
        holds_on_gpu=False,
        on_gpu=lambda: plan_on_gpu(paths, parameters, options),
    )


def plan_on_gpu(paths: Paths, parameters: CountParameters, options: RunOptions) -> MemoryPlan:
    """Plan the memory of each GPU from what is free; see ``plan_files``.

    Raises:
        DeviceMemoryError: it is too little.
    """
    from ngsgpu.kmers.gpu_run import plan_counting

    budget = gpu_memory(options.gpu_memory).budget
    count_bytes = np.dtype(parameters.count_type).itemsize
    return plan_counting(
        most_letters(listed(paths)), parameters.words, budget, options.gpus, count_bytes
    )


@dataclass(slots=True)
class _Counter:
    """One run of ``count_files``."""

    paths: Sequence[str | Path]
    parameters: CountParameters
    phred_offset: PhredOffset
    options: RunOptions
    folder: Path
    sample: ReadSample
    runs: list[Run] = field(default_factory=list)
    sequences: int = 0
    bases: int = 0
    kmers: int = 0
    _bits: int = 0
    _next: Stretches | None = None
    _used: int = 0
    _ended: bool = False
    _arena: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        letters = most_letters(self.paths)
        plan = plan_files(self.paths, self.parameters, self.options)
        plan.check()
        rows = plan.bytes_of(_ARENA) // (8 * self.parameters.words)
        known = rows if letters is None else min(rows, letters // 2)
        buckets = max(1, known // _KMERS_PER_BUCKET)
        self._bits = min(_MAX_BITS, max(_MIN_BITS, buckets.bit_length()))
        self._arena = np.empty((rows, self.parameters.words), dtype=np.uint64)

    def count(self, writer: DatabaseWriter | Tally, advance: Callable[[int], None]) -> None:
        """Count everything into a database."""
        stretches = self._stretches(advance)
        while True:
            starts = self._collect(stretches)
            if self._ended:
                break
            self._spill(starts)
        for kmers, counts in self._counted(starts, self.parameters.min_count):
            writer.append(kmers, counts)

    def source(self) -> Source:
        """Source of the counts."""
        names = tuple(Path(path).name for path in self.paths)
        return Source(self.sequences, self.bases, self.kmers, names)

    def _collect(self, stretches: Iterator[Stretches]) -> NDArray[np.int64]:
        """Fill the arena; where in it the k-mers of each task and bucket begin, and end."""
        words = self.parameters.words
        rooms = Shared(
            np.empty((_STRETCH, words), dtype=np.uint64) for _ in range(self.options.threads)
        )
        least = lowest_quality(self.parameters, self.phred_offset)

        def collect(task: Task) -> NDArray[np.int64]:
            starts = np.empty((1 << self._bits) + 1, dtype=np.int64)
            with rooms.borrowed() as room:
                found = kmers_in(task.stretches, self.parameters.kmer, least, room)
                part = self._arena[task.at : task.at + found]
                into_buckets(room[:found], self._bits, starts, part)
            starts += task.at
            return starts

        self._used = 0
        tasks = self._tasks(stretches)
        with working(self.options.threads, collect, tasks, name="kmers") as done:
            starts = list(done)
        if not starts:
            return np.zeros((0, (1 << self._bits) + 1), dtype=np.int64)
        collected = np.stack(starts)
        self.kmers += int((collected[:, -1] - collected[:, 0]).sum())
        return collected

    def _tasks(self, stretches: Iterator[Stretches]) -> Iterator[Task]:
        """Tasks for which the arena has room."""
        while True:
            own = self._next if self._next is not None else next(stretches, None)
            self._next = own
            if own is None:
                self._ended = True
                return
            if self._used + own.room > len(self._arena):
                return
            self._next = None
            self._used += own.room
            yield Task(own, self._used - own.room)

    def _stretches(self, advance: Callable[[int], None]) -> Iterator[Stretches]:
        chunk_bytes = chunk_bytes_within(self.options.budget, self.options.chunk_bytes)
        for path in self.paths:
            for batch in read_batches(
                path,
                threads=self.options.threads,
                chunk_bytes=chunk_bytes,
                phred_offset=self.phred_offset,
            ):
                self.sample.take((batch,))
                bases = int(batch.seq_len.sum(dtype=np.int64))
                self.sequences += len(batch)
                self.bases += bases
                yield from stretches_of(batch, self.parameters.kmer, _STRETCH)
                advance(bases)

    def _spill(self, starts: NDArray[np.int64]) -> None:
        """Count what is in the arena, and put the counts on the disk."""
        parts = self._counted(starts, 1, with_runs=False)
        count_type = self.parameters.count_type
        self.runs.append(write_run(self.folder, len(self.runs), parts, count_type))

    def _counted(
        self, starts: NDArray[np.int64], min_count: int, *, with_runs: bool = True
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[Any]]]:
        """The k-mers and counts of each bucket, in order."""
        words = self.parameters.words
        no_counts = np.empty(0, dtype=self.parameters.count_type)
        runs = self.runs if with_runs else []

        def count(bucket: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
            table = np.zeros((FIRST_SLOTS, words + 1), dtype=np.uint64)
            used = np.zeros(1, dtype=np.int64)
            begin, end = (np.ascontiguousarray(starts[:, bucket + i]) for i in (0, 1))
            table = add_kmers(table, used, self._arena, begin, end, no_counts)
            for run in runs:
                kmers, counts = run.read(bucket, bucket + 1, words)
                whole = (np.array([at], dtype=np.int64) for at in (0, len(kmers)))
                table = add_kmers(table, used, kmers, *whole, counts)
            return sorted_counts(table, used[0], self._bits, min_count, no_counts)

        with working(self.options.threads, count, range(1 << self._bits), name="count") as counted:
            yield from counted
