"""Building databases on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.database import Database, Partition
from ngsgpu.classify.database.memory import read_ahead_bytes
from ngsgpu.classify.database.plan import window_taxa
from ngsgpu.classify.database.write import write_partition
from ngsgpu.classify.index.cpu import build_index
from ngsgpu.classify.index.index import NO_TAXA, REMOVED, Limits, Pairs
from ngsgpu.classify.index.sketching import Unpacked, sketch_batches
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.sketch.references import TargetSink, add_batch, read_ahead
from ngsgpu.run.options import RunOptions

_SinkT = TypeVar("_SinkT", bound=TargetSink)


class CpuBuilder:
    """Builds with the threads of the CPU."""

    def __init__(self, parameters: DatabaseParameters, options: RunOptions) -> None:
        self._parameters = parameters
        self._options = options

    def sketch(
        self, files: Sequence[str], new_sink: Callable[[], _SinkT], advance: Callable[[int], None]
    ) -> tuple[list[Any], _SinkT]:
        """See ``build._Builder``."""
        sink = new_sink()
        pairs = sketch_batches(
            all_batches(files, sink, self._options),
            self._parameters.sketch,
            threads=self._options.threads,
            advance=advance,
        )
        return pairs, sink

    def index(self, database: Database, number: int, sketches: list[Any]) -> Partition:
        """See ``build._Builder``."""
        return index_partition(database, number, sketches, threads=self._options.threads)

    def store(self, database: Database, number: int, sketches: list[Any]) -> None:
        """See ``build._Builder``."""
        partition = self.index(database, number, sketches)
        write_partition(database, partition, self._options.threads)


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
    """All sequences of files, read by the CPU, telling a sink of the records."""
    with closing(read_ahead(files, options.threads, read_ahead_bytes(options))) as batches:
        for _, batch, codes, start in batches:
            yield Unpacked(codes, start, add_batch(sink, batch))
