"""One extension task: a sequence, and the reads that overlap its end.

A task starts with a read, oriented in the direction of growth. The candidates are the reads that
begin in the sequence and extend beyond its end; they keep their positions while the sequence grows
(``growth``), so that each is found and aligned once (``find_candidates``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Q20_WEIGHT
from ngsgpu.extend.rules import Rules
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.end_set import EndSet, empty_set, set_flag
from ngsgpu.minhash.ends import EndTables, find_begins, hash_kmers
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import plane_start, quality_code, quality_start, read_length
from ngsgpu.sequence.codec import bases_from, popcount, set_base

MAX_CANDIDATES = 512
"""Maximum number of candidates of a task; surplus reads are dropped."""

ALL = ~np.uint64(0)

# Entries of a task's ``state``.
LENGTH, SCANNED, CANDIDATES, STATUS, DOUBTS, START_LENGTH, FOUND_AT, TESTED, STEPS, TAKEN = range(
    10
)
STATES = 10

# State of a task.
RUNNING, STOPPED, FOUND, WAITING, NOT_BEGUN = range(5)


class Task(NamedTuple):
    """State and workspace of one task.

    Attributes:
        codes: uint8[capacity], the sequence.
        qualities: uint8[capacity], Phred scores of the bases after the anchor read.
        planes: uint64[2 x capacity / 64], its bit planes.
        hashes: uint64[functions, capacity], of its k-mers.
        end: int64[MAX_CANDIDATES], 2 x read + 1 if reverse-complemented.
        start: int64[MAX_CANDIDATES], where the candidate begins in the sequence.
        mismatches: int64[MAX_CANDIDATES], in the overlap with the sequence.
        left: int64[MAX_CANDIDATES], bases after the end of the sequence.
        low: uint64[MAX_CANDIDATES], low plane of the first 64 of these.
        high: uint64[MAX_CANDIDATES], high plane.
        met: ends found so far; those that were candidates are flagged, unless a branch showed them
            to be discordant.
        state: int64[STATES].
    """

    codes: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    planes: NDArray[np.uint64]
    hashes: NDArray[np.uint64]
    end: NDArray[np.int64]
    start: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    left: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    met: EndSet
    state: NDArray[np.int64]

    @classmethod
    def allocate(cls, longest: int, functions: int) -> Task:
        """Workspace for a sequence of up to ``longest`` bases."""
        words = (longest + 63) // 64 + 2
        return cls(
            codes=np.zeros(64 * words, dtype=np.uint8),
            qualities=np.zeros(64 * words, dtype=np.uint8),
            planes=np.zeros(2 * words, dtype=np.uint64),
            hashes=np.zeros((functions, 64 * words), dtype=np.uint64),
            end=np.zeros(MAX_CANDIDATES, dtype=np.int64),
            start=np.zeros(MAX_CANDIDATES, dtype=np.int64),
            mismatches=np.zeros(MAX_CANDIDATES, dtype=np.int64),
            left=np.zeros(MAX_CANDIDATES, dtype=np.int64),
            low=np.zeros(MAX_CANDIDATES, dtype=np.uint64),
            high=np.zeros(MAX_CANDIDATES, dtype=np.uint64),
            met=EndSet.allocate(),
            state=np.zeros(STATES, dtype=np.int64),
        )


@njit(nogil=True, cache=True, inline="always")
def oriented_bases(reads: ReadArrays, end: Integer, offset: Integer) -> tuple[np.uint64, np.uint64]:
    """64 bases of a read in the direction of ``end``, from ``offset`` on."""
    read = end >> 1
    length = read_length(reads, read)
    words = (length + 63) >> 6
    return bases_from(reads.planes, plane_start(reads, read), words, length, end & 1, offset)


@njit(nogil=True, cache=True)
def append_bases(task: Task, low: np.uint64, high: np.uint64, count: Integer) -> None:
    """Append up to 64 bases, given as planes, to the sequence."""
    length = task.state[LENGTH]
    words = len(task.planes) >> 1
    mask = ALL >> np.uint64(64 - count)
    low &= mask
    high &= mask
    word = length >> 6
    bit = np.uint64(length & 63)
    task.planes[word] |= low << bit
    task.planes[words + word] |= high << bit
    if bit != np.uint64(0):
        back = np.uint64(64) - bit
        task.planes[word + 1] |= low >> back
        task.planes[words + word + 1] |= high >> back
    for i in range(count):
        place = np.uint64(i)
        task.codes[length + i] = ((low >> place) & np.uint64(1)) | (
            ((high >> place) & np.uint64(1)) << np.uint64(1)
        )
    task.state[LENGTH] = length + count


@njit(nogil=True, cache=True)
def begin_task(reads: ReadArrays, tables: EndTables, task: Task, end: Integer) -> None:
    """Let a task begin with a read in a direction."""
    task.planes[:] = 0
    task.state[:] = 0
    empty_set(task.met)
    length = read_length(reads, end >> 1)
    for offset in range(0, length, 64):
        low, high = oriented_bases(reads, end, offset)
        append_bases(task, low, high, min(np.int64(64), length - offset))
    hash_kmers(tables, task.codes, 0, length, task.hashes)
    task.state[SCANNED] = -1
    task.state[TESTED] = -1
    task.state[START_LENGTH] = length


@njit(nogil=True, cache=True)
def count_mismatches(
    reads: ReadArrays, task: Task, end: Integer, start: Integer, overlap: Integer, most: Integer
) -> np.int64:
    """Mismatches of a read that begins at ``start`` with the sequence; stops above ``most``."""
    words = len(task.planes) >> 1
    length = task.state[LENGTH]
    total = np.int64(0)
    for offset in range(0, overlap, 64):
        low, high = oriented_bases(reads, end, offset)
        own_low, own_high = bases_from(task.planes, 0, words, length, 0, start + offset)
        different = (low ^ own_low) | (high ^ own_high)
        if overlap - offset < 64:
            different &= ALL >> np.uint64(64 - (overlap - offset))
        total += np.int64(popcount(different))
        if total > most:
            break
    return total


@njit(nogil=True, cache=True)
def find_candidates(
    reads: ReadArrays, tables: EndTables, rules: Rules, pair: Integer, task: Task, permille: int
) -> None:
    """Add the reads that now overlap the sequence far enough, but for the pair itself.

    Args:
        reads: the read arrays.
        tables: where reads begin.
        rules: the parameters as integers.
        pair: the pair that the task belongs to.
        task: the task.
        permille: mismatches that an overlap may have, in thousandths of its length.
    """
    state = task.state
    length = state[LENGTH]
    overlap = max(rules.min_overlap, state[START_LENGTH] * rules.min_overlap_permille // 1000)
    last = length - overlap
    if last <= state[SCANNED]:
        return
    count = state[CANDIDATES]
    found = find_begins(
        tables,
        task.hashes,
        state[SCANNED] + 1,
        last + 1,
        rules.bucket_entries,
        task.met,
        task.end[count:],
        task.start[count:],
    )
    state[SCANNED] = last
    for i in range(count, count + found):
        end = task.end[i]
        start = task.start[i]
        own = read_length(reads, end >> 1)
        if end >> 2 == pair or start + own <= length:
            continue
        overlap = length - start
        most = overlap * permille // 1000
        mismatches = count_mismatches(reads, task, end, start, overlap, most)
        if mismatches > most:
            continue
        task.end[count] = end
        task.start[count] = start
        task.mismatches[count] = mismatches
        count += 1
        set_flag(task.met, end, True)
        state[TAKEN] += 1
    state[CANDIDATES] = count


@njit(nogil=True, cache=True)
def correct_start(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pair: Integer,
    task: Task,
) -> None:
    """Correct the anchor read, in the sequence, with its candidates.

    Candidates may have more mismatches here. A base is replaced by another one if ``min_reads``
    candidates have that at Q20 and hardly any candidate has the read's own.
    """
    state = task.state
    length = state[LENGTH]
    find_candidates(reads, tables, rules, pair, task, rules.start_mismatch_permille)
    votes = np.zeros((length, 4), dtype=np.int64)
    differing = np.zeros(length, dtype=np.int64)
    words = len(task.planes) >> 1
    any_votes = False
    for i in range(state[CANDIDATES]):
        if task.mismatches[i] == 0:
            continue
        end = task.end[i]
        own_length = read_length(reads, end >> 1)
        quality = quality_start(reads, end >> 1)
        overlap = length - task.start[i]
        for offset in range(0, overlap, 64):
            low, high = oriented_bases(reads, end, offset)
            own_low, own_high = bases_from(task.planes, 0, words, length, 0, task.start[i] + offset)
            different = (low ^ own_low) | (high ^ own_high)
            if overlap - offset < 64:
                different &= ALL >> np.uint64(64 - (overlap - offset))
            while different != np.uint64(0):
                lowest = different & (~different + np.uint64(1))
                different ^= lowest
                place = np.int64(popcount(lowest - np.uint64(1)))
                position = offset + place
                column = task.start[i] + position
                differing[column] += 1
                if end & 1:
                    position = own_length - 1 - position
                if weights[quality_code(reads, quality, position)] >= Q20_WEIGHT:
                    base = ((low & lowest) != np.uint64(0)) + 2 * ((high & lowest) != np.uint64(0))
                    votes[column, base] += 1
                    any_votes = True
    if any_votes:
        covering = np.zeros(length + 1, dtype=np.int64)
        for i in range(state[CANDIDATES]):
            covering[task.start[i]] += 1
        replaced = False
        for column in range(length):
            if column > 0:
                covering[column] += covering[column - 1]
            best = 0
            for base in range(1, 4):
                if votes[column, base] > votes[column, best]:
                    best = base
            agreeing = covering[column] - differing[column]
            if votes[column, best] >= rules.min_reads and 10 * agreeing <= votes[column, best]:
                set_base(task.planes, 0, words, column, best)
                task.codes[column] = best
                replaced = True
        if replaced:
            hash_kmers(tables, task.codes, 0, length, task.hashes)
    state[SCANNED] = -1
    state[CANDIDATES] = 0
    empty_set(task.met)
