"""Gives unknown bases the letters that other reads have in their place.

An unknown base is stored as a base that looks random (``ngsgpu.readset.readset``), and costs the
k-mers that have it. Of its neighbours, the k bases before it and the k bases behind it, other reads
know what follows or precedes them. Where nearly all of them agree, their base takes the place of
the random one, and the read is found by its k-mers and aligns without a mismatch. It is still
unknown, of quality 0, and what the outputs say of it is decided as before.

The k-mers next to unknown bases are put in a table; then all k-mers of the reads are looked up in
it, and the bases on either side of those found are counted. The bases that this gives are
neighbours of others, so it is repeated as long as there are new ones: a run of unknown bases is
filled from both ends. Later rounds look at the reads alone in which the one before found k-mers,
and so take hardly any time where runs are rare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.pool import working
from ngsgpu.readset.cpu import ReadArrays, plane_start, read_length
from ngsgpu.readset.readset import AmbiguousBases, ReadSet
from ngsgpu.sequence.codec import base_at, set_base
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.kmers import roll

FEWEST: Final = 2
"""Neighbouring k-mers of other reads that must agree on a base."""

AGREEING: Final = 4
"""As many times those that disagree must agree."""

EXTRA_BASES: Final = 2
"""Bases by which a k-mer is longer than the shortest that could tell all bases of the reads apart.
Of 11 to 20 bases, 14 and 16 left the fewest errors in reads of 0.5 Mb of *E. coli* at 30 x, each
with 1 to 5 unknown bases; see ``docs/correct.md``."""

ROUNDS: Final = 32
"""At most, for runs of up to twice as many unknown bases."""

KMERS_AT_A_TIME: Final = 1 << 20
"""Distinct k-mers in a table; more are looked up in several rounds through the reads."""

NONE: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""A free slot, and the k-mer of a base that has no known neighbours."""

LOOKED_AT: Final = 1
FOUND: Final = 2
"""Of a read: whether a round looks at it, and whether that found a k-mer there."""

_BASES_PER_TASK: Final = 1 << 20


class Neighbours(NamedTuple):
    """The k-mers next to unknown bases; two rows for each, of the bases before and behind it.

    Attributes:
        kmers: uint64[2 x bases], canonical; ``NONE`` where not all of it is known.
        ways: uint8[2 x bases]: 1 if the unknown base precedes the canonical k-mer, 0 if it
            follows; + 2 if the canonical k-mer is on the other strand.
    """

    kmers: NDArray[np.uint64]
    ways: NDArray[np.uint8]

    @classmethod
    def allocate(cls, bases: int) -> Neighbours:
        """None yet."""
        return cls(np.full(2 * bases, NONE), np.zeros(2 * bases, dtype=np.uint8))


class Filler(Protocol):
    """How a backend does the work; ``ReadFiller`` is the reference."""

    def neighbours(self, unknown: AmbiguousBases, k: int) -> Neighbours:
        """The neighbours of unknown bases."""

    def count(
        self, unknown: AmbiguousBases, k: int, table: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """The bases next to the k-mers of a table, over the reads that are looked at.

        Returns:
            int64[slots, 2, 4]: how many follow the canonical k-mer, and precede it.
        """

    def put(
        self, reads: NDArray[np.uint32], positions: NDArray[np.int32], bases: NDArray[np.uint8]
    ) -> None:
        """Replace bases of reads."""

    def end_round(self) -> None:
        """From now on look only at reads with k-mers of the tables since the last call."""


def fill(filler: Filler, unknown: AmbiguousBases, bases: int) -> int:
    """Replace unknown bases where other reads agree.

    Args:
        filler: of the reads.
        unknown: the unknown bases.
        bases: number of bases of all reads.

    Returns:
        How many were replaced.
    """
    total = len(unknown.positions)
    k = kmer_length(bases)
    filled, kmers = 0, np.full(2 * total, NONE)
    for turn in range(ROUNDS):
        found = filler.neighbours(unknown, k)
        asked = found.kmers != NONE
        new = asked & (kmers == NONE) if turn else asked
        if not new.any():
            break
        choice = _choose(_answers(filler, unknown, k, found))
        known = choice < 4
        reads = np.repeat(unknown.reads, np.diff(unknown.start))
        filler.put(reads[known], unknown.positions[known], choice[known])
        filler.end_round()
        filled += int(known.sum())
        unknown = _without(unknown, reads, known)
        kmers = found.kmers[np.repeat(~known, 2)]
    return filled


def kmer_length(bases: int) -> int:
    """The k for reads with a number of bases: odd, so that none is its own reverse complement."""
    shortest = (max(bases - 1, 1).bit_length() + 1) // 2
    return min(31, (shortest + EXTRA_BASES) | 1)


def _answers(
    filler: Filler, unknown: AmbiguousBases, k: int, found: Neighbours
) -> NDArray[np.int64]:
    """int64[bases, 4]: how often each base stands next to the neighbours of unknown ones."""
    order = np.argsort(found.kmers, kind="stable")
    order = order[: np.searchsorted(found.kmers[order], NONE)]
    kmers = found.kmers[order]
    begins = np.flatnonzero(np.diff(kmers, prepend=~kmers[:1]))
    totals = np.zeros((len(found.kmers), 4), dtype=np.int64)
    for first in range(0, len(begins), KMERS_AT_A_TIME):
        ends = begins[first + KMERS_AT_A_TIME :]
        rows = order[begins[first] : ends[0] if len(ends) else len(kmers)]
        distinct = kmers[begins[first : first + KMERS_AT_A_TIME]]
        table = make_table(distinct)
        counts = filler.count(unknown, k, table)
        answer(found.kmers, found.ways, rows, table, counts, totals)
    return totals.reshape(-1, 2, 4).sum(axis=1)


def _choose(totals: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8: the base on which enough agree; 4 where there is none."""
    best = totals.max(axis=1)
    rest = totals.sum(axis=1) - best
    agreed = (best >= FEWEST) & (best >= AGREEING * rest)
    return np.where(agreed, totals.argmax(axis=1), 4).astype(np.uint8)


def _without(
    unknown: AmbiguousBases, reads: NDArray[np.uint32], known: NDArray[np.bool_]
) -> AmbiguousBases:
    """The unknown bases that are not known now; ``reads`` has the read of each."""
    left = reads[~known]
    distinct, first = np.unique(left, return_index=True)
    start = np.append(first, len(left)).astype(np.int64)
    return AmbiguousBases(distinct, start, unknown.positions[~known])


@njit(nogil=True, cache=True, inline="always")
def slot_of(table: NDArray[np.uint64], kmer: np.uint64) -> Integer:
    """Slot of a table, of a power of two slots, where a k-mer is or belongs."""
    last = np.int64(len(table) - 1)
    slot = np.int64(mix64(kmer) >> np.uint64(32)) & last
    while table[slot] != kmer and table[slot] != NONE:
        slot = (slot + 1) & last
    return slot


def make_table(kmers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A table of distinct k-mers, half full at most."""
    table = np.full(1 << (2 * len(kmers) - 1).bit_length(), NONE)
    _insert(kmers, table)
    return table


@njit(nogil=True, cache=True)
def _insert(kmers: NDArray[np.uint64], table: NDArray[np.uint64]) -> None:
    for kmer in kmers:
        table[slot_of(table, kmer)] = kmer


@njit(nogil=True, cache=True)
def answer(
    kmers: NDArray[np.uint64],
    ways: NDArray[np.uint8],
    rows: NDArray[np.int64],
    table: NDArray[np.uint64],
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Add to some rows of ``totals`` what was counted next to their k-mers."""
    for row in rows:
        slot = slot_of(table, kmers[row])
        for base in range(4):
            there = 3 - base if ways[row] & 2 else base
            totals[row, base] += counts[slot, ways[row] & 1, there]


def hits_in_reads(
    reads: ReadSet,
    threads: int,
    shape: tuple[int, ...],
    find: Callable[[int, int, NDArray[np.uint32]], int],
) -> Iterator[NDArray[np.uint32]]:
    """What threads find in all reads, some reads at a time, in any order.

    Args:
        reads: the read set.
        threads: number of threads.
        shape: most hits for each base, then the shape of a hit, if it is no number.
        find: writes the hits of the reads from one up to another into an array; returns how many.
    """
    each, *hit = shape
    length = max(1, reads.max_length)
    step = max(1, _BASES_PER_TASK // length)
    buffers = threading.local()

    def look_up(first: int) -> NDArray[np.uint32]:
        if not hasattr(buffers, "hits"):
            buffers.hits = np.empty((each * step * length, *hit), dtype=np.uint32)
        found = find(first, min(first + step, reads.reads), buffers.hits)
        return np.array(buffers.hits[:found])

    firsts = range(0, reads.reads, step)
    with working(threads, look_up, firsts, in_order=False, name="look-up") as done:
        yield from done


@dataclass(frozen=True)
class ReadFiller:
    """Fills unknown bases of a read set on the CPU.

    Attributes:
        reads: the read set.
        threads: number of threads; does not affect the result.
        looked_at: uint8[reads], ``LOOKED_AT`` and ``FOUND``.
    """

    reads: ReadSet
    threads: int
    looked_at: NDArray[np.uint8]

    def neighbours(self, unknown: AmbiguousBases, k: int) -> Neighbours:
        """See ``Filler``."""
        found = Neighbours.allocate(len(unknown.positions))
        find_neighbours(self.reads.arrays, unknown, k, found.kmers, found.ways)
        return found

    def count(
        self, unknown: AmbiguousBases, k: int, table: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """See ``Filler``."""
        counts = np.zeros((len(table), 2, 4), dtype=np.int64)

        def find(first: int, last: int, room: NDArray[np.uint32]) -> int:
            return find_hits(
                self.reads.arrays, unknown, first, last, k, table, self.looked_at, room
            )

        for hits in hits_in_reads(self.reads, self.threads, (2,), find):
            add_hits(hits, counts.reshape(-1))
        return counts

    def put(
        self, reads: NDArray[np.uint32], positions: NDArray[np.int32], bases: NDArray[np.uint8]
    ) -> None:
        """See ``Filler``."""
        put_bases(self.reads.arrays, reads, positions, bases)

    def end_round(self) -> None:
        """See ``Filler``."""
        self.looked_at[:] //= FOUND


def fill_unknown(reads: ReadSet, *, threads: int = 1) -> int:
    """Replace unknown bases of a read set where other reads agree; return how many.

    Args:
        reads: the read set, which is changed.
        threads: number of threads; does not affect the result.
    """
    looked_at = np.full(reads.reads, LOOKED_AT, dtype=np.uint8)
    return fill(ReadFiller(reads, threads, looked_at), reads.ambiguous, reads.bases)


@njit(nogil=True, cache=True)
def find_neighbours(
    reads: ReadArrays,
    unknown: AmbiguousBases,
    k: int,
    kmers: NDArray[np.uint64],
    ways: NDArray[np.uint8],
) -> None:
    """Write the neighbours of unknown bases; see ``Neighbours``."""
    for entry in range(len(unknown.reads)):
        read = np.int64(unknown.reads[entry])
        length = read_length(reads, read)
        begin, end = unknown.start[entry], unknown.start[entry + 1]
        for i in range(begin, end):
            position = np.int64(unknown.positions[i])
            before = np.int64(unknown.positions[i - 1]) if i > begin else np.int64(-1)
            behind = np.int64(unknown.positions[i + 1]) if i + 1 < end else length
            if position - before > k:
                _write_kmer(reads, read, position - k, k, 0, 2 * i, kmers, ways)
            if behind - position > k:
                _write_kmer(reads, read, position + 1, k, 1, 2 * i + 1, kmers, ways)


@njit(nogil=True, cache=True)
def kmer_at(
    reads: ReadArrays, read: Integer, first: Integer, k: int
) -> tuple[np.uint64, np.uint64]:
    """The k-mer of a read that begins at a base, and its reverse complement."""
    start = plane_start(reads, read)
    words = (read_length(reads, read) + 63) >> 6
    kmer = np.uint64(0)
    complement = np.uint64(0)
    for i in range(first, first + k):
        code = np.uint64(base_at(reads.planes, start, words, i))
        kmer, complement = roll(kmer, complement, code, k)
    return kmer, complement


@njit(nogil=True, cache=True)
def _write_kmer(
    reads: ReadArrays,
    read: Integer,
    first: Integer,
    k: int,
    precedes: int,
    row: Integer,
    kmers: NDArray[np.uint64],
    ways: NDArray[np.uint8],
) -> None:
    kmer, complement = kmer_at(reads, read, first, k)
    kmers[row] = min(kmer, complement)
    ways[row] = precedes if kmer < complement else (precedes ^ 1) | 2


@njit(nogil=True, cache=True)
def find_hits(
    reads: ReadArrays,
    unknown: AmbiguousBases,
    first: int,
    last: int,
    k: int,
    table: NDArray[np.uint64],
    looked_at: NDArray[np.uint8],
    hits: NDArray[np.uint32],
) -> int:
    """List the known bases next to k-mers of a table, in some reads; return their number.

    A hit is an index of the counts, slot x 8 + 4 if it precedes the canonical k-mer + base.
    """
    entry = np.searchsorted(unknown.reads, np.uint32(first))
    found = 0
    for read in range(first, last):
        at, end = 0, 0
        if entry < len(unknown.reads) and unknown.reads[entry] == read:
            at, end = unknown.start[entry], unknown.start[entry + 1]
            entry += 1
        if not looked_at[read] & LOOKED_AT:
            continue
        length = read_length(reads, read)
        start = plane_start(reads, read)
        words = (length + 63) >> 6
        kmer = np.uint64(0)
        complement = np.uint64(0)
        known = 0
        for position in range(length):
            known += 1
            if at < end and unknown.positions[at] == position:
                at += 1
                known = 0
            code = np.uint64(base_at(reads.planes, start, words, position))
            kmer, complement = roll(kmer, complement, code, k)
            if known < k:
                continue
            canonical = min(kmer, complement)
            slot = slot_of(table, canonical)
            if table[slot] == NONE:
                continue
            looked_at[read] |= FOUND
            reverse = np.int64(kmer != canonical)
            if known > k:
                base = base_at(reads.planes, start, words, position - k)
                hits[found] = 8 * slot + 4 * (1 - reverse) + (3 - base if reverse else base)
                found += 1
            following = position + 1
            if following < length and not (at < end and unknown.positions[at] == following):
                base = base_at(reads.planes, start, words, following)
                hits[found] = 8 * slot + 4 * reverse + (3 - base if reverse else base)
                found += 1
    return found


@njit(nogil=True, cache=True)
def add_hits(hits: NDArray[np.uint32], counts: NDArray[np.int64]) -> None:
    """Count hits, by index."""
    for hit in hits:
        counts[hit] += 1


@njit(nogil=True, cache=True)
def put_bases(
    arrays: ReadArrays,
    reads: NDArray[np.uint32],
    positions: NDArray[np.int32],
    bases: NDArray[np.uint8],
) -> None:
    """Replace one base of each of some reads."""
    for i in range(len(reads)):
        read = np.int64(reads[i])
        words = (read_length(arrays, read) + 63) >> 6
        set_base(
            arrays.planes,
            plane_start(arrays, read),
            words,
            np.int64(positions[i]),
            np.int64(bases[i]),
        )
