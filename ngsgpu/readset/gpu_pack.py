"""Packing records on the GPU into the arrays of a read set, which grow as reads come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ngsgpu.device.arena import array_at
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.spread import SpreadMemory
from ngsgpu.device.team import free_unused
from ngsgpu.io.gpu.parse import KERNELS, THREADS, ParsedChunk, blocks_for, device_classes
from ngsgpu.readset.gpu import DeviceAmbiguousBases, DeviceReadSet
from ngsgpu.readset.qualities import LEVEL_BITS, Levels, MoreLevelsError, codes_of, levels_among

_GROWTH: Final = 1.5
_COPIED_SHARE: Final = 8
"""Arrays up to this part of a GPU's memory are copied to larger ones when they grow."""

_SLACK: Final = 1.1
"""Arrays larger than this many times their content are copied at the end."""

_POSITION_BITS: Final = 15

_UNCHECKED: Final = 64
"""Batches after which it is asked whether there were levels of quality that the first had not."""


class Room:
    """Memory for arrays that grow, on GPUs one after the other, which ``can_spread``, or on one.

    Small arrays are CuPy's, and copied to larger ones. Those that are a large part of a GPU cannot
    be there twice: more and more memory is mapped behind them.

    Args:
        devices: numbers of the GPUs, the current one first.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        import cupy

        self.devices = devices
        self._memories: list[SpreadMemory] = []
        total = int(cupy.cuda.runtime.memGetInfo()[1])
        limit = int(cupy.get_default_memory_pool().get_limit()) or total
        self.largest_copied = min(limit, total) // _COPIED_SHARE
        self._most = len(devices) * total

    def grow(self, memory: SpreadMemory | None, size: int) -> SpreadMemory:
        """Memory of at least a size: that given, or new one.

        Args:
            memory: what is to grow; None: nothing yet.
            size: bytes.

        Raises:
            MemoryError: a GPU does not have as much, or the run may not take it.
        """
        import cupy

        pool = cupy.get_default_memory_pool()
        limit = int(pool.get_limit())
        others = sum(own.size for own in self._memories if own is not memory)
        if limit and pool.used_bytes() + (others + size) // len(self.devices) > limit:
            raise cupy.cuda.memory.OutOfMemoryError(size, pool.used_bytes(), limit)
        try:
            return self._grow(memory, size)
        except MemoryError:
            free_unused()
        return self._grow(memory, size)

    def _grow(self, memory: SpreadMemory | None, size: int) -> SpreadMemory:
        if memory is None:
            memory = SpreadMemory(size, self.devices, self._most)
            self._memories.append(memory)
        memory.grow(size)
        return memory


class Growing:
    """An array on the device that is appended to.

    Args:
        dtype: of its elements.
        room: where it goes if it becomes large; None: wherever it fits.
    """

    def __init__(self, dtype: Any, room: Room | None = None) -> None:
        import cupy

        self._array = cupy.empty(0, dtype=dtype)
        self._room = room
        self._memory: SpreadMemory | None = None
        self.used = 0

    @property
    def array(self) -> Any:
        """The whole array; elements beyond ``used`` are undefined."""
        return self._array

    @property
    def is_spread(self) -> bool:
        """Whether it is in the memory of several GPUs."""
        return self._memory is not None and self._room is not None and len(self._room.devices) > 1

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

        room, kind = self._room, self._array.dtype
        wanted = max(needed, expected, int(_GROWTH * len(self._array)))
        is_small = room is None or wanted * kind.itemsize <= room.largest_copied
        if is_small and self._memory is None:
            try:
                self._move(cupy.empty(wanted, dtype=kind))
                return
            except cupy.cuda.memory.OutOfMemoryError:
                if room is None:
                    self._move(cupy.empty(needed, dtype=kind))
                    return
        assert room is not None
        before, self._memory = self._memory, room.grow(self._memory, needed * kind.itemsize)
        size = self._memory.size // kind.itemsize
        larger = array_at(self._memory.ptr, size, kind, self._memory)
        if before is None:
            self._move(larger)
        self._array = larger

    def _move(self, larger: Any) -> None:
        larger[: self.used] = self._array[: self.used]
        self._array = larger

    def finish(self) -> Any:
        """Return what was appended and free the rest."""
        import cupy

        array = self._array[: self.used]
        if self._memory is None and len(self._array) > _SLACK * self.used:
            array = array.copy()
        self._array = cupy.empty(0, dtype=array.dtype)
        return array


class Packer:
    """Builds a read set from the records of parsed chunks.

    Args:
        quality_bits: 8, 2, 1 or 0 bits per quality.
        phred_offset: offset of the quality characters.
        by_level: keep 2 bits of 8 where there are so few levels that nothing is lost.
        devices: numbers of GPUs, which ``can_spread``, and divide what is a large part of one; the
            current one first; None: of that alone.

    Attributes:
        reads: packed so far.
        input_bytes: decompressed size of all input, used to allocate arrays at their final size; 0
            if unknown.
    """

    def __init__(
        self,
        *,
        quality_bits: int,
        phred_offset: int,
        by_level: bool = False,
        devices: Sequence[int] | None = None,
    ) -> None:
        import cupy

        room = Room(devices or [cupy.cuda.runtime.getDevice()])
        self._room = room

        self.reads = 0
        self.input_bytes = 0
        self._quality_bits = quality_bits
        self._phred_offset = phred_offset
        self._expected_reads = 0
        self._planes = Growing(cupy.uint64, room)
        self._qualities = Growing(cupy.uint8, room)
        self._lengths = Growing(cupy.int32, room)
        self._ambiguous = Growing(cupy.uint64)
        self._ambiguous_count = cupy.zeros(1, dtype=cupy.uint64)
        self._bases = 0
        self._shortest, self._longest = 2**31, 0
        self._classes = device_classes()
        self._bins = cupy.asarray(codes_of(quality_bits))
        self._by_level = by_level and quality_bits == 8
        self._levels: Levels = ()
        self._unknown = cupy.zeros(1, dtype=cupy.uint32)
        self._unchecked = 0

    def expect_ambiguous(self, count: int) -> None:
        """Make room for ambiguous bases of records that will be packed."""
        self._ambiguous.extend(count, 0)

    def add(self, parts: Sequence[tuple[ParsedChunk, int]], count: int) -> None:
        """Append records.

        Args:
            parts: a chunk, or those of first and second mates, and the first record of each.
            count: records of each; mates alternate in the read set.
        """
        if self._by_level:
            self._find_levels(parts, count)
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
                    self._unknown,
                ),
            )
        self.reads += reads
        self._unchecked += 1
        if self._unchecked == _UNCHECKED:
            self._check_levels()

    def _find_levels(self, parts: Sequence[tuple[ParsedChunk, int]], count: int) -> None:
        """Decide by the first records whether qualities take a byte each."""
        import cupy

        self._by_level = False
        present = cupy.zeros(256, dtype=cupy.uint8)
        for chunk, record in parts:
            slot = chunk.slot
            arguments = (slot.raw, slot.seq_start, slot.qual_start, slot.lengths)
            KERNELS.launch(
                "mark_scores",
                blocks_for(count),
                (THREADS,),
                (
                    *arguments, np.uint32(record), np.uint32(count), self._classes,
                    np.int32(self._phred_offset), present,
                ),
            )  # fmt: skip
        if levels := levels_among(cupy.asnumpy(present)):
            self._quality_bits, self._levels = LEVEL_BITS, levels
            self._bins = cupy.asarray(codes_of(LEVEL_BITS, levels))

    def _check_levels(self) -> None:
        """Refuse qualities that none of the first reads had.

        Raises:
            MoreLevelsError: there were some.
        """
        self._unchecked = 0
        if self._levels and int(self._unknown[0]):
            raise MoreLevelsError

    def _expected(self, size: int, reads: int) -> int:
        return int(size / reads * self._expected_reads)

    def finish(self, *, paired: bool) -> DeviceReadSet:
        """The read set; the packer is empty afterwards.

        Raises:
            MoreLevelsError: there are more levels of quality than in the first records.
        """
        import cupy

        self._check_levels()

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
        stay = [name for name in ("planes", "qualities") if getattr(self, f"_{name}").is_spread]
        reads = DeviceReadSet(
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
            levels=self._levels,
        )
        if stay:
            reads.divide(self._room.devices, but=stay)
        return reads

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
