"""Finds the overlap of a pair by likelihood.

Every placement of the mates on each other is compared with chance: equal bases speak for it, the
more the rarer and the better they are, different bases against it, the more the better they are
(``qualities.evidence``), and the length of its fragment for or against it, as the first pairs have
it (``sample``). The placement with most evidence is taken if that is enough, if the next-best has
less by enough (in repeats several are about as good), and if its mates differ by no more than their
qualities let expect: copies of a repeat are much more alike than chance. Another placement that is
no chance either must have less of that evidence, too: a tandem repeat overlaps itself in the more
bases the further, so that these do not tell. All are integers.

Counting mismatches 64 bases at a time (``overlap``) leaves few placements to be looked at closely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit
from ngsgpu.merge.overlap import HIDDEN, HIGH, LOW, NOTHING, TOO_SHORT, shifted
from ngsgpu.merge.qualities import SCORES, Tables
from ngsgpu.merge.records import Read, load_pair, recalibrate
from ngsgpu.merge.rules import Rules
from ngsgpu.sequence.codec import popcount

UNDECIDED = -3
"""The next-best overlap is about as good, or the reads are from copies of a repeat."""

BEST, NEXT, RELATED = range(3)
"""Rows of the evidence found."""

_N = 78
_LEAST = -(1 << 30)


@njit(nogil=True, cache=True)
def _similar(
    left: NDArray[np.uint64],
    right: NDArray[np.uint64],
    start: Integer,
    length: Integer,
    known: bool,
    shortest: Integer,
    density: Integer,
) -> tuple[Integer, Integer]:
    """Known bases and mismatches of an overlap, or (0, 0) if there are too many or too few.

    Args:
        left: planes of the read that begins first.
        right: planes of the other.
        start: where that begins.
        length: of the overlap.
        known: whether all bases of both are known.
        shortest: fewest known bases.
        density: most mismatches, in 1024ths of the known bases.
    """
    limit = (density * length) >> 10
    shift = np.uint64(start & 63)
    at = start >> 6
    words = (length + 63) >> 6
    mismatches, overlap = np.int64(0), np.int64(length)
    for word in range(words):
        different = (shifted(left[LOW], at + word, shift) ^ right[LOW, word]) | (
            shifted(left[HIGH], at + word, shift) ^ right[HIGH, word]
        )
        inside = ~np.uint64(0)
        if word == words - 1:
            inside >>= np.uint64(63 - ((length - 1) & 63))
        if not known:
            hidden = (shifted(left[HIDDEN], at + word, shift) | right[HIDDEN, word]) & inside
            overlap -= np.int64(popcount(hidden))
            inside &= ~hidden
        mismatches += np.int64(popcount(different & inside))
        if mismatches > limit:
            return 0, 0
    if overlap < shortest or 1024 * mismatches > density * overlap:
        return 0, 0
    return overlap, mismatches


@njit(nogil=True, cache=True, inline="always")
def _first_mismatches(
    left: NDArray[np.uint64], right: NDArray[np.uint64], start: Integer, length: Integer
) -> Integer:
    """Mismatches in the first 64 bases of an overlap of known bases, or all if it is shorter."""
    at, shift = start >> 6, np.uint64(start & 63)
    different = (shifted(left[LOW], at, shift) ^ right[LOW, 0]) | (
        shifted(left[HIGH], at, shift) ^ right[HIGH, 0]
    )
    return np.int64(popcount(different << np.uint64(64 - min(length, 64))))


@njit(nogil=True, cache=True)
def _evidence(
    left: Read, start: Integer, right: Read, length: Integer, tables: Tables
) -> tuple[Integer, Integer]:
    """What the bases of an overlap say for it, against chance, and against related sequences."""
    chance, related = np.int64(0), np.int64(0)
    for k in range(length):
        one, two = left.letters[start + k], right.letters[k]
        cell = np.int64(left.scores[start + k]) * SCORES + np.int64(right.scores[k])
        if one == two:
            if one != _N:
                code = np.int64(((one >> 1) & 3) ^ ((one >> 2) & 1))
                chance += np.int64(tables.match[cell]) + np.int64(tables.base[code])
                related += np.int64(tables.alike[cell])
        elif one != _N and two != _N:
            chance += np.int64(tables.mismatch[cell])
            related += np.int64(tables.unlike[cell])
    return chance, related


@njit(nogil=True, cache=True)
def likeliest(
    first: Read,
    length1: Integer,
    second: Read,
    length2: Integer,
    known: bool,
    rules: Rules,
    tables: Tables,
    found: NDArray[np.int64],
) -> Integer:
    """The best overlap of a pair.

    Args:
        first: the first read.
        length1: its bases.
        second: the second read, in the direction of the first.
        length2: its bases.
        known: whether all bases of both are known.
        rules: what decides.
        tables: of evidence.
        found: int64[3], the evidence of the best overlap, of the next-best if that matters, and of
            the best one of related sequences; set.

    Returns:
        Twice the place where one read begins in the other, plus one if the second is the one that
        begins first; or NOTHING, UNDECIDED, or TOO_SHORT if a read has too few known bases.
    """
    shortest = rules.min_overlap
    # What has less can neither win nor come near to what wins.
    floor = np.int64(rules.accept - rules.lead - 1)
    best, second_best, copy, place = np.int64(_LEAST), floor, np.int64(_LEAST), np.int64(NOTHING)
    # Evidence against copies of a repeat: the best overlap's, and the most of other strong ones.
    plain, rival = np.int64(0), np.int64(_LEAST)
    last = len(tables.prior) - 1
    for direction in range(2):
        left, right = (second, first) if direction else (first, second)
        left_length = length2 if direction else length1
        right_length = length1 if direction else length2
        begin = direction
        if not rules.contained:
            begin = max(begin, left_length - right_length)
        for start in range(begin, left_length - shortest + 1):
            length = min(left_length - start, right_length)
            if known and _first_mismatches(left.planes, right.planes, start, length) > (
                (rules.density * length) >> 10
            ):
                continue
            overlap, mismatches = _similar(
                left.planes, right.planes, start, length, known, shortest, rules.density
            )
            if overlap == 0:
                continue
            fragment = length2 - start if direction else start + length2
            total = np.int64(tables.prior[min(fragment, last)])
            most = (overlap - mismatches) * rules.most_match + mismatches * rules.most_mismatch
            if total + most <= min(second_best, rules.strong - 1):
                continue
            chance, related = _evidence(left, start, right, length, tables)
            total += chance
            related += np.int64(tables.usual[min(fragment, last)])
            if related < rules.related:
                # It cannot win, but may be as good as what does.
                second_best, copy = max(second_best, total), max(copy, total)
            elif total > best:
                if best >= rules.strong:
                    rival = max(rival, plain)
                best, second_best, plain = total, max(best, second_best), related
                place = np.int64(2 * start + direction)
            else:
                second_best = max(second_best, total)
                if total >= rules.strong:
                    rival = max(rival, related)
    found[BEST], found[NEXT], found[RELATED] = best, second_best, copy
    if best < rules.accept:
        if length1 < shortest or length2 < shortest:
            return TOO_SHORT
        if not known and min(_known(first, length1), _known(second, length2)) < shortest:
            return TOO_SHORT
        return UNDECIDED if copy >= rules.accept else NOTHING
    if best - second_best < rules.lead or plain - rival < rules.lead:
        return UNDECIDED
    return place


@njit(nogil=True, cache=True, inline="always")
def second_start(code: Integer) -> Integer:
    """Where the second read begins in the first one (negative: before it), from ``likeliest``."""
    return -(code >> 1) if code & 1 else code >> 1


@njit(nogil=True, cache=True)
def _known(read: Read, length: Integer) -> Integer:
    """Known bases of a read."""
    count = np.int64(length)
    for word in range((length + 63) >> 6):
        count -= np.int64(popcount(read.planes[HIDDEN, word]))
    return count


@njit(nogil=True, cache=True)
def likeliest_of_pair(
    mates1: Mates,
    mates2: Mates,
    i: Integer,
    rules: Rules,
    tables: Tables,
    first: Read,
    second: Read,
    found: NDArray[np.int64],
) -> Integer:
    """Load a pair with calibrated scores; return its best overlap as ``likeliest`` does."""
    known = load_pair(mates1, mates2, i, rules.phred_offset, first, second)
    length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
    recalibrate(first, length1, tables, 0, False)
    recalibrate(second, length2, tables, 1, True)
    return likeliest(first, length1, second, length2, known, rules, tables, found)
