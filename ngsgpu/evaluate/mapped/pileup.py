"""Numba kernels that lay reads over the reference and count bases by position.

All work in the direction of the reference: base ``q`` of a read that lies on the reverse strand is
the complement of the read's base ``length - 1 - q``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.mapped.aligner import Alignments
from ngsgpu.evaluate.truth.indels import oriented_code
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import AMBIGUOUS

PLAIN, GAPPED, BAD = range(3)
"""What ``locate`` says of an alignment: no gap or clipped end; with one; of a read of another
length."""


class Reads(NamedTuple):
    """Bases and qualities of some reads, as passed to kernels.

    Attributes:
        data: uint8, text of bases.
        start: int64[n], first base of each.
        length: int64[n].
        quality: int64[n], first quality in ``scores``; -1 without.
        scores: uint8, text of qualities, Phred+33.
    """

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    quality: NDArray[np.int64]
    scores: NDArray[np.uint8]


@njit(nogil=True, cache=True)
def locate(aligned: Alignments, row: int, length: int, where: NDArray[np.int64]) -> Integer:
    """Write the position under each base of a read, -1 where it has none; say how it aligns."""
    where[:length] = -1
    position = np.int64(aligned.place[row])
    kind = PLAIN
    q = np.int64(0)
    for i in range(aligned.cigar_start[row], aligned.cigar_start[row + 1]):
        size = np.int64(aligned.cigar[i] >> np.uint32(4))
        operation = aligned.cigar[i] & np.uint32(15)
        if operation == 0 or operation == 7 or operation == 8:  # M, =, X
            if q + size > length:
                return BAD
            for step in range(size):
                where[q + step] = position + step
            q += size
            position += size
        else:
            kind = GAPPED
            if operation == 2 or operation == 3:  # D, N
                position += size
            elif operation != 6:  # I, S, H
                q += size
    return kind if q == length else BAD


@njit(nogil=True, cache=True)
def add_gaps(aligned: Alignments, row: int, gaps: NDArray[np.uint32]) -> None:
    """Count the insertions before a position, and the deletions of it or right behind it."""
    position = np.int64(aligned.place[row])
    for i in range(aligned.cigar_start[row], aligned.cigar_start[row + 1]):
        size = np.int64(aligned.cigar[i] >> np.uint32(4))
        operation = aligned.cigar[i] & np.uint32(15)
        if operation == 0 or operation == 7 or operation == 8:
            position += size
        elif operation == 1 and position < len(gaps):
            gaps[position] += np.uint32(1)
        elif operation == 2:
            for step in range(size):
                gaps[position + step] += np.uint32(1)
            position += size
        elif operation == 3:
            position += size


@njit(nogil=True, cache=True)
def score(reads: Reads, i: int, reverse: bool, q: int) -> Integer:
    """Quality of base ``q``; the highest there is for reads without qualities."""
    if reads.quality[i] < 0:
        return 93
    k = reads.length[i] - 1 - q if reverse else q
    return np.int64(reads.scores[reads.quality[i] + k]) - 33


@njit(nogil=True, cache=True)
def called(
    codes: NDArray[np.uint8],
    bases: Reads,
    qualities: Reads,
    i: int,
    reverse: bool,
    q: int,
    min_quality: int,
) -> Integer:
    """Base ``q`` as a code, ``AMBIGUOUS`` where its quality is below the least that counts."""
    if score(qualities, i, reverse, q) < min_quality:
        return AMBIGUOUS
    return np.int64(oriented_code(codes, bases.data, bases.start[i], bases.length[i], reverse, q))


@njit(nogil=True, cache=True)
def add_agreeing(
    where: NDArray[np.int64],
    calls: NDArray[np.int64],
    lengths: NDArray[np.int64],
    agreeing: NDArray[np.uint32],
) -> None:
    """Count the positions at which both mates of a pair have the same base.

    Args:
        where: int64[2, longest], position under each base, ascending but for -1.
        calls: int64[2, longest], the bases; ``AMBIGUOUS`` ones agree with nothing.
        lengths: int64[2], bases of each mate.
        agreeing: uint32[positions, 4], incremented.
    """
    a = b = 0
    while a < lengths[0] and b < lengths[1]:
        if where[0, a] < 0 or (0 <= where[0, a] < where[1, b]):
            a += 1
        elif where[1, b] < where[0, a]:
            b += 1
        else:
            base = calls[0, a]
            if base == calls[1, b] and base < AMBIGUOUS:
                agreeing[where[0, a], base] += np.uint32(1)
            a += 1
            b += 1


@njit(nogil=True, cache=True)
def pile_up(
    codes: NDArray[np.uint8],
    mates: tuple[Reads, Reads],
    group: int,
    aligned: Alignments,
    min_quality: int,
    where: NDArray[np.int64],
    calls: NDArray[np.int64],
    counts: NDArray[np.uint32],
    agreeing: NDArray[np.uint32],
    gaps: NDArray[np.uint32],
) -> int:
    """Count the bases of reads, and of pairs whose mates agree, at each position.

    Args:
        codes: uint8[256], letter to code.
        mates: the reads; twice the same if they are single.
        group: 2 for pairs, 1 for single reads.
        aligned: of these reads, mates in turn.
        min_quality: bases of lower quality do not count.
        where: int64[2, longest], scratch.
        calls: int64[2, longest], scratch.
        counts: uint32[positions, 4], incremented.
        agreeing: uint32[positions, 4], incremented.
        gaps: uint32[positions], reads with an insertion or a deletion there, incremented.

    Returns:
        -1, or the row of the first alignment that is not of its read.
    """
    lengths = np.zeros(2, dtype=np.int64)
    for i in range(len(mates[0].start)):
        for m in range(group):
            reads = mates[m]
            row = i * group + m
            lengths[m] = 0
            if aligned.place[row] < 0:
                continue
            if locate(aligned, row, reads.length[i], where[m]) == BAD:
                return row
            add_gaps(aligned, row, gaps)
            lengths[m] = reads.length[i]
            reverse = aligned.reverse[row]
            for q in range(lengths[m]):
                calls[m, q] = called(codes, reads, reads, i, reverse, q, min_quality)
                if where[m, q] >= 0 and calls[m, q] < AMBIGUOUS:
                    counts[where[m, q], calls[m, q]] += np.uint32(1)
        if group == 2:
            add_agreeing(where, calls, lengths, agreeing)
    return -1
