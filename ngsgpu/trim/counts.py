"""What trimming counts: reads, quality and content by cycle, k-mers, insert sizes, adapters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.trim.cuts import Read
from ngsgpu.trim.filters import RESULTS
from ngsgpu.trim.rules import LOWEST

LETTERS: Final = 8
"""Letters are told apart by their lowest three bits."""

MOST_CYCLES: Final = 1 << 15
"""Cycles that are counted one by one, as many as bases in the longest read on a GPU; the last of
them stands for all that follow, too."""

KMER: Final = 5
_SHIFT: Final = 32
MOST_INSERT: Final = 512

READS, LENGTHS, Q20, Q30 = range(4)
"""Totals of reads."""

TRIMMED_READS, TRIMMED_BASES, CORRECTED_READS, CORRECTED_BASES, UNITS, NO_INDEX = range(6)
"""Totals of a run."""
TOTALS: Final = 6


def _values() -> NDArray[np.int8]:
    table = np.full(256, -1, dtype=np.int8)
    for value, letter in enumerate(b"ATCG"):
        table[letter] = value
    return table


_VALUES: Final = _values()


class ReadSums(NamedTuple):
    """Counts of the reads of a task, for kernels.

    Attributes:
        letters: int64 [cycles, LETTERS], letters times 2 ** 32, and the sum of their qualities.
        rest: int64 [2, LETTERS], letters behind ``MOST_CYCLES``, and the sum of their qualities.
        kmers: int64 [4 ** KMER], in the order A, T, C, G.
        totals: int64 [4].
    """

    letters: NDArray[np.int64]
    rest: NDArray[np.int64]
    kmers: NDArray[np.int64]
    totals: NDArray[np.int64]

    @classmethod
    def none(cls, longest: int) -> Self:
        """Counts of no reads of up to this many bases."""
        return cls(
            np.zeros((min(longest, MOST_CYCLES), LETTERS), dtype=np.int64),
            np.zeros((2, LETTERS), dtype=np.int64),
            np.zeros(4**KMER, dtype=np.int64),
            np.zeros(4, dtype=np.int64),
        )


class ReadCounts(NamedTuple):
    """Counts of reads as they are at one point.

    Attributes:
        content: int64 [cycles, LETTERS], letters.
        quality: int64 [cycles, LETTERS], sums of their qualities.
        kmers: int64 [4 ** KMER], in the order A, T, C, G.
        totals: int64 [4].
    """

    content: NDArray[np.int64]
    quality: NDArray[np.int64]
    kmers: NDArray[np.int64]
    totals: NDArray[np.int64]

    @classmethod
    def of(cls, sums: ReadSums) -> Self:
        """Separate the counts of a task."""
        content = sums.letters >> _SHIFT
        quality = sums.letters - (content << _SHIFT)
        if len(content) == MOST_CYCLES:
            content[-1] += sums.rest[0]
            quality[-1] += sums.rest[1]
        return cls(content, quality, sums.kmers, sums.totals)

    def plus(self, other: ReadCounts) -> ReadCounts:
        """The sum of both."""
        content, quality = (_sum(own, more) for own, more in zip(self[:2], other[:2], strict=True))
        return ReadCounts(content, quality, self.kmers + other.kmers, self.totals + other.totals)

    def minus(self, other: ReadCounts) -> ReadCounts:
        """Counts without those of some of the reads, of as many cycles."""
        return ReadCounts(*(own - less for own, less in zip(self, other, strict=True)))

    @property
    def cycles(self) -> int:
        """Bases of the longest read, at most ``MOST_CYCLES``."""
        return int(np.count_nonzero(self.content.sum(axis=1)))


def _sum(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


@njit(nogil=True, cache=True)
def count_read(read: Read, counts: ReadSums) -> None:
    """Count a read."""
    # Unsigned indices are not looked at for being negative.
    begin, size = np.uintp(read.span[0]), np.uintp(read.span[1] - read.span[0])
    known = good = best = np.int64(0)
    kmer = np.uintp(0)
    cycles = np.uintp(len(counts.letters))
    for cycle in range(size):
        letter, quality = read.bases[begin + cycle], read.qualities[begin + cycle]
        score = np.int64(quality) - LOWEST
        row = np.uintp(letter & (LETTERS - 1))
        if cycle < cycles:
            counts.letters[cycle, row] += (1 << _SHIFT) + score
        else:
            counts.rest[0, row] += 1
            counts.rest[1, row] += score
        good += score >= 20
        best += score >= 30
        value = _VALUES[letter]
        known = known + np.int64(1) if value >= 0 else np.int64(0)
        kmer = ((kmer << np.uintp(2)) | np.uintp(value & 3)) & np.uintp(4**KMER - 1)
        if known >= KMER:
            counts.kmers[kmer] += 1
    counts.totals[READS] += 1
    counts.totals[LENGTHS] += np.int64(size)
    counts.totals[Q20] += good
    counts.totals[Q30] += best


class Tally(NamedTuple):
    """What a task counts; see ``Counts``.

    Most reads are kept as they are. So of those after trimming only the others are counted: as they
    were before (``lost``), and what is left of them, if they are kept (``gained``).
    """

    before: tuple[ReadSums, ReadSums]
    lost: tuple[ReadSums, ReadSums]
    gained: tuple[ReadSums, ReadSums]
    results: NDArray[np.int64]
    totals: NDArray[np.int64]
    poly_x: NDArray[np.int64]
    inserts: NDArray[np.int64]

    @classmethod
    def none(cls, longest: int, mates: int) -> Self:
        """Nothing, of reads of up to this many bases."""

        def of_both() -> tuple[ReadSums, ReadSums]:
            return ReadSums.none(longest), ReadSums.none(longest if mates == 2 else 0)

        return cls(
            of_both(),
            of_both(),
            of_both(),
            np.zeros(RESULTS, dtype=np.int64),
            np.zeros(TOTALS, dtype=np.int64),
            np.zeros((2, 4), dtype=np.int64),
            np.zeros(MOST_INSERT + 1, dtype=np.int64),
        )


def _of_no_mates() -> list[ReadCounts]:
    return [ReadCounts.of(ReadSums.none(0)) for _ in range(2)]


@dataclass(slots=True)
class Counts:
    """What a run counts.

    Attributes:
        before: of first and second mates as they are in the files.
        after: of those that are kept.
        results: int64 [RESULTS], reads.
        totals: int64 [TOTALS].
        poly_x: int64 [2, 4], reads and bases of tails of A, T, C and G.
        inserts: int64 [MOST_INSERT + 1], pairs by the length of their fragment, the last of those
            whose mates do not overlap.
        adapters: how often which sequence was cut off first and second mates.
        duplicates: reads or pairs that are equal to an earlier one.
    """

    before: list[ReadCounts] = field(default_factory=_of_no_mates)
    after: list[ReadCounts] = field(default_factory=_of_no_mates)
    results: NDArray[np.int64] = field(default_factory=lambda: np.zeros(RESULTS, dtype=np.int64))
    totals: NDArray[np.int64] = field(default_factory=lambda: np.zeros(TOTALS, dtype=np.int64))
    poly_x: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 4), dtype=np.int64))
    inserts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(MOST_INSERT + 1, dtype=np.int64)
    )
    adapters: tuple[Counter[bytes], Counter[bytes]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    duplicates: int = 0

    def __iadd__(self, other: Counts) -> Self:
        self.before = [own.plus(more) for own, more in zip(self.before, other.before, strict=True)]
        self.after = [own.plus(more) for own, more in zip(self.after, other.after, strict=True)]
        self.results = self.results + other.results
        self.totals = self.totals + other.totals
        self.poly_x = self.poly_x + other.poly_x
        self.inserts = self.inserts + other.inserts
        for own, more in zip(self.adapters, other.adapters, strict=True):
            own.update(more)
        self.duplicates += other.duplicates
        return self

    @classmethod
    def of(
        cls, tally: Tally, adapters: tuple[Counter[bytes], Counter[bytes]], duplicates: int
    ) -> Self:
        """What a task has counted."""
        before, lost, gained = (
            [ReadCounts.of(own) for own in sums]
            for sums in (tally.before, tally.lost, tally.gained)
        )
        changes = zip(before, lost, gained, strict=True)
        kept = [whole.minus(own).plus(more) for whole, own, more in changes]
        return cls(
            before,
            kept,
            tally.results,
            tally.totals,
            tally.poly_x,
            tally.inserts,
            adapters,
            duplicates,
        )
