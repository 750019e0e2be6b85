"""The reads of a sample that were classified, and those that were not, as they are in its files.

They are written when all calls are known: the files are read a second time, or taken from memory
where compressed ones were kept. On a GPU that is for records that ``gpu_records`` does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ngsgpu.run.record import UNITS_PER_TASK, Batch, Task, tasks_of

_ANY_QUALITIES: Final = 33
"""With this offset the reader takes any qualities; they are only copied."""


class SortedReads:
    """Collects which reads of a sample have a call, then writes these, or the others, or both.

    Args:
        lanes: files of the sample that can be read again, all of one kind.
        files: parameters of the files that are wanted, see ``samples.RECORD_FILES``.
        options: threads and so on.
    """

    def __init__(
        self, lanes: Sequence[ReadFiles], files: Sequence[str], options: RunOptions
    ) -> None:
        self._lanes, self._options = lanes, options
        self._wanted = {
            classified: own
            for classified, names in RECORD_FILES.items()
            if (own := [name for name in names if name in files])
        }
        self._kept = KeptRecords(options.kept_bytes)
        self._written = 0
        self._classified: list[NDArray[np.bool_]] = []

    def keep(
        self, lane: ReadFiles, batches: Iterator[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Pass on the records of a lane, and keep them if that saves inflating them again."""
        return self._kept.keep(lane, batches)

    def add(self, classified: NDArray[np.bool_]) -> None:
        """Note which of the next queries have a call."""
        self._classified.append(classified)

    def leave_out(self, queries: int) -> None:
        """Note that the next queries are written already; none was added before."""
        self._written += queries

    def write(
        self, write: Callable[[int, NDArray[np.uint8]], None], index: Mapping[str, int]
    ) -> None:
        """Write the records.

        Args:
            write: appends to an output of the sample.
            index: which of them is whose, by parameters.

        Raises:
            InputError: a file has changed.
        """
        if not self._classified:
            return
        targets = {
            classified: [index[name] for name in names]
            for classified, names in self._wanted.items()
        }

        def copies(task: Task) -> list[tuple[int, NDArray[np.uint8]]]:
            found: list[tuple[int, NDArray[np.uint8]]] = []
            for classified, files in targets.items():
                kept = task.prepared if classified else ~task.prepared
                pieces = kept_records(
                    task.mates, task.begin, kept, interleaved=task.lane.interleaved
                )
                found += zip(files, pieces, strict=True)
            return found

        with working(self._options.threads, copies, self._tasks(), name="sort") as done:
            for pieces in done:
                for number, piece in pieces:
                    if len(piece):
                        write(number, piece)

    def _tasks(self) -> Iterator[Task]:
        """Records, and which of them are classified."""
        classified = np.concatenate(self._classified)
        self._classified.clear()
        done = -self._written
        units = self._options.units_per_task or UNITS_PER_TASK
        for task in tasks_of(self._batches(), units):
            begin, done = done, done + task.end - task.begin
            if done > len(classified):
                raise changed(task.lane.inputs[0])
            if done > 0:
                own = classified[max(0, begin) : done]
                yield task._replace(begin=task.end - len(own), prepared=own)
        if done < len(classified):
            raise changed(self._lanes[-1].inputs[0])

    def _batches(self) -> Iterator[Batch]:
        for lane in self._lanes:
            batches = self._kept.take(lane) or lane.batches(
                threads=self._options.threads,
                phred_offset=_ANY_QUALITIES,
                chunk_bytes=self._options.chunk_bytes,
            )
            for records in batches:
                yield Batch.of(records, lane)


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
