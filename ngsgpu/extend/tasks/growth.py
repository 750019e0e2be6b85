"""Growth of a task's sequence: consensus, branches, update of the candidates.

Columns after the end are decided 64 at a time: where all candidates agree, which is nearly
everywhere, two words suffice (``agreement``); other columns are weighed base by base
(``weigh_column``), and where two bases have several reads each, there is a branch
(``take_branch``). ``advance`` is one iteration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Q20_WEIGHT, WEIGHT_BITS, alignment_weight
from ngsgpu.extend.rules import Rules
from ngsgpu.extend.tasks.task import (
    ALL,
    CANDIDATES,
    DOUBTS,
    LENGTH,
    RUNNING,
    START_LENGTH,
    STATUS,
    STEPS,
    STOPPED,
    WAITING,
    Task,
    append_bases,
    find_candidates,
    oriented_bases,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.end_set import has_flag, set_flag
from ngsgpu.minhash.ends import EndTables, hash_kmers
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import quality_code, quality_start, read_length
from ngsgpu.sequence.codec import popcount

MAX_QUALITY = 40
MIN_QUALITY = 2
QUALITY_PER_READ = 12
"""Phred score that a read adds to a base that it agrees with."""


@njit(nogil=True, cache=True)
def look_ahead(reads: ReadArrays, task: Task) -> None:
    """Fetch the first 64 bases of each candidate after the end of the sequence."""
    length = task.state[LENGTH]
    for i in range(task.state[CANDIDATES]):
        end = task.end[i]
        offset = length - task.start[i]
        task.low[i], task.high[i] = oriented_bases(reads, end, offset)
        task.left[i] = read_length(reads, end >> 1) - offset


@njit(nogil=True, cache=True)
def columns_covered(task: Task, reads: Integer) -> np.int64:
    """Columns behind the end that at least ``reads`` candidates cover, at most 64."""
    ends = np.zeros(66, dtype=np.int64)
    for i in range(task.state[CANDIDATES]):
        ends[min(task.left[i], 65)] += 1
    covering = np.int64(0)
    for columns in range(65, 0, -1):
        covering += ends[columns]
        if covering >= reads:
            return np.int64(min(columns, 64))
    return np.int64(0)


@njit(nogil=True, cache=True)
def agreement(task: Task, columns: Integer) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Planes of the bases in the next columns, and which columns have more than one base."""
    low_set = np.uint64(0)
    low_clear = np.uint64(0)
    high_set = np.uint64(0)
    high_clear = np.uint64(0)
    within = ALL >> np.uint64(64 - columns)
    for i in range(task.state[CANDIDATES]):
        valid = within
        if task.left[i] < 64:
            valid &= ALL >> np.uint64(64 - task.left[i])
        low_set |= task.low[i] & valid
        low_clear |= ~task.low[i] & valid
        high_set |= task.high[i] & valid
        high_clear |= ~task.high[i] & valid
    return low_set, high_set, (low_set & low_clear) | (high_set & high_clear)


@njit(nogil=True, cache=True, inline="always")
def base_in_column(task: Task, candidate: Integer, column: Integer) -> np.int64:
    """Base of a candidate in a column behind the end, or -1 where it does not reach."""
    if task.left[candidate] <= column:
        return np.int64(-1)
    place = np.uint64(column)
    low = (task.low[candidate] >> place) & np.uint64(1)
    high = (task.high[candidate] >> place) & np.uint64(1)
    return np.int64(low | (high << np.uint64(1)))


@njit(nogil=True, cache=True, inline="always")
def quality_in_column(
    reads: ReadArrays, weights: NDArray[np.int32], task: Task, candidate: Integer, column: Integer
) -> np.int64:
    """Weight of the quality of a candidate's base in a column behind the end."""
    end = task.end[candidate]
    read = end >> 1
    position = task.state[LENGTH] - task.start[candidate] + column
    if end & 1:
        position = read_length(reads, read) - 1 - position
    return np.int64(weights[quality_code(reads, quality_start(reads, read), position)])


@njit(nogil=True, cache=True)
def weigh_column(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    task: Task,
    column: Integer,
    sums: NDArray[np.int64],
    q20: NDArray[np.int64],
) -> Integer:
    """Weight and Q20 reads of each base in a column; return the heaviest base."""
    sums[:] = 0
    q20[:] = 0
    length = task.state[LENGTH]
    for i in range(task.state[CANDIDATES]):
        base = base_in_column(task, i, column)
        if base < 0:
            continue
        own = quality_in_column(reads, weights, task, i, column)
        weight = alignment_weight(
            task.mismatches[i], length - task.start[i], rules.max_mismatch_permille
        )
        sums[base] += max(np.int64(1), weight * own >> WEIGHT_BITS)
        q20[base] += own >= Q20_WEIGHT
    best: Integer = np.int64(0)
    for other in range(1, 4):
        if sums[other] > sums[best]:
            best = np.int64(other)
    return best


@njit(nogil=True, cache=True)
def is_branch(rules: Rules, q20: NDArray[np.int64], best: Integer) -> bool:
    """Whether another base than the heaviest has too many Q20 reads to be an error."""
    total = np.int64(0)
    for base in range(4):
        total += q20[base]
    for base in range(4):
        if (
            base != best
            and q20[base] >= rules.branch_reads
            and q20[base] * 1000 >= rules.branch_permille * total
        ):
            return True
    return False


@njit(nogil=True, cache=True, inline="always")
def is_paired(task: Task, candidate: Integer, partner: Task) -> bool:
    """Whether a candidate's mate is, or was, a candidate of the partner, in the other direction."""
    return has_flag(partner.met, task.end[candidate] ^ 3)


@njit(nogil=True, cache=True)
def take_branch(
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    task: Task,
    partner: Task,
    column: Integer,
    sums: NDArray[np.int64],
) -> tuple[Integer, bool]:
    """Choose a base at a branch; return it, and whether the choice is certain.

    Candidates whose mates the partner has seen decide, if there are enough; otherwise they and
    those that overlap the sequence farthest, which have most in common with its origin.
    """
    length = task.state[LENGTH]
    anchor = task.state[START_LENGTH]
    paired = np.zeros(4, dtype=np.int64)
    decile = np.int64(0)
    for i in range(task.state[CANDIDATES]):
        base = base_in_column(task, i, column)
        if base >= 0:
            if is_paired(task, i, partner):
                paired[base] += 1
            else:
                decile = max(decile, (length - task.start[i]) * 10 // anchor)
    best: Integer = np.int64(0)
    total = np.int64(0)
    for other in range(4):
        total += paired[other]
        if paired[other] > paired[best]:
            best = np.int64(other)
    if paired[best] >= 2 and 4 * (total - paired[best]) <= paired[best]:
        return best, True
    sums[:] = 0
    for i in range(task.state[CANDIDATES]):
        base = base_in_column(task, i, column)
        if base < 0:
            continue
        far = (length - task.start[i]) * 10 // anchor >= decile
        if not far and not is_paired(task, i, partner):
            continue
        own = quality_in_column(reads, weights, task, i, column)
        weight = alignment_weight(
            task.mismatches[i], length - task.start[i], rules.max_mismatch_permille
        )
        sums[base] += max(np.int64(1), weight * own >> WEIGHT_BITS)
    best = np.int64(0)
    all_sums = np.int64(0)
    for other in range(4):
        all_sums += sums[other]
        if sums[other] > sums[best]:
            best = np.int64(other)
    return best, 10 * (all_sums - sums[best]) < all_sums


@njit(nogil=True, cache=True)
def drop_discordant(task: Task, column: Integer, base: Integer) -> None:
    """Drop the candidates with another base in a column."""
    kept = np.int64(0)
    for i in range(task.state[CANDIDATES]):
        other = base_in_column(task, i, column)
        if other >= 0 and other != base:
            set_flag(task.met, task.end[i], False)
            continue
        task.end[kept] = task.end[i]
        task.start[kept] = task.start[i]
        task.mismatches[kept] = task.mismatches[i]
        task.left[kept] = task.left[i]
        task.low[kept] = task.low[i]
        task.high[kept] = task.high[i]
        kept += 1
    task.state[CANDIDATES] = kept


@njit(nogil=True, cache=True)
def keep_candidates(rules: Rules, task: Task, low: np.uint64, high: np.uint64, n: Integer) -> None:
    """After ``n`` columns were appended: drop candidates that end there or do not fit any more."""
    mask = ALL >> np.uint64(64 - n)
    length = task.state[LENGTH]
    kept = np.int64(0)
    for i in range(task.state[CANDIDATES]):
        if task.left[i] <= n:
            continue
        different = ((task.low[i] ^ low) | (task.high[i] ^ high)) & mask
        mismatches = task.mismatches[i] + np.int64(popcount(different))
        if mismatches * 1000 > (length - task.start[i]) * rules.max_mismatch_permille:
            continue
        task.end[kept] = task.end[i]
        task.start[kept] = task.start[i]
        task.mismatches[kept] = mismatches
        kept += 1
    task.state[CANDIDATES] = kept


@njit(nogil=True, cache=True)
def score_columns(
    task: Task, low: np.uint64, high: np.uint64, n: Integer, doubtful: np.uint64
) -> None:
    """Phred scores of the next ``n`` columns: what agrees, less what differs."""
    length = task.state[LENGTH]
    votes = np.zeros(64, dtype=np.int64)
    for i in range(task.state[CANDIDATES]):
        different = (task.low[i] ^ low) | (task.high[i] ^ high)
        for column in range(min(n, task.left[i])):
            votes[column] += 1 - 2 * np.int64((different >> np.uint64(column)) & np.uint64(1))
    for column in range(n):
        score = max(MIN_QUALITY, min(MAX_QUALITY, QUALITY_PER_READ * votes[column]))
        if (doubtful >> np.uint64(column)) & np.uint64(1):
            score = MIN_QUALITY
        task.qualities[length + column] = score


@njit(nogil=True, cache=True)
def advance(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pair: Integer,
    task: Task,
    partner: Task,
    partner_ready: bool,
    limit: Integer,
) -> np.int64:
    """One iteration: let the sequence grow by up to ``rules.step`` bases; return its status.

    Before a branch, unless the partner is ready, nothing is done and the status is ``WAITING``.
    """
    state = task.state
    find_candidates(reads, tables, rules, pair, task, rules.max_mismatch_permille)
    look_ahead(reads, task)
    sums = np.zeros(4, dtype=np.int64)
    q20 = np.zeros(4, dtype=np.int64)
    doubtful = np.uint64(0)
    again = True
    n: Integer = np.int64(0)
    low = np.uint64(0)
    high = np.uint64(0)
    while again:
        again = False
        covered = columns_covered(task, rules.min_reads)
        n = min(covered, np.int64(rules.step), limit - state[LENGTH])
        if n <= 0:
            state[STATUS] = STOPPED
            return np.int64(STOPPED)
        low, high, mixed = agreement(task, n)
        for column in range(n):
            place = np.uint64(column)
            if not (mixed >> place) & np.uint64(1):
                continue
            best = weigh_column(reads, weights, rules, task, column, sums, q20)
            if is_branch(rules, q20, best):
                if not partner_ready:
                    return np.int64(WAITING)
                best, certain = take_branch(reads, weights, rules, task, partner, column, sums)
                if not certain:
                    doubtful |= np.uint64(1) << place
                drop_discordant(task, column, best)
                again = True
                break
            bit = np.uint64(1) << place
            low = (low & ~bit) | (bit if best & 1 else np.uint64(0))
            high = (high & ~bit) | (bit if best & 2 else np.uint64(0))
    doubtful &= ALL >> np.uint64(64 - n)
    state[DOUBTS] += np.int64(popcount(doubtful))
    score_columns(task, low, high, n, doubtful)
    before = state[LENGTH]
    append_bases(task, low, high, n)
    hash_kmers(tables, task.codes, before, before + n, task.hashes)
    keep_candidates(rules, task, low, high, n)
    state[STEPS] += 1
    state[STATUS] = RUNNING
    return np.int64(RUNNING)
