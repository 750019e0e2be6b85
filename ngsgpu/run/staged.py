"""A run in steps that are timed and shown, from files to files, on either backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.inputs import ReadFiles, warn_of_long_reads
from ngsgpu.io.paths import changed
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.fill import fill_unknown
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers
from ngsgpu.run.kept import KeptRecords
from ngsgpu.run.options import Contents, ReadSetPlan, RunOptions, chunk_bytes_within
from ngsgpu.run.progress import Progress, Run
from ngsgpu.run.trimming import warn_of_adapters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet


def read_within(
    lanes: Sequence[ReadFiles],
    batches: Callable[[ReadFiles], Iterator[tuple[RecordBatch, ...]]],
    builder: ReadSetBuilder,
    plan: Callable[[Contents], ReadSetPlan],
    advance: Callable[[int], None],
) -> ReadSet:
    """Read all lanes into a read set.

    Args:
        lanes: the inputs.
        batches: reads a lane.
        builder: initially empty.
        plan: computes the memory of a run from its contents.
        advance: called with the number of reads since the last call.

    Raises:
        InputError: an input cannot be read.
        HostMemoryError: the memory does not suffice; raised as soon as the reads so far, or an
            estimate from the file sizes, would not fit.
    """
    size = sum(unpacked_size(path) for lane in lanes for path in lane.inputs)
    done = 0
    for lane in lanes:
        for mates in builder.add_all(batches(lane)):
            advance(sum(map(len, mates)))
            done += sum(len(batch.text) for batch in mates)
            found = Contents(
                builder.reads, builder.bases, builder.longest, lane.paired, builder.nbytes
            )
            needed = plan(found)
            if not needed.fits:
                plan(found.times(max(1.0, size / max(1, done)))).check()
    return builder.finish()


@dataclass(frozen=True, slots=True)
class ReadLengths:
    """Lengths of the reads of the first reading.

    Attributes:
        reads: number of reads.
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
        """The read lengths of a read set."""
        arrays: Any = getattr(reads, "arrays", reads)
        lengths = arrays.lengths
        return cls(
            reads=reads.reads,
            paired=reads.paired,
            uniform_length=arrays.uniform_length,
            lengths=lengths if isinstance(lengths, np.ndarray) else lengths.get(),
            max_length=reads.max_length,
        )

    def check(self, mates: tuple[RecordBatch, ...], first_read: int) -> None:
        """Check that records of the second pass equal those of the first.

        Args:
            mates: records from read ``first_read`` on; with two batches, of first and second mates.
            first_read: number of the first record.

        Raises:
            InputError: their lengths differ.
        """
        for mate, batch in enumerate(mates):
            last = first_read + len(mates) * len(batch)
            if self.uniform_length >= 0:
                same = last <= self.reads and bool(np.all(batch.seq_len == self.uniform_length))
            else:
                lengths = self.lengths[first_read + mate : last : len(mates)]
                same = np.array_equal(batch.seq_len, lengths)
            if not same:
                raise changed(batch.path)

    def check_number(self, lanes: Sequence[ReadFiles], reads: int) -> None:
        """Check that the second pass found as many reads as the first.

        Args:
            lanes: all of them.
            reads: number of reads in the second pass.

        Raises:
            InputError: there were fewer.
        """
        if reads != self.reads:
            raise InputError(
                lanes[-1].inputs[0],
                "the file was truncated during the run",
                "run again when no other program writes to it",
            )


class Parameters(Protocol):
    """What the parameters of all stages have."""

    @property
    def quality_bits(self) -> int:
        """Bits stored per quality."""


P = TypeVar("P", bound=Parameters)


class StagedRun(Run[P], ABC):
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
        adapters: what a sample of the reads says of adapters, for the statistics.
        kept: records of compressed inputs, for the second reading.
    """

    WORK: ClassVar[str]
    """What the stage does, as a noun."""
    LONG_READS: ClassVar[str]
    """What to do with long reads, for a warning."""
    HARM: ClassVar[str]
    """What the stage does with adapters, for a warning."""
    PLAN: ClassVar[Callable[..., Any]]
    """Plans the memory: see ``CpuRun`` and ``GpuRun``."""
    backend: ClassVar[str]
    reads: ReadSet | DeviceReadSet

    def __init__(
        self, parameters: P, options: RunOptions, phred_offset: PhredOffset, progress: Progress
    ) -> None:
        super().__init__(parameters, options, phred_offset, progress)
        self.budget = options.budget
        self.chunk_bytes = chunk_bytes_within(self.budget, options.chunk_bytes)
        self.kept = KeptRecords(options.kept_bytes)
        self.memory: dict[str, int] = {}
        self.gpu: dict[str, Any] = {}
        self.adapters: dict[str, Any] = {}

    @abstractmethod
    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into ``reads``."""

    @abstractmethod
    def take(self, reads: ReadSet) -> None:
        """Use reads that are already in memory."""

    @abstractmethod
    def _fill_unknown(self) -> None:
        """As ``fill_unknown``."""

    @abstractmethod
    def sampled_spectrum(self, k: int) -> KmerSpectrum:
        """The spectrum of a sample of the k-mers."""

    def fill_unknown(self) -> None:
        """Give unknown bases the letters of other reads in their place; see ``readset.fill``.

        Raises:
            DeviceError: CUDA fails.
        """
        if len(self.reads.ambiguous.positions):
            with self.step("fill", "looking for unknown bases in other reads"):
                self._fill_unknown()

    def entries(self) -> dict[str, Any]:
        """See ``Run``."""
        return {
            **super().entries(),
            "parameters": {"phred_offset": self.phred_offset},
            "memory": self.memory,
            "adapters": self.adapters,
            "gpu_memory": self.gpu,
        }

    def batches(
        self, lane: ReadFiles, phred_offset: PhredOffset | None = None
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """The records of a lane, by the CPU's reader; with an offset if that was decided."""
        return self.kept.take(lane) or lane.batches(
            threads=self.options.threads,
            phred_offset=phred_offset or self.phred_offset,
            chunk_bytes=self.chunk_bytes,
        )

    def look_at(self, sample: ReadSample, lanes: Sequence[ReadFiles]) -> None:
        """Warn of reads that the stage is not made for, and note their adapters.

        Args:
            sample: of the reads.
            lanes: their files.
        """
        self.adapters = warn_of_adapters(sample, lanes, self.HARM)
        warn_of_long_reads(self.reads.reads, self.reads.bases, lanes, self.WORK, self.LONG_READS)

    @property
    def offset(self) -> Literal[33, 64]:
        """Offset of the quality characters."""
        return 33 if self.phred_offset == "auto" else self.phred_offset


class CpuRun(StagedRun[P]):
    """A run on the CPU."""

    backend = "cpu"
    PLAN: ClassVar[Callable[..., ReadSetPlan]]
    """Plans the memory, of parameters, contents, ``threads`` and ``budget_bytes``."""
    reads: ReadSet

    def plan(self, contents: Contents) -> ReadSetPlan:
        """Memory that the run needs for some reads."""
        return self.PLAN(
            self.parameters, contents, threads=self.options.threads, budget_bytes=self.budget
        )

    def _fill_unknown(self) -> None:
        fill_unknown(self.reads, threads=self.options.threads)

    def sampled_spectrum(self, k: int) -> KmerSpectrum:
        """See ``StagedRun``."""
        return count_kmers(self.reads, k, threads=self.options.threads)

    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into a read set.

        Raises:
            InputError: an input cannot be read.
            HostMemoryError: the memory does not suffice.
        """
        builder = ReadSetBuilder(
            paired=lanes[0].paired,
            quality_bits=self.parameters.quality_bits,
            phred_offset=self.offset,
            threads=self.options.threads,
            by_level=True,
        )
        sample = ReadSample()

        def batches(lane: ReadFiles) -> Iterator[tuple[RecordBatch, ...]]:
            batches = self.kept.keep(lane, self.batches(lane))
            return sample.of_lane(batches, interleaved=lane.interleaved)

        with self.step("read", "reading") as stage:
            self.reads = read_within(
                lanes,
                batches,
                builder,
                self.plan,
                stage.advance,
            )
        self.look_at(sample, lanes)

    def take(self, reads: ReadSet) -> None:
        """Use reads that are already in memory."""
        self.reads = reads
        if self.options.memory is None:  # what the reads take is taken already
            self.budget += reads.nbytes

    def check_memory(self) -> ReadSetPlan:
        """Check that the run fits into memory, before building its tables; gives back its plan.

        Raises:
            HostMemoryError: it does not.
        """
        reads = self.reads
        plan = self.plan(
            Contents(reads.reads, reads.bases, reads.max_length, reads.paired, reads.nbytes)
        )
        if plan.total + self.kept.nbytes > plan.budget:
            self.kept.drop()
        self.memory["planned_bytes"] = plan.total
        plan.check()
        return plan
