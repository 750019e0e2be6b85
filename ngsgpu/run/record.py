"""The driver of stages that decide record by record: pairs or reads, each alone.

A stage (``RecordStage``) makes the bytes of its outputs from some records. The driver does the
rest, for all stages alike: it checks the files, reads them, hands tasks to threads or batches to
a GPU (``record_gpu``), writes what they make in the order of the records, adds up what they count,
shows the progress, and falls back to the CPU.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError, UnsuitableError
from ngsgpu.io.endings import check_names, refuse_fasta_name
from ngsgpu.io.inputs import ReadFiles, warn_of_long_reads, warn_of_mates
from ngsgpu.io.output.writer import Outputs, OutputSet
from ngsgpu.io.paths import check_distinct, is_stream
from ngsgpu.io.pipes import opened_together
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.pool import working
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress, say_if_compiling
from ngsgpu.run.statistics import RunStatistics, with_statistics

if TYPE_CHECKING:
    from ngsgpu.run.record_gpu import RecordKernels

S = TypeVar("S", bound=RunStatistics)

UNITS_PER_TASK = 65536
_SAMPLE_CHUNK_BYTES = 1 << 20


class Batch(NamedTuple):
    """Records of a lane: those of both mates, or of reads without mates."""

    mates: tuple[Mates, ...]
    lane: ReadFiles

    @classmethod
    def of(cls, records: tuple[RecordBatch, ...], lane: ReadFiles) -> Batch:
        """The records of a lane as they were read."""
        mates = Mates.of_pairs(records) if lane.paired else (Mates.of(records[0], 0, 1),)
        return cls(mates, lane)


class Task(NamedTuple):
    """Units (pairs, or reads without mates) ``begin`` up to ``end`` of a batch.

    ``prepared`` is what ``RecordStage.prepare`` has added.
    """

    mates: tuple[Mates, ...]
    lane: ReadFiles
    begin: int
    end: int
    prepared: Any = None


class Made(NamedTuple):
    """What a task has made.

    Attributes:
        pieces: bytes for each output of the stage.
        counts: what was counted; is added to those of ``RecordStage.no_counts``.
    """

    pieces: Sequence[NDArray[np.uint8]]
    counts: Any


class RecordStage(ABC, Generic[S]):
    """A stage that decides record by record.

    Attributes:
        NAME: of the step in the statistics, and of its threads.
        DOING: what progress says.
        WORK: the work as a noun, for messages.
        LONG_READS: what to do with long reads, for a warning; empty: they are as good.
        NEEDS_QUALITIES: whether FASTA is refused.
        phred_offset: 33, 64 or ``auto``.
    """

    NAME: ClassVar[str]
    DOING: ClassVar[str]
    WORK: ClassVar[str]
    LONG_READS: ClassVar[str] = ""
    NEEDS_QUALITIES: ClassVar[bool] = False
    phred_offset: PhredOffset

    def learn(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Look at the first records before anything is decided; gives back all of them."""
        return batches

    def targets(self, lane: ReadFiles) -> Mapping[int, int]:
        """For each output of the stage that a lane has, the index of its file."""
        return dict(enumerate(lane.outputs))

    def outputs(self, files: Outputs) -> Outputs:
        """Where the pieces go: the files, or what changes the bytes on their way to them."""
        return files

    @abstractmethod
    def no_counts(self) -> Any:
        """Counts of nothing, to which others are added by ``+=``."""

    def prepare(self, task: Task) -> Task:
        """Add to a task on the CPU what depends on earlier ones; called in their order."""
        return task

    @abstractmethod
    def on_cpu(self, task: Task) -> Made:
        """Decide some units; called by several threads at once."""

    def on_gpu(self, chunk_bytes: int) -> RecordKernels:
        """The kernels on the current GPU, for chunks of files of this size.

        Raises:
            UnsuitableError: there are none.
        """
        raise UnsuitableError(f"{self.WORK} runs on the CPU; use `backend='cpu'`")

    def gpu_room(self, memory: int) -> int:
        """Bytes that a limit of GPU memory leaves for the records.

        Raises:
            DeviceMemoryError: too few.
        """
        return memory

    def texts(self, counts: Any) -> Iterable[str]:
        """Small outputs that follow from the counts."""
        return ()

    @abstractmethod
    def statistics(self, options: RunOptions, backend: str, counts: Any) -> S:
        """The statistics of a run, except for its times."""


class RecordDriver:
    """Runs a stage from files to files.

    Args:
        lanes: the inputs.
        outputs: files of reads, which ``RecordStage.targets`` numbers.
        texts: files for ``RecordStage.texts``.
        stats: JSON file for the statistics.
        options: threads and so on.
        also_read: other files that no output may overwrite.

    Raises:
        UsageError: a file is named twice.
    """

    def __init__(
        self,
        lanes: Sequence[ReadFiles],
        outputs: Sequence[str],
        options: RunOptions,
        *,
        texts: Sequence[str] = (),
        stats: str | Path | None = None,
        also_read: Iterable[str | Path] = (),
    ) -> None:
        self._lanes = lanes
        self._outputs = outputs
        self._stats = stats
        self._paths = [*outputs, *texts]
        self._options = options
        inputs = [path for lane in lanes for path in lane.inputs]
        written = [*self._paths, *([] if stats is None else [str(stats)])]
        check_distinct(inputs, written, also_read=also_read)
        check_names(inputs, outputs)
        warn_of_mates(lanes)
        self._begin = time.monotonic()
        self._seconds: dict[str, float] = {}
        self._looked = False

    def note_time(self, step: str) -> None:
        """Note the time of a step that began with the run and ends now."""
        self._seconds[step] = _since(self._begin)

    def run(self, stage: RecordStage[S]) -> S:
        """Read, decide, write.

        Raises:
            InputError: an input cannot be read; no output was written.
            OutputError: an output cannot be written; none was.
            DeviceError: the GPU failed, and the CPU may not take over.
        """
        return on_backend(
            self._options, lambda: self._run_on_gpu(stage), lambda: self._run_on("cpu", stage)
        )

    def _run_on_gpu(self, stage: RecordStage[S]) -> S:
        """Run on the GPU, which requires rereadable input.

        Raises:
            InputError: an input is invalid; with the CPU reader's message.
            UnsuitableError: the GPU reader does not support an input, or the outputs.
            DeviceError: CUDA fails.
        """
        from ngsgpu.io.gpu.feed import IrregularInputError

        if any(map(is_stream, self._outputs)) or not all(lane.is_regular for lane in self._lanes):
            raise UnsuitableError(
                f"{stage.WORK} on a GPU needs files, not standard input, standard output or pipes; "
                "name files or use `backend='cpu'`"
            )
        try:
            return self._run_on("cuda", stage)
        except (IrregularInputError, InputError) as error:
            reason = f"{error}, which is not for {stage.WORK} on a GPU; use `backend='cpu'`"
        if not self._options.may_fall_back:
            for _ in self._batches(stage, self._options.chunk_bytes):
                pass
        raise UnsuitableError(reason)

    def _run_on(self, backend: Literal["cpu", "cuda"], stage: RecordStage[S]) -> S:
        begin = time.monotonic()
        options, work = self._options, self._work_on_gpu
        if backend == "cpu":
            say_if_compiling()
            work = self._work_on_cpu

        def write(files: OutputSet) -> S:
            inputs = (path for lane in self._lanes for path in lane.inputs)
            with Progress(options.progress) as progress, opened_together(inputs):
                counts = work(stage, stage.outputs(files), progress)
            worked = _since(begin)
            statistics = stage.statistics(options, backend, counts)
            for index, text in enumerate(stage.texts(counts), start=len(self._outputs)):
                files.write(index, text.encode())
            statistics.time_s |= self._seconds | {stage.NAME: worked}
            return statistics

        return with_statistics(self._paths, self._stats, options, write, begin=self._begin)

    @property
    def _unit(self) -> str:
        return "pairs" if self._lanes[0].paired else "reads"

    def _work_on_cpu(self, stage: RecordStage[S], files: Outputs, progress: Progress) -> Any:
        options = self._options

        def work(task: Task) -> tuple[ReadFiles, int, Made]:
            return task.lane, task.end - task.begin, stage.on_cpu(task)

        batches = stage.learn(self._batches(stage, options.chunk_bytes))
        tasks = map(stage.prepare, tasks_of(batches, options.units_per_task or UNITS_PER_TASK))
        counts = stage.no_counts()
        with (
            progress.stage(stage.DOING, unit=self._unit) as shown,
            working(options.threads, work, tasks, name=stage.NAME) as done,
        ):
            for lane, units, made in done:
                counts += made.counts
                for number, index in stage.targets(lane).items():
                    if len(made.pieces[number]):
                        files.write(index, made.pieces[number])
                shown.advance(units)
        return counts

    def _work_on_gpu(self, stage: RecordStage[S], files: Outputs, progress: Progress) -> Any:
        from ngsgpu.device.errors import cuda_errors
        from ngsgpu.device.team import limited_gpu_memory
        from ngsgpu.run.record_gpu import MOST_CHUNK_BYTES, run_on_gpu

        options = self._options
        with closing(self._batches(stage, _SAMPLE_CHUNK_BYTES)) as batches:
            stage.learn(batches)
            if stage.LONG_READS and not self._looked:
                next(batches, None)  # looks at them
        with (
            limited_gpu_memory(options.gpu_memory),
            cuda_errors(stage.WORK),
            progress.stage(stage.DOING, unit=self._unit) as shown,
        ):
            return run_on_gpu(
                stage.on_gpu,
                [(lane, stage.targets(lane)) for lane in self._lanes],
                files,
                phred_offset=stage.phred_offset,
                threads=options.threads,
                chunk_bytes=min(options.chunk_bytes, MOST_CHUNK_BYTES),
                memory=None if options.gpu_memory is None else stage.gpu_room(options.gpu_memory),
                advance=shown.advance,
            )

    def _batches(self, stage: RecordStage[S], chunk_bytes: int) -> Generator[Batch, None, None]:
        for lane in self._lanes:
            for records in lane.batches(
                threads=self._options.threads,
                phred_offset=stage.phred_offset,
                chunk_bytes=chunk_bytes,
            ):
                if not lane.is_regular and records[0].qual_start is not None:
                    refuse_fasta_name(self._outputs)
                for batch in records:
                    if stage.NEEDS_QUALITIES and batch.qual_start is None:
                        raise InputError(
                            batch.path,
                            f"this is FASTA, but {stage.WORK} needs qualities",
                            "give FASTQ files",
                            record=1,
                            line=1,
                        )
                if stage.LONG_READS and not self._looked:
                    self._looked = True
                    reads = sum(map(len, records))
                    bases = sum(int(own.seq_len.sum(dtype=np.int64)) for own in records)
                    warn_of_long_reads(reads, bases, self._lanes, stage.WORK, stage.LONG_READS)
                yield Batch.of(records, lane)


def tasks_of(batches: Iterator[Batch], units: int) -> Iterator[Task]:
    """Cut batches into tasks of at most ``units`` units, in order."""
    for batch in batches:
        total = len(batch.mates[0].seq_len)
        for begin in range(0, total, units):
            yield Task(*batch, begin, min(begin + units, total))


def _since(begin: float) -> float:
    """Seconds since a time of ``time.monotonic``, for the statistics."""
    return round(time.monotonic() - begin, 3)
