"""Sketching reference files: read, unpack, and sketch on several threads.

The main thread splits files into records and unpacks the bases; tasks of about a million bases
are sketched by a pool. The order of the pairs is that of the targets and windows, however the
tasks are cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index import Pairs
from ngsgpu.classify.params import SketchParameters
from ngsgpu.classify.references import windows_of_lengths
from ngsgpu.classify.sketch import sketch_pieces, unpack_sequences
from ngsgpu.io.batch import RecordBatch

WINDOWS_A_TASK: Final = 8192


@dataclass(frozen=True, slots=True)
class Pieces:
    """Consecutive windows of sequences whose codes lie in one array; see ``sketch_pieces``."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    target: NDArray[np.int64]


def sketch_batches(
    batches: Iterable[tuple[RecordBatch, NDArray[np.int64]]],
    parameters: SketchParameters,
    *,
    threads: int = 1,
    windows_a_task: int = WINDOWS_A_TASK,
    advance: Callable[[int], None] = lambda bases: None,
) -> list[Pairs]:
    """Sketch reference sequences.

    Args:
        batches: records and the number of each one's target, in order; -1: leave it out.
        parameters: windows and sketches.
        threads: how many threads sketch.
        windows_a_task: windows that a thread takes at a time; the result, but for how it is cut,
            does not depend on it.
        advance: called with the number of bases sketched since the last call.
    """
    done: list[Pairs] = []
    tasks: deque[Future[Pairs]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-sketch") as pool:
        for batch, target in batches:
            codes, ends = _unpack(batch, target)
            for pieces in _cut(ends, target[target >= 0], parameters, windows_a_task):
                tasks.append(pool.submit(_sketch, codes, pieces, parameters))
                while len(tasks) > 4 * threads + 16:
                    done.append(tasks.popleft().result())
            advance(len(codes))
        done += [task.result() for task in tasks]
    return done


def _unpack(
    batch: RecordBatch, target: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes of the wanted sequences, one after the other, and where each one ends."""
    wanted = target >= 0
    ends = np.cumsum(batch.seq_len[wanted], dtype=np.int64)
    codes = np.empty(int(ends[-1]) if len(ends) > 0 else 0, dtype=np.uint8)
    unpack_sequences(batch.data, batch.seq_start[wanted], batch.seq_end[wanted], codes)
    return codes, ends


def _cut(
    ends: NDArray[np.int64],
    target: NDArray[np.int64],
    parameters: SketchParameters,
    windows_a_task: int,
) -> Iterator[Pieces]:
    """Cut sequences into tasks of about as many windows."""
    starts = np.append(np.int64(0), ends[:-1])
    windows = windows_of_lengths(ends - starts, parameters)
    last = np.cumsum(windows)
    first = last - windows
    total = int(last[-1]) if len(last) > 0 else 0
    for begin in range(0, total, windows_a_task):
        end = min(begin + windows_a_task, total)
        low = int(np.searchsorted(last, begin, side="right"))
        high = int(np.searchsorted(first, end, side="left"))
        yield Pieces(
            starts[low:high],
            ends[low:high],
            np.maximum(begin - first[low:high], 0),
            np.minimum(end - first[low:high], windows[low:high]),
            target[low:high],
        )


def _sketch(codes: NDArray[np.uint8], pieces: Pieces, parameters: SketchParameters) -> Pairs:
    most = int((pieces.last - pieces.first).sum()) * parameters.sketch
    keys = np.empty(most, dtype=np.uint32)
    windows = np.empty(most, dtype=np.uint32)
    start = np.empty(len(pieces.start) + 1, dtype=np.int64)
    sketch_pieces(
        codes, pieces.start, pieces.end, pieces.first, pieces.last, parameters.rules,
        keys, windows, start,
    )  # fmt: skip
    count = int(start[-1])
    if count < most * 7 // 8:  # do not hold much memory for nothing
        keys, windows = keys[:count].copy(), windows[:count].copy()
    return Pairs(keys[:count], windows[:count], start, pieces.target)
