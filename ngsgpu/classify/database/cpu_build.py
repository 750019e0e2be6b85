"""Building databases on the CPU: reading, sketching and sorting on several threads.

Threads read whole files ahead and unpack the bases; tasks of about a million bases are sketched
by a pool. The order of the pairs is that of the targets and windows, however the tasks are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.database import Database, Partition
from ngsgpu.classify.database.memory import read_ahead_bytes
from ngsgpu.classify.database.plan import window_taxa
from ngsgpu.classify.database.write import write_partition
from ngsgpu.classify.index.cpu import build_index
from ngsgpu.classify.index.index import NO_TAXA, REMOVED, Limits, Pairs
from ngsgpu.classify.params import DatabaseParameters, SketchParameters
from ngsgpu.classify.sketch.cpu import sketch_pieces
from ngsgpu.classify.sketch.references import TargetSink, add_batch, read_ahead, windows_of_lengths
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.pool import working
from ngsgpu.run.options import RunOptions

WINDOWS_PER_TASK: Final = 8192


@dataclass(frozen=True, slots=True)
class Pieces:
    """Consecutive windows of sequences with their codes in one array; see ``sketch_pieces``."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    target: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Consecutive reference sequences as codes.

    Attributes:
        codes: uint8, one sequence after the other; see ``unpack_bases``.
        start: int64[n + 1], where each begins, and the end of the last.
        target: int64[n], number of each one's target; -1: leave it out.
    """

    codes: NDArray[np.uint8]
    start: NDArray[np.int64]
    target: NDArray[np.int64]


def sketch_batches(
    batches: Iterable[Unpacked],
    parameters: SketchParameters,
    *,
    threads: int = 1,
    windows_per_task: int = WINDOWS_PER_TASK,
    advance: Callable[[int], None] = lambda bases: None,
) -> list[Pairs]:
    """Sketch reference sequences.

    Args:
        batches: the sequences, in order.
        parameters: windows and sketches.
        threads: number of threads.
        windows_per_task: windows per task; affects only how the result is divided.
        advance: called with the number of bases sketched since the last call.
    """

    def tasks() -> Iterator[tuple[NDArray[np.uint8], Pieces]]:
        for batch in batches:
            for pieces in _cut(batch, parameters, windows_per_task):
                yield batch.codes, pieces
            advance(len(batch.codes))

    def sketch(task: tuple[NDArray[np.uint8], Pieces]) -> Pairs:
        return _sketch(*task, parameters)

    ahead = 4 * threads + 16
    with working(threads, sketch, tasks(), ahead=ahead, name="sketch") as sketched:
        return list(sketched)


def _cut(batch: Unpacked, parameters: SketchParameters, windows_per_task: int) -> Iterator[Pieces]:
    """Cut sequences into tasks of about as many windows."""
    wanted = batch.target >= 0
    starts, ends, target = batch.start[:-1][wanted], batch.start[1:][wanted], batch.target[wanted]
    windows = windows_of_lengths(ends - starts, parameters)
    last = np.cumsum(windows)
    first = last - windows
    total = int(last[-1]) if len(last) > 0 else 0
    for begin in range(0, total, windows_per_task):
        end = min(begin + windows_per_task, total)
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
    most = int((pieces.last - pieces.first).sum()) * (parameters.sketch or parameters.stride)
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


_SinkT = TypeVar("_SinkT", bound=TargetSink)


class CpuBuilder:
    """Builds with the threads of the CPU."""

    def __init__(self, parameters: DatabaseParameters, options: RunOptions) -> None:
        self._parameters = parameters
        self._options = options

    def sketch(
        self, files: Sequence[str], new_sink: Callable[[], _SinkT], advance: Callable[[int], None]
    ) -> tuple[list[Any], _SinkT]:
        """See ``build.Builder``."""
        sink = new_sink()
        pairs = sketch_batches(
            all_batches(files, sink, self._options),
            self._parameters.sketch,
            threads=self._options.threads,
            advance=advance,
        )
        return pairs, sink

    def index(self, database: Database, number: int, sketches: list[Any]) -> Partition:
        """See ``build.Builder``."""
        return index_partition(database, number, sketches, threads=self._options.threads)

    def store(
        self,
        database: Database,
        number: int,
        sketches: list[Any],
        also: Callable[[], Sequence[AtomicFile]] = tuple,
    ) -> None:
        """See ``build.Builder``."""
        partition = self.index(database, number, sketches)
        write_partition(database, partition, self._options.threads, also)


def index_partition(
    database: Database,
    number: int,
    pairs: Sequence[Pairs],
    *,
    threads: int,
    removed: NDArray[np.uint32] | None = None,
) -> Partition:
    """Build the index of a partition.

    Args:
        database: lists its targets.
        number: of the partition.
        pairs: of (at least) its targets.
        threads: number of threads.
        removed: keys that must have no location.
    """
    target, first_window, shift = database.members(number)
    taxa = window_taxa(database, number) or NO_TAXA
    shifts = [shift[own.target] for own in pairs]
    if removed is not None and len(removed) > 0:
        windows = np.full(len(removed), REMOVED, dtype=np.uint32)
        one = np.zeros(1, dtype=np.int64)
        pairs = [*pairs, Pairs(removed, windows, np.array([0, len(removed)]), one)]
        shifts.append(one)
    index = build_index(pairs, shifts, Limits.of(database.parameters), taxa=taxa, threads=threads)
    return Partition(number, target, first_window, index)


def all_batches(files: Sequence[str], sink: TargetSink, options: RunOptions) -> Iterator[Unpacked]:
    """All sequences of files, read by the CPU, telling a sink of the records.

    Args:
        files: paths of FASTA files.
        sink: receives the records' names and lengths.
        options: threads and memory budget.
    """
    with closing(read_ahead(files, options.threads, read_ahead_bytes(options))) as batches:
        for _, batch, codes, start in batches:
            yield Unpacked(codes, start, add_batch(sink, batch))
