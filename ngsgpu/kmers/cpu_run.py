"""Counting the k-mers of files on the CPU.

Threads write the k-mers of a stretch of text into the arena, ordered by bucket. When the arena is
full, or the files end, the k-mers of every bucket are counted. If there is more to come, the sorted
counts (a run) go to files beside the output; in the end, those of all runs are added up. K-mers of
several words are counted by ``long.cpu_run``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import AT_LEAST, Allocation, HostPlan
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.reader import read_batches
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers.counted import counted_in_parts, parts_of, sorted_counts
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, into_buckets
from ngsgpu.kmers.database import DatabaseWriter, Source, Tally
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.runs import Run, write_run
from ngsgpu.kmers.stretches import Stretches, kmers_in, lowest_quality, stretches_of
from ngsgpu.pool import Shared, working
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions, chunk_bytes_within

STRETCH: Final = 1 << 20
"""Most letters that a task takes: its k-mers stay near the core."""

_KMERS_PER_BUCKET: Final = 1 << 18
_MIN_BITS: Final = 4
_MAX_BITS: Final = 12
_ARENA_SHARE: Final = 2
"""Part of the memory that the arena takes at most, 1 / this: the rest is for tables and counts."""
_SHARE_OF_PARTS: Final = 16
_WRITERS: Final = 4
_ARENA: Final = "arena"

Counts = Iterator[tuple[NDArray[np.uint64], NDArray[Any]]]
"""K-mers and their counts, piece by piece, in order."""


class Task(NamedTuple):
    """Stretches, and where in the arena their k-mers go."""

    stretches: Stretches
    at: int


def arena_rows(letters: int | None, row: int, options: RunOptions) -> int:
    """K-mers that there is room for.

    Args:
        letters: most letters that the files have; None if that is unknown.
        row: bytes of a k-mer.
        options: memory and threads.

    Returns:
        As many as a stretch has, at least.
    """
    room = (options.budget - INTERPRETER_BYTES) // _ARENA_SHARE - options.threads * STRETCH * row
    rows = room // row if letters is None else min(letters + STRETCH, room // row)
    return max(STRETCH, rows)


def plan_arena(letters: int | None, row: int, options: RunOptions) -> HostPlan:
    """Plan the memory of a run: the arena takes what files may fill of its share of the budget.

    Args:
        letters: see ``arena_rows``.
        row: likewise.
        options: likewise.
    """
    # What is free changes; the arena must not be judged by less than it was made for.
    options = replace(options, memory=options.budget)
    arena, scratch = row * arena_rows(letters, row, options), row * options.threads * STRETCH
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
    )


@dataclass
class Counter(ABC):
    """One run of ``count_files``.

    Attributes:
        runs: counts that are on the disk.
        bits: of a k-mer, or of its minimizer, that choose a bucket.
        rows: k-mers that there is room for at a time.
        least: see ``lowest_quality``.
    """

    paths: Sequence[str | Path]
    parameters: CountParameters
    phred_offset: PhredOffset
    options: RunOptions
    folder: Path
    sample: ReadSample
    letters: int | None
    runs: list[Run] = field(default_factory=list)
    sequences: int = 0
    bases: int = 0
    kmers: int = 0

    def __post_init__(self) -> None:
        row = self.bytes_of_row(self.parameters.words)
        plan = plan_arena(self.letters, row, self.options)
        plan.check()
        self.rows = plan.bytes_of(_ARENA) // row
        known = self.rows if self.letters is None else min(self.rows, self.letters // 2)
        buckets = max(1, known // _KMERS_PER_BUCKET)
        self.bits = min(_MAX_BITS, max(_MIN_BITS, buckets.bit_length()))
        self.least = lowest_quality(self.parameters, self.phred_offset)

    @staticmethod
    @abstractmethod
    def bytes_of_row(words: int) -> int:
        """Memory of each k-mer, by its words."""

    @abstractmethod
    def counted(self, stretches: Iterator[Stretches]) -> Counts:
        """Count the k-mers of all stretches."""

    def count(self, writer: DatabaseWriter | Tally, advance: Callable[[int], None]) -> None:
        """Count everything into a database."""
        counted = self.counted(self._stretches(advance))
        if isinstance(writer, Tally):
            for kmers, counts in counted:
                writer.append(kmers, counts)
            return

        def put(part: tuple[int, NDArray[np.uint64], NDArray[Any]]) -> None:
            writer.put(*part)

        # One thread alone takes longer to copy counts into the page cache than all to make them.
        threads = min(_WRITERS, self.options.threads)
        parts = ((writer.reserve(len(kmers)), kmers, counts) for kmers, counts in counted)
        with working(threads, put, parts, in_order=False, name="write") as written:
            deque(written, maxlen=0)

    def source(self) -> Source:
        """Source of the counts."""
        names = tuple(Path(path).name for path in self.paths)
        return Source(self.sequences, self.bases, self.kmers, names)

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
                yield from stretches_of(batch, self.parameters.kmer, STRETCH)
                advance(bases)


class ShortCounter(Counter):
    """Counts k-mers of one word."""

    _next: Stretches | None = None
    _used: int = 0
    _ended: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._arena = np.empty((self.rows, self.parameters.words), dtype=np.uint64)

    @staticmethod
    def bytes_of_row(words: int) -> int:
        """See ``Counter``."""
        return 8 * words

    def counted(self, stretches: Iterator[Stretches]) -> Counts:
        """Count the k-mers of all stretches."""
        while True:
            starts = self._collect(stretches)
            if self._ended:
                return self._counted(starts, self.parameters.min_count)
            self._spill(starts)

    def _collect(self, stretches: Iterator[Stretches]) -> NDArray[np.int64]:
        """Fill the arena; where in it the k-mers of each task and bucket begin, and end."""
        words = self.parameters.words
        rooms = Shared(
            np.empty((STRETCH, words), dtype=np.uint64) for _ in range(self.options.threads)
        )

        def collect(task: Task) -> NDArray[np.int64]:
            starts = np.empty((1 << self.bits) + 1, dtype=np.int64)
            with rooms.borrowed() as room:
                found = kmers_in(task.stretches, self.parameters.kmer, self.least, room)
                part = self._arena[task.at : task.at + found]
                into_buckets(room[:found], self.bits, starts, part)
            starts += task.at
            return starts

        self._used = 0
        tasks = self._tasks(stretches)
        with working(self.options.threads, collect, tasks, name="kmers") as done:
            starts = list(done)
        collected = stacked(starts, self.bits)
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

    def _spill(self, starts: NDArray[np.int64]) -> None:
        """Count what is in the arena, and put the counts on the disk."""
        parts = self._counted(starts, 1, with_runs=False)
        count_type = self.parameters.count_type
        self.runs.append(write_run(self.folder, len(self.runs), parts, count_type, self._used))

    def _counted(
        self, starts: NDArray[np.int64], min_count: int, *, with_runs: bool = True
    ) -> Counts:
        """The k-mers and counts of each bucket, in order."""
        words = self.parameters.words
        width = (0,) * words
        no_counts = np.empty(0, dtype=self.parameters.count_type)
        runs = self.runs if with_runs else []
        # Room for all threads' parts takes a small share of what the arena does.
        most = max(STRETCH, self.rows // (_SHARE_OF_PARTS * self.options.threads))

        def count(bucket: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
            begin, end = pieces_of(starts, bucket)
            size = int((end - begin).sum())
            if not runs and (digit := parts_of(size)) > 0 and size <= most:
                return counted_in_parts(
                    self._arena, begin, end, self.bits, digit, min_count, no_counts, width, width
                )
            table = np.zeros((FIRST_SLOTS, words + 1), dtype=np.uint64)
            used = np.zeros(1, dtype=np.int64)
            table = add_kmers(table, used, self._arena, begin, end, no_counts)
            for run in runs:
                kmers, counts = run.read(bucket, bucket + 1, words)
                whole = (np.array([at], dtype=np.int64) for at in (0, len(kmers)))
                table = add_kmers(table, used, kmers, *whole, counts)
            return sorted_counts(table, self.bits, min_count, no_counts)

        with working(self.options.threads, count, range(1 << self.bits), name="count") as counted:
            yield from counted


def stacked(starts: Sequence[NDArray[np.int64]], bits: int) -> NDArray[np.int64]:
    """Where in each piece buckets begin, and the last ends, int64[pieces, 2^bits + 1]."""
    return np.stack(starts) if starts else np.zeros((0, (1 << bits) + 1), dtype=np.int64)


def pieces_of(
    starts: NDArray[np.int64], bucket: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a bucket begins in each piece, and ends, see ``stacked``."""
    begin, end = (np.ascontiguousarray(starts[:, bucket + i]) for i in (0, 1))
    return begin, end
