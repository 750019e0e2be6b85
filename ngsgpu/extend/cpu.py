"""The extension of pairs on the CPU: the reference that every other backend must equal.

``extend_pair`` runs the tasks of one pair and joins them, ``extend_pairs`` does so for many and
keeps what the output needs. A pair's result depends on nothing but the reads and the rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.extend.rules import Rules
from ngsgpu.extend.tasks.growth import advance
from ngsgpu.extend.tasks.joining import KINDS, NOT_CONNECTED, Connection, find_mate, join
from ngsgpu.extend.tasks.task import (
    LENGTH,
    NOT_BEGUN,
    RUNNING,
    START_LENGTH,
    STATUS,
    STEPS,
    STOPPED,
    TAKEN,
    WAITING,
    Task,
    begin_task,
    correct_start,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.end_set import empty_set
from ngsgpu.minhash.ends import EndTables
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import read_length
from ngsgpu.sequence.intrinsics import borrowed

# Counters of a run: pairs by kind, then what the tasks did.
PRIMARY_STEPS, AUXILIARY_STEPS, CANDIDATES_TAKEN, AUXILIARY_TASKS = range(KINDS, KINDS + 4)
COUNTERS = KINDS + 4


class Workspace(NamedTuple):
    """What one thread needs.

    Attributes:
        first: task 1, from the first read.
        second: task 2, outwards from the second read.
        third: task 3, from the second read.
        fourth: task 4, outwards from the first read.
        connection: the result for one pair.
        counters: int64[COUNTERS].
    """

    first: Task
    second: Task
    third: Task
    fourth: Task
    connection: Connection
    counters: NDArray[np.int64]

    @classmethod
    def allocate(cls, rules: Rules, longest_read: int, functions: int) -> Workspace:
        """Workspace for sequences as long as the rules let them become.

        Args:
            rules: the parameters as integers.
            longest_read: bases of the longest read.
            functions: number of hash functions.
        """
        longest = longest_read + rules.max_length + rules.pair_slack + rules.step
        return cls(
            first=Task.allocate(longest, functions),
            second=Task.allocate(longest, functions),
            third=Task.allocate(longest, functions),
            fourth=Task.allocate(longest, functions),
            connection=Connection.allocate(rules.max_length),
            counters=np.zeros(COUNTERS, dtype=np.int64),
        )


def max_bases(rules: Rules) -> int:
    """Bases that a pair's result has at most."""
    return rules.max_length * (3 if rules.outward else 1)


class Extensions(NamedTuple):
    """Results for consecutive pairs.

    Attributes:
        kind: uint8[pairs], how each was connected (``joining``).
        total: int32[pairs], length of the connected fragment, without outward extension.
        left: int32[pairs], bases before the first read.
        right: int32[pairs], bases behind the second.
        start: int64[pairs], where a pair's bases begin in ``codes`` and ``qualities``.
        codes: uint8, bases before the first read, between the reads, behind the second.
        qualities: uint8, their Phred scores.
    """

    kind: NDArray[np.uint8]
    total: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    start: NDArray[np.int64]
    codes: NDArray[np.uint8]
    qualities: NDArray[np.uint8]

    @classmethod
    def allocate(cls, pairs: int, rules: Rules) -> Extensions:
        """Room for the results of ``pairs`` pairs."""
        width = max_bases(rules)
        return cls(
            kind=np.zeros(pairs, dtype=np.uint8),
            total=np.zeros(pairs, dtype=np.int32),
            left=np.zeros(pairs, dtype=np.int32),
            right=np.zeros(pairs, dtype=np.int32),
            start=np.arange(pairs, dtype=np.int64) * width,
            codes=np.zeros(pairs * width, dtype=np.uint8),
            qualities=np.zeros(pairs * width, dtype=np.uint8),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Extensions]) -> Extensions:
        """The results of several parts, at least one, as if they were one."""
        before = itertools.accumulate((len(part.codes) for part in parts), initial=0)
        moved = [
            part._replace(start=part.start + at) for part, at in zip(parts, before, strict=False)
        ]
        return cls(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))

    def rows(self, first: int, last: int) -> Extensions:
        """Results ``first`` to ``last``, exclusive; the bases are shared."""
        rows = slice(first, last)
        return self._replace(
            kind=self.kind[rows],
            total=self.total[rows],
            left=self.left[rows],
            right=self.right[rows],
            start=self.start[rows],
        )


@njit(nogil=True, cache=True)
def run_auxiliary(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pair: Integer,
    task: Task,
    partner: Task,
    start: Integer,
    grown: Integer,
) -> None:
    """Let an auxiliary task grow until it has ``grown`` new bases, or cannot go on."""
    if task.state[STATUS] == NOT_BEGUN:
        begin_task(reads, tables, task, start)
        correct_start(reads, tables, weights, rules, pair, task)
    limit = task.state[START_LENGTH] + grown
    while task.state[STATUS] == RUNNING and task.state[LENGTH] < limit:
        advance(reads, tables, weights, rules, pair, task, partner, True, limit)


@njit(nogil=True, cache=True)
def run_primary(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pair: Integer,
    task: Task,
    auxiliary: Task,
    start: Integer,
    mate: Integer,
) -> None:
    """Run a primary task from the end ``start`` until it has found the end ``mate`` or stops.

    The auxiliary task, which starts from the mate, grows with it at branches.
    """
    begin_task(reads, tables, task, start)
    correct_start(reads, tables, weights, rules, pair, task)
    auxiliary.state[:] = 0
    auxiliary.state[STATUS] = NOT_BEGUN
    empty_set(auxiliary.met)
    state = task.state
    while state[STATUS] == RUNNING and not find_mate(reads, rules, task, mate):
        if state[LENGTH] >= rules.max_length:
            state[STATUS] = STOPPED
            break
        limit = np.int64(rules.max_length)
        status = advance(reads, tables, weights, rules, pair, task, auxiliary, False, limit)
        if status == WAITING:
            grown = state[LENGTH] - state[START_LENGTH] + rules.pair_slack
            run_auxiliary(reads, tables, weights, rules, pair, auxiliary, task, mate, grown)
            advance(reads, tables, weights, rules, pair, task, auxiliary, True, limit)


@njit(nogil=True, cache=True)
def extend_pair(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pair: Integer,
    work: Workspace,
) -> None:
    """Run the tasks of one pair; the connection is in ``work.connection``."""
    reverse_complemented = np.int64(rules.reverse_complemented_input)
    first = 4 * pair + reverse_complemented
    second = 4 * pair + 2 + reverse_complemented
    work.connection.state[0] = NOT_CONNECTED
    shorter = min(read_length(reads, 2 * pair), read_length(reads, 2 * pair + 1))
    if shorter < tables.window:
        work.counters[NOT_CONNECTED] += 1
        return
    run_primary(reads, tables, weights, rules, pair, work.first, work.second, first, second ^ 1)
    run_primary(reads, tables, weights, rules, pair, work.third, work.fourth, second, first ^ 1)
    join(rules, work.first, work.third, work.connection)
    if rules.outward and work.connection.state[0] != NOT_CONNECTED:
        grown = work.connection.state[1]
        run_auxiliary(
            reads, tables, weights, rules, pair, work.second, work.first, second ^ 1, grown
        )
        run_auxiliary(
            reads, tables, weights, rules, pair, work.fourth, work.third, first ^ 1, grown
        )
    work.counters[work.connection.state[0]] += 1
    for primary in (work.first, work.third):
        work.counters[PRIMARY_STEPS] += primary.state[STEPS]
        work.counters[CANDIDATES_TAKEN] += primary.state[TAKEN]
    for auxiliary in (work.second, work.fourth):
        work.counters[AUXILIARY_STEPS] += auxiliary.state[STEPS]
        work.counters[CANDIDATES_TAKEN] += auxiliary.state[TAKEN]
        work.counters[AUXILIARY_TASKS] += auxiliary.state[STATUS] != NOT_BEGUN


@njit(nogil=True, cache=True)
def outward_bases(rules: Rules, task: Task) -> Integer:
    """Bases that an auxiliary task gives to the outside of a fragment."""
    if task.state[STATUS] == NOT_BEGUN:
        return np.int64(0)
    return min(task.state[LENGTH] - task.state[START_LENGTH], np.int64(rules.max_length))


@njit(nogil=True, cache=True)
def keep_pair(rules: Rules, work: Workspace, row: Integer, results: Extensions) -> None:
    """Copy a pair's result to a row of the results."""
    kind, total = work.connection.state[0], work.connection.state[1]
    results.kind[row] = kind
    if kind == NOT_CONNECTED:
        return
    gap = total - work.first.state[START_LENGTH] - work.third.state[START_LENGTH]
    left: Integer = np.int64(0)
    right: Integer = np.int64(0)
    if rules.outward:
        left = outward_bases(rules, work.fourth)
        right = outward_bases(rules, work.second)
    results.total[row] = total
    results.left[row] = left
    results.right[row] = right
    codes = results.codes[results.start[row] :]
    qualities = results.qualities[results.start[row] :]
    for i in range(left):
        source = work.fourth.state[START_LENGTH] + left - 1 - i
        codes[i] = 3 - work.fourth.codes[source]
        qualities[i] = work.fourth.qualities[source]
    at = left
    for i in range(gap):
        codes[at + i] = work.connection.codes[i]
        qualities[at + i] = work.connection.qualities[i]
    at += max(np.int64(0), gap)
    for i in range(right):
        codes[at + i] = work.second.codes[work.second.state[START_LENGTH] + i]
        qualities[at + i] = work.second.qualities[work.second.state[START_LENGTH] + i]


@njit(nogil=True, cache=True)
def extend_pairs(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pairs: NDArray[np.int64],
    work: Workspace,
    results: Extensions,
) -> None:
    """Extend pairs; row i of ``results`` is that of ``pairs[i]``."""
    reads = borrowed(reads)
    tables = borrowed(tables)
    weights = borrowed(weights)
    work = borrowed(work)
    results = borrowed(results)
    for row in range(len(pairs)):
        extend_pair(reads, tables, weights, rules, pairs[row], work)
        keep_pair(rules, work, row, results)
