"""Asks all reads about bases that would be changed: where others witness them, they are variants.

A read of a rare strain may be aligned with none that shows the same variant, because those overlap
it little or have errors. All reads are asked then: three k-mers of the read that hold the base,
first, in the middle or last, are looked up in every read. The base is witnessed if another fragment
with another end has one of them, as few reads as a rare allele may have, and one of these, or the
read itself, has the base at Q30 or above.

A witnessed base of Q20 or above tells that its read is of a rare strain, as an allele does; in
reads of such strains and their mates, every witnessed base stays. Only runs are asked in which
enough reads have a rare allele: elsewhere two errors that meet are as frequent as such variants.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Q20_WEIGHT, Q30_WEIGHT, quality_weights
from ngsgpu.align.alleles import RARE_READS
from ngsgpu.correct.workspace import ASKED, DOUBTFUL, EDIT_BITS, GOOD, OF_RARE_STRAIN
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import working
from ngsgpu.readset.cpu import ReadArrays, plane_start, quality_code, quality_start, read_length
from ngsgpu.readset.fill import NONE, kmer_length, make_table, slot_of
from ngsgpu.readset.readset import AmbiguousBases, ReadSet
from ngsgpu.sequence.codec import base_at
from ngsgpu.sequence.kmers import distinct, roll

MIXED: Final = 100
"""In a run whose reads are asked, at least one in this many has a rare allele."""

LONGER: Final = 2
"""Bases by which a k-mer is longer than those that find the neighbours of unknown bases: it must
not be found elsewhere by chance."""

PLACES: Final = 3
"""Of the base in the k-mer: first, in the middle, last."""

KMERS_AT_A_TIME: Final = 1 << 20
"""Distinct k-mers in a table, at least; more than that and an eighth of the reads are looked up in
several rounds through the reads."""

SEEN: Final = 6
"""Of the reads that have a k-mer with the base at Q20 or above: how many, of them at Q30, the first
and the last fragment, the least and the greatest end."""

_NEVER: Final = np.uint32(0xFFFF_FFFF)
_BASES_PER_TASK: Final = 1 << 18


class AskedKmers(NamedTuple):
    """The k-mers that hold the bases asked about, a column for each place.

    Attributes:
        kmers: uint64[bases, 3], canonical; ``NONE`` where the read ends before.
        places: uint8[bases, 3], of the base in the canonical k-mer.
        ends: uint32[bases, 3], 2 x the base's position in the read + 1 if the canonical k-mer is
            on the other strand: equal for reads that begin together.
    """

    kmers: NDArray[np.uint64]
    places: NDArray[np.uint8]
    ends: NDArray[np.uint32]

    @classmethod
    def allocate(cls, bases: int) -> AskedKmers:
        """None yet."""
        shape = (bases, PLACES)
        return cls(np.full(shape, NONE), np.zeros(shape, np.uint8), np.zeros(shape, np.uint32))


class Asker(Protocol):
    """How a backend does the work; ``ReadAsker`` is the reference."""

    @property
    def size(self) -> tuple[int, int, bool]:
        """Numbers of reads and of bases, and whether mates follow each other."""

    @property
    def kmers_at_a_time(self) -> int:
        """Distinct k-mers for which there is memory; does not affect the result."""

    def kmers(self, reads: NDArray[np.uint32], positions: NDArray[np.int32], k: int) -> AskedKmers:
        """The k-mers that hold some bases.

        Args:
            reads: that have the bases.
            positions: of the bases in these.
            k: length of the k-mers, odd.
        """

    def count(
        self, k: int, table: NDArray[np.uint64], ranks: NDArray[np.uint32], kmers: int
    ) -> NDArray[np.uint32]:
        """What all reads show of the k-mers of a table.

        Args:
            k: their length.
            table: as of ``make_table``.
            ranks: of the k-mer in each slot.
            kmers: their number.

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

    Args:
        asker: asks the reads.
        start: int64[reads], first edit of each read.
        count: uint16[reads], its number of edits.
        edits: uint32, with the bits that ``workspace`` describes.
        classes: uint8[reads], with ``OF_RARE_STRAIN``.
    """
    reads, bases, paired = asker.size
    if MIXED * int(np.count_nonzero(classes >= OF_RARE_STRAIN)) < max(1, reads):
        return
    owner, places = _asked(start, count, edits, classes, paired)
    if len(owner) == 0:
        return
    positions = ((edits[places] & EDIT_BITS) >> 2).astype(np.int32)
    witnessed = witnessed_bases(asker, owner, positions, min(31, kmer_length(bases) + LONGER))
    edits[places[witnessed]] |= DOUBTFUL
    good = (edits[places] & GOOD) != 0
    classes[owner[witnessed & good]] |= np.uint8(OF_RARE_STRAIN)


def _asked(
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    classes: NDArray[np.uint8],
    paired: bool,
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Reads and places of the edits that all reads are asked about.

    They are those of fragments that are of a rare strain, or have a good one that may show it.
    """
    fragments = np.zeros((len(count) >> paired) + 1, dtype=np.bool_)
    mark_fragments(start, count, edits, classes, int(paired), fragments)
    nothing = np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int64)
    found = list_asked(start, count, edits, int(paired), fragments, *nothing)
    owner, places = np.empty(found, dtype=np.uint32), np.empty(found, dtype=np.int64)
    list_asked(start, count, edits, int(paired), fragments, owner, places)
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
        concerned = classes[read] >= OF_RARE_STRAIN
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


def witnessed_bases(
    asker: Asker, owner: NDArray[np.uint32], positions: NDArray[np.int32], k: int
) -> NDArray[np.bool_]:
    """Whether other reads witness bases.

    Args:
        asker: of the reads.
        owner: the reads that have the bases.
        positions: of the bases in these.
        k: length of the k-mers, odd.
    """
    paired = asker.size[2]
    found = asker.kmers(owner, positions, k)
    kmers = distinct(found.kmers.reshape(-1).copy())
    kmers = kmers[: np.searchsorted(kmers, NONE)]
    witnessed = np.zeros(len(owner), dtype=np.bool_)
    fragments = owner >> np.uint32(paired)
    step = asker.kmers_at_a_time
    for first in range(0, len(kmers), step):
        some = kmers[first : first + step]
        table = make_table(some)
        ranks = np.zeros(len(table), dtype=np.uint32)
        rank_kmers(table, some, ranks)
        seen = asker.count(k, table, ranks, len(some))
        judge(found, fragments, some[0], some[-1], table, ranks, seen, witnessed)
    return witnessed


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
    witnessed: NDArray[np.bool_],
) -> None:
    """Mark the bases that reads with one of the k-mers from ``least`` to ``most`` witness."""
    for base in range(len(fragments)):
        for column in range(PLACES):
            kmer = found.kmers[base, column]
            if kmer < least or kmer > most:
                continue
            show = seen[ranks[slot_of(table, kmer)], found.places[base, column]]
            if show[0] == 0 or show[0] > RARE_READS or show[1] == 0:
                continue
            own, end = fragments[base], found.ends[base, column]
            if (show[2] != own or show[3] != own) and (show[4] != end or show[5] != end):
                witnessed[base] = True


@dataclass(frozen=True)
class ReadAsker:
    """Asks a read set on the CPU.

    Attributes:
        reads: the read set.
        threads: number of threads; does not affect the result.
    """

    reads: ReadSet
    threads: int

    @property
    def size(self) -> tuple[int, int, bool]:
        """See ``Asker``."""
        return self.reads.reads, self.reads.bases, self.reads.paired

    @property
    def kmers_at_a_time(self) -> int:
        """See ``Asker``."""
        return max(KMERS_AT_A_TIME, self.reads.reads // 8)

    def kmers(self, reads: NDArray[np.uint32], positions: NDArray[np.int32], k: int) -> AskedKmers:
        """See ``Asker``."""
        found = AskedKmers.allocate(len(reads))
        find_asked(self.reads.arrays, reads, positions, k, found)
        return found

    def count(
        self, k: int, table: NDArray[np.uint64], ranks: NDArray[np.uint32], kmers: int
    ) -> NDArray[np.uint32]:
        """See ``Asker``."""
        seen = nothing_seen(kmers)
        arrays = self.reads.arrays
        weights = quality_weights(arrays.quality_bits)
        length = max(1, self.reads.max_length)
        step = max(1, _BASES_PER_TASK // length)
        buffers = threading.local()

        def look_up(first: int) -> NDArray[np.uint32]:
            if not hasattr(buffers, "hits"):
                buffers.hits = np.empty((PLACES * step * length, 4), dtype=np.uint32)
            last = min(first + step, self.reads.reads)
            found = find_witnesses(
                arrays, self.reads.ambiguous, weights, first, last, int(self.reads.paired), k,
                table, ranks, buffers.hits,
            )  # fmt: skip
            return np.array(buffers.hits[:found])

        firsts = range(0, self.reads.reads, step)
        with working(self.threads, look_up, firsts, in_order=False, name="ask") as done:
            for hits in done:
                add_witnesses(hits, seen.reshape(-1, SEEN))
        return seen


def nothing_seen(kmers: int) -> NDArray[np.uint32]:
    """uint32[kmers, 3, ``SEEN``] before any read is looked at."""
    seen = np.zeros((kmers, PLACES, SEEN), dtype=np.uint32)
    seen[..., 2] = seen[..., 4] = _NEVER
    return seen


@njit(nogil=True, cache=True)
def find_asked(
    reads: ReadArrays,
    owner: NDArray[np.uint32],
    positions: NDArray[np.int32],
    k: int,
    found: AskedKmers,
) -> None:
    """Write the k-mers that hold some bases; see ``AskedKmers``."""
    for base in range(len(owner)):
        read, position = np.int64(owner[base]), np.int64(positions[base])
        length = read_length(reads, read)
        start = plane_start(reads, read)
        words = (length + 63) >> 6
        for place in range(PLACES):
            first = position - (k - 1) * place // 2
            if first < 0 or first + k > length:
                continue
            kmer = np.uint64(0)
            complement = np.uint64(0)
            for i in range(first, first + k):
                code = np.uint64(base_at(reads.planes, start, words, i))
                kmer, complement = roll(kmer, complement, code, k)
            reverse = np.int64(kmer > complement)
            found.kmers[base, place] = min(kmer, complement)
            found.places[base, place] = PLACES - 1 - place if reverse else place
            found.ends[base, place] = 2 * position + reverse


@njit(nogil=True, cache=True)
def find_witnesses(
    reads: ReadArrays,
    unknown: AmbiguousBases,
    weights: NDArray[np.int32],
    first: int,
    last: int,
    paired: int,
    k: int,
    table: NDArray[np.uint64],
    ranks: NDArray[np.uint32],
    hits: NDArray[np.uint32],
) -> int:
    """List the known k-mers of some reads that are in a table; return their number.

    A hit is 3 x the rank of the k-mer + the place of a base of Q20 or above in it, whether that is
    of Q30, the fragment, and the end as in ``AskedKmers``.
    """
    entry = np.searchsorted(unknown.reads, np.uint32(first))
    found = 0
    for read in range(first, last):
        at, end = 0, 0
        if entry < len(unknown.reads) and unknown.reads[entry] == read:
            at, end = unknown.start[entry], unknown.start[entry + 1]
            entry += 1
        length = read_length(reads, read)
        start, quality = plane_start(reads, read), quality_start(reads, read)
        words = (length + 63) >> 6
        kmer = np.uint64(0)
        complement = np.uint64(0)
        low = np.uint64(0)
        high = np.uint64(0)
        known = 0
        for position in range(length):
            if position & 63 == 0:
                low = np.uint64(reads.planes[start + (position >> 6)])
                high = np.uint64(reads.planes[start + words + (position >> 6)])
            known += 1
            if at < end and unknown.positions[at] == position:
                at += 1
                known = 0
            code = (low & np.uint64(1)) | ((high & np.uint64(1)) << np.uint64(1))
            low >>= np.uint64(1)
            high >>= np.uint64(1)
            kmer, complement = roll(kmer, complement, code, k)
            if known < k:
                continue
            slot = slot_of(table, min(kmer, complement))
            if table[slot] == NONE:
                continue
            reverse = np.int64(kmer > complement)
            for place in range(PLACES):
                base = position - (k - 1) * place // 2
                weight = weights[quality_code(reads, quality, base)]
                if weight < Q20_WEIGHT:
                    continue
                hits[found, 0] = PLACES * ranks[slot] + place_in(place, reverse)
                hits[found, 1] = weight >= Q30_WEIGHT
                hits[found, 2] = read >> paired
                hits[found, 3] = 2 * base + reverse
                found += 1
    return found


@njit(nogil=True, cache=True, inline="always")
def place_in(from_last: Integer, reverse: Integer) -> Integer:
    """Place in the canonical k-mer of a base, counted from the last one of the k-mer as read."""
    return from_last if reverse else PLACES - 1 - from_last


@njit(nogil=True, cache=True)
def add_witnesses(hits: NDArray[np.uint32], seen: NDArray[np.uint32]) -> None:
    """Add hits to what was seen; the order does not matter."""
    for i in range(len(hits)):
        show = seen[hits[i, 0]]
        show[0] += 1
        show[1] += hits[i, 1]
        show[2] = min(show[2], hits[i, 2])
        show[3] = max(show[3], hits[i, 2])
        show[4] = min(show[4], hits[i, 3])
        show[5] = max(show[5], hits[i, 3])
