"""Both passes over an input: into a read set, and again to write the outputs.

The first ends as soon as the reads are known not to fit into memory; the second checks that the
files still hold the same reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.reread import changed
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.readset import ReadSet, ReadSetBuilder

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet


class Contents(NamedTuple):
    """Contents of a read set, actual or estimated.

    Attributes:
        reads: number of reads.
        bases: number of bases.
        longest: longest read, in bases.
        read_bytes: bytes of bases, qualities and lengths.
        estimated: whether these are estimates.
    """

    reads: int
    bases: int
    longest: int
    read_bytes: int
    estimated: bool = False

    def times(self, factor: float) -> Contents:
        """The contents of more of the same reads, about."""
        reads, bases, read_bytes = (
            round(factor * size) for size in (self.reads, self.bases, self.read_bytes)
        )
        return Contents(reads, bases, self.longest, read_bytes, estimated=factor > 1)


class Plan(Protocol):
    """Memory that a run needs; ``ngsgpu.run.plan.HostPlan``."""

    @property
    def budget_bytes(self) -> int:
        """Memory budget."""

    @property
    def total_bytes(self) -> int:
        """Most memory in use at a time."""

    def check(self, parameters: Any) -> None:
        """Raise UsageError if it does not fit."""


def read_within(
    lanes: Sequence[ReadFiles],
    batches: Callable[[ReadFiles], Iterator[tuple[RecordBatch, ...]]],
    builder: ReadSetBuilder,
    plan: Callable[[Contents], Plan],
    parameters: Any,
    advance: Callable[[int], None],
) -> ReadSet:
    """Read all lanes into a read set.

    Args:
        lanes: the inputs.
        batches: reads a lane.
        builder: initially empty.
        plan: computes the memory of a run from its contents.
        parameters: those of the run.
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
            found = Contents(builder.reads, builder.bases, builder.longest, builder.nbytes)
            needed = plan(found)
            if needed.total_bytes > needed.budget_bytes:
                plan(found.times(max(1.0, size / max(1, done)))).check(parameters)
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
        """Those of a read set."""
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
