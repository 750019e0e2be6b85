"""Bases and qualities of an extended read, for kernels that write records.

A fragment consists of runs: bases before the first read, the first read, bases between the reads,
the second read, bases behind it. Each run is copied by a loop without branches, which LLVM turns
into vector instructions. Only where the reads overlap are bases chosen one by one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.put import put_bytes
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES, LETTERS


def _complements() -> NDArray[np.uint8]:
    table = np.arange(256, dtype=np.uint8)
    pairs = b"ACGTRYKMBDHVacgtrykmbdhv"
    for letter, other in zip(pairs, b"TGCAYRMKVHDBtgcayrmkvhdb", strict=True):
        table[letter] = other
    return table


COMPLEMENTS = _complements()


_FOUR_LETTERS: Final = np.uint32(int.from_bytes(LETTERS.tobytes(), "little"))


class Bases(NamedTuple):
    """Bases of reads, without line ends.

    Attributes:
        letters: uint8, text with the bases.
        letters_start: int64[reads], where each read's bases begin.
        qualities: uint8, text with the quality characters.
        qualities_start: int64[reads], where each read's begin.
    """

    letters: NDArray[np.uint8]
    letters_start: NDArray[np.int64]
    qualities: NDArray[np.uint8]
    qualities_start: NDArray[np.int64]

    @classmethod
    def of(cls, mates: Mates, rows: slice, no_quality: int) -> Bases:
        """The bases of some records.

        Args:
            mates: the records.
            rows: which of them.
            no_quality: quality character of bases without one.
        """
        seq_start = mates.seq_start[rows]
        if len(mates.qual_start) > 0:
            return cls(mates.data, seq_start, mates.data, mates.qual_start[rows])
        # Sequences of FASTA may have line ends inside.
        seq_len = mates.seq_len[rows]
        begins = np.zeros(len(seq_len) + 1, dtype=np.int64)
        np.cumsum(seq_len, out=begins[1:])
        letters = np.empty(begins[-1], dtype=np.uint8)
        unwrap(mates.data, seq_start, seq_len, letters)
        return cls(letters, begins[:-1], np.full(len(letters), no_quality, np.uint8), begins[:-1])


class OrientedRead(NamedTuple):
    """A read in the fragment's direction: position 0 is the one that is first there.

    Attributes:
        letters: uint8, text with its bases.
        letters_at: where they begin.
        qualities: uint8, text with its quality characters.
        qualities_at: where they begin.
        length: number of bases.
        reverse_complemented: 1 if the fragment has its reverse complement.
    """

    letters: NDArray[np.uint8]
    letters_at: Integer
    qualities: NDArray[np.uint8]
    qualities_at: Integer
    length: Integer
    reverse_complemented: Integer


class Places(NamedTuple):
    """Where the runs of a fragment are, counted from the first read's position 0.

    Attributes:
        left: bases before position 0.
        first_end: behind the first read.
        second_begin: of the second read; before position 0 if the fragment is shorter.
        total: behind the second read.
        right: bases behind that.
    """

    left: Integer
    first_end: Integer
    second_begin: Integer
    total: Integer
    right: Integer


@njit(nogil=True, cache=True)
def unwrap(
    data: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    seq_len: NDArray[np.int32],
    letters: NDArray[np.uint8],
) -> None:
    """Copy the letters of sequences, without line ends, one behind the other."""
    at = 0
    for i in range(len(seq_start)):
        source = seq_start[i]
        for _ in range(seq_len[i]):
            while data[source] == 10 or data[source] == 13:
                source += 1
            letters[at] = data[source]
            source += 1
            at += 1


@njit(nogil=True, cache=True)
def put_reversed(
    out: NDArray[np.uint8], at: Integer, source: NDArray[np.uint8], begin: Integer, end: Integer
) -> None:
    """Copy bytes ``begin`` to ``end``, exclusive, to ``at`` in opposite order."""
    # Unsigned indices are not looked at for being negative.
    into = np.uintp(at)
    last = np.uintp(end) - np.uintp(1)
    for i in range(np.uintp(end - begin)):
        out[into + i] = source[last - i]


@njit(nogil=True, cache=True)
def put_letters(
    out: NDArray[np.uint8], at: Integer, read: OrientedRead, begin: Integer, end: Integer
) -> None:
    """Write the letters of a read's positions ``begin`` to ``end``, exclusive."""
    if not read.reverse_complemented:
        put_bytes(out, at, read.letters, read.letters_at + begin, read.letters_at + end)
        return
    into = np.uintp(at)
    last = np.uintp(read.letters_at + read.length - 1 - begin)
    count = np.uintp(end - begin)
    others = np.uint8(0)
    for i in range(count):
        letter = read.letters[last - i]
        # A and T differ in bits 0, 2 and 4, C and G, which have bit 1, in bit 2: found for many
        # letters at a time.
        flipped = np.uint8(21) - ((letter >> np.uint8(1)) & np.uint8(1)) * np.uint8(17)
        out[into + i] = np.uint8(letter ^ flipped)
    for i in range(count):
        letter = read.letters[last - i]
        others |= np.uint8(
            (letter != np.uint8(65))
            & (letter != np.uint8(67))
            & (letter != np.uint8(71))
            & (letter != np.uint8(84))
        )
    if others:
        for i in range(count):
            out[into + i] = COMPLEMENTS[read.letters[last - i]]


@njit(nogil=True, cache=True)
def put_read_qualities(
    out: NDArray[np.uint8], at: Integer, read: OrientedRead, begin: Integer, end: Integer
) -> None:
    """Write the quality characters of a read's positions ``begin`` to ``end``, exclusive."""
    if read.reverse_complemented:
        behind = read.qualities_at + read.length
        put_reversed(out, at, read.qualities, behind - end, behind - begin)
    else:
        put_bytes(out, at, read.qualities, read.qualities_at + begin, read.qualities_at + end)


@njit(nogil=True, cache=True)
def put_codes(
    out: NDArray[np.uint8], at: Integer, codes: NDArray[np.uint8], begin: Integer, end: Integer
) -> None:
    """Write the letters of codes ``begin`` to ``end``, exclusive."""
    into = np.uintp(at)
    origin = np.uintp(begin)
    for i in range(np.uintp(end - begin)):
        # As LETTERS has them, but not looked up: of many codes at a time.
        shift = np.uint32(codes[origin + i]) << np.uint32(3)
        out[into + i] = np.uint8(_FOUR_LETTERS >> shift)


@njit(nogil=True, cache=True)
def put_scores(
    out: NDArray[np.uint8],
    at: Integer,
    scores: NDArray[np.uint8],
    begin: Integer,
    end: Integer,
    gap_quality: int,
    phred_offset: int,
) -> None:
    """Write scores ``begin`` to ``end``, or as many times ``gap_quality`` if that is not -1."""
    into = np.uintp(at)
    origin = np.uintp(begin)
    offset = np.uint8(phred_offset)
    if gap_quality >= 0:
        for i in range(np.uintp(end - begin)):
            out[into + i] = np.uint8(phred_offset + gap_quality)
    else:
        for i in range(np.uintp(end - begin)):
            out[into + i] = np.uint8(scores[origin + i] + offset)


@njit(nogil=True, cache=True)
def put_fragment_letters(
    out: NDArray[np.uint8],
    at: Integer,
    places: Places,
    first: OrientedRead,
    second: OrientedRead,
    codes: NDArray[np.uint8],
    start: Integer,
) -> None:
    """Write all letters of a fragment; where the reads overlap, those of the first read.

    The codes from ``start`` on are those outside the reads.
    """
    if places.left > 0:
        put_codes(out, at, codes, start, start + places.left)
    at += places.left
    put_letters(out, at, first, 0, places.first_end)
    gap = max(np.int64(0), places.second_begin - places.first_end)
    start += places.left
    put_codes(out, at + places.first_end, codes, start, start + gap)
    own = max(places.second_begin, places.first_end)
    put_letters(out, at + own, second, own - places.second_begin, second.length)
    if places.right > 0:
        put_codes(out, at + places.total, codes, start + gap, start + gap + places.right)


@njit(nogil=True, cache=True)
def put_fragment_qualities(
    out: NDArray[np.uint8],
    at: Integer,
    places: Places,
    first: OrientedRead,
    second: OrientedRead,
    scores: NDArray[np.uint8],
    start: Integer,
    gap_quality: int,
    phred_offset: int,
) -> None:
    """Write all quality characters of a fragment; see ``put_fragment_letters``."""
    if places.left > 0:
        put_scores(out, at, scores, start, start + places.left, gap_quality, phred_offset)
    at += places.left
    put_read_qualities(out, at, first, 0, places.first_end)
    gap = max(np.int64(0), places.second_begin - places.first_end)
    start += places.left
    behind = at + places.first_end
    put_scores(out, behind, scores, start, start + gap, gap_quality, phred_offset)
    own = max(places.second_begin, places.first_end)
    put_read_qualities(out, at + own, second, own - places.second_begin, second.length)
    start += gap
    behind = at + places.total
    if places.right > 0:
        put_scores(out, behind, scores, start, start + places.right, gap_quality, phred_offset)


@njit(nogil=True, cache=True)
def choose_in_overlap(
    letters: NDArray[np.uint8],
    at: Integer,
    qualities_at: Integer,
    places: Places,
    first: OrientedRead,
    second: OrientedRead,
) -> None:
    """Replace letters of the first read by better ones of the second, where they overlap.

    Args:
        letters: the output, with the first read's letters.
        at: where position 0 is in it.
        qualities_at: where the quality of position 0 is; -1 if they are not written.
        places: of the fragment.
        first: the first read.
        second: the second read.
    """
    for place in range(max(np.int64(0), places.second_begin), places.first_end):
        other_place = place - places.second_begin
        from_first, from_second = place, other_place
        if first.reverse_complemented:
            from_first = first.length - 1 - place
        if second.reverse_complemented:
            from_second = second.length - 1 - other_place
        mine = letters[at + place]
        other = second.letters[second.letters_at + from_second]
        quality = second.qualities[second.qualities_at + from_second]
        worse = first.qualities[first.qualities_at + from_first] < quality
        # A letter and its complement are ambiguous, or not, alike.
        if CODES[mine] == AMBIGUOUS or (worse and CODES[other] != AMBIGUOUS):
            letters[at + place] = COMPLEMENTS[other] if second.reverse_complemented else other
            if qualities_at >= 0:
                letters[qualities_at + place] = quality
