"""Asks all reads about bases that would be changed: where others witness them, they are variants.

A read of a rare strain may be aligned with none that shows the same variant, because those overlap
it little or have errors. All reads are asked then: three k-mers of the read that hold the base,
first, in the middle or last, are looked up in every read. The base is witnessed if another fragment
with another end has one of them, as few reads as a rare allele may have, and one of these, or the
read itself, has the base at Q30 or above.

A witnessed base of Q20 or above tells that its read is of a rare strain, as an allele does; in
reads of such strains and their mates, every witnessed base stays. Only runs are asked in which
enough reads have a rare allele: elsewhere two errors that meet are as frequent as such variants.
Bases without witnesses are left to ``one_strain``.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alleles import RARE_READS
from ngsgpu.correct.rules.one_strain import keep_of_one_strain
from ngsgpu.correct.workspace import (
    ASKED,
    DOUBTFUL,
    EDIT_BITS,
    GOOD,
    OF_RARE_STRAIN,
    OF_RARE_SURELY,
)
from ngsgpu.jit import njit
from ngsgpu.pool import map_all
from ngsgpu.readset.fill import NONE, kmer_length, make_table, slot_of
from ngsgpu.sequence.kmers import distinct

logger = logging.getLogger("ngsgpu")

MIXED: Final = 100
"""In a run whose reads are asked, at least one in this many has a rare allele."""

MOST_LOOKED_AT: Final = 1 << 51
"""Of the reads times the bases that they are asked about. All reads are looked through for every
four million k-mers, so the work grows with the square of a run's size; where it would be more, as
in a genome as large as the human one, whose repeats look like rare strains, none are asked."""

_READS_AT_ONCE: Final = 1 << 20

LONGER: Final = 2
"""Bases by which a k-mer is longer than those that find the neighbours of unknown bases: it must
not be found elsewhere by chance."""

PLACES: Final = 3
"""Of the base in the k-mer: first, in the middle, last."""

SEEN: Final = 6
"""Of the reads that have a k-mer with the base at Q20 or above: how many, of them at Q30, the first
and the last fragment, the least and the greatest end."""

OWN: Final = 4
"""Instead of a base: the one that the read has."""

_NEVER: Final = np.uint32(0xFFFF_FFFF)


class AskedKmers(NamedTuple):
    """The k-mers that hold the bases asked about, a column for each place.

    Attributes:
        kmers: uint64[bases, 3], canonical; ``NONE`` where the read ends before.
        places: uint8[bases, 3], of the base in the canonical k-mer.
        ends: uint32[bases, 3], 2 x the base's position in the read + 1 if the canonical k-mer is
            on the other strand: equal for reads that begin together.
        qualities: uint8[bases], Phred scores of the bases; 0 where fewer than 8 bits are kept.
    """

    kmers: NDArray[np.uint64]
    places: NDArray[np.uint8]
    ends: NDArray[np.uint32]
    qualities: NDArray[np.uint8]

    @classmethod
    def allocate(cls, bases: int) -> AskedKmers:
        """None yet."""
        shape = (bases, PLACES)
        kmers, places = np.full(shape, NONE), np.zeros(shape, np.uint8)
        return cls(kmers, places, np.zeros(shape, np.uint32), np.zeros(bases, np.uint8))

    def part(self, which: slice) -> AskedKmers:
        """K-mers of some of the bases, in the same memory."""
        kmers, places, ends, qualities = self
        return AskedKmers(kmers[which], places[which], ends[which], qualities[which])


class Asker(Protocol):
    """How a backend does the work; ``cpu_witnesses.ReadAsker`` is the reference."""

    @property
    def size(self) -> tuple[int, int, bool]:
        """Numbers of reads and of bases, and whether mates follow each other."""

    @property
    def threads(self) -> int:
        """How many threads work on the host."""

    @property
    def kmers_at_a_time(self) -> int:
        """Distinct k-mers for which there is memory; does not affect the result."""

    def kmers(
        self,
        reads: NDArray[np.uint32],
        positions: NDArray[np.int32],
        bases: NDArray[np.uint8],
        k: int,
    ) -> AskedKmers:
        """The k-mers that hold some bases.

        Args:
            reads: that have the bases.
            positions: of the bases in these.
            bases: that stand there in the k-mers; ``OWN``: as in the read.
            k: length of the k-mers, odd.
        """

    def count(
        self,
        k: int,
        table: NDArray[np.uint64],
        ranks: NDArray[np.uint32],
        kmers: int,
        among: NDArray[np.bool_],
    ) -> NDArray[np.uint32]:
        """What reads show of the k-mers of a table.

        Args:
            k: their length.
            table: as of ``make_table``.
            ranks: of the k-mer in each slot.
            kmers: their number.
            among: bool[reads], which of them are asked; or empty: all.

        Returns:
            uint32[kmers, 3, ``SEEN``], by the rank of the k-mer and the place of the base.
        """


def keep_witnessed(
    asker: Asker,
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    classes: NDArray[np.uint8],
) -> None:
    """Mark witnessed edits ``DOUBTFUL``, and reads with a good one as of a rare strain; in place.

    The same of those without witnesses that are variants in all likelihood (``one_strain``).

    Args:
        asker: asks the reads.
        start: int64[reads], first edit of each read.
        count: uint16[reads], its number of edits.
        edits: uint32, with the bits that ``workspace`` describes.
        classes: uint8[reads], with ``OF_RARE_STRAIN`` and bits like it.
    """
    reads, bases, paired = asker.size
    if MIXED * int(np.count_nonzero(classes & OF_RARE_STRAIN)) < max(1, reads):
        return
    owner, places = _asked(asker, start, count, edits, classes)
    if len(owner) == 0:
        return
    k = min(31, kmer_length(bases) + LONGER)
    positions = ((edits[places] & EDIT_BITS) >> 2).astype(np.int32)
    found = asker.kmers(owner, positions, np.full(len(owner), OWN, np.uint8), k)
    witnessed = shown_by_others(asker, owner, found, k)
    edits[places[witnessed]] |= DOUBTFUL
    good = (edits[places] & GOOD) != 0
    classes[owner[witnessed & good]] |= np.uint8(OF_RARE_STRAIN | OF_RARE_SURELY)

    def contradicted(some: NDArray[np.bool_], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
        bases = (edits[places[some]] & 3).astype(np.uint8)
        instead = asker.kmers(owner[some], positions[some], bases, k)
        result = np.zeros(len(owner), dtype=np.bool_)
        result[some] = shown_by_others(asker, owner[some], instead, k, among)
        return result

    keep_of_one_strain(
        owner, places, found.qualities, witnessed, edits, classes, paired, contradicted
    )


def _asked(
    asker: Asker,
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    classes: NDArray[np.uint8],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Reads and places of the edits that all reads are asked about.

    They are those of fragments that are of a rare strain, or have a good one that may show it.
    """
    paired = asker.size[2]
    fragments = np.zeros((len(count) >> paired) + 1, dtype=np.bool_)
    parts = [
        slice(first, min(first + _READS_AT_ONCE, len(count)))
        for first in range(0, len(count), _READS_AT_ONCE)
    ]

    def mark(part: slice) -> None:
        marked = fragments[part.start >> paired :]
        mark_fragments(start[part], count[part], edits, classes[part], int(paired), marked)

    def look(part: slice, owner: NDArray[np.uint32], places: NDArray[np.int64]) -> int:
        marked = fragments[part.start >> paired :]
        found = list_asked(start[part], count[part], edits, int(paired), marked, owner, places)
        owner += np.uint32(part.start)
        return found

    nothing = np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int64)
    map_all(asker.threads, mark, parts, name="mark")
    sizes = map_all(asker.threads, lambda part: look(part, *nothing), parts, name="look")
    if len(count) * sum(sizes) > MOST_LOOKED_AT:
        logger.info("too many bases (%s) to look for witnesses of each", f"{sum(sizes):,}")
        return nothing
    ends = np.cumsum(sizes)
    owner, places = np.empty(sum(sizes), dtype=np.uint32), np.empty(sum(sizes), dtype=np.int64)

    def write(number: int) -> None:
        own = slice(ends[number] - sizes[number], ends[number])
        look(parts[number], owner[own], places[own])

    map_all(asker.threads, write, range(len(parts)), name="write")
    return owner, places


@njit(nogil=True, cache=True)
def mark_fragments(
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    classes: NDArray[np.uint8],
    paired: int,
    fragments: NDArray[np.bool_],
) -> None:
    """Mark the fragments that are of a rare strain, or have a good edit that may show it."""
    for read in range(len(count)):
        concerned = classes[read] & OF_RARE_STRAIN != 0
        for i in range(start[read], start[read] + count[read]):
            concerned |= edits[i] & GOOD != 0
        fragments[read >> paired] |= concerned


@njit(nogil=True, cache=True)
def list_asked(
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    paired: int,
    fragments: NDArray[np.bool_],
    owner: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """Write read and place of each edit to be asked about, of marked fragments.

    Returns:
        Their number; no more are written than there is room for.
    """
    found = 0
    for read in range(len(count)):
        if not fragments[read >> paired]:
            continue
        for i in range(start[read], start[read] + count[read]):
            if edits[i] & ASKED == 0:
                continue
            if found < len(owner):
                owner[found] = read
                places[found] = i
            found += 1
    return found


def shown_by_others(
    asker: Asker,
    owner: NDArray[np.uint32],
    found: AskedKmers,
    k: int,
    among: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Whether other reads witness bases, or some reads show them.

    Args:
        asker: of the reads.
        owner: the reads that have the bases.
        found: the k-mers that hold these.
        k: length of the k-mers, odd.
        among: bool[reads], one of which must show a base, in another fragment; None: all reads are
            asked to witness it.
    """
    paired = asker.size[2]
    kmers = distinct(found.kmers.reshape(-1).copy())
    kmers = kmers[: np.searchsorted(kmers, NONE)]
    shown = np.zeros(len(owner), dtype=np.bool_)
    asked = np.zeros(0, dtype=np.bool_) if among is None else among
    fragments = owner >> np.uint32(paired)
    step = asker.kmers_at_a_time
    for first in range(0, len(kmers), step):
        some = kmers[first : first + step]
        table = make_table(some)
        ranks = np.zeros(len(table), dtype=np.uint32)
        rank_kmers(table, some, ranks)
        seen = asker.count(k, table, ranks, len(some), asked)
        few = among is None
        judge(found, fragments, some[0], some[-1], table, ranks, seen, few, shown)
    return shown


@njit(nogil=True, cache=True)
def rank_kmers(
    table: NDArray[np.uint64], kmers: NDArray[np.uint64], ranks: NDArray[np.uint32]
) -> None:
    """Write the rank of each k-mer of a table beside it."""
    for rank in range(len(kmers)):
        ranks[slot_of(table, kmers[rank])] = rank


@njit(nogil=True, cache=True)
def judge(
    found: AskedKmers,
    fragments: NDArray[np.uint32],
    least: np.uint64,
    most: np.uint64,
    table: NDArray[np.uint64],
    ranks: NDArray[np.uint32],
    seen: NDArray[np.uint32],
    few: bool,
    shown: NDArray[np.bool_],
) -> None:
    """Mark the bases that another fragment with one of the k-mers ``least`` to ``most`` shows.

    With ``few`` as witnesses do: few reads, one of Q30, and not only such as begin together.
    """
    for base in range(len(fragments)):
        for column in range(PLACES):
            kmer = found.kmers[base, column]
            if kmer < least or kmer > most:
                continue
            show = seen[ranks[slot_of(table, kmer)], found.places[base, column]]
            own, end = fragments[base], found.ends[base, column]
            if show[0] == 0 or (show[2] == own and show[3] == own):
                continue
            if few and (show[0] > RARE_READS or show[1] == 0):
                continue
            if not few or show[4] != end or show[5] != end:
                shown[base] = True


def nothing_seen(kmers: int) -> NDArray[np.uint32]:
    """uint32[kmers, 3, ``SEEN``] before any read is looked at."""
    seen = np.zeros((kmers, PLACES, SEEN), dtype=np.uint32)
    seen[..., 2] = seen[..., 4] = _NEVER
    return seen
