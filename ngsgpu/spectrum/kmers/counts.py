"""Exact counts of the canonical k-mers of a read set, and the threshold of solid ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, into_buckets
from ngsgpu.kmers.params import MAX_COUNT
from ngsgpu.pool import Shared, working
from ngsgpu.readset import AmbiguousBases, ReadArrays, ReadSet
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.kmers import roll
from ngsgpu.spectrum.kmers.reads import UNKNOWN, load_codes

_BASES_PER_TASK: Final = 1 << 22
_KMERS_PER_BUCKET: Final = 1 << 18
_MAX_BITS: Final = 12
_NO_COUNTS = np.empty(0, dtype=np.uint16)
_3 = np.uint64(3)


class RepeatedKmers(NamedTuple):
    """Counts of k-mers.

    Attributes:
        kmers: uint64[n], canonical k-mers that occur at least twice, in no order.
        counts: uint16[n], how often; 65,535 is that or more.
        histogram: int64[65536], number of distinct k-mers by count.
    """

    kmers: NDArray[np.uint64]
    counts: NDArray[np.uint16]
    histogram: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _collect(
    reads: ReadArrays,
    ambiguous: AmbiguousBases,
    first: Integer,
    last: Integer,
    k: Integer,
    part: Integer,
    part_bits: Integer,
    codes: NDArray[np.uint8],
    out: NDArray[np.uint64],
) -> Integer:
    """Write the canonical k-mers of some reads whose hash begins with ``part``, in high bits."""
    shift = np.uint64(64 - 2 * k)
    own = np.uint64(part)
    found = 0
    for read in range(first, last):
        length = load_codes(reads, ambiguous, read, codes)
        forward = np.uint64(0)
        backward = np.uint64(0)
        known = 0
        for i in range(length):
            code = np.uint64(codes[i])
            known = 0 if code == UNKNOWN else known + 1
            forward, backward = roll(forward, backward, code & _3, k)
            if known >= k:
                kmer = min(forward, backward)
                if part_bits == 0 or mix64(kmer) >> np.uint64(64 - part_bits) == own:
                    out[found, 0] = kmer << shift
                    found += 1
    return found


@njit(nogil=True, cache=True)
def _harvest(
    table: NDArray[np.uint64], k: Integer, histogram: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """The k-mers of a table that occur at least twice; all count in the histogram."""
    found = 0
    for i in range(len(table)):
        found += table[i, 1] > 1
    kmers = np.empty(found, dtype=np.uint64)
    counts = np.empty(found, dtype=np.uint16)
    at = 0
    for i in range(len(table)):
        count = min(table[i, 1], np.uint64(MAX_COUNT))
        if count > 0:
            histogram[count] += 1
        if count > 1:
            kmers[at] = table[i, 0] >> np.uint64(64 - 2 * k)
            counts[at] = count
            at += 1
    return kmers, counts


def tasks_of(reads: ReadSet, bases: int) -> list[tuple[int, int]]:
    """Ranges of reads with about a given number of bases."""
    per_task = max(1, bases // max(1, reads.max_length))
    return list(pairwise([*range(0, reads.reads, per_task), reads.reads]))


def count_reads(
    reads: ReadSet,
    k: int,
    *,
    threads: int = 1,
    part_bits: int = 0,
    advance: Callable[[int], None] = lambda kmers: None,
) -> RepeatedKmers:
    """Count the canonical k-mers of a read set.

    Args:
        reads: the read set; k-mers with ambiguous bases do not count.
        k: k-mer length, up to 31.
        threads: number of threads; does not affect the counts.
        part_bits: the k-mers are counted in 2^this parts, one after another, to save memory.
        advance: called with 1 for each part that is counted.
    """
    histogram = np.zeros(MAX_COUNT + 1, dtype=np.int64)
    parts = []
    for part in range(1 << part_bits):
        kmers, counts, own = _count_part(reads, k, threads, part, part_bits)
        histogram += own
        parts += list(zip(kmers, counts, strict=True))
        advance(1)
    if not parts:
        return RepeatedKmers(np.empty(0, np.uint64), _NO_COUNTS, histogram)
    return RepeatedKmers(
        np.concatenate([kmers for kmers, _ in parts]),
        np.concatenate([counts for _, counts in parts]),
        histogram,
    )


def _count_part(
    reads: ReadSet, k: int, threads: int, part: int, part_bits: int
) -> tuple[list[NDArray[np.uint64]], list[NDArray[np.uint16]], NDArray[np.int64]]:
    bits = min(_MAX_BITS, max(4, (reads.bases >> part_bits) // _KMERS_PER_BUCKET).bit_length())
    rooms = Shared(
        (
            np.empty(max(1, reads.max_length), dtype=np.uint8),
            np.empty((_BASES_PER_TASK + reads.max_length, 1), dtype=np.uint64),
        )
        for _ in range(threads)
    )

    def collect(task: tuple[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        starts = np.empty((1 << bits) + 1, dtype=np.int64)
        with rooms.borrowed() as (codes, room):
            found = _collect(reads.arrays, reads.ambiguous, *task, k, part, part_bits, codes, room)
            out = np.empty((found, 1), dtype=np.uint64)
            into_buckets(room[:found], bits, starts, out)
        return out, starts

    with working(threads, collect, tasks_of(reads, _BASES_PER_TASK), name="kmers") as collected:
        pieces = list(collected)

    def count(
        bucket: int,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint16], NDArray[np.int64]]:
        table = np.zeros((FIRST_SLOTS, 2), dtype=np.uint64)
        used = np.zeros(1, dtype=np.int64)
        for out, starts in pieces:
            begin, end = starts[bucket : bucket + 1], starts[bucket + 1 : bucket + 2]
            table = add_kmers(table, used, out, begin, end, _NO_COUNTS)
        own = np.zeros(MAX_COUNT + 1, dtype=np.int64)
        kmers, counts = _harvest(table, k, own)
        return kmers, counts, own

    histogram = np.zeros(MAX_COUNT + 1, dtype=np.int64)
    kmers, counts = [], []
    if pieces:
        with working(threads, count, range(1 << bits), name="count") as done:
            for found, numbers, own in done:
                kmers.append(found)
                counts.append(numbers)
                histogram += own
    return kmers, counts, histogram


class Thresholds(NamedTuple):
    """Counts that divide k-mers.

    Attributes:
        solid: from which a k-mer is solid.
        strong: from which a k-mer is taken to be of the genome whatever its rivals.
        depth: of the main peak; 0 without.
        genome_size: number of positions that the solid k-mers tell of.
    """

    solid: int
    strong: int
    depth: int
    genome_size: int


_LONE_SOLID: Final = 3
_HIGHEST_PEAK: Final = 10_000
_STRAINS_UP_TO: Final = 100
_LEAST_SHARE: Final = 100


def find_thresholds(histogram: NDArray[np.int64], min_count: int | None = None) -> Thresholds:
    """Find the valley between the k-mers with errors and those of the genome.

    The valley is the count up to which the histogram only falls. Without a peak behind it (the
    coverage is low) k-mers are solid from a count of 3. If k-mers of rarer strains show, they are
    solid from the lowest count at which a third is theirs.

    Args:
        histogram: distinct k-mers by count.
        min_count: threshold of solid k-mers, if it is given.
    """
    counts = histogram[: _HIGHEST_PEAK + 1]
    valley = 1
    while valley + 1 < len(counts) and counts[valley + 1] < counts[valley]:
        valley += 1
    occurrences = counts * np.arange(len(counts))
    peak = valley + int(np.argmax(occurrences[valley:]))
    found = peak >= 4 and peak > valley and int(occurrences[valley:].sum()) > 0
    # The k-mers of thinly covered places are left of the valley, too; few errors occur thrice.
    solid = min_count or (max(2, min(valley, 2 + peak // 10)) if found else _LONE_SOLID)
    if min_count is None and found and peak <= _STRAINS_UP_TO:
        solid = _first_of_strains(counts, solid, peak)
    if not found:
        return Thresholds(solid, 2 * solid, 0, int(histogram[solid:].sum()))
    near = slice(max(solid, 6 * peak // 10), 14 * peak // 10 + 1)
    depth = round(int(occurrences[near].sum()) / int(counts[near].sum()))
    size = int((histogram * np.arange(len(histogram)))[solid:].sum()) // depth
    return Thresholds(solid, max(2 * solid, depth // 2), depth, size)


def _first_of_strains(counts: NDArray[np.int64], solid: int, peak: int) -> int:
    """Count from which a third of the k-mers is true where rarer strains have many below ``solid``.

    Of the k-mers with errors, those that occur once more often are fewer by about the same factor
    each time: that from one to two. Those of a strain fall slowly, if at all.
    """
    genome = int(counts[6 * peak // 10 : 14 * peak // 10 + 1].sum())
    factor = int(counts[2]) / max(1, int(counts[1]))
    wrong = float(counts[2])
    for count in range(_LONE_SOLID, solid):
        wrong *= factor
        others = int(counts[count]) - wrong
        falls_slowly = 4 * counts[count + 1] >= counts[count]
        if falls_slowly and 2 * others >= wrong and _LEAST_SHARE * others >= genome:
            return count
    return solid
