"""A read as the kernels change it, and its k-mers."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.readset import AmbiguousBases, ReadArrays
from ngsgpu.readset.cpu import BIN_SCORES, plane_start, quality_code, quality_start, read_length
from ngsgpu.spectrum.solid import Solid, level_of

UNKNOWN: Final = 4
"""Code of a base other than A, C, G and T."""

_WITHOUT_QUALITY: Final = 20

_2 = np.uint64(2)
_3 = np.uint64(3)


class ReadSpace(NamedTuple):
    """A read; arrays are as long as the longest read.

    Attributes:
        original: uint8, its codes.
        codes: uint8, the codes with changes.
        scores: uint8, Phred scores; 0 of unknown bases.
        levels: uint8, level of the k-mer that begins at each position.
        before: uint8, the same of the read without changes.
    """

    original: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    scores: NDArray[np.uint8]
    levels: NDArray[np.uint8]
    before: NDArray[np.uint8]

    @classmethod
    def allocate(cls, max_length: int) -> Self:
        """Arrays for reads of a length."""
        return cls(*(np.zeros(max(1, max_length), dtype=np.uint8) for _ in range(5)))


def scores_of_codes(quality_bits: int) -> NDArray[np.uint8]:
    """Phred score of every stored quality code; 20 where there are none."""
    if quality_bits == 0:
        return np.full(1, _WITHOUT_QUALITY, dtype=np.uint8)
    return np.asarray(BIN_SCORES[quality_bits], dtype=np.uint8)


@njit(nogil=True, cache=True)
def load_read(
    reads: ReadArrays,
    ambiguous: AmbiguousBases,
    scores: NDArray[np.uint8],
    read: Integer,
    codes: NDArray[np.uint8],
    qualities: NDArray[np.uint8],
) -> Integer:
    """Write the codes and scores of a read; return its length."""
    length = read_length(reads, read)
    words = (length + 63) >> 6
    start = plane_start(reads, read)
    quality = quality_start(reads, read)
    for i in range(length):
        low = reads.planes[start + (i >> 6)] >> np.uint64(i & 63)
        high = reads.planes[start + words + (i >> 6)] >> np.uint64(i & 63)
        codes[i] = (low & np.uint64(1)) | ((high & np.uint64(1)) << np.uint64(1))
        qualities[i] = scores[quality_code(reads, quality, i)]
    if len(ambiguous.reads):
        entry = np.searchsorted(ambiguous.reads, np.uint32(read))
        if entry < len(ambiguous.reads) and ambiguous.reads[entry] == read:
            for i in range(ambiguous.start[entry], ambiguous.start[entry + 1]):
                codes[ambiguous.positions[i]] = UNKNOWN
                qualities[ambiguous.positions[i]] = 0
    return length


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
    mask = (np.uint64(1) << np.uint64(2 * k)) - np.uint64(1)
    top = np.uint64(2 * (k - 1))
    forward = np.uint64(0)
    backward = np.uint64(0)
    known = 0
    found = 0
    for i in range(begin, end):
        code = np.uint64(codes[i])
        known = 0 if code == UNKNOWN else known + 1
        forward = ((forward << _2) | (code & _3)) & mask
        backward = (backward >> _2) | ((_3 - (code & _3)) << top)
        if i >= begin + k - 1:
            level = level_of(solid, min(forward, backward)) if known >= k else 0
            levels[i - k + 1] = level
            found += level >= 2
    return found


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
