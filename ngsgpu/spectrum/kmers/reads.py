"""A read as the kernels change it, and its k-mers."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.readset import AmbiguousBases, ReadArrays
from ngsgpu.readset.cpu import plane_start, quality_code, quality_start, read_length
from ngsgpu.readset.qualities import Levels, scores_of
from ngsgpu.sequence.kmers import roll
from ngsgpu.spectrum.kmers.solid import SOLID, Solid, level_of

UNKNOWN: Final = 4
"""Code of a base other than A, C, G and T."""

_WITHOUT_QUALITY: Final = 20

_1 = np.uint64(1)
_3 = np.uint64(3)


class ReadSpace(NamedTuple):
    """A read; arrays are as long as the longest read.

    Attributes:
        original: uint8, its codes.
        codes: uint8, the codes with changes.
        scores: uint8, Phred scores; 0 of unknown bases.
        levels: uint8, level of the k-mer that begins at each position.
        before: uint8, the same of the read without changes.
        trusted: uint8, whether a search may begin at that k-mer.
        cheapest: uint8, codes of the best of several trials.
    """

    original: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    scores: NDArray[np.uint8]
    levels: NDArray[np.uint8]
    before: NDArray[np.uint8]
    trusted: NDArray[np.uint8]
    cheapest: NDArray[np.uint8]

    @classmethod
    def allocate(cls, max_length: int) -> Self:
        """Arrays for reads of a length."""
        return cls(*(np.zeros(max(1, max_length), dtype=np.uint8) for _ in range(7)))


def scores_of_codes(quality_bits: int, levels: Levels = ()) -> NDArray[np.uint8]:
    """Phred score of every stored quality code; 20 where there are none."""
    if quality_bits == 0:
        return np.full(1, _WITHOUT_QUALITY, dtype=np.uint8)
    return np.asarray(scores_of(quality_bits, levels), dtype=np.uint8)


@njit(nogil=True, cache=True)
def load_codes(
    reads: ReadArrays, ambiguous: AmbiguousBases, read: Integer, codes: NDArray[np.uint8]
) -> Integer:
    """Write the codes of a read; return its length."""
    length = read_length(reads, read)
    words = (length + 63) >> 6
    start = plane_start(reads, read)
    for word in range(words):
        low = reads.planes[start + word]
        high = reads.planes[start + words + word]
        for i in range(word << 6, min(length, (word + 1) << 6)):
            codes[i] = (low & _1) | ((high & _1) << _1)
            low >>= _1
            high >>= _1
    if len(ambiguous.reads):
        entry = np.searchsorted(ambiguous.reads, np.uint32(read))
        if entry < len(ambiguous.reads) and ambiguous.reads[entry] == read:
            for i in range(ambiguous.start[entry], ambiguous.start[entry + 1]):
                codes[ambiguous.positions[i]] = UNKNOWN
    return length


@njit(nogil=True, cache=True)
def load_scores(
    reads: ReadArrays,
    scores: NDArray[np.uint8],
    read: Integer,
    codes: NDArray[np.uint8],
    length: Integer,
    out: NDArray[np.uint8],
) -> None:
    """Write the Phred scores of a read whose codes are known."""
    start = quality_start(reads, read)
    for i in range(length):
        out[i] = 0 if codes[i] == UNKNOWN else scores[quality_code(reads, start, i)]


@njit(nogil=True, cache=True)
def find_levels(
    solid: Solid,
    k: Integer,
    codes: NDArray[np.uint8],
    begin: Integer,
    end: Integer,
    levels: NDArray[np.uint8],
) -> Integer:
    """Write the level of every k-mer of a part of a read; return how many are solid.

    Args:
        solid: the set.
        k: k-mer length.
        codes: of the read.
        begin: first base of the part.
        end: its end.
        levels: gets the levels, by the first base; 0 with unknown bases.
    """
    forward = np.uint64(0)
    backward = np.uint64(0)
    known = 0
    found = 0
    for i in range(begin, end):
        code = np.uint64(codes[i])
        known = 0 if code == UNKNOWN else known + 1
        forward, backward = roll(forward, backward, code & _3, k)
        if i >= begin + k - 1:
            level = level_of(solid, min(forward, backward)) if known >= k else 0
            levels[i - k + 1] = level
            found += level >= 2
    return found


@njit(nogil=True, cache=True)
def is_clean(solid: Solid, k: Integer, codes: NDArray[np.uint8], length: Integer) -> bool:
    """Whether every (k / 4)-th k-mer of a read is solid, and its last one.

    An error makes k k-mers weak in a row, or all of them up to an end of the read.
    """
    step = max(1, k // 4)
    forward = np.uint64(0)
    backward = np.uint64(0)
    for i in range(length):
        if codes[i] == UNKNOWN:
            return False
        code = np.uint64(codes[i])
        forward, backward = roll(forward, backward, code, k)
        start = i - k + 1
        if (
            start >= 0
            and (start % step == 0 or i == length - 1)
            and level_of(solid, min(forward, backward)) < SOLID
        ):
            return False
    return True


@njit(nogil=True, cache=True)
def longest_run(levels: NDArray[np.uint8], kmers: Integer) -> tuple[Integer, Integer]:
    """First k-mer of the longest run of solid ones, and their number; the first of equal runs."""
    best = 0
    size = 0
    run = 0
    for i in range(kmers):
        run = run + 1 if levels[i] >= 2 else 0
        if run > size:
            size = run
            best = i - run + 1
    return best, size
