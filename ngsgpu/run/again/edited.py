"""Runs whose outputs are the inputs with some bases replaced."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import EditCounts, Edits, EditStyle, write_edits
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.pool import Shared, working
from ngsgpu.run.progress import Stage
from ngsgpu.run.staged import Parameters, ReadLengths, StagedRun

_Task: TypeAlias = tuple[ReadFiles, tuple[RecordBatch, ...], int]
"""Records of some files, and the number of the first read."""

Rendered: TypeAlias = list[tuple[int, Any]]
"""Indices of outputs, and bytes for them."""

Render: TypeAlias = Callable[[ReadFiles, tuple[RecordBatch, ...], int], Rendered]
"""What is written of records that are edited; see ``_Task``."""

HIGHEST_QUALITY: Final = 20
"""Phred score that a changed base gets at most (``--quality``); see ``docs/correct.md``."""

MASKED_QUALITY: Final = 2
"""The same for a base that becomes N: what Illumina's pipelines write for N."""

_LOG = logging.getLogger("ngsgpu")


class EditingParameters(Parameters, Protocol):
    """What the parameters of stages that replace bases have."""

    @property
    def mask(self) -> bool:
        """Whether bases become N."""

    @property
    def quality(self) -> bool:
        """Whether their qualities are lowered."""


E = TypeVar("E", bound=EditingParameters)


class EditingRun(StagedRun[E]):
    """A run whose outputs are the inputs with some bases replaced."""

    WORK = "correction"
    LONG_READS = "correct long reads by a program that is made for their errors, such as Canu"
    HARM = "correction takes these bases for reads of one place, and replaces right ones"

    def copy_inputs(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> None:
        """Start copying the inputs to the outputs after ``read``, if that helps.

        Args:
            lanes: the inputs.
            outputs: the outputs.
        """

    def correcting(self) -> AbstractContextManager[Stage]:
        """The step of the corrections."""
        return self.step("correct", "correcting", self.reads.reads)

    def style(self) -> EditStyle:
        """How corrections are written."""
        if not self.parameters.quality:
            return EditStyle(self.parameters.mask)
        highest = MASKED_QUALITY if self.parameters.mask else HIGHEST_QUALITY
        return EditStyle(self.parameters.mask, self.offset + highest)

    def write(
        self,
        lanes: Sequence[ReadFiles],
        edits: Edits,
        outputs: OutputSet,
        render: Render | None = None,
    ) -> EditCounts:
        """Read the lanes again and write them with edits, or what ``render`` makes of that.

        Raises:
            InputError: a file has changed.
        """
        with self.step("write", "writing", self.reads.reads) as stage:
            return self._write(lanes, edits, outputs, stage.advance, render)

    def _write(
        self,
        lanes: Sequence[ReadFiles],
        edits: Edits,
        outputs: OutputSet,
        advance: Callable[[int], None],
        render: Render | None,
    ) -> EditCounts:
        """Write records one after the other; works for all readable input.

        ``ngsgpu.io.output.patch`` is faster if the first pass has recorded the positions of the
        sequences.
        """
        style = self.style()
        known = ReadLengths.of(self.reads)
        size = 2 if known.paired else 1, max(1, known.max_length)
        threads = self.options.threads
        spaces = Shared(EditCounts(0, 0, np.zeros(size, dtype=np.int64)) for _ in range(threads))

        def tasks() -> Iterator[_Task]:
            first_read = 0
            for lane in lanes:
                for number, mates in enumerate(self.batches(lane, self.offset)):
                    if number == 0 and style.highest_quality and mates[0].qual_start is None:
                        _LOG.warning("%s: no qualities; `quality` sets none", lane.inputs[0])
                    yield lane, mates, first_read
                    first_read += sum(map(len, mates))
            known.check_number(lanes, first_read)

        def edit(task: _Task) -> tuple[Rendered, int]:
            lane, mates, first_read = task
            known.check(mates, first_read)
            with spaces.borrowed() as counts:
                for mate, batch in enumerate(mates):
                    write_edits(
                        batch.data,
                        0,
                        batch.seq_start,
                        first_read + mate,
                        len(mates),
                        edits,
                        counts,
                        style,
                        is_fastq=batch.qual_start is not None,
                    )
            if render is not None:
                pieces = render(lane, mates, first_read)
            else:
                texts = (batch.text for batch in mates)
                pieces = list(zip(lane.outputs, texts, strict=True))
            return pieces, sum(map(len, mates))

        with working(threads, edit, tasks(), ahead=threads + 2, name="edit") as edited:
            for pieces, reads in edited:
                for index, piece in pieces:
                    outputs.write(index, piece)
                advance(reads)
        return EditCounts(
            sum(counts.reads for counts in spaces.things),
            sum(counts.ambiguous for counts in spaces.things),
            np.sum([counts.by_position for counts in spaces.things], axis=0),
        )
