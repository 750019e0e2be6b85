"""Depleting batches of reads on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.cpu import COUNTERS, copy_kept, find_kept
from ngsgpu.deplete.index import HostIndex
from ngsgpu.deplete.params import DepletionParameters
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import Mates
from ngsgpu.pool import working

UNITS_PER_TASK = 65536

Pieces = list[NDArray[np.uint8]]
"""Bytes for each output of a lane."""


class _Task(NamedTuple):
    """Units ``begin`` up to ``end`` of a batch; ``mates`` are two unless the reads are single."""

    mates: tuple[Mates, ...]
    begin: int
    end: int


def deplete_on_cpu(
    batches: Iterable[tuple[RecordBatch, ...]],
    index: HostIndex,
    parameters: DepletionParameters,
    write: Callable[[int, NDArray[np.uint8]], None],
    *,
    paired: bool,
    threads: int = 1,
    units_per_task: int = UNITS_PER_TASK,
    advance: Callable[[int], None] = lambda units: None,
) -> NDArray[np.int64]:
    """Write the kept reads of a lane, in their order; return the counters.

    Args:
        batches: of records, one batch for each file.
        index: the host's.
        parameters: what is the host's, and what is kept.
        write: gets the number of the file, and bytes for its output.
        paired: whether the reads have mates.
        threads: number of threads; does not affect the result.
        units_per_task: pairs or reads per task; nor does this.
        advance: called with the number of units done since the last call.
    """

    def tasks() -> Iterator[tuple[_Task, int]]:
        for own in batches:
            mates = Mates.of_pairs(own) if paired else (Mates.of(own[0], 0, 1),)
            total = len(mates[0].seq_len)
            for begin in range(0, total, units_per_task):
                yield _Task(mates, begin, min(begin + units_per_task, total)), len(own)

    def deplete(task: tuple[_Task, int]) -> tuple[Pieces, NDArray[np.int64], int]:
        own, files = task
        pieces, counts = deplete_some(own, files, index, parameters)
        return pieces, counts, own.end - own.begin

    total = np.zeros(len(COUNTERS), dtype=np.int64)
    with working(threads, deplete, tasks(), name="deplete") as depleted:
        for pieces, counts, units in depleted:
            total += counts
            for number, piece in enumerate(pieces):
                if len(piece):
                    write(number, piece)
            advance(units)
    return total


def deplete_some(
    task: _Task, files: int, index: HostIndex, parameters: DepletionParameters
) -> tuple[Pieces, NDArray[np.int64]]:
    """Decide some units, and copy the kept ones.

    Args:
        task: the units.
        files: number of outputs; both mates go to a single one.
        index: the host's.
        parameters: as for ``deplete_on_cpu``.
    """
    first, second = task.mates[0], task.mates[-1]
    kept = np.empty(task.end - task.begin, dtype=np.bool_)
    counts = np.zeros(len(COUNTERS), dtype=np.int64)
    find_kept(
        first, second, len(task.mates) == 2, task.begin, task.end,
        index.parameters.sampling(), index.table,
        parameters.min_bases, parameters.millionths, parameters.keep_host, kept, counts,
    )  # fmt: skip
    interleaved = len(task.mates) > files
    sizes = [_bytes(mates, task.begin, task.end) for mates in task.mates]
    rooms = [sum(sizes)] if interleaved else sizes
    pieces = []
    for mates, room in zip(task.mates, rooms, strict=False):
        out = np.empty(room, dtype=np.uint8)
        pieces.append(out[: copy_kept(mates, second, interleaved, task.begin, kept, out)])
    return pieces, counts


def _bytes(mates: Mates, begin: int, end: int) -> int:
    """Bytes of records, with a line feed that may be missing."""
    starts, ends = mates.header_start[begin:end], mates.record_end[begin:end]
    return int((ends - starts).sum(dtype=np.int64)) + (end - begin) + 1
