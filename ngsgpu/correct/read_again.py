"""Reading inputs a second time, record by record, to write them with their edits.

That works for all that can be read; ``ngsgpu.io.output.patch`` is the quicker way where the
places of the sequences are known from the first reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct import cpu
from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.run import Run
from ngsgpu.errors import InputError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.patch import EditCounts
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.pool import Shared, map_ahead

if TYPE_CHECKING:
    from ngsgpu.readset import ReadSet
    from ngsgpu.readset.gpu import DeviceReadSet


@dataclass(frozen=True, slots=True)
class ReadLengths:
    """What is known of the reads from the first reading.

    Attributes:
        reads: how many.
        paired: whether reads 2p and 2p + 1 are mates.
        uniform_length: the length of all, or -1.
        lengths: int32[reads]; empty where all are equal.
        max_length: longest read, in bases.
    """

    reads: int
    paired: bool
    uniform_length: int
    lengths: NDArray[np.int32]
    max_length: int

    @classmethod
    def of(cls, reads: ReadSet | DeviceReadSet) -> ReadLengths:
        """That of a read set."""
        arrays: Any = getattr(reads, "arrays", reads)
        lengths = arrays.lengths
        return cls(
            reads=reads.reads,
            paired=reads.paired,
            uniform_length=arrays.uniform_length,
            lengths=lengths if isinstance(lengths, np.ndarray) else lengths.get(),
            max_length=reads.max_length,
        )


class ReadAgain(Run):
    """A run that can read its inputs a second time."""

    def batches(self, lane: ReadFiles) -> Iterator[tuple[RecordBatch, ...]]:
        """The records of a lane."""
        return lane.batches(
            threads=self.options.threads,
            phred_offset=self.phred_offset,
            chunk_bytes=self.chunk_bytes,
        )

    def write_again(
        self,
        lanes: Sequence[ReadFiles],
        read_lengths: ReadLengths,
        corrections: Corrections,
        outputs: OutputSet,
    ) -> EditCounts:
        """Read the lanes again and write them with the edits.

        Raises:
            InputError: a file is not what it was.
        """
        size = 2 if read_lengths.paired else 1, max(1, read_lengths.max_length)
        threads = self.options.threads
        spaces = Shared(EditCounts(0, 0, np.zeros(size, dtype=np.int64)) for _ in range(threads))

        def tasks() -> Iterator[tuple[ReadFiles, tuple[RecordBatch, ...], int]]:
            first_read = 0
            for lane in lanes:
                for mates in self.batches(lane):
                    yield lane, mates, first_read
                    first_read += sum(map(len, mates))
            check_complete(lanes, read_lengths, first_read)

        def edit(
            task: tuple[ReadFiles, tuple[RecordBatch, ...], int],
        ) -> tuple[ReadFiles, tuple[RecordBatch, ...]]:
            lane, mates, first_read = task
            check_unchanged(mates, read_lengths, first_read)
            with spaces.borrowed() as counts:
                for mate, batch in enumerate(mates):
                    _edit(batch, first_read + mate, len(mates), corrections, counts)
            return lane, mates

        with (
            self.writing(read_lengths.reads) as stage,
            ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-edit") as pool,
        ):
            for lane, mates in map_ahead(pool, edit, tasks(), threads + 2):
                for mate, batch in enumerate(mates):
                    outputs.write(lane.outputs[mate], batch.text)
                stage.advance(sum(map(len, mates)))
        return EditCounts(
            sum(counts.reads for counts in spaces.things),
            sum(counts.ambiguous for counts in spaces.things),
            np.sum([counts.by_position for counts in spaces.things], axis=0),
        )


def check_complete(lanes: Sequence[ReadFiles], read_lengths: ReadLengths, reads: int) -> None:
    """Refuse files that had more reads in the first reading.

    Args:
        lanes: all of them.
        read_lengths: what is known from the first reading.
        reads: how many there were in the second one.

    Raises:
        InputError: there were fewer.
    """
    if reads != read_lengths.reads:
        raise InputError(
            lanes[-1].inputs[0],
            "the file was truncated during the run",
            "run again when no other program writes to it",
        )


def _edit(
    batch: RecordBatch, first: int, step: int, corrections: Corrections, counts: EditCounts
) -> None:
    """Replace bases in a batch whose record i is read ``first + i * step``."""
    mate = first % step
    # Mates alternate within the batch, or the batch holds one mate of every pair.
    other = len(counts.by_position) - 1 if step == 1 else mate
    changed, decided = cpu.write_edits(
        batch.data,
        batch.seq_start,
        first,
        step,
        corrections.edit_start,
        corrections.edit_count,
        corrections.edits,
        counts.by_position[mate],
        counts.by_position[other],
    )
    counts.reads += changed
    counts.ambiguous += decided


def check_unchanged(
    mates: tuple[RecordBatch, ...], read_lengths: ReadLengths, first_read: int
) -> None:
    """Refuse a file whose reads are not those of the first reading.

    Args:
        mates: records from read ``first_read`` on; with two batches, of first and second mates.
        read_lengths: what is known from the first reading.
        first_read: number of the first record.

    Raises:
        InputError: the lengths differ.
    """
    for mate, batch in enumerate(mates):
        last = first_read + len(mates) * len(batch)
        if read_lengths.uniform_length >= 0:
            same = last <= read_lengths.reads and bool(
                np.all(batch.seq_len == read_lengths.uniform_length)
            )
        else:
            lengths = read_lengths.lengths[first_read + mate : last : len(mates)]
            same = np.array_equal(batch.seq_len, lengths)
        if not same:
            raise InputError(
                batch.path,
                "the file changed during the run",
                "run again when no other program writes to it",
            )
