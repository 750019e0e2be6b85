"""Finds the overlap of a pair by likelihood.

Every placement of the mates on each other is compared with chance: equal bases speak for it, the
more the rarer and the better they are, different bases against it, the more the better they are
(``qualities.evidence``), and the length of its fragment for or against it, as the first pairs have
it (``sample``). The placement with most evidence is taken if that is enough, if the next-best has
less by enough, and if its mates differ by no more than their qualities let expect: copies of a
repeat are much more alike than chance. All are integers.

Placements that fit by no chance are those of a tandem repeat, which overlaps itself in the more
bases the shorter the fragment is taken to be: how many are equal says nothing of which is true.
What each of them leaves unexplained is compared instead: the bases that differ although they are
good. Where no placement explains the pair better than all others, the pair is left alone. So it is
where both reads end within one repeat: if a read's own sequence, a copy or more away, predicts the
bases of the overlap as well, more copies may lie between the reads.

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

BEST, NEXT, RELATED, SURE, SURE_TOTAL, RIVAL, MOST, PLACE, SURE_PLACE = range(9)
"""What is known of the placements seen. Of those that may be chance: evidence of the best one, and
the most of others; place of the best one. Of those that are not: what the one with least
unexplained says of its differences, its evidence, what the others say of theirs at most, the most
evidence of any, and its place. Of all that seem copies of a repeat: the most evidence."""

FOUND = SURE_PLACE + 1

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
) -> tuple[Integer, Integer, Integer]:
    """What an overlap's bases say against chance; all, and different ones, against related ones."""
    chance, alike, unlike = np.int64(0), np.int64(0), np.int64(0)
    for k in range(length):
        one, two = left.letters[start + k], right.letters[k]
        cell = np.int64(left.scores[start + k]) * SCORES + np.int64(right.scores[k])
        if one == two:
            if one != _N:
                chance += np.int64(tables.match[cell]) + np.int64(tables.base[_code(one)])
                alike += np.int64(tables.alike[cell])
        elif one != _N and two != _N:
            chance += np.int64(tables.mismatch[cell])
            unlike += np.int64(tables.unlike[cell])
    return chance, alike + unlike, unlike


@njit(nogil=True, cache=True)
def _weigh(
    place: Integer,
    total: Integer,
    chance: Integer,
    related: Integer,
    differences: Integer,
    rules: Rules,
    found: NDArray[np.int64],
) -> None:
    """Compare a placement with those seen before.

    Args:
        place: which.
        total: its evidence, with that of its length.
        chance: its evidence without it.
        related: against copies of a repeat.
        differences: the part of that which different bases and the length say.
        rules: what decides.
        found: see ``BEST``; updated.
    """
    copies = related < rules.related
    if copies:
        found[RELATED] = max(found[RELATED], total)
    if chance < rules.strong:
        if copies or total <= found[BEST]:
            # It cannot win, but may be as good as what does.
            found[NEXT] = max(found[NEXT], total)
        else:
            found[NEXT] = max(found[NEXT], found[BEST])
            found[BEST], found[PLACE] = total, place
        return
    found[MOST] = max(found[MOST], total)
    if copies or differences <= found[SURE]:
        found[RIVAL] = max(found[RIVAL], differences)
    else:
        found[RIVAL] = max(found[RIVAL], found[SURE])
        found[SURE], found[SURE_TOTAL], found[SURE_PLACE] = differences, total, place


@njit(nogil=True, cache=True)
def _decide(rules: Rules, found: NDArray[np.int64]) -> Integer:
    """The place of the best overlap, NOTHING or UNDECIDED; ``found[BEST]`` becomes that of all."""
    is_sure = found[SURE_PLACE] >= 0
    total = found[SURE_TOTAL] if is_sure else found[BEST]
    other = max(found[NEXT], found[BEST] if is_sure else found[MOST])
    found[BEST] = max(found[BEST], found[SURE_TOTAL])
    if found[BEST] < rules.accept:
        return NOTHING
    if total - other < rules.lead:
        return UNDECIDED
    if not is_sure:
        return found[PLACE]
    needed = rules.clear
    if total < found[MOST]:
        # The other one has more equal bases: it must be clearly wrong, and this one no chance.
        if total < rules.certain:
            return UNDECIDED
        needed = rules.clearer
    return found[SURE_PLACE] if found[SURE] - found[RIVAL] >= needed else np.int64(UNDECIDED)


@njit(nogil=True, cache=True, inline="always")
def _logarithm(number: Integer) -> Integer:
    """Binary logarithm of a positive integer below 2^30, in ``qualities.UNIT``, rounded down."""
    whole = np.int64(0)
    while number >> (whole + 1):
        whole += 1
    # Squaring a number of [1, 2), of 30 binary places, doubles its logarithm.
    scaled, found = np.int64(number) << (30 - whole), whole
    for _ in range(8):
        scaled = (scaled * scaled) >> 30
        carry = scaled >> 31
        scaled >>= carry
        found = 2 * found + carry
    return found


@njit(nogil=True, cache=True, inline="always")
def _code(letter: Integer) -> Integer:
    """Code of the letter of a known base."""
    return np.int64(((letter >> 1) & 3) ^ ((letter >> 2) & 1))


@njit(nogil=True, cache=True, inline="always")
def _inside(word: Integer, length: Integer) -> np.uint64:
    """Bits of a word that lie within a length."""
    left = length - 64 * word
    if left >= 64:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(left)) - np.uint64(1) if left > 0 else np.uint64(0)


@njit(nogil=True, cache=True, inline="always")
def _with_code(planes: NDArray[np.uint64], word: Integer, code: Integer) -> np.uint64:
    """Known bases of a word that have a code; planes have bits of the letters (``pack``)."""
    low = planes[LOW, word] if (code ^ (code >> 1)) & 1 else ~planes[LOW, word]
    high = planes[HIGH, word] if code & 2 else ~planes[HIGH, word]
    return low & high & ~planes[HIDDEN, word]


@njit(nogil=True, cache=True)
def _composed(
    left: Read, left_length: Integer, right: Read, right_length: Integer, start: Integer,
    tables: Tables,
) -> Integer:  # fmt: skip
    """Evidence for an overlap that is due to bases more frequent in this pair than in others."""
    counts = np.ones(4, dtype=np.int64)
    equal = np.zeros(4, dtype=np.int64)
    at, shift = start >> 6, np.uint64(start & 63)
    overlap = min(left_length - start, right_length)
    for code in range(4):
        for word in range((left_length + 63) >> 6):
            own = _with_code(left.planes, word, code) & _inside(word, left_length)
            counts[code] += np.int64(popcount(own))
        for word in range((right_length + 63) >> 6):
            own = _with_code(right.planes, word, code)
            counts[code] += np.int64(popcount(own & _inside(word, right_length)))
            if 64 * word < overlap:
                different = (
                    (shifted(left.planes[LOW], at + word, shift) ^ right.planes[LOW, word])
                    | (shifted(left.planes[HIGH], at + word, shift) ^ right.planes[HIGH, word])
                    | shifted(left.planes[HIDDEN], at + word, shift)
                )
                equal[code] += np.int64(popcount(own & ~different & _inside(word, overlap)))
    every = _logarithm(counts.sum())
    sum_ = np.int64(0)
    for code in range(4):
        more = np.int64(tables.base[code]) + _logarithm(counts[code]) - every
        sum_ += max(more, np.int64(0)) * equal[code]
    return sum_


@njit(nogil=True, cache=True, inline="always")
def _said(read: Read, one: Integer, two: Integer, tables: Tables) -> Integer:
    """What two bases of a read say for being copies of each other."""
    left, right = read.letters[one], read.letters[two]
    if left == _N or right == _N:
        return np.int64(0)
    cell = np.int64(read.scores[one]) * SCORES + np.int64(read.scores[two])
    if left != right:
        return np.int64(tables.mismatch[cell])
    return np.int64(tables.match[cell]) + np.int64(tables.base[_code(left)])


@njit(nogil=True, cache=True)
def _recurring(read: Read, at: Integer, most: Integer, step: Integer, period: Integer) -> Integer:
    """Bases from one on that a read has again a period on, all equal, at most ``most``."""
    count = np.int64(0)
    while count < most and read.letters[at] == read.letters[at + period] != _N:
        count += 1
        at += step
    return count


@njit(nogil=True, cache=True)
def _explained(
    first: Read, length1: Integer, second: Read, length2: Integer, overlap: Integer,
    period: Integer, tables: Tables,
) -> Integer:  # fmt: skip
    """Evidence for an overlap that repeats with a period explain; 0 if half of it do not recur.

    The first bases of the overlap recur in the second read, the last ones in the first, which has
    them a period before.
    """
    start = length1 - overlap
    seen = _recurring(second, 0, min(overlap, length2 - period), 1, period)
    seen += _recurring(first, length1 - 1, min(overlap, length1 - period), -1, -period)
    if 2 * seen < overlap:
        return np.int64(0)
    # Up to a base by the second read, from it on by the first.
    by_first, lead, best = np.int64(0), np.int64(0), np.int64(0)
    for k in range(overlap):
        if start + k >= period:
            own = _said(first, start + k, start + k - period, tables)
            by_first += own
            lead -= own
        if k < length2 - period:
            lead += _said(second, k, k + period, tables)
            best = max(best, lead)
    return by_first + best


@njit(nogil=True, cache=True)
def _predicted(
    first: Read, length1: Integer, second: Read, length2: Integer, overlap: Integer, tables: Tables
) -> Integer:
    """Most evidence for an overlap that a tandem repeat, in which both reads end, explains.

    Where half of the overlap recurs, a quarter of it does in one of the reads: only periods at
    which its first bases, up to eight, do are looked at.
    """
    most = np.int64(0)
    bases = min(8, (overlap + 3) >> 2)
    for own in range(2):
        read, length = (first, length1) if own == 0 else (second, length2)
        words = (length + 63) >> 6
        for word in range(words):
            # Bit i: the bases from there on (in the first read: before it) are like those.
            places = _inside(word, length)
            for k in range(bases):
                if own == 0:
                    code = _code(read.letters[length1 - 1 - k])
                    like = _with_code(read.planes, word, code) << np.uint64(k)
                    if k and word:
                        before = _with_code(read.planes, word - 1, code)
                        like |= before >> np.uint64(64 - k)
                else:
                    code = _code(read.letters[k])
                    like = _with_code(read.planes, word, code) >> np.uint64(k)
                    if k and word + 1 < words:
                        after = _with_code(read.planes, word + 1, code)
                        like |= after << np.uint64(64 - k)
                places &= like
            while places:
                lowest = places & (~places + np.uint64(1))
                at = 64 * word + np.int64(popcount(lowest - np.uint64(1)))
                places ^= lowest
                period = length1 - 1 - at if own == 0 else at
                if period > 0:
                    most = max(
                        most, _explained(first, length1, second, length2, overlap, period, tables)
                    )
    return most


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
        found: int64[FOUND], see ``BEST``; set.

    Returns:
        Twice the place where one read begins in the other, plus one if the second is the one that
        begins first; or NOTHING, UNDECIDED, or TOO_SHORT if a read has too few known bases.
    """
    shortest = rules.min_overlap
    found[:] = _LEAST
    # What has less can neither win nor come near to what wins.
    found[NEXT] = rules.accept - rules.lead - 1
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
            fragment = min(length2 - start if direction else start + length2, last)
            prior, usual = np.int64(tables.prior[fragment]), np.int64(tables.usual[fragment])
            most = (overlap - mismatches) * rules.most_match + mismatches * rules.most_mismatch
            if most < rules.strong and prior + most <= found[NEXT]:
                continue
            chance, related, differences = _evidence(left, start, right, length, tables)
            _weigh(
                2 * start + direction, prior + chance, chance, related + usual,
                differences + prior, rules, found,
            )  # fmt: skip
    code = _decide(rules, found)
    if code == NOTHING:
        if length1 < shortest or length2 < shortest:
            return np.int64(TOO_SHORT)
        if not known and min(_known(first, length1), _known(second, length2)) < shortest:
            return np.int64(TOO_SHORT)
        return np.int64(UNDECIDED if found[RELATED] >= rules.accept else NOTHING)
    if code < 0:
        return code
    start = code >> 1
    if code & 1:
        most = _composed(second, length2, first, length1, start, tables)
    else:
        most = _composed(first, length1, second, length2, start, tables)
        overlap = length1 - start
        if overlap < length2:
            most = max(most, _predicted(first, length1, second, length2, overlap, tables))
    total = found[SURE_TOTAL] if found[SURE_PLACE] >= 0 else found[BEST]
    if total - most < rules.accept:
        return np.int64(UNDECIDED)
    return code


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
