"""Numba kernels of the read set: pack records and locate a read's data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.readset.qualities import UNKNOWN
from ngsgpu.sequence.codec import AMBIGUOUS, CODES
from ngsgpu.sequence.hashing import mix64


class ReadArrays(NamedTuple):
    """The arrays of a read set, as passed to kernels.

    Attributes:
        planes: uint64, the two bit planes of all reads, concatenated.
        plane_start: int64[reads], first word of each read; empty if all lengths are equal.
        qualities: uint8, ``quality_bits`` bits per base, each read on a byte boundary.
        quality_start: int64[reads], first byte of each read; empty if all lengths are equal.
        lengths: int32[reads]; empty if all are equal.
        uniform_length: the length of all reads, or -1.
        quality_bits: 8, 2, 1, or 0 without qualities.
    """

    planes: NDArray[np.uint64]
    plane_start: NDArray[np.int64]
    qualities: NDArray[np.uint8]
    quality_start: NDArray[np.int64]
    lengths: NDArray[np.int32]
    uniform_length: int
    quality_bits: int


@njit(nogil=True, cache=True, inline="always")
def read_length(reads: ReadArrays, read: Integer) -> Integer:
    """Number of bases of a read."""
    if reads.uniform_length >= 0:
        return reads.uniform_length
    return np.int64(reads.lengths[read])


@njit(nogil=True, cache=True, inline="always")
def plane_start(reads: ReadArrays, read: Integer) -> Integer:
    """Index of a read's first word in ``reads.planes``."""
    if reads.uniform_length >= 0:
        return read * (2 * ((reads.uniform_length + 63) >> 6))
    return reads.plane_start[read]


@njit(nogil=True, cache=True, inline="always")
def quality_start(reads: ReadArrays, read: Integer) -> Integer:
    """Index of the byte with a read's first quality code in ``reads.qualities``."""
    if reads.uniform_length >= 0:
        return read * ((reads.uniform_length * reads.quality_bits + 7) >> 3)
    return reads.quality_start[read]


@njit(nogil=True, cache=True, inline="always")
def quality_code(reads: ReadArrays, start: Integer, position: Integer) -> np.int64:
    """Stored quality code of one base of the read whose codes begin at byte ``start``."""
    if reads.quality_bits == 8:
        return np.int64(reads.qualities[start + position])
    if reads.quality_bits == 0:
        return np.int64(0)
    bit = position * reads.quality_bits
    mask = (1 << reads.quality_bits) - 1
    return np.int64((reads.qualities[start + (bit >> 3)] >> (bit & 7)) & mask)


@njit(nogil=True, cache=True)
def pack_records(
    data: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    qual_start: NDArray[np.int64],
    phred_offset: int,
    bins: NDArray[np.uint8],
    quality_bits: int,
    first_read: int,
    read_step: int,
    lengths: NDArray[np.int32],
    plane_starts: NDArray[np.int64],
    quality_starts: NDArray[np.int64],
    slot: int,
    planes: NDArray[np.uint64],
    qualities: NDArray[np.uint8],
    unknown: NDArray[np.int64],
) -> int:
    """Pack the records of a batch; return the number of ambiguous bases.

    Record i becomes read ``first_read + i * read_step`` and entry ``slot + i * read_step`` of
    ``lengths``, ``plane_starts`` and ``quality_starts`` (mates alternate, so the step is 2 for
    pairs). ``planes`` and ``qualities`` must be zero. Scores without a code (``UNKNOWN``) are
    counted in ``unknown[0]``.
    """
    ambiguous = 0
    for record in range(len(seq_start)):
        entry = slot + record * read_step
        read = first_read + record * read_step
        length = lengths[entry]
        words = (length + 63) >> 6
        low_start = plane_starts[entry]
        source = seq_start[record]
        with_quality = quality_bits > 0
        quality_source = qual_start[record] if with_quality else 0
        quality_target = quality_starts[entry]
        low = np.uint64(0)
        high = np.uint64(0)
        position = 0
        while position < length:
            letter = data[source]
            source += 1
            if letter == 10 or letter == 13:
                continue
            code: Integer = np.int64(CODES[letter])
            score = np.int64(0)
            if code == AMBIGUOUS:
                ambiguous += 1
                # Depends on nothing but the read and the position, and looks random, so that runs
                # of ambiguous bases are not taken for a sequence that reads share.
                place = (np.uint64(read) << np.uint64(15)) | np.uint64(position)
                code = np.int64(mix64(place) & np.uint64(3))
            elif with_quality:
                score = max(score, np.int64(data[quality_source + position]) - phred_offset)
            bit = np.uint64(position & 63)
            low |= np.uint64(code & 1) << bit
            high |= np.uint64(code >> 1) << bit
            if with_quality:
                offset = position * quality_bits
                stored = bins[score]
                if stored == UNKNOWN:
                    unknown[0] += 1
                else:
                    qualities[quality_target + (offset >> 3)] |= np.uint8(stored << (offset & 7))
            position += 1
            if position & 63 == 0 or position == length:
                word = low_start + ((position - 1) >> 6)
                planes[word] = low
                planes[word + words] = high
                low = np.uint64(0)
                high = np.uint64(0)
    return ambiguous


@njit(nogil=True, cache=True)
def list_ambiguous(
    data: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    seq_end: NDArray[np.int64],
    first_read: int,
    read_step: int,
    reads: NDArray[np.uint32],
    positions: NDArray[np.int32],
) -> int:
    """List read and position of every ambiguous base of a batch, in order; return their number."""
    found = 0
    for record in range(len(seq_start)):
        position = 0
        for source in range(seq_start[record], seq_end[record]):
            letter = data[source]
            if letter == 10 or letter == 13:
                continue
            if CODES[letter] == AMBIGUOUS:
                reads[found] = first_read + record * read_step
                positions[found] = position
                found += 1
            position += 1
    return found
