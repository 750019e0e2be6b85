"""A run in steps that are timed and shown, from files to files, on either backend."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from ngsgpu.io.inputs import ReadFiles, ReadSizes, keep_streams, measure_lanes
from ngsgpu.io.mates import warn_of_mates
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import check_distinct
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.run.options import RunOptions
from ngsgpu.run.plan import chunk_bytes_within
from ngsgpu.run.progress import Progress, Stage, say_if_compiling
from ngsgpu.run.reading import Contents, Plan, read_within

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet


class Parameters(Protocol):
    """What the parameters of all stages have."""

    @property
    def quality_bits(self) -> int:
        """Bits stored per quality."""


P = TypeVar("P", bound=Parameters)


class OpenFiles(NamedTuple):
    """Inputs and outputs of a run, and how it is shown.

    Attributes:
        lanes: the inputs; streams are kept in files.
        outputs: written together, when the block ends well.
        progress: shows the steps.
        begin: when the run began, by ``time.monotonic``.
    """

    lanes: list[ReadFiles]
    outputs: OutputSet
    progress: Progress
    begin: float

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return round(time.monotonic() - self.begin, 3)


@contextmanager
def open_files(
    lanes: Sequence[ReadFiles], outputs: Sequence[str], options: RunOptions
) -> Iterator[OpenFiles]:
    """Check and open the files of a run that reads its inputs twice.

    Raises:
        InputError: an input cannot be read, or changed during the block.
        UsageError: an output would overwrite an input or another output.
        OutputError: an output cannot be written; none was.
    """
    check_distinct([path for lane in lanes for path in lane.inputs], outputs)
    warn_of_mates(lanes)
    begin = time.monotonic()
    say_if_compiling()
    with (
        OutputSet(outputs, threads=options.threads) as output_set,
        keep_streams(lanes) as kept,
        unchanged(path for lane in kept for path in lane.inputs),
        Progress(options.progress) as progress,
    ):
        yield OpenFiles(kept, output_set, progress, begin)


def measure(
    lanes: Sequence[ReadFiles], options: RunOptions, phred_offset: PhredOffset
) -> tuple[int, ReadSizes]:
    """Memory budget, and numbers of reads and bases, of a run that only plans.

    Raises:
        InputError: an input cannot be read.
    """
    budget = options.budget
    with keep_streams(lanes) as kept:
        sizes = measure_lanes(
            kept,
            threads=options.threads,
            phred_offset=phred_offset,
            chunk_bytes=chunk_bytes_within(budget, options.chunk_bytes),
        )
    return budget, sizes


class StagedRun(ABC, Generic[P]):
    """A run of a stage with all reads in memory; a context manager.

    Args:
        parameters: of the stage.
        options: of the run.
        phred_offset: 33, 64 or ``auto``.
        progress: shows the steps.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        reads: the reads, after ``read`` or ``take``.
        budget: memory budget in bytes at the start of the run.
        chunk_bytes: bytes per chunk of a file.
        seconds: time of each step.
        memory: bytes of memory, planned and used, for the statistics.
        gpu: GPU memory in bytes, and its use; empty on the CPU.
    """

    backend: ClassVar[str]
    reads: ReadSet | DeviceReadSet

    def __init__(
        self, parameters: P, options: RunOptions, phred_offset: PhredOffset, progress: Progress
    ) -> None:
        self.parameters = parameters
        self.options = options
        self.phred_offset: PhredOffset = phred_offset
        self.progress = progress
        self.budget = options.budget
        self.chunk_bytes = chunk_bytes_within(self.budget, options.chunk_bytes)
        self.seconds: dict[str, float] = {}
        self.memory: dict[str, int] = {}
        self.gpu: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._open = ExitStack()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    @abstractmethod
    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into ``reads``."""

    @abstractmethod
    def take(self, reads: ReadSet) -> None:
        """Use reads that are already in memory."""

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Note the time of a step."""
        begin = time.monotonic()
        yield
        self.seconds[step] = round(time.monotonic() - begin, 3)

    @contextmanager
    def step(
        self, step: str, words: str, total: int | None = None, unit: str = "reads"
    ) -> Iterator[Stage]:
        """Note the time of a step and show its progress."""
        with self.timed(step), self.progress.stage(words, total=total, unit=unit) as stage:
            yield stage

    def batches(self, lane: ReadFiles) -> Iterator[tuple[RecordBatch, ...]]:
        """The records of a lane, by the CPU's reader."""
        return lane.batches(
            threads=self.options.threads,
            phred_offset=self.phred_offset,
            chunk_bytes=self.chunk_bytes,
        )

    @property
    def offset(self) -> int:
        """Offset of the quality characters."""
        return 33 if self.phred_offset == "auto" else self.phred_offset


class CpuRun(StagedRun[P]):
    """A run on the CPU."""

    backend = "cpu"
    reads: ReadSet

    @abstractmethod
    def plan(self, contents: Contents, *, paired: bool) -> Plan:
        """Memory that the run needs for some reads."""

    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into a read set.

        Raises:
            InputError: an input cannot be read.
            HostMemoryError: the memory does not suffice.
        """
        paired = lanes[0].paired
        builder = ReadSetBuilder(
            paired=paired,
            quality_bits=self.parameters.quality_bits,
            phred_offset=self.offset,
            threads=self.options.threads,
        )
        with self.step("read", "reading") as stage:
            self.reads = read_within(
                lanes,
                self.batches,
                builder,
                lambda contents: self.plan(contents, paired=paired),
                self.parameters,
                stage.advance,
            )

    def take(self, reads: ReadSet) -> None:
        """Use reads that are already in memory."""
        self.reads = reads
        if self.options.memory is None:  # what the reads take is taken already
            self.budget += reads.nbytes

    def check_memory(self) -> None:
        """Check that the run fits into memory, before building its tables.

        Raises:
            UsageError: it does not.
        """
        reads = self.reads
        contents = Contents(reads.reads, reads.bases, reads.max_length, reads.nbytes)
        plan = self.plan(contents, paired=reads.paired)
        self.memory["planned_bytes"] = plan.total_bytes
        plan.check(self.parameters)
