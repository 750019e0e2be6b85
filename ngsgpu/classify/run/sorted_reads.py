"""The reads of a sample that were classified, and those that were not, as they are in its files.

They are written as their calls become known. Where that is in a second pass, the files are read a
second time, too, or taken from memory where compressed ones were kept. On a GPU that is for records
that ``gpu_records`` does not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.run.samples import RECORD_FILES, Sample, SampleOutputs
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import ReadFiles, keep_streams
from ngsgpu.io.paths import changed
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.copy import kept_records
from ngsgpu.pool import working
from ngsgpu.run.kept import KeptRecords
from ngsgpu.run.options import RunOptions
from ngsgpu.run.record import Batch, Task

_ANY_QUALITIES: Final = 33
"""With this offset the reader takes any qualities; they are only copied."""


class SortedReads:
    """Gives the records of a sample's queries in their order, and copies those with a call.

    Either the records go with their queries, or, where these are looked at twice, the files are
    read again; compressed ones stay in memory instead, as far as there is room.

    Args:
        lanes: files of the sample, all of one kind.
        files: parameters of the files that are wanted, see ``samples.RECORD_FILES``.
        options: threads and so on.
        again: whether the files are read again, for which they must not change.
    """

    def __init__(
        self,
        lanes: Sequence[ReadFiles],
        files: Sequence[str],
        options: RunOptions,
        *,
        again: bool = True,
    ) -> None:
        self._lanes, self._options, self._again = lanes, options, again
        self._wanted = {
            classified: own
            for classified, names in RECORD_FILES.items()
            if (own := [name for name in names if name in files])
        }
        self._kept = KeptRecords(options.kept_bytes)
        self._passing: deque[Batch] = deque()
        self._second = self._batches()
        self._batch: Batch | None = None
        self._at = 0
        self._written = 0
        self._classified: list[NDArray[np.bool_]] = []

    def keep(
        self, lane: ReadFiles, batches: Iterator[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Pass on the records of a lane, and keep what ``take`` will give."""
        return self._kept.keep(lane, batches) if self._again else self._pass_on(lane, batches)

    def _pass_on(
        self, lane: ReadFiles, batches: Iterator[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[RecordBatch, ...]]:
        for records in batches:
            self._passing.append(Batch.of(records, lane))
            yield records

    def _batches(self) -> Iterator[Batch]:
        """All records, a second time."""
        for lane in self._lanes:
            batches = self._kept.take(lane) or lane.batches(
                threads=self._options.threads,
                phred_offset=_ANY_QUALITIES,
                chunk_bytes=self._options.chunk_bytes,
            )
            for records in batches:
                yield Batch.of(records, lane)

    def take(self, queries: int) -> Iterator[Task]:
        """The records of the next queries.

        Raises:
            InputError: a file has changed.
        """
        while queries > 0:
            batch, begin = self._batch or self._next_batch(), self._at
            if batch is None:
                raise changed(self._lanes[-1].inputs[0])
            units = len(batch.mates[0].seq_len)
            end = min(units, begin + queries)
            queries -= end - begin
            self._batch, self._at = (batch, end) if end < units else (None, 0)
            yield Task(*batch, begin, end)

    def _next_batch(self) -> Batch | None:
        """The next batch that has records."""
        batches = self._second if self._again else self._passed()
        return next((batch for batch in batches if len(batch.mates[0].seq_len)), None)

    def _passed(self) -> Iterator[Batch]:
        while self._passing:
            yield self._passing.popleft()

    def check_end(self) -> None:
        """Check that all records were taken.

        Raises:
            InputError: a file has changed, and has more of them now.
        """
        if self._batch is not None or self._next_batch() is not None:
            raise changed(self._lanes[-1].inputs[0])

    def copies(
        self, tasks: Iterable[Task], classified: NDArray[np.bool_]
    ) -> list[tuple[str, NDArray[np.uint8]]]:
        """Copies of records, by parameters of files; called by several threads at once.

        Args:
            tasks: the records of some queries.
            classified: bool, which of these have a call.
        """
        found: list[tuple[str, NDArray[np.uint8]]] = []
        done = 0
        for mates, lane, begin, end, _ in tasks:
            own = classified[done : done + end - begin]
            done += len(own)
            for is_classified, names in self._wanted.items():
                kept = own if is_classified else ~own
                pieces = kept_records(mates, begin, kept, interleaved=lane.interleaved)
                found += zip(names, pieces, strict=True)
        return found

    def add(self, classified: NDArray[np.bool_]) -> None:
        """Note which of the next queries have a call, for ``write``."""
        self._classified.append(classified)

    def leave_out(self, queries: int) -> None:
        """Note that the next queries are written already; none was added before."""
        self._written += queries

    def write(
        self, write: Callable[[int, NDArray[np.uint8]], None], index: Mapping[str, int]
    ) -> None:
        """Write the records of the queries that were added.

        Args:
            write: appends to an output of the sample.
            index: which of them is whose, by parameters.

        Raises:
            InputError: a file has changed.
        """
        if not self._classified:
            return
        for _ in self.take(self._written):
            pass

        def items() -> Iterator[tuple[list[Task], NDArray[np.bool_]]]:
            while self._classified:
                own = self._classified.pop(0)
                yield list(self.take(len(own))), own

        def work(item: tuple[list[Task], NDArray[np.bool_]]) -> list[tuple[str, NDArray[np.uint8]]]:
            return self.copies(*item)

        with working(self._options.threads, work, items(), name="sort") as done:
            for pieces in done:
                for name, piece in pieces:
                    if len(piece):
                        write(index[name], piece)
        self.check_end()


def check_lanes(samples: Sequence[Sample], outputs: SampleOutputs) -> None:
    """Refuse files of records that do not suit the reads of a sample.

    Raises:
        UsageError: a file is missing, or one is too many; a sample has pairs and single reads.
    """
    files = outputs.records
    for first, second in RECORD_FILES.values():
        if second in files and first not in files:
            raise UsageError(f"`{second}` is for second mates: give `{first}`, too")
    for sample in samples if files else ():
        kinds = {(len(lane.inputs), lane.paired) for lane in sample.lanes}
        if len(kinds) > 1:
            raise UsageError(
                f"{sample.name}: its files hold pairs and single reads, or pairs in one file and "
                f"in two, which `{files[0]}` cannot have together; classify them as two samples"
            )
        ((mates, _),) = kinds
        for first, second in RECORD_FILES.values():
            if first in files and (second in files) != (mates == 2):
                raise UsageError(
                    f"{sample.name}: the mates are in two files, so `{first}` needs `{second}`"
                    if mates == 2
                    else f"{sample.name}: `{second}` is for mates in two files, and there is one; "
                    f"`{first}` gets all reads, pairs interleaved as they are"
                )


@contextmanager
def rereadable(sample: Sample) -> Iterator[Sample]:
    """The sample with files that can be read twice, and must not change until the block ends.

    Raises:
        InputError: a file was changed.
        OutputError: a stream cannot be stored.
    """
    with (
        keep_streams(sample.lanes) as lanes,
        unchanged(path for lane in lanes for path in lane.inputs),
    ):
        yield replace(sample, lanes=tuple(lanes))
