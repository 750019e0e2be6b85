"""The merging kernel: pairs of records in, bytes of the output files out.

What becomes of a pair depends on its two reads alone, so threads may take any pairs. Letters are
brought into one case and everything but A, C, G and T becomes N, in all outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ngsgpu.merge.overlap import TOO_SHORT, best_overlap, pack
from ngsgpu.merge.params import Outward, Rules
from ngsgpu.merge.qualities import SCORES, QualityTables
from ngsgpu.sequence.types import Integer

# Counters of a run; the names are those of the statistics.
COUNTERS = (
    "pairs",
    "inward",
    "outward",
    "too_short",
    "dissimilar",
    "beyond_max_overlap",
    "overlap_bases",
    "overlap_mismatches",
    "overlap_unknown",
    "merged_bases",
    "trimmed_bases",
    "corrected_bases_1",
    "corrected_bases_2",
)
(
    PAIRS, INWARD, OUTWARD, SHORT, DISSIMILAR, BEYOND, OVERLAP_BASES, MISMATCHES, UNKNOWN, MERGED,
    TRIMMED, CORRECTED_1, CORRECTED_2,
) = range(len(COUNTERS))  # fmt: skip

_IGNORE = int(Outward.IGNORE)
_TRIM = int(Outward.TRIM)
_LF = 10
_PLUS = 43
_AT = 64
_SLASH = 47
_HASH = 35
_N = 78

MERGED_OUTPUT, FIRST_OUTPUT, SECOND_OUTPUT = range(3)


def _letter_tables() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """For each byte the letter that it is written as, and that of its complement."""
    letters = np.full(256, _N, dtype=np.uint8)
    complements = np.full(256, _N, dtype=np.uint8)
    for letter, complement in zip(b"ACGT", b"TGCA", strict=True):
        for byte in (letter, letter | 0x20):
            letters[byte] = letter
            complements[byte] = complement
    return letters, complements


LETTER, COMPLEMENT = _letter_tables()


class Mates(NamedTuple):
    """Records of one mate, as ``ngsgpu.io.batch.RecordBatch`` has them.

    Attributes:
        data: uint8, bytes of the file.
        header_start: int64[n].
        header_end: int64[n].
        seq_start: int64[n].
        qual_start: int64[n].
        seq_len: int32[n].
    """

    data: NDArray[np.uint8]
    header_start: NDArray[np.int64]
    header_end: NDArray[np.int64]
    seq_start: NDArray[np.int64]
    qual_start: NDArray[np.int64]
    seq_len: NDArray[np.int32]


class Outputs(NamedTuple):
    """Where a task writes.

    Attributes:
        merged: uint8, room for the merged records.
        first: uint8, room for first mates that stay alone.
        second: uint8, room for second mates; with ``interleaved`` all mates go to ``first``.
        wanted: whether pairs that stay are written.
        interleaved: whether their mates alternate in one output.
    """

    merged: NDArray[np.uint8]
    first: NDArray[np.uint8]
    second: NDArray[np.uint8]
    wanted: bool
    interleaved: bool


class Counts(NamedTuple):
    """What a task counts.

    Attributes:
        counters: int64[len(COUNTERS)].
        lengths: int64[2, longest + 1], merged reads of each length, from inward and outward pairs.
        inserts: int64[longest + 1], fragments of each length.
        overlaps: int64[longest + 1], overlaps of each length.
        densities: int64[101], overlaps by mismatches in percent of their known bases.
    """

    counters: NDArray[np.int64]
    lengths: NDArray[np.int64]
    inserts: NDArray[np.int64]
    overlaps: NDArray[np.int64]
    densities: NDArray[np.int64]


class _Read(NamedTuple):
    """A read in the direction of the fragment.

    Attributes:
        letters: uint8, ACGTN.
        words: the same as uint64.
        scores: uint8.
        planes: uint64[3, words].
    """

    letters: NDArray[np.uint8]
    words: NDArray[np.uint64]
    scores: NDArray[np.uint8]
    planes: NDArray[np.uint64]


@njit(nogil=True, cache=True)
def _room(longest: int) -> _Read:
    """Room for a read of up to ``longest`` bases."""
    words = (longest + 63) // 64 + 1
    letters = np.empty(64 * words, dtype=np.uint8)
    return _Read(
        letters,
        letters.view(np.uint64),
        np.empty(64 * words, dtype=np.uint8),
        np.empty((3, words + 1), dtype=np.uint64),
    )


@njit(nogil=True, cache=True)
def _load(mates: Mates, i: Integer, offset: Integer, read: _Read) -> None:
    """Take a first read as it is."""
    start = mates.seq_start[i]
    qualities = mates.qual_start[i]
    for k in range(mates.seq_len[i]):
        read.letters[k] = LETTER[mates.data[start + k]]
        read.scores[k] = max(np.int64(mates.data[qualities + k]) - offset, 0)


@njit(nogil=True, cache=True)
def _load_reversed(mates: Mates, i: Integer, offset: Integer, read: _Read) -> None:
    """Take the reverse complement of a second read."""
    last = mates.seq_start[i] + mates.seq_len[i] - 1
    last_quality = mates.qual_start[i] + mates.seq_len[i] - 1
    for k in range(mates.seq_len[i]):
        read.letters[k] = COMPLEMENT[mates.data[last - k]]
        read.scores[k] = max(np.int64(mates.data[last_quality - k]) - offset, 0)


@njit(nogil=True, cache=True, inline="always")
def _copy(
    out: NDArray[np.uint8], at: Integer, data: NDArray[np.uint8], start: Integer, end: Integer
) -> int:
    """Append bytes; return where the next go."""
    for i in range(end - start):
        out[at + i] = data[start + i]
    return at + max(0, end - start)


@njit(nogil=True, cache=True, inline="always")
def _copy_scores(
    out: NDArray[np.uint8], at: Integer, scores: NDArray[np.uint8], start: Integer, end: Integer,
    offset: Integer,
) -> int:  # fmt: skip
    """Append scores as characters; return where the next go."""
    for i in range(end - start):
        out[at + i] = scores[start + i] + np.uint8(offset)
    return at + max(0, end - start)


@njit(nogil=True, cache=True)
def _header(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer, of_pair: bool) -> int:
    """Append a header line without the white space at its end.

    That of a pair is the first mate's up to its last slash, and beyond the character after the
    slash if a number sign follows that, as in ``name/1#ACGT``.
    """
    start = mates.header_start[i]
    end = mates.header_end[i]
    while end > start and (mates.data[end - 1] == 32 or 9 <= mates.data[end - 1] <= 13):
        end -= 1
    out[at] = _AT
    at += 1
    slash = end
    if of_pair:
        slash -= 1
        while slash >= start and mates.data[slash] != _SLASH:
            slash -= 1
        if slash < start:
            slash = end
    at = _copy(out, at, mates.data, start, slash)
    if slash + 2 < end and mates.data[slash + 2] == _HASH:
        at = _copy(out, at, mates.data, slash + 2, end)
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True, inline="always")
def _between(out: NDArray[np.uint8], at: Integer) -> int:
    """Append what lies between bases and qualities."""
    out[at] = _LF
    out[at + 1] = _PLUS
    out[at + 2] = _LF
    return at + 3


@njit(nogil=True, cache=True)
def _unchanged(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer) -> int:
    """Append a record whose read stays alone."""
    at = _header(mates, i, out, at, False)
    start, length = mates.seq_start[i], mates.seq_len[i]
    for k in range(length):
        out[at + k] = LETTER[mates.data[start + k]]
    at = _between(out, at + length)
    at = _copy(out, at, mates.data, mates.qual_start[i], mates.qual_start[i] + length)
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True)
def _consensus(
    first: _Read,
    start: Integer,
    second: _Read,
    length: Integer,
    tables: QualityTables,
    prefer_first: bool,
    never_unknown: bool,
    letters: NDArray[np.uint8],
    scores: NDArray[np.uint8],
) -> tuple[int, int]:
    """Decide the bases of an overlap; return how many mismatch, and how many are unknown.

    Of two bases the one with the higher score is taken; of two with the same score the first
    read's if ``prefer_first``, else the second's unless that is N. With ``never_unknown`` a known
    base is taken, with its own score, where the other is N, and of two Ns the lower score.

    Args:
        first: the read that begins first.
        start: where the other begins in it.
        second: the other read.
        length: of the overlap.
        tables: of scores.
        prefer_first: see above.
        never_unknown: see above.
        letters: uint8[length], the decided bases.
        scores: uint8[length], their scores.
    """
    mismatches = unknown = 0
    for k in range(length):
        base1 = first.letters[start + k]
        base2 = second.letters[k]
        score1 = np.int64(first.scores[start + k])
        score2 = np.int64(second.scores[k])
        is_unknown = base1 == _N or base2 == _N
        unknown += is_unknown
        if is_unknown and never_unknown:
            if base1 == base2:
                letters[k], scores[k] = base1, min(score1, score2)
            elif base1 == _N:
                letters[k], scores[k] = base2, score2
            else:
                letters[k], scores[k] = base1, score1
        elif base1 == base2:
            letters[k] = base1
            scores[k] = tables.agree[score1 * SCORES + score2]
        else:
            takes_first = score1 > score2 or (
                score1 == score2 and (prefer_first or bool(base2 == _N))
            )
            letters[k] = base1 if takes_first else base2
            scores[k] = tables.differ[score1 * SCORES + score2]
            mismatches += not is_unknown
    return mismatches, unknown


@njit(nogil=True, cache=True)
def _merged(
    mates1: Mates,
    i: Integer,
    first: _Read,
    before: Integer,
    overlap: _Read,
    length: Integer,
    second: _Read,
    after: Integer,
    after_end: Integer,
    offset: Integer,
    out: NDArray[np.uint8],
    at: Integer,
) -> int:
    """Append a merged record: ``before`` bases of the first, the overlap, the end of the second."""
    at = _header(mates1, i, out, at, True)
    at = _copy(out, at, first.letters, 0, before)
    at = _copy(out, at, overlap.letters, 0, length)
    at = _copy(out, at, second.letters, after, after_end)
    at = _between(out, at)
    at = _copy_scores(out, at, first.scores, 0, before, offset)
    at = _copy_scores(out, at, overlap.scores, 0, length, offset)
    at = _copy_scores(out, at, second.scores, after, after_end, offset)
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True)
def _corrected(
    mates: Mates,
    i: Integer,
    read: _Read,
    length: Integer,
    overlap: _Read,
    start: Integer,
    overlap_length: Integer,
    cut: bool,
    is_reverse: bool,
    offset: Integer,
    out: NDArray[np.uint8],
    at: Integer,
) -> tuple[int, int]:
    """Append a read whose bases from ``start`` on are those of the overlap.

    Args:
        mates: the records.
        i: the record.
        read: the read in the direction of the fragment; changed.
        length: its bases.
        overlap: the decided bases.
        start: where in ``read`` they belong.
        overlap_length: how many.
        cut: whether nothing but the overlap is kept.
        is_reverse: whether ``read`` is the reverse complement of the record's.
        offset: of quality characters.
        out: where to write.
        at: from where on.

    Returns:
        (where the next bytes go, number of bases changed).
    """
    changed = 0
    for k in range(overlap_length):
        changed += read.letters[start + k] != overlap.letters[k]
        read.letters[start + k] = overlap.letters[k]
        read.scores[start + k] = overlap.scores[k]
    begin = start if cut else 0
    end = start + overlap_length if cut else length
    at = _header(mates, i, out, at, False)
    size = end - begin
    if is_reverse:
        for k in range(size):
            out[at + k] = COMPLEMENT[read.letters[end - 1 - k]]
        at = _between(out, at + size)
        for k in range(size):
            out[at + k] = read.scores[end - 1 - k] + np.uint8(offset)
        at += size
    else:
        at = _copy(out, at, read.letters, begin, end)
        at = _between(out, at)
        at = _copy_scores(out, at, read.scores, begin, end, offset)
    out[at] = _LF
    return at + 1, changed


@njit(nogil=True, cache=True)
def merge_records(
    rules: Rules,
    tables: QualityTables,
    mates1: Mates,
    mates2: Mates,
    begin: int,
    end: int,
    outputs: Outputs,
    counts: Counts,
) -> tuple[int, int, int]:
    """Merge the pairs ``begin`` up to ``end``; return the bytes written to each output.

    Args:
        rules: what decides.
        tables: scores of merged bases.
        mates1: first mates.
        mates2: second mates.
        begin: first pair.
        end: end of the pairs.
        outputs: where to write.
        counts: added to.
    """
    longest = 1
    for i in range(begin, end):
        longest = max(longest, mates1.seq_len[i], mates2.seq_len[i])
    first, second, overlap = _room(longest), _room(longest), _room(longest)
    best = np.empty(2, dtype=np.float32)
    offset = rules.phred_offset
    counters = counts.counters
    at0 = at1 = at2 = 0
    for i in range(begin, end):
        length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
        _load(mates1, i, offset, first)
        _load_reversed(mates2, i, offset, second)
        known1 = pack(first.words, length1, first.planes)
        known2 = pack(second.words, length2, second.planes)
        known = known1 and known2
        best[0] = rules.max_mismatch_density
        best[1] = -1
        place = best_overlap(
            first.planes, length1, second.planes, length2, known, first.scores, second.scores,
            rules.min_overlap, rules.max_overlap, best,
        )  # fmt: skip
        outward = False
        if rules.outward != _IGNORE and not (place >= 0 and best[0] == 0):
            other = best_overlap(
                second.planes, length2, first.planes, length1, known, second.scores, first.scores,
                rules.min_outward, rules.max_overlap, best,
            )  # fmt: skip
            outward = bool(other >= 0)
            place = other if outward else max(place, other)
        counters[PAIRS] += 1
        if place < 0:
            counters[SHORT if place == TOO_SHORT else DISSIMILAR] += 1
            if outputs.wanted:
                at1 = _unchanged(mates1, i, outputs.first, at1)
                if outputs.interleaved:
                    at1 = _unchanged(mates2, i, outputs.first, at1)
                else:
                    at2 = _unchanged(mates2, i, outputs.second, at2)
            continue
        length = (length2 if outward else length1) - place
        if outward:
            mismatches, unknown = _consensus(
                second, place, first, length, tables, False, rules.never_unknown != 0,
                overlap.letters, overlap.scores,
            )  # fmt: skip
        else:
            mismatches, unknown = _consensus(
                first, place, second, length, tables, rules.prefer_first != 0,
                rules.never_unknown != 0, overlap.letters, overlap.scores,
            )  # fmt: skip
        cut = outward and rules.outward == _TRIM
        total = length if cut else length1 + length2 - length
        counters[OUTWARD if outward else INWARD] += 1
        counters[BEYOND] += length > rules.max_overlap
        counters[OVERLAP_BASES] += length
        counters[MISMATCHES] += mismatches
        counters[UNKNOWN] += unknown
        counters[MERGED] += total
        counters[TRIMMED] += length1 + length2 - 2 * length if cut else 0
        counts.lengths[1 if outward else 0, total] += 1
        counts.inserts[length if outward else total] += 1
        counts.overlaps[length] += 1
        counts.densities[100 * mismatches // max(1, length - unknown)] += 1
        if rules.correct_only == 0:
            if outward:
                at0 = _merged(
                    mates1, i, second, 0 if cut else place, overlap, length, first,
                    length, length if cut else length1, offset, outputs.merged, at0,
                )  # fmt: skip
            else:
                at0 = _merged(
                    mates1, i, first, place, overlap, length, second, length, length2, offset,
                    outputs.merged, at0,
                )  # fmt: skip
            continue
        if outputs.wanted:
            at1, changed1 = _corrected(
                mates1, i, first, length1, overlap, 0 if outward else place, length, cut, False,
                offset, outputs.first, at1,
            )  # fmt: skip
            target, at = outputs.second, at2
            if outputs.interleaved:
                target, at = outputs.first, at1
            at, changed2 = _corrected(
                mates2, i, second, length2, overlap, place if outward else 0, length, cut, True,
                offset, target, at,
            )  # fmt: skip
            if outputs.interleaved:
                at1 = at
            else:
                at2 = at
            counters[CORRECTED_1] += changed1
            counters[CORRECTED_2] += changed2
    return at0, at1, at2
