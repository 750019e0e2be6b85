"""Joins two tasks: finds the mate in a sequence, applies the strict modes, merges overlaps.

Task 1 starts from the first read and searches for the reverse complement of the second, task 3 the
other way round. All results are in the direction of the first read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.extend.rules import Rules
from ngsgpu.extend.tasks.task import (
    ALL,
    DOUBTS,
    FOUND,
    FOUND_AT,
    LENGTH,
    START_LENGTH,
    STATUS,
    TESTED,
    Task,
    oriented_bases,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import read_length
from ngsgpu.sequence.codec import bases_from, popcount

# How a pair was connected, from the strictest to the least strict, or why it was not.
NOT_CONNECTED = 0
BOTH_AGREE = 1
ONE_CONFIRMED = 2
ONE_ONLY = 3
BOTH_DIFFER = 4
MERGED = 5
KINDS = 6


@njit(nogil=True, cache=True)
def find_mate(reads: ReadArrays, rules: Rules, task: Task, mate: Integer) -> bool:
    """Look for the mate (an end) where the sequence is new; on success the status is ``FOUND``.

    Of several places that of fewest mismatches counts, then the one that makes the fragment's
    length nearest to the mean, then the first.
    """
    state = task.state
    own = read_length(reads, mate >> 1)
    words = len(task.planes) >> 1
    needed = min(own, np.int64(rules.mate_overlap))
    most = min(own * rules.mate_permille // 1000, np.int64(rules.mate_mismatches))
    last = min(state[LENGTH] - needed, rules.max_length - own)
    first = max(state[TESTED] + 1, rules.min_length - own, np.int64(0))
    best = np.int64(-1)
    best_mismatches = np.int64(0)
    for start in range(first, last + 1):
        overlap = min(own, state[LENGTH] - start)
        mismatches = np.int64(0)
        for offset in range(0, overlap, 64):
            low, high = oriented_bases(reads, mate, offset)
            own_low, own_high = bases_from(task.planes, 0, words, state[LENGTH], 0, start + offset)
            different = (low ^ own_low) | (high ^ own_high)
            if overlap - offset < 64:
                different &= ALL >> np.uint64(64 - (overlap - offset))
            mismatches += np.int64(popcount(different))
            if mismatches > most:
                break
        if mismatches > most:
            continue
        if best >= 0:
            far = abs(start + own - rules.mean_length)
            best_far = abs(best + own - rules.mean_length)
            if (mismatches, far) >= (best_mismatches, best_far):
                continue
        best = np.int64(start)
        best_mismatches = mismatches
    state[TESTED] = max(state[TESTED], last)
    if best < 0:
        return False
    state[FOUND_AT] = best
    state[STATUS] = FOUND
    return True


class Connection(NamedTuple):
    """A connection of two reads.

    Attributes:
        codes: uint8[capacity], bases between the reads.
        qualities: uint8[capacity], their Phred scores.
        state: int64[2], kind, and total length (both reads and the gap).
    """

    codes: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    state: NDArray[np.int64]

    @classmethod
    def allocate(cls, longest: int) -> Connection:
        """Room for fragments of up to ``longest`` bases."""
        return cls(
            codes=np.zeros(longest + 64, dtype=np.uint8),
            qualities=np.zeros(longest + 64, dtype=np.uint8),
            state=np.zeros(2, dtype=np.int64),
        )


@njit(nogil=True, cache=True)
def compare_gaps(first: Task, third: Task, total: Integer, begin: Integer, end: Integer) -> int:
    """Positions from ``begin`` to ``end`` of the whole at which the two tasks differ."""
    differences = 0
    for i in range(begin, end):
        differences += first.codes[i] != 3 - third.codes[total - 1 - i]
    return differences


@njit(nogil=True, cache=True)
def is_confirmed(rules: Rules, found: Task, other: Task, gap: Integer) -> bool:
    """Whether an unfinished task agrees with a gap that the other one filled (section 8.2.2)."""
    begin = found.state[START_LENGTH]
    total = found.state[FOUND_AT] + other.state[START_LENGTH]
    reached = min(gap, other.state[LENGTH] - other.state[START_LENGTH])
    if reached * 1000 < gap * rules.confirm_permille:
        return False
    different = compare_gaps(found, other, total, begin + gap - reached, begin + gap)
    return (reached - different) * 1000 >= reached * rules.confirm_match_permille


@njit(nogil=True, cache=True)
def merged_length(rules: Rules, first: Task, third: Task) -> np.int64:
    """Length of the whole if two unfinished sequences overlap, by their longest overlap; or 0."""
    length, other = first.state[LENGTH], third.state[LENGTH]
    both = length + other
    longest = min(length, other, both - rules.min_length)
    shortest = max(np.int64(rules.merge_overlap), both - rules.max_length)
    for overlap in range(longest, shortest - 1, -1):
        total = both - overlap
        most = overlap * rules.merge_mismatch_permille // 1000
        mismatches = 0
        for i in range(length - overlap, length):
            mismatches += first.codes[i] != 3 - third.codes[total - 1 - i]
            if mismatches > most:
                break
        if mismatches <= most:
            return np.int64(total)
    return np.int64(0)


@njit(nogil=True, cache=True)
def write_gap(
    first: Task,
    third: Task,
    total: Integer,
    with_first: bool,
    with_third: bool,
    result: Connection,
) -> None:
    """Write the gap; where both tasks cover it, the base with the higher quality."""
    begin = first.state[START_LENGTH]
    end = total - third.state[START_LENGTH]
    for i in range(begin, end):
        back = total - 1 - i
        quality = np.int64(-1)
        code = np.uint8(0)
        if with_first and i < first.state[LENGTH]:
            code = first.codes[i]
            quality = np.int64(first.qualities[i])
        if with_third and back < third.state[LENGTH] and np.int64(third.qualities[back]) > quality:
            code = np.uint8(3 - third.codes[back])
            quality = np.int64(third.qualities[back])
        result.codes[i - begin] = code
        result.qualities[i - begin] = quality


@njit(nogil=True, cache=True)
def join(rules: Rules, first: Task, third: Task, result: Connection) -> None:
    """Join the results of tasks 1 and 3 according to the strict mode.

    A task that continued past an undecided branch is doubtful. Its result counts only if the other
    task agrees; the strict mode and the possible lengths determine how many of both may be doubtful
    (``agreed_doubts``, and ``differing_doubts`` if they differ).
    """
    found = first.state[STATUS] == FOUND
    other = third.state[STATUS] == FOUND
    doubt = first.state[DOUBTS] > 0
    other_doubt = third.state[DOUBTS] > 0
    begin = first.state[START_LENGTH]
    back = third.state[START_LENGTH]
    total = first.state[FOUND_AT] + back
    other_total = third.state[FOUND_AT] + begin
    kind = NOT_CONNECTED
    if found and other:
        if (
            total == other_total
            and compare_gaps(first, third, total, begin, total - back) <= rules.gap_mismatches
        ):
            if doubt + other_doubt <= rules.agreed_doubts:
                kind = BOTH_AGREE
                write_gap(first, third, total, True, True, result)
        elif doubt + other_doubt <= rules.differing_doubts:
            # The one without doubts, then the one nearer to the mean length, then task 1.
            far = abs(total - rules.mean_length)
            other_far = abs(other_total - rules.mean_length)
            take_other = (other_doubt, other_far) < (doubt, far)
            total = other_total if take_other else total
            kind = BOTH_DIFFER
            write_gap(first, third, total, not take_other, take_other, result)
    elif found or other:
        total = total if found else other_total
        unsure = doubt if found else other_doubt
        gap = total - begin - back
        if rules.strict < 2:
            if found:
                confirmed = is_confirmed(rules, first, third, gap)
            else:
                confirmed = is_confirmed(rules, third, first, gap)
            most = rules.agreed_doubts if rules.strict == 0 else 0
            if confirmed and doubt + other_doubt <= most:
                kind = ONE_CONFIRMED
            elif rules.strict == 0 and not unsure:
                kind = ONE_ONLY
            if kind != NOT_CONNECTED:
                write_gap(first, third, total, found, other, result)
    elif rules.strict == 0 and not doubt and not other_doubt:
        total = merged_length(rules, first, third)
        if total > 0:
            kind = MERGED
            write_gap(first, third, total, True, True, result)
    result.state[0] = kind
    result.state[1] = total
