"""The first reading of a run, which ends as soon as the reads are known not to fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.readset import ReadSet, ReadSetBuilder


class Contents(NamedTuple):
    """What a read set holds, or will hold.

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
    """What a run with some reads takes."""

    @property
    def budget_bytes(self) -> int:
        """What may be taken."""

    @property
    def total_bytes(self) -> int:
        """Most memory that is in use at a time."""

    def check(self, parameters: Any) -> None:
        """Refuse what does not fit.

        Raises:
            UsageError: says what is needed.
        """


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
        lanes: what to read.
        batches: reads a lane.
        builder: empty as yet.
        plan: says what a run with some reads takes.
        parameters: those of the run.
        advance: called with the number of reads since the last call.

    Raises:
        InputError: an input cannot be read.
        UsageError: the memory does not suffice; known from the sizes of the files, about, as soon
            as what was read so far would not fit.
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
