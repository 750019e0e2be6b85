"""The read set on a GPU: the same arrays as on the host, and the struct that kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ngsgpu.readset.readset import ReadArrays, ReadSet, UnknownBases


class DeviceUnknownBases(NamedTuple):
    """``UnknownBases`` in CuPy arrays.

    Attributes:
        reads: uint32[m], the reads that have any, ascending.
        start: int64[m + 1], where each read's positions begin.
        positions: int32, positions within the read.
    """

    reads: Any
    start: Any
    positions: Any


@dataclass(frozen=True)
class DeviceReadSet:
    """All reads of a run in the memory of one GPU; arrays are CuPy's, as in ``ReadArrays``.

    Attributes:
        planes: uint64, the two bit planes of each read, one read after the other.
        plane_start: int64[reads], first word of each read; empty where all lengths are equal.
        qualities: uint8, ``quality_bits`` bits a base, each read on a byte boundary.
        quality_start: int64[reads], first byte of each read; empty where all lengths are equal.
        lengths: int32[reads]; empty where all are equal.
        uniform_length: the length of all reads, or -1.
        quality_bits: 8, 2, 1, or 0 without qualities.
        unknown: where the input had other letters than ACGT.
        reads: number of reads.
        bases: number of bases.
        paired: whether reads 2p and 2p + 1 are mates.
        min_length: shortest read, in bases; 0 without reads.
        max_length: longest read, in bases; 0 without reads.
    """

    planes: Any
    plane_start: Any
    qualities: Any
    quality_start: Any
    lengths: Any
    uniform_length: int
    quality_bits: int
    unknown: DeviceUnknownBases
    reads: int
    bases: int
    paired: bool
    min_length: int
    max_length: int

    @cached_property
    def struct(self) -> Any:
        """int64[7] on the device: the struct ``Reads`` of ``reads.cuh``."""
        import cupy

        pointers = [array.data.ptr for array in self._arrays]
        return cupy.array([*pointers, self.uniform_length, self.quality_bits], dtype=cupy.int64)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self.planes, self.plane_start, self.qualities, self.quality_start, self.lengths

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the arrays take."""
        return sum(int(array.nbytes) for array in (*self._arrays, *self.unknown))

    @classmethod
    def from_host(cls, reads: ReadSet) -> DeviceReadSet:
        """Copy a read set to the current device."""
        import cupy

        arrays = reads.arrays
        return cls(
            planes=cupy.asarray(arrays.planes),
            plane_start=cupy.asarray(arrays.plane_start),
            qualities=cupy.asarray(arrays.qualities),
            quality_start=cupy.asarray(arrays.quality_start),
            lengths=cupy.asarray(arrays.lengths),
            uniform_length=arrays.uniform_length,
            quality_bits=arrays.quality_bits,
            unknown=DeviceUnknownBases(*map(cupy.asarray, reads.unknown)),
            reads=reads.reads,
            bases=reads.bases,
            paired=reads.paired,
            min_length=reads.min_length,
            max_length=reads.max_length,
        )

    def to_host(self) -> ReadSet:
        """Copy the read set to the host."""
        import cupy

        planes, plane_start, qualities, quality_start, lengths = map(cupy.asnumpy, self._arrays)
        unknown_reads, unknown_start, unknown_positions = map(cupy.asnumpy, self.unknown)
        return ReadSet(
            arrays=ReadArrays(
                planes=planes,
                plane_start=plane_start,
                qualities=qualities,
                quality_start=quality_start,
                lengths=lengths,
                uniform_length=self.uniform_length,
                quality_bits=self.quality_bits,
            ),
            unknown=UnknownBases(unknown_reads, unknown_start, unknown_positions),
            reads=self.reads,
            bases=self.bases,
            paired=self.paired,
            min_length=self.min_length,
            max_length=self.max_length,
        )
