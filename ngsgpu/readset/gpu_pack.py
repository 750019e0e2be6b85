"""Packing records on the GPU into the arrays of a read set, which grow as reads come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.io.gpu.parse import KERNELS, THREADS, ParsedChunk, blocks_for, device_classes
from ngsgpu.readset.cpu import QUALITY_BINS
from ngsgpu.readset.gpu import DeviceAmbiguousBases, DeviceReadSet

_GROWTH: Final = 1.5
_SLACK: Final = 1.1
"""Arrays larger than this many times their content are copied at the end."""

_POSITION_BITS: Final = 15


class Growing:
    """An array on the device that is appended to.

    Args:
        dtype: of its elements.
    """

    def __init__(self, dtype: Any) -> None:
        import cupy

        self._array = cupy.empty(0, dtype=dtype)
        self.used = 0

    @property
    def array(self) -> Any:
        """The whole array; elements beyond ``used`` are undefined."""
        return self._array

    def extend(self, count: int, expected: int) -> Any:
        """Append ``count`` undefined elements and return them.

        Args:
            count: how many.
            expected: how many the array is expected to hold in the end.
        """
        if self.used + count > len(self._array):
            self._grow(self.used + count, expected)
        self.used += count
        return self._array[self.used - count : self.used]

    def _grow(self, needed: int, expected: int) -> None:
        import cupy

        wanted = max(needed, expected, int(_GROWTH * len(self._array)))
        try:
            larger = cupy.empty(wanted, dtype=self._array.dtype)
        except cupy.cuda.memory.OutOfMemoryError:
            larger = cupy.empty(needed, dtype=self._array.dtype)
        larger[: self.used] = self._array[: self.used]
        self._array = larger

    def finish(self) -> Any:
        """Return what was appended and free the rest."""
        import cupy

        array = self._array[: self.used]
        if len(self._array) > _SLACK * self.used:
            array = array.copy()
        self._array = cupy.empty(0, dtype=array.dtype)
        return array


class Packer:
    """Builds a read set from the records of parsed chunks.

    Args:
        quality_bits: 8, 2, 1 or 0 bits per quality.
        phred_offset: offset of the quality characters.

    Attributes:
        reads: packed so far.
        input_bytes: decompressed size of all input, used to allocate arrays at their final size; 0
            if unknown.
    """

    def __init__(self, *, quality_bits: int, phred_offset: int) -> None:
        import cupy

        self.reads = 0
        self.input_bytes = 0
        self._quality_bits = quality_bits
        self._phred_offset = phred_offset
        self._expected_reads = 0
        self._planes = Growing(cupy.uint64)
        self._qualities = Growing(cupy.uint8)
        self._lengths = Growing(cupy.int32)
        self._ambiguous = Growing(cupy.uint64)
        self._ambiguous_count = cupy.zeros(1, dtype=cupy.uint64)
        self._bases = 0
        self._shortest, self._longest = 2**31, 0
        self._classes = device_classes()
        self._bins = cupy.asarray(QUALITY_BINS[quality_bits])

    def expect_ambiguous(self, count: int) -> None:
        """Make room for ambiguous bases of records that will be packed."""
        self._ambiguous.extend(count, 0)

    def add(self, parts: Sequence[tuple[ParsedChunk, int]], count: int) -> None:
        """Append records.

        Args:
            parts: a chunk, or those of first and second mates, and the first record of each.
            count: records of each; mates alternate in the read set.
        """
        step = len(parts)
        reads = count * step
        if self._expected_reads == 0 and self.input_bytes:
            used = sum(chunk.end - chunk.start for chunk, _ in parts)
            records = sum(chunk.records for chunk, _ in parts)
            self._expected_reads = int(self.input_bytes * records / used * 1.02) + 1024
        shortest = min(chunk.min_length for chunk, _ in parts)
        longest = max(chunk.max_length for chunk, _ in parts)
        self._shortest = min(self._shortest, shortest)
        self._longest = max(self._longest, longest)
        lengths = self._lengths.extend(reads, self._expected_reads)
        uniform = longest if shortest == longest else -1
        plane_start = quality_start = np.int64(0)
        if uniform >= 0:
            plane_size = reads * words_of_planes(uniform)
            quality_size = reads * ((uniform * self._quality_bits + 7) >> 3)
            self._bases += reads * uniform
        else:
            for mate, (chunk, record) in enumerate(parts):
                lengths[mate::step] = chunk.slot.lengths[record : record + count]
            plane_start, plane_size = starts_of(words_of_planes(lengths))
            quality_start, quality_size = starts_of((lengths * self._quality_bits + 7) >> 3)
            self._bases += int(lengths.sum(dtype=np.int64))
        planes_done, qualities_done = self._planes.used, self._qualities.used
        self._planes.extend(plane_size, self._expected(plane_size, reads))
        self._qualities.extend(quality_size, self._expected(quality_size, reads))
        for mate, (chunk, record) in enumerate(parts):
            KERNELS.launch(
                "pack_records",
                blocks_for(count),
                (THREADS,),
                (
                    chunk.slot.raw,
                    chunk.slot.seq_start,
                    chunk.slot.qual_start,
                    chunk.slot.lengths,
                    np.uint32(record),
                    np.uint32(count),
                    np.uint32(mate),
                    np.uint32(step),
                    np.int64(self.reads + mate),
                    self._classes,
                    self._bins,
                    np.int32(self._phred_offset),
                    np.int32(self._quality_bits),
                    np.int32(uniform),
                    plane_start,
                    quality_start,
                    np.int64(planes_done),
                    np.int64(qualities_done),
                    self._planes.array,
                    self._qualities.array,
                    self._lengths.array,
                    self._ambiguous.array,
                    self._ambiguous_count,
                ),
            )
        self.reads += reads

    def _expected(self, size: int, reads: int) -> int:
        return int(size / reads * self._expected_reads)

    def finish(self, *, paired: bool) -> DeviceReadSet:
        """The read set; the packer is empty afterwards."""
        import cupy

        empty = cupy.empty(0, dtype=cupy.int64)
        low, high = (self._shortest, self._longest) if self.reads else (0, 0)
        uniform = low if low == high else -1
        plane_start = quality_start = empty
        lengths = self._lengths.finish()
        if uniform < 0:
            plane_start, _ = starts_of(words_of_planes(lengths))
            quality_start, _ = starts_of((lengths * self._quality_bits + 7) >> 3)
        else:
            lengths = cupy.empty(0, dtype=cupy.int32)
        return DeviceReadSet(
            planes=self._planes.finish(),
            plane_start=plane_start,
            qualities=self._qualities.finish(),
            quality_start=quality_start,
            lengths=lengths,
            uniform_length=uniform,
            quality_bits=self._quality_bits,
            ambiguous=self._ambiguous_bases(),
            reads=self.reads,
            bases=self._bases,
            paired=paired,
            min_length=low,
            max_length=high,
        )

    def _ambiguous_bases(self) -> DeviceAmbiguousBases:
        import cupy

        keys = self._ambiguous.finish()
        radix_sort(keys)
        reads = (keys >> _POSITION_BITS).astype(cupy.uint32)
        positions = (keys & ((1 << _POSITION_BITS) - 1)).astype(cupy.int32)
        begins = cupy.ones(len(keys), dtype=bool)
        begins[1:] = reads[1:] != reads[:-1]
        first = cupy.flatnonzero(begins)
        start = cupy.empty(len(first) + 1, dtype=cupy.int64)
        start[:-1] = first
        start[-1] = len(keys)
        return DeviceAmbiguousBases(reads[first], start, positions)


def words_of_planes(length: Any) -> Any:
    """Words of both planes for a read length, or for each of an array of lengths."""
    return ((length + 63) >> 6) * 2


def starts_of(sizes: Any) -> tuple[Any, int]:
    """Start of each of these consecutive items, int64, followed by the total size."""
    import cupy

    ends = cupy.cumsum(sizes, dtype=cupy.int64)
    total = int(ends[-1]) if len(ends) else 0
    ends -= sizes
    return ends, total
