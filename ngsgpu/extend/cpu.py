"""The extension of pairs on the CPU: the reference that every other backend must equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ngsgpu.extend.joining import NOT_CONNECTED, Connection, find_mate, join
from ngsgpu.extend.params import Rules
from ngsgpu.extend.task import (
    LENGTH,
    NOT_BEGUN,
    RUNNING,
    START_LENGTH,
    STATUS,
    STOPPED,
    WAITING,
    Task,
    advance,
    begin_task,
    correct_start,
)
from ngsgpu.minhash.ends import EndTables, empty_set
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import read_length
from ngsgpu.sequence.borrow import borrowed
from ngsgpu.sequence.types import Integer


class Workspace(NamedTuple):
    """What one thread needs.

    Attributes:
        first: task 1, from the first read.
        second: task 2, outwards from the second read.
        third: task 3, from the second read.
        fourth: task 4, outwards from the first read.
        connection: the result for one pair.
    """

    first: Task
    second: Task
    third: Task
    fourth: Task
    connection: Connection

    @classmethod
    def allocate(cls, longest: int, functions: int) -> Workspace:
        """Workspace for sequences of up to ``longest`` bases."""
        tasks = [Task.allocate(longest, functions) for _ in range(4)]
        return cls(*tasks, Connection.allocate(longest))


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
        advance(reads, tables, weights, rules, pair, task, partner, True, rules.max_length + rules.pair_slack)


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

    The auxiliary task, which begins with the mate, grows with it where the way is not clear.
    """
    begin_task(reads, tables, task, start)
    correct_start(reads, tables, weights, rules, pair, task)
    auxiliary.state[STATUS] = NOT_BEGUN
    empty_set(auxiliary.met)
    state = task.state
    while state[STATUS] == RUNNING and not find_mate(reads, rules, task, mate):
        if state[LENGTH] >= rules.max_length:
            state[STATUS] = STOPPED
            break
        status = advance(
            reads, tables, weights, rules, pair, task, auxiliary, False, rules.max_length
        )
        if status == WAITING:
            grown = state[LENGTH] - state[START_LENGTH] + rules.pair_slack
            run_auxiliary(reads, tables, weights, rules, pair, auxiliary, task, mate, grown)
            advance(reads, tables, weights, rules, pair, task, auxiliary, True, rules.max_length)


@njit(nogil=True, cache=True)
def extend_pair(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: Rules,
    pair: Integer,
    work: Workspace,
) -> None:
    """Extend one pair; the result is in ``work.connection``."""
    reads = borrowed(reads)
    tables = borrowed(tables)
    weights = borrowed(weights)
    work = borrowed(work)
    turned = np.int64(rules.turned_input)
    first = 4 * pair + turned
    second = 4 * pair + 2 + turned
    work.connection.state[0] = NOT_CONNECTED
    if read_length(reads, first >> 1) == 0 or read_length(reads, second >> 1) == 0:
        return
    run_primary(reads, tables, weights, rules, pair, work.first, work.second, first, second ^ 1)
    run_primary(reads, tables, weights, rules, pair, work.third, work.fourth, second, first ^ 1)
    join(rules, work.first, work.third, work.connection)
