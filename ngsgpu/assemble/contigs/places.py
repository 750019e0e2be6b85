"""Where reads lie on pieces: by words that occur once among all pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import Pieces, base_of
from ngsgpu.assemble.contigs.reads import Reads, unpack
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all
from ngsgpu.sequence.hashing import find_slot, mix64
from ngsgpu.sequence.kmers import roll

_WORD: Final = 31
_SAMPLED: Final = 2
"""For pairs, words count whose hash ends in this number of zero bits: most reads have some, and
looking them up takes a quarter of the memory."""

_PART: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Places:
    """Places of reads.

    Attributes:
        direction: int64[n], direction of a piece in which the read runs, or -1.
        at: int64[n], its first base in this direction; may lie before the piece.
        first: int64[2m], bases of each direction to the end of its first word that counts.
    """

    direction: NDArray[np.int64]
    at: NDArray[np.int64]
    first: NDArray[np.int64]

    def of(self, count: int) -> Places:
        """The places of the first reads."""
        return replace(self, direction=self.direction[:count], at=self.at[:count])


def word_of(k: int) -> int:
    """Bases of the words by which reads are placed on a graph of some k."""
    return min(_WORD, k)


def place_reads(
    pieces: Pieces, reads: Reads, count: int, threads: int, *, sampled: int = _SAMPLED
) -> Places:
    """Place the first reads.

    A read lies where its first word lies that counts and occurs once in all pieces, both strands
    as one.

    Args:
        pieces: the graph.
        reads: the reads.
        count: how many of them.
        threads: number of threads; does not affect the result.
        sampled: words count whose hash ends in this number of zero bits; all, if 0.
    """
    word = word_of(pieces.k)
    # A third of the slots is left over; half, where luck decides how many words are sampled.
    room = len(pieces.bases) >> (sampled - 1) if sampled else len(pieces.bases) * 3 // 2
    bits = max(8, room.bit_length())
    keys = np.zeros(1 << bits, dtype=np.uint64)
    values = np.zeros(1 << bits, dtype=np.int64)
    enter_words(pieces.bases, pieces.starts, word, sampled, keys, values)
    direction = np.full(count, -1, dtype=np.int64)
    at = np.zeros(count, dtype=np.int64)
    longest = int(reads.lengths.max(initial=0))

    def work(begin: int) -> None:
        find_places(
            pieces.starts, word, sampled, keys, values, reads.bases, reads.starts, reads.lengths,
            begin, min(count, begin + _PART), longest, direction, at,
        )  # fmt: skip

    map_all(threads, work, range(0, count, _PART), name="places")
    first = np.zeros(2 * len(pieces), dtype=np.int64)
    find_first(pieces.bases, pieces.starts, word, sampled, keys, values, first)
    return Places(direction, at, first)


@njit(nogil=True, cache=True)
def slot_of(
    keys: NDArray[np.uint64], values: NDArray[np.int64], word: np.uint64, sampled: int
) -> Integer:
    """The slot of a word, or a free one (value 0); -1 if the word does not count."""
    mixed = mix64(word)
    if mixed & ((np.uint64(1) << np.uint64(sampled)) - np.uint64(1)):
        return np.int64(-1)
    return np.int64(find_slot(keys, values, word, mixed >> np.uint64(sampled)))


@njit(nogil=True, cache=True)
def enter_words(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    size: int,
    sampled: int,
    keys: NDArray[np.uint64],
    values: NDArray[np.int64],
) -> None:
    """Enter the words of all pieces.

    Args:
        bases: of the pieces.
        starts: of the pieces.
        size: bases of a word, odd, at most 31.
        sampled: words count whose hash ends in this number of zero bits.
        keys: uint64[2^n], gets canonical words.
        values: int64[2^n], zeros; get ``2 * place + 1`` of a word that is canonical as it stands,
            ``2 * place + 2`` of one that is not, -1 of one that occurs again.
    """
    for piece in range(len(starts) - 1):
        forward = np.uint64(0)
        backward = np.uint64(0)
        for at in range(starts[piece], starts[piece + 1]):
            forward, backward = roll(forward, backward, np.uint64(bases[at]), size)
            begin = at - size + 1
            if begin < starts[piece]:
                continue
            word = min(forward, backward)
            slot = slot_of(keys, values, word, sampled)
            if slot < 0:
                continue
            if values[slot] != 0:
                values[slot] = -1
                continue
            keys[slot] = word
            values[slot] = 2 * begin + (1 if forward == word else 2)


@njit(nogil=True, cache=True)
def find_first(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    size: int,
    sampled: int,
    keys: NDArray[np.uint64],
    values: NDArray[np.int64],
    first: NDArray[np.int64],
) -> None:
    """Fill in ``Places.first``; a direction without words that count gets all of its bases."""
    for d in range(len(first)):
        length = starts[(d >> 1) + 1] - starts[d >> 1]
        forward = np.uint64(0)
        backward = np.uint64(0)
        first[d] = length
        for at in range(length):
            forward, backward = roll(forward, backward, base_of(bases, starts, d, at), size)
            if at < size - 1:
                continue
            slot = slot_of(keys, values, min(forward, backward), sampled)
            if slot >= 0 and values[slot] > 0:
                first[d] = at + 1
                break


@njit(nogil=True, cache=True)
def find_places(
    starts: NDArray[np.int64],
    size: int,
    sampled: int,
    keys: NDArray[np.uint64],
    values: NDArray[np.int64],
    read_bases: NDArray[np.uint8],
    read_starts: NDArray[np.int64],
    read_lengths: NDArray[np.int32],
    first: int,
    end: int,
    longest: int,
    direction: NDArray[np.int64],
    place: NDArray[np.int64],
) -> None:
    """Fill in the places of some reads; see ``Places``."""
    codes = np.empty(longest, dtype=np.uint8)
    for read in range(first, end):
        length = np.int64(read_lengths[read])
        unpack(read_bases, read_starts[read], length, codes)
        forward = np.uint64(0)
        backward = np.uint64(0)
        for at in range(length):
            forward, backward = roll(forward, backward, np.uint64(codes[at]), size)
            begin = at - size + 1
            if begin < 0:
                continue
            word = min(forward, backward)
            slot = slot_of(keys, values, word, sampled)
            if slot < 0 or values[slot] <= 0:
                continue
            where = (values[slot] - 1) >> 1
            turned = ((values[slot] - 1) & 1) != (forward != word)
            piece = np.searchsorted(starts, where, side="right") - 1
            if turned:
                direction[read] = 2 * piece + 1
                place[read] = starts[piece + 1] - where - size - begin
            else:
                direction[read] = 2 * piece
                place[read] = where - starts[piece] - begin
            break
