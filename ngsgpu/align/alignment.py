"""Aligns candidates to the anchor: shifted Hamming distance, selection, and the two filters.

A candidate is tried only at the shifts implied by shared minimum k-mers. Its score is the number of
mismatches plus the bases of both reads outside the overlap; the smallest score wins, then the
smaller shift, then the forward orientation (CARE tries every shift, section 4.4.5).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.rules import Rules
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.cpu import FoundArrays
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import plane_start, quality_code, quality_start, read_length
from ngsgpu.readset.qualities import Levels, scores_of
from ngsgpu.sequence.codec import popcount, reverse_complement_plane
from ngsgpu.sequence.hashing import find_cell

WEIGHT_BITS = 14
"""A weight of 1 is ``1 << WEIGHT_BITS``: 65,536 full weights still fit 31 bits."""

Q20_WEIGHT = math.floor(0.99 * (1 << WEIGHT_BITS))
"""Weight of a Q20 base."""

Q30_WEIGHT = math.floor(0.999 * (1 << WEIGHT_BITS))
"""Weight of a Q30 base."""

MIN_QUALITY_WEIGHT = 0.001

MIN_COMPARED = 20
"""Bases of an overlap that must be compared, unless shorter overlaps are allowed."""


def quality_weights(quality_bits: int, levels: Levels = ()) -> NDArray[np.int32]:
    """Weight of each stored quality code: 1 minus the error probability, at least 0.001.

    Args:
        quality_bits: bits of a code.
        levels: scores of the codes if these are all that occur.

    Returns:
        int32[codes] in 2^-14; one entry of weight 1 where no qualities are kept.
    """
    if quality_bits == 0:
        return np.array([1 << WEIGHT_BITS], dtype=np.int32)
    scores = scores_of(quality_bits, levels).astype(np.float64)
    weights = np.maximum(MIN_QUALITY_WEIGHT, 1 - 10 ** (-scores / 10))
    return np.floor(weights * (1 << WEIGHT_BITS) + 0.5).astype(np.int32)


class Alignments(NamedTuple):
    """The candidates of one anchor, one entry each.

    Attributes:
        read: int64, read number.
        shift: int64, column of the candidate's first base, the anchor's first base being 0.
        reverse_complemented: int64, 1 if the candidate is aligned as its reverse complement.
        mismatches: int64, in the overlap.
        overlap: int64, in bases.
        score: int64, mismatches + bases outside the overlap.
        weight: int64, 1 - sqrt(mismatches / (overlap x largest ratio)) in 2^-14.
        kept: int64, 1 if filter and refinement keep the candidate.
        with_mate: int64, 1 if the candidate's mate is a candidate of the anchor's mate.
    """

    read: NDArray[np.int64]
    shift: NDArray[np.int64]
    reverse_complemented: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    overlap: NDArray[np.int64]
    score: NDArray[np.int64]
    weight: NDArray[np.int64]
    kept: NDArray[np.int64]
    with_mate: NDArray[np.int64]

    @classmethod
    def allocate(cls, capacity: int) -> Alignments:
        """Room for ``capacity`` candidates."""
        return cls(*(np.zeros(capacity, dtype=np.int64) for _ in cls._fields))


@njit(nogil=True, cache=True)
def mismatches_at(
    anchor_planes: NDArray[np.uint64],
    anchor_length: Integer,
    planes: NDArray[np.uint64],
    start: Integer,
    length: Integer,
    shift: Integer,
    compared: NDArray[np.uint64],
) -> tuple[np.int64, np.int64]:
    """Mismatches and compared bases in the overlap of the anchor with a read at ``shift``.

    ``planes[start:]`` holds the read's two planes, ``anchor_planes`` the anchor's, and ``compared``
    a bit for each of its bases that is compared.
    """
    anchor_words = (anchor_length + 63) >> 6
    words = (length + 63) >> 6
    begin = max(0, shift)
    end = min(anchor_length, shift + length)
    total = np.uint64(0)
    bases = np.uint64(0)
    for word in range(begin >> 6, (end + 63) >> 6):
        # The 64 bases of the read below this word of the anchor.
        first = word * 64 - shift
        source = first >> 6
        bit = np.uint64(first & 63)
        low = np.uint64(0)
        high = np.uint64(0)
        if 0 <= source < words:
            low = np.uint64(planes[start + source] >> bit)
            high = np.uint64(planes[start + words + source] >> bit)
        if bit != np.uint64(0) and -1 <= source < words - 1:
            back = np.uint64(64) - bit
            low |= planes[start + source + 1] << back
            high |= planes[start + words + source + 1] << back
        different = (anchor_planes[word] ^ low) | (anchor_planes[anchor_words + word] ^ high)
        inside = compared[word]
        if word * 64 < begin:
            inside &= ~np.uint64(0) << np.uint64(begin & 63)
        if word * 64 + 64 > end:
            inside &= ~np.uint64(0) >> np.uint64(word * 64 + 64 - end)
        total += popcount(different & inside)
        bases += popcount(inside)
    return np.int64(total), np.int64(bases)


@njit(nogil=True, cache=True)
def alignment_weight(mismatches: Integer, overlap: Integer, max_permille: int) -> np.int64:
    """1 - sqrt(mismatches / (overlap x largest ratio)), in 2^-14, rounded up.

    The root of an integer below 2^52, rounded down, is exact in double precision everywhere.
    """
    one = 1 << WEIGHT_BITS
    square = (mismatches * 1000 << (2 * WEIGHT_BITS)) // (overlap * max_permille)
    return one - np.int64(np.floor(np.sqrt(np.float64(square))))


@njit(nogil=True, cache=True)
def mark_compared(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    anchor: Integer,
    compared: NDArray[np.uint64],
) -> None:
    """Set the bits of the anchor's bases that are good enough to be compared with others."""
    length = read_length(reads, anchor)
    quality = quality_start(reads, anchor)
    for word in range((length + 63) >> 6):
        bits = np.uint64(0)
        for bit in range(min(np.int64(64), length - 64 * word)):
            if weights[quality_code(reads, quality, 64 * word + bit)] >= rules.compared_weight:
                bits |= np.uint64(1) << np.uint64(bit)
        compared[word] = bits


@njit(nogil=True, cache=True)
def table_size(entries: Integer) -> int:
    """A power of two, at least twice ``entries``."""
    size = 64
    while size < 2 * entries:
        size *= 2
    return size


@njit(nogil=True, cache=True)
def align_candidates(
    reads: ReadArrays,
    rules: Rules,
    anchor_planes: NDArray[np.uint64],
    anchor_length: Integer,
    compared: NDArray[np.uint64],
    found: FoundArrays,
    count: Integer,
    reverse_complemented: NDArray[np.uint64],
    result: Alignments,
) -> int:
    """Align the found entries to the anchor and keep the best one of each read.

    Args:
        reads: the read arrays.
        rules: the parameters as integers.
        anchor_planes: the anchor's two planes, from index 0.
        anchor_length: in bases.
        compared: uint64, a bit for each of the anchor's bases that is compared.
        found: the entries (``ngsgpu.minhash.cpu.FoundArrays``).
        count: number of entries.
        reverse_complemented: uint64 workspace for the planes of a reverse complement.
        result: the candidates (``Alignments``).

    Returns:
        The number of candidates with a valid alignment, in the order of the tables.
    """
    min_overlap = max(rules.min_overlap, anchor_length * rules.min_overlap_permille // 1000)
    size = table_size(count)
    cells = found.cells
    aligned = 0
    for i in range(count):
        key = found.key[i]
        read = np.int64(key >> np.uint64(17))
        shift = np.int64((key >> np.uint64(1)) & np.uint64(0xFFFF)) - 32768
        is_reverse_complemented = np.int64(key & np.uint64(1))
        length = read_length(reads, read)
        overlap = min(anchor_length, shift + length) - max(np.int64(0), shift)
        if overlap < min_overlap:
            continue
        start = plane_start(reads, read)
        if is_reverse_complemented:
            words = (length + 63) >> 6
            reverse_complement_plane(reads.planes, start, length, reverse_complemented, 0)
            reverse_complement_plane(
                reads.planes, start + words, length, reverse_complemented, words
            )
            mismatches, overlap = mismatches_at(
                anchor_planes, anchor_length, reverse_complemented, 0, length, shift, compared
            )
        else:
            mismatches, overlap = mismatches_at(
                anchor_planes, anchor_length, reads.planes, start, length, shift, compared
            )
        if (
            overlap < min(MIN_COMPARED, rules.min_overlap)
            or mismatches >= overlap * rules.max_mismatch_permille // 1000
        ):
            continue
        score = mismatches + anchor_length + length - 2 * overlap
        cell = find_cell(cells, size, result.read, read)
        entry = cells[cell]
        if entry < 0:
            entry = aligned
            cells[cell] = aligned
            found.used[aligned] = cell
            aligned += 1
        elif score > result.score[entry] or (
            score == result.score[entry]
            and (shift, is_reverse_complemented)
            > (result.shift[entry], result.reverse_complemented[entry])
        ):
            continue
        result.read[entry] = read
        result.shift[entry] = shift
        result.reverse_complemented[entry] = is_reverse_complemented
        result.mismatches[entry] = mismatches
        result.overlap[entry] = overlap
        result.score[entry] = score
    for i in range(aligned):
        cells[found.used[i]] = -1
        result.weight[i] = alignment_weight(
            result.mismatches[i], result.overlap[i], rules.max_mismatch_permille
        )
        result.kept[i] = 1
        result.with_mate[i] = 0
    return aligned


@njit(nogil=True, cache=True)
def mark_mates(
    found: FoundArrays,
    first: Alignments,
    first_count: Integer,
    second: Alignments,
    second_count: Integer,
) -> None:
    """Mark the candidates of two mates that are mates of each other."""
    if first_count == 0 or second_count == 0:
        return
    size = table_size(second_count)
    cells = found.cells
    for i in range(second_count):
        cell = find_cell(cells, size, second.read, second.read[i])
        cells[cell] = i
        found.used[i] = cell
    for i in range(first_count):
        entry = cells[find_cell(cells, size, second.read, first.read[i] ^ 1)]
        if entry >= 0:
            first.with_mate[i] = 1
            second.with_mate[entry] = 1
    for i in range(second_count):
        cells[found.used[i]] = -1


@njit(nogil=True, cache=True)
def filter_candidates(rules: Rules, candidates: Alignments, count: Integer) -> Integer:
    """Drop poorly aligned candidates; return how many remain (section 4.3.2).

    Paired: candidates found together with their mates remain, the others need few mismatches.
    Single: the strictest of three classes with enough reads remains; if there is none, none remain.
    """
    permille = rules.pair_mismatch_permille
    if not rules.paired:
        permille = 0
        for bound in rules.bin_permille:
            inside = 0
            for i in range(count):
                inside += candidates.mismatches[i] * 1000 < bound * candidates.overlap[i]
            if inside >= rules.bin_reads:
                permille = bound
                break
    kept = 0
    for i in range(count):
        good = candidates.mismatches[i] * 1000 < permille * candidates.overlap[i]
        candidates.kept[i] = 1 if good or candidates.with_mate[i] else 0
        kept += candidates.kept[i]
    return kept
