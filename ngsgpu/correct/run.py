"""The steps of a correction, whichever backend computes them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

import numpy as np

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.patch import EditCounts, replace_bases
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.pool import Shared, working
from ngsgpu.readset.kmers import KmerSpectrum
from ngsgpu.run.progress import Stage
from ngsgpu.run.staged import ReadLengths, StagedRun

_Task: TypeAlias = tuple[ReadFiles, tuple[RecordBatch, ...], int]
"""Records of some files, and the number of the first read."""


class Run(StagedRun[CorrectionParameters]):
    """A correction: ``read`` (or ``take``), ``count``, ``correct``, ``write``."""

    def copy_inputs(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> None:
        """Start copying the inputs to the outputs after ``read``, if that helps."""

    @abstractmethod
    def count(self) -> KmerSpectrum:
        """The k-mer spectrum of the reads."""

    @abstractmethod
    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            UnsuitableError: a read is too long for the GPU.
            HostMemoryError: the memory does not suffice.
        """

    def building_tables(self) -> AbstractContextManager[Stage]:
        """The step of the tables."""
        return self.step("tables", "building tables", self.parameters.minhash.hashes, "tables")

    def correcting(self) -> AbstractContextManager[Stage]:
        """The step of the corrections."""
        return self.step("correct", "correcting", self.reads.reads)

    def writing(self) -> AbstractContextManager[Stage]:
        """The step of the outputs."""
        return self.step("write", "writing", self.reads.reads)

    def write(
        self, lanes: Sequence[ReadFiles], corrections: Corrections, outputs: OutputSet
    ) -> EditCounts:
        """Read the lanes again, record by record, and write them with the corrections.

        Works for all readable input; ``ngsgpu.io.output.patch`` is faster if the first pass has
        recorded the positions of the sequences.

        Raises:
            InputError: a file has changed.
        """
        known = ReadLengths.of(self.reads)
        size = 2 if known.paired else 1, max(1, known.max_length)
        edits = corrections.all_edits
        threads = self.options.threads
        spaces = Shared(EditCounts(0, 0, np.zeros(size, dtype=np.int64)) for _ in range(threads))

        def tasks() -> Iterator[_Task]:
            first_read = 0
            for lane in lanes:
                for mates in self.batches(lane):
                    yield lane, mates, first_read
                    first_read += sum(map(len, mates))
            known.check_number(lanes, first_read)

        def edit(task: _Task) -> _Task:
            _, mates, first_read = task
            known.check(mates, first_read)
            with spaces.borrowed() as counts:
                for mate, batch in enumerate(mates):
                    changed, decided = replace_bases(
                        batch.data,
                        0,
                        batch.seq_start,
                        first_read + mate,
                        len(mates),
                        edits,
                        counts.by_position,
                        True,
                    )
                    counts.reads += int(changed)
                    counts.ambiguous += int(decided)
            return task

        with (
            self.writing() as stage,
            working(threads, edit, tasks(), ahead=threads + 2, name="edit") as edited,
        ):
            for lane, mates, _ in edited:
                for mate, batch in enumerate(mates):
                    outputs.write(lane.outputs[mate], batch.text)
                stage.advance(sum(map(len, mates)))
        return EditCounts(
            sum(counts.reads for counts in spaces.things),
            sum(counts.ambiguous for counts in spaces.things),
            np.sum([counts.by_position for counts in spaces.things], axis=0),
        )
