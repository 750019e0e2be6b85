"""Counting k-mers of several words, on the CPU.

Threads find the super-k-mers of a stretch of text, which go to the arena, ordered by bin (see
``superkmers``). When the arena is full, or the files end, the k-mers of every bin are counted; the
distinct ones, with their counts, are ordered by their first bases, and sorted in the end. Those for
which there is no room, and those before the last, go to files (runs), which are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, rows_by_digit, sorted_counts
from ngsgpu.kmers.cpu_run import STRETCH, Counter, Counts
from ngsgpu.kmers.long.superkmers import count_bin, find_superkmers, gathered, into_bins, run_words
from ngsgpu.kmers.runs import write_run
from ngsgpu.kmers.stretches import Stretches
from ngsgpu.pool import Shared, working

Starts = NDArray[np.int64]
"""Where buckets begin, and the last ends, int64[2^bits + 1]."""


class Found(NamedTuple):
    """Super-k-mers of stretches, in the order of their bins, and how many k-mers they have."""

    words: NDArray[np.uint64]
    starts: Starts
    kmers: int


class Distinct(NamedTuple):
    """Rows of k-mers and counts, by the first bits of the k-mers."""

    rows: NDArray[np.uint64]
    starts: Starts


class LongCounter(Counter):
    """Counts k-mers of several words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        words = self.parameters.words
        self._width = (0,) * words
        self._no_counts = np.empty(0, dtype=self.parameters.count_type)
        self._arena = np.empty(max(self.rows, STRETCH * (words + 1)), dtype=np.uint64)
        self._distinct = np.empty((self.rows, words + 1), dtype=np.uint64)
        self._found: list[Starts] = []
        self._counted: list[Starts] = []
        self._share = 1 / 16  # distinct k-mers for each word of a bin, as it was last

    @staticmethod
    def bytes_of_row(words: int) -> int:
        """See ``Counter``: a row for a distinct k-mer, and its share of a super-k-mer."""
        return 8 * (words + 2)

    def counted(self, stretches: Iterator[Stretches]) -> Counts:
        """Count the k-mers of all stretches."""
        self._collect(stretches)
        # What was not there before is counted completely.
        self._count_bins(1 if self.runs else self.parameters.min_count)
        if not self.runs:
            yield from self._sorted(self._counted, self._distinct)
            return
        self._spill()
        yield from self._joined()

    def _collect(self, stretches: Iterator[Stretches]) -> None:
        """Fill the arena, time and again."""
        words = self.parameters.words
        k = self.parameters.kmer
        rooms = Shared(
            (np.zeros(run_words(STRETCH, k), np.uint64), np.empty(STRETCH * (words + 1), np.uint64))
            for _ in range(self.options.threads)
        )

        def find(own: Stretches) -> Found:
            least = self.least if len(own.quality) > 0 else 0
            with rooms.borrowed() as (run, room):
                used, kmers = find_superkmers(
                    own.data, own.begin, own.stop, own.low, own.quality, least, k, self.bits,
                    run, room,
                )  # fmt: skip
                found = np.empty(used, dtype=np.uint64)
                starts = np.empty((1 << self.bits) + 1, dtype=np.int64)
                into_bins(room[:used], starts, found)
            return Found(found, starts, kmers)

        used = 0
        with working(self.options.threads, find, stretches, name="kmers") as results:
            for found in results:
                if used + len(found.words) > len(self._arena):
                    self._count_bins(1)
                    self._spill()
                    used = 0
                end = used + len(found.words)
                self._arena[used:end] = found.words
                self._found.append(found.starts + used)
                self.kmers += found.kmers
                used = end

    def _count_bins(self, least: int) -> None:
        """Count the k-mers of the arena, and leave it empty."""
        places = _by_bucket(self._found, self.bits)
        self._found = []

        def count(number: int) -> Distinct:
            begin, end = places[number], places[number + 1]
            size = int((end - begin).sum())
            slots = max(FIRST_SLOTS, 1 << int(2 * self._share * size).bit_length())
            table = np.zeros((slots, len(self._width) + 1), dtype=np.uint64)
            table, used = count_bin(
                table, self._arena, begin, end, self.parameters.kmer, self._width
            )
            if size > 0:
                self._share = used / size
            starts = np.empty((1 << self.bits) + 1, dtype=np.int64)
            return Distinct(rows_by_digit(table, 0, self.bits, least, starts), starts)

        size = 0
        with working(self.options.threads, count, range(1 << self.bits), name="count") as results:
            for own in results:
                if size > 0 and size + len(own.rows) > len(self._distinct):
                    self._spill()
                    size = 0
                end = size + len(own.rows)
                if end > len(self._distinct):
                    self._write_run([own.starts], own.rows)
                    continue
                self._distinct[size:end] = own.rows
                self._counted.append(own.starts + size)
                size = end

    def _sorted(self, counted: list[Starts], rows: NDArray[np.uint64]) -> Counts:
        """Distinct k-mers in order."""
        places = _by_bucket(counted, self.bits)

        def put_in_order(bucket: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
            own = gathered(rows, places[bucket], places[bucket + 1], self._width)
            return sorted_counts(own, len(own), self.bits, 1, self._no_counts)

        with working(
            self.options.threads, put_in_order, range(1 << self.bits), name="sort"
        ) as parts:
            yield from parts

    def _spill(self) -> None:
        """Put the distinct k-mers on the disk."""
        self._write_run(self._counted, self._distinct)
        self._counted = []

    def _write_run(self, counted: list[Starts], rows: NDArray[np.uint64]) -> None:
        parts = self._sorted(counted, rows)
        count_type = self.parameters.count_type
        self.runs.append(write_run(self.folder, len(self.runs), parts, count_type))

    def _joined(self) -> Counts:
        """The sums of all runs, in order."""
        words = self.parameters.words

        def join(bucket: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
            table = np.zeros((FIRST_SLOTS, words + 1), dtype=np.uint64)
            used = np.zeros(1, dtype=np.int64)
            for run in self.runs:
                kmers, counts = run.read(bucket, bucket + 1, words)
                whole = (np.array([at], dtype=np.int64) for at in (0, len(kmers)))
                table = add_kmers(table, used, kmers, *whole, counts)
            least = self.parameters.min_count
            return sorted_counts(table, used[0], self.bits, least, self._no_counts)

        with working(self.options.threads, join, range(1 << self.bits), name="join") as parts:
            yield from parts


def _by_bucket(starts: list[Starts], bits: int) -> NDArray[np.int64]:
    """Where each bucket begins in each piece, int64[2^bits + 1, pieces]."""
    if not starts:
        return np.zeros(((1 << bits) + 1, 0), dtype=np.int64)
    return np.ascontiguousarray(np.stack(starts, axis=1))
