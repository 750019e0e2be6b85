"""Memory needed by a read set, and for reading one to the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.io.gpu.parse import SLOTS, slot_bytes
from ngsgpu.io.gpu.records import CHUNK_BYTES, MIN_CHUNK
from ngsgpu.sequence.codec import words_for

if TYPE_CHECKING:
    from ngsgpu.readset import ReadSet
    from ngsgpu.readset.gpu import DeviceReadSet

_LENGTH_BYTES: Final = 8 + 8 + 4
"""Starts and length of a read, if lengths differ."""


@dataclass(frozen=True, slots=True)
class ReadMemory:
    """Memory of a read set.

    Attributes:
        reads: number of reads.
        max_length: longest read, in bases.
        paired: whether reads have mates.
        uniform: whether all reads have the same length.
        planes: bytes of the bases.
        qualities: bytes of the qualities.
        other: bytes of lengths and ambiguous bases.
    """

    reads: int
    max_length: int
    paired: bool
    uniform: bool
    planes: int
    qualities: int
    other: int

    @property
    def total(self) -> int:
        """Bytes of it all."""
        return self.planes + self.qualities + self.other

    @classmethod
    def of(cls, reads: ReadSet | DeviceReadSet) -> ReadMemory:
        """That of a read set."""
        arrays: Any = getattr(reads, "arrays", reads)
        planes, qualities = int(arrays.planes.nbytes), int(arrays.qualities.nbytes)
        return cls(
            reads=reads.reads,
            max_length=reads.max_length,
            paired=reads.paired,
            uniform=arrays.uniform_length >= 0,
            planes=planes,
            qualities=qualities,
            other=int(reads.nbytes) - planes - qualities,
        )

    @classmethod
    def expected(
        cls, reads: int, bases: int, max_length: int, *, paired: bool, quality_bits: int
    ) -> ReadMemory:
        """Estimate for reads of which nothing else is known."""
        uniform = bases == reads * max_length
        return cls(
            reads=reads,
            max_length=max_length,
            paired=paired,
            uniform=uniform,
            planes=16 * reads * words_for(max_length),
            qualities=reads * -(-max_length * quality_bits // 8)
            if uniform
            else bases * quality_bits // 8 + reads,
            other=0 if uniform else _LENGTH_BYTES * reads,
        )


def reading_bytes(paired: bool, limit: int | None, budget: int) -> int:
    """GPU memory for reading, in addition to the read set.

    Args:
        paired: whether there are two files, of first and second mates.
        limit: memory limit of the run in bytes; None: no limit.
        budget: bytes the run may use under that limit.
    """
    chunk = chunk_bytes_within(limit or budget, CHUNK_BYTES)
    return (2 if paired else 1) * SLOTS * slot_bytes(chunk)


def chunk_bytes_within(memory: int, chunk_bytes: int) -> int:
    """Chunk size at which the slots use at most about an eighth of the memory."""
    return min(chunk_bytes, max(MIN_CHUNK, memory // 96))
