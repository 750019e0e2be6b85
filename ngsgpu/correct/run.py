"""What all backends' runs share: options, timing, progress, and the stages that each must have."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, Self, TypeVar

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.host import ANCHORS_PER_TASK
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.plan import chunk_bytes_within
from ngsgpu.device.memory import available_memory
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.patch import EditCounts
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.reader import CHUNK_BYTES, PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum
from ngsgpu.run.progress import Progress, Stage

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

_Parameters = TypeVar("_Parameters")

_KEPT_SHARE: Final = 4
"""Part of the memory for inflated data, which then need not be inflated again: 1 / this."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes about it; none of these changes a byte of the output.

    Attributes:
        threads: how many threads work.
        memory: bytes that may be taken; None for what the machine has free.
        anchors_per_task: anchors that a thread takes at a time.
        chunk_bytes: bytes of a file that are handled at a time.
        progress: whether to show progress.
        backend: ``cpu`` or ``cuda``.
        may_fall_back: whether the CPU may do what the GPU cannot hold.
        gpu_memory: bytes of a GPU's memory that may be taken; None for what it has free.
        gpus: how many GPUs work.
        backend_note: why the backend was chosen, for the statistics.
        command: the command line, for the statistics.
    """

    threads: int = 1
    memory: int | None = None
    anchors_per_task: int = ANCHORS_PER_TASK
    chunk_bytes: int = CHUNK_BYTES
    progress: bool = False
    backend: Literal["cpu", "cuda"] = "cpu"
    may_fall_back: bool = False
    gpu_memory: int | None = None
    gpus: int = 1
    backend_note: str = ""
    command: tuple[str, ...] = ()

    @property
    def budget(self) -> int:
        """Bytes that may be taken."""
        return self.memory if self.memory is not None else available_memory()

    @property
    def kept_bytes(self) -> int:
        """Of these, bytes for inflated data that is read a second time."""
        return self.budget // _KEPT_SHARE


class StagedRun(ABC, Generic[_Parameters]):
    """What runs of all algorithms share; a context manager.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        budget: bytes that may be taken, as they were when the run began.
        chunk_bytes: bytes of a file that are handled at a time.
        seconds: what each stage took.
        memory: bytes of memory, planned and used, for the statistics.
    """

    backend: ClassVar[str]

    def __init__(
        self,
        parameters: _Parameters,
        options: RunOptions,
        phred_offset: PhredOffset,
        progress: Progress,
    ) -> None:
        self.parameters = parameters
        self.options = options
        self.phred_offset: PhredOffset = phred_offset
        self.progress = progress
        self.budget = options.budget
        self.chunk_bytes = chunk_bytes_within(self.budget, options.chunk_bytes)
        self.seconds: dict[str, float] = {}
        self.memory: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Take what the run needs."""
        self._open = ExitStack()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give it back."""
        self._open.__exit__(kind, error, traceback)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note what a stage takes."""
        begin = time.monotonic()
        yield
        self.seconds[stage] = round(time.monotonic() - begin, 3)


class Run(StagedRun[CorrectionParameters]):
    """The stages of one run, called in the order in which they stand here.

    Attributes:
        gpu_plan: bytes of memory of a GPU, and what lay where; empty on the CPU.
    """

    def __init__(
        self,
        parameters: CorrectionParameters,
        options: RunOptions,
        phred_offset: PhredOffset,
        progress: Progress,
    ) -> None:
        super().__init__(parameters, options, phred_offset, progress)
        self.gpu_plan: dict[str, Any] = {}

    @abstractmethod
    def read(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> ReadSet | DeviceReadSet:
        """Read all lanes. From then on their bytes may be copied to the outputs."""

    @abstractmethod
    def take(self, reads: ReadSet) -> None:
        """Take reads that are in memory already, instead of reading."""

    @abstractmethod
    def count(self) -> KmerSpectrum:
        """The k-mer spectrum of the reads."""

    @abstractmethod
    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            UsageError: the memory does not suffice.
        """

    @abstractmethod
    def write(
        self, lanes: Sequence[ReadFiles], corrections: Corrections, outputs: OutputSet
    ) -> EditCounts:
        """Write the lanes with the corrections."""

    @contextmanager
    def reading(self) -> Iterator[Stage]:
        """The stage of the first reading."""
        with self.timed("read"), self.progress.stage("reading", unit="reads") as stage:
            yield stage

    @contextmanager
    def building_tables(self) -> Iterator[Stage]:
        """The stage of the tables."""
        hashes = self.parameters.minhash.hashes
        with (
            self.timed("tables"),
            self.progress.stage("building tables", total=hashes, unit="tables") as stage,
        ):
            yield stage

    @contextmanager
    def correcting(self, reads: int) -> Iterator[Stage]:
        """The stage of the corrections."""
        with (
            self.timed("correct"),
            self.progress.stage("correcting", total=reads, unit="reads") as stage,
        ):
            yield stage

    @contextmanager
    def writing(self, reads: int) -> Iterator[Stage]:
        """The stage of the outputs."""
        with (
            self.timed("write"),
            self.progress.stage("writing", total=reads, unit="reads") as stage,
        ):
            yield stage
