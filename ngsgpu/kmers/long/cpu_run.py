"""Counting k-mers of several words, on the CPU.

Threads find the super-k-mers of a stretch of text, which go to the arena, ordered by bin (see
``superkmers``). When the arena is full, or the files end, the k-mers of every bin are counted; the
distinct ones, with their counts, are ordered by their first bases, and sorted in the end. Those for
which there is no room, and those before the last, go to files (runs), which are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.kmers.counted import frequent, in_order, sorted_counts
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, into_buckets
from ngsgpu.kmers.cpu_run import STRETCH, Counter, Counts, pieces_of, stacked
from ngsgpu.kmers.long.superkmers import (
    MOST_KMERS,
    count_bin,
    find_superkmers,
    into_bins,
    run_words,
)
from ngsgpu.kmers.runs import write_run
from ngsgpu.kmers.stretches import Stretches
from ngsgpu.pool import Shared, working

_Item = TypeVar("_Item")

Starts = NDArray[np.int64]
"""Where buckets begin, and the last ends, int64[2^bits + 1]."""


class Claims:
    """Places in an array, which threads claim.

    Args:
        size: of the array.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._lock = Lock()
        self.is_full = False

    def claim(self, size: int) -> int | None:
        """Where there is room of this size; None, from now on until it is empty, if nowhere."""
        with self._lock:
            self.is_full |= self._used + size > self._size
            if self.is_full:
                return None
            self._used += size
            return self._used - size

    def empty(self) -> None:
        """Begin again."""
        self._used, self.is_full = 0, False

    def while_there_is_room(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """The items up to the first for which there was no room, or that was taken at the time."""
        while not self.is_full:
            item = next(items, None)
            if item is None:
                return
            yield item


class Found(NamedTuple):
    """Super-k-mers of stretches by their bins, or rows of distinct k-mers by their first bits.

    Attributes:
        values: what there was no room for; None: it is at its place.
        starts: where in the values, or at its place, bins or buckets begin.
        kmers: how many k-mers the stretches have.
    """

    values: NDArray[np.uint64] | None
    starts: Starts
    kmers: int = 0


@dataclass
class Table:
    """Where a thread counts the k-mers of bins, one by one.

    Attributes:
        slots: see ``count_bin``.
        rows: likewise.
    """

    slots: NDArray[np.uint64]
    rows: NDArray[np.uint64]

    def count(
        self,
        found: NDArray[np.uint64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
        k: int,
        width: tuple[int, ...],
        share: float,
    ) -> tuple[NDArray[np.uint64], int]:
        """The rows of the k-mers of a bin, until the next one is counted, and their number.

        Args:
            found: see ``count_bin``.
            begin: likewise.
            end: likewise.
            k: likewise.
            width: likewise.
            share: distinct k-mers for each word of the bin, about.
        """
        distinct = int(share * int((end - begin).sum()))
        wanted = max(4 * MOST_KMERS, 1 << (2 * distinct).bit_length())
        if len(self.slots) < wanted:
            self.slots = np.empty(wanted, dtype=np.uint64)
        slots, self.rows, used = count_bin(
            self.slots[:wanted], self.rows, found, begin, end, k, width
        )
        if len(slots) > len(self.slots):
            self.slots = slots
        return self.rows, int(used)


class LongCounter(Counter):
    """Counts k-mers of several words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        words = self.parameters.words
        self._width = (0,) * words
        self._no_counts = np.empty(0, dtype=self.parameters.count_type)
        self._arena = np.empty(max(self.rows, STRETCH * (words + 1)), dtype=np.uint64)
        self._distinct = np.empty((self.rows, words + 1), dtype=np.uint64)
        self._in_arena, self._in_distinct = Claims(len(self._arena)), Claims(len(self._distinct))
        self._tables = Shared(
            Table(np.empty(0, np.uint64), np.empty((2 * MOST_KMERS, words + 1), np.uint64))
            for _ in range(self.options.threads)
        )
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
                starts = np.empty((1 << self.bits) + 1, dtype=np.int64)
                at = self._in_arena.claim(used)
                if at is None:
                    found = np.empty(used, dtype=np.uint64)
                    into_bins(room[:used], starts, found)
                    return Found(found, starts, kmers)
                into_bins(room[:used], starts, self._arena[at : at + used])
            return Found(None, starts + at, kmers)

        while True:
            waiting = []
            source = self._in_arena.while_there_is_room(stretches)
            with working(self.options.threads, find, source, name="kmers") as results:
                for found in results:
                    self.kmers += found.kmers
                    if found.values is None:
                        self._found.append(found.starts)
                    else:
                        waiting.append(found)
            if not waiting:
                return
            for found in waiting:
                self._put_into_arena(found)

    def _put_into_arena(self, found: Found) -> None:
        """Put super-k-mers into the arena, if need be after what is there has been counted."""
        assert found.values is not None
        size = len(found.values)
        at = self._in_arena.claim(size)
        if at is None:
            self._count_bins(1)
            self._spill()
            self._in_arena.empty()
            at = self._in_arena.claim(size)
            assert at is not None, "a stretch has room"
        self._arena[at : at + size] = found.values
        self._found.append(found.starts + at)

    def _count_bins(self, least: int) -> None:
        """Count the k-mers of the arena."""
        places = stacked(self._found, self.bits)
        self._found = []
        width = self._width

        def count(number: int) -> Found:
            begin, end = pieces_of(places, number)
            with self._tables.borrowed() as table:
                rows, used = table.count(
                    self._arena, begin, end, self.parameters.kmer, width, self._share
                )
                size = int((end - begin).sum())
                if size > 0:
                    self._share = used / size
                if least > 1:
                    used = frequent(rows[:used], least)
                starts = np.empty((1 << self.bits) + 1, dtype=np.int64)
                at = self._in_distinct.claim(used)
                out = np.empty_like(rows[:used]) if at is None else self._distinct[at : at + used]
                into_buckets(rows[:used], self.bits, starts, out)
            return Found(out, starts) if at is None else Found(None, starts + at)

        numbers = iter(range(1 << self.bits))
        while True:
            waiting = []
            source = self._in_distinct.while_there_is_room(numbers)
            with working(self.options.threads, count, source, name="count") as results:
                for own in results:
                    if own.values is None:
                        self._counted.append(own.starts)
                    else:
                        waiting.append(own)
            if not waiting:
                return
            for own in waiting:
                self._put_into_distinct(own)

    def _put_into_distinct(self, own: Found) -> None:
        """Put distinct k-mers to the others, which go to the disk if there is no room."""
        assert own.values is not None
        size = len(own.values)
        at = self._in_distinct.claim(size)
        if at is None:
            self._spill()
            at = self._in_distinct.claim(size)
        if at is None:
            self._write_run([own.starts], own.values)
            self._in_distinct.empty()
            return
        self._distinct[at : at + size] = own.values
        self._counted.append(own.starts + at)

    def _sorted(self, counted: list[Starts], rows: NDArray[np.uint64]) -> Counts:
        """Distinct k-mers in order."""
        places = stacked(counted, self.bits)

        def put_in_order(bucket: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
            return in_order(rows, *pieces_of(places, bucket), self.bits, self._no_counts)

        with working(
            self.options.threads, put_in_order, range(1 << self.bits), name="sort"
        ) as parts:
            yield from parts

    def _spill(self) -> None:
        """Put the distinct k-mers on the disk, if there are any."""
        if self._counted:
            self._write_run(self._counted, self._distinct)
        self._counted = []
        self._in_distinct.empty()

    def _write_run(self, counted: list[Starts], rows: NDArray[np.uint64]) -> None:
        parts = self._sorted(counted, rows)
        count_type = self.parameters.count_type
        self.runs.append(write_run(self.folder, len(self.runs), parts, count_type, len(rows)))

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
            return sorted_counts(table, self.bits, least, self._no_counts)

        with working(self.options.threads, join, range(1 << self.bits), name="join") as parts:
            yield from parts
