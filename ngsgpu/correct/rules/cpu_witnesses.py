"""Asks the reads on the CPU about bases that would be changed; see ``witnesses``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Q20_WEIGHT, Q30_WEIGHT, quality_weights
from ngsgpu.correct.rules.witnesses import OWN, PLACES, SEEN, AskedKmers, nothing_seen
from ngsgpu.jit import Integer, njit
from ngsgpu.readset.cpu import ReadArrays, plane_start, quality_code, quality_start, read_length
from ngsgpu.readset.fill import NONE, hits_in_reads, kmer_at, slot_of
from ngsgpu.readset.qualities import exact_scores
from ngsgpu.readset.readset import AmbiguousBases, ReadSet
from ngsgpu.sequence.kmers import roll

KMERS_AT_A_TIME: Final = 1 << 20
"""Distinct k-mers in a table, at least; more than that and an eighth of the reads are looked up in
several rounds through the reads."""


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

    def kmers(
        self,
        reads: NDArray[np.uint32],
        positions: NDArray[np.int32],
        bases: NDArray[np.uint8],
        k: int,
    ) -> AskedKmers:
        """See ``Asker``."""
        found = AskedKmers.allocate(len(reads))
        scores = exact_scores(self.reads.arrays.quality_bits, self.reads.levels)
        find_asked(self.reads.arrays, reads, positions, bases, k, scores, found)
        return found

    def count(
        self,
        k: int,
        table: NDArray[np.uint64],
        ranks: NDArray[np.uint32],
        kmers: int,
        among: NDArray[np.bool_],
    ) -> NDArray[np.uint32]:
        """See ``Asker``."""
        seen = nothing_seen(kmers)
        reads, arrays = self.reads, self.reads.arrays
        weights = quality_weights(arrays.quality_bits, reads.levels)

        def find(first: int, last: int, room: NDArray[np.uint32]) -> int:
            return find_witnesses(
                arrays, reads.ambiguous, weights, first, last, int(reads.paired), k, table, ranks,
                among, room,
            )  # fmt: skip

        for hits in hits_in_reads(reads, self.threads, (PLACES, 4), find):
            add_witnesses(hits, seen.reshape(-1, SEEN))
        return seen


@njit(nogil=True, cache=True)
def find_asked(
    reads: ReadArrays,
    owner: NDArray[np.uint32],
    positions: NDArray[np.int32],
    bases: NDArray[np.uint8],
    k: int,
    scores: NDArray[np.uint8],
    found: AskedKmers,
) -> None:
    """Write the k-mers that hold some bases; see ``AskedKmers`` and ``Asker.kmers``.

    ``scores``: the Phred score of each quality code, 0 where codes do not say which.
    """
    for base in range(len(owner)):
        read, position = np.int64(owner[base]), np.int64(positions[base])
        length = read_length(reads, read)
        code = quality_code(reads, quality_start(reads, read), position)
        found.qualities[base] = scores[code]
        for place in range(PLACES):
            first = position - (k - 1) * place // 2
            if first < 0 or first + k > length:
                continue
            kmer, complement = kmer_at(reads, read, first, k)
            if bases[base] != OWN:
                kmer, complement = with_base(kmer, complement, bases[base], position - first, k)
            reverse = np.int64(kmer > complement)
            found.kmers[base, place] = min(kmer, complement)
            found.places[base, place] = PLACES - 1 - place if reverse else place
            found.ends[base, place] = 2 * position + reverse


@njit(nogil=True, cache=True)
def with_base(
    kmer: np.uint64, complement: np.uint64, base: Integer, place: Integer, k: int
) -> tuple[np.uint64, np.uint64]:
    """A k-mer and its reverse complement with a base at a place, counted from the first one."""
    code, three = np.uint64(base), np.uint64(3)
    before, after = np.uint64(2 * (k - 1 - place)), np.uint64(2 * place)
    kmer = (kmer & ~(three << before)) | (code << before)
    return kmer, (complement & ~(three << after)) | ((three - code) << after)


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
    among: NDArray[np.bool_],
    hits: NDArray[np.uint32],
) -> int:
    """List the known k-mers of some reads that are in a table; return their number.

    Of those reads that are ``among`` the asked ones, or of all if it is empty.

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
        if len(among) > 0 and not among[read]:
            continue
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
