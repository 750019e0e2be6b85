"""Splits a FASTQ file into records on the GPU, chunk by chunk.

The incomplete record at the end of a chunk is copied on the device to the front of the next one, so
that every chunk begins at a record. Copies to the device run ahead of the kernels on a separate
stream.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.declared.values import check_value
from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import pinned_empty
from ngsgpu.io.gpu.feed import Feed, FeedChunk, IrregularInputError
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.reader import DEFAULT_LIMITS, PHRED_OFFSET, SAMPLED_RECORDS
from ngsgpu.io.text.scan import base_table, may_be_phred64
from ngsgpu.sequence.codec import CODES

KERNELS: Final = KernelModule("ngsgpu.io.gpu", "fastq.cu")
THREADS: Final = 256
WARPS: Final = THREADS // 32
TILE: Final = 64 * THREADS
"""Bytes that a block of ``count_lines`` looks at."""

HEADROOM: Final = 1 << 17
"""Free bytes before each chunk for the previous one's remainder: roughly the longest record."""

SLOTS: Final = 3
"""Chunks of a file on the device: one in use, and two being copied."""

_BYTES_PER_LINE: Final = 8
"""Average line length that memory is reserved for; files with shorter lines go to the CPU."""

_LINES_AT_LEAST: Final = 1 << 16
_PAD: Final = 64

FOUND: Final = Struct(__name__, "Found", dict.fromkeys(
    ("lines", "records", "tail", "bad", "min_length", "max_length", "ambiguous", "low_quality",
     "high_quality", "full"),
    "uint32_t",
))  # fmt: skip
"""Findings on a chunk: line feeds; complete records; the first byte after them; the number of the
first bad record, or ``_NONE``; lengths; letters that are not ACGT; qualities of the sampled
records; whether there are more lines than reserved."""

_NONE: Final = 0xFFFFFFFF


class Slot:
    """Device memory for a chunk and the findings on it.

    Args:
        chunk_bytes: room for the bytes of a chunk, excluding carried ones.

    Attributes:
        raw: uint8, the chunk's new bytes from ``HEADROOM`` on, carried ones before.
        line_end: uint32, position of every line feed in ``raw``.
        seq_start: uint32[records], first base.
        qual_start: uint32[records], first quality.
        lengths: int32[records], bases.
        copied: CUDA event: the chunk has arrived.
        free: CUDA event: the previous content is no longer used.
    """

    def __init__(self, chunk_bytes: int) -> None:
        import cupy

        size = HEADROOM + chunk_bytes
        self.room = _most_lines(chunk_bytes)
        self.raw = cupy.empty(size + _PAD, dtype=cupy.uint8)
        self.line_end = cupy.empty(self.room, dtype=cupy.uint32)
        self.tile_lines = cupy.empty(size // TILE + 2, dtype=cupy.uint32)
        self.found = cupy.empty(FOUND.dtype.itemsize, dtype=cupy.uint8)
        self.seq_start = cupy.empty(self.room // 4, dtype=cupy.uint32)
        self.qual_start = cupy.empty(self.room // 4, dtype=cupy.uint32)
        self.lengths = cupy.empty(self.room // 4, dtype=cupy.int32)
        self.copied = cupy.cuda.Event(disable_timing=True)
        self.free = cupy.cuda.Event(disable_timing=True)


def slot_bytes(chunk_bytes: int) -> int:
    """Device memory per slot."""
    return HEADROOM + chunk_bytes + 7 * _most_lines(chunk_bytes)


def most_records(chunk_bytes: int) -> int:
    """Records of a chunk that a parser gives, at most."""
    return _most_lines(chunk_bytes + 1) // 4


def _most_lines(chunk_bytes: int) -> int:
    return max(_LINES_AT_LEAST, chunk_bytes // _BYTES_PER_LINE)


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """The records of a chunk; valid until the parser gives the next one.

    Attributes:
        slot: where they are.
        begin: place of the first record in ``slot.raw``.
        records: how many.
        first_record: number in the file of the first.
        min_length: shortest read, bases.
        max_length: longest read, bases.
        ambiguous: letters that are not ACGT.
        offset: place in the file of ``slot.raw[0]``; may be negative.
        start: place in the file of the first record.
        end: end of the last one there; of all, in the last chunk.
    """

    slot: Slot
    begin: int
    records: int
    first_record: int
    min_length: int
    max_length: int
    ambiguous: int
    offset: int
    start: int
    end: int


class Parser:
    """Gives the records of one FASTQ file.

    Args:
        feed: the file's bytes.
        chunk_bytes: size of a chunk.
        interleaved: whether mates alternate; a chunk then has whole pairs.
        phred_offset: as for ``ngsgpu.io.text.reader.read_batches``.
        copies: CUDA stream for copies to the device.

    Raises:
        UsageError: the offset is none of these.
    """

    def __init__(
        self,
        feed: Feed,
        *,
        chunk_bytes: int,
        interleaved: bool,
        phred_offset: PhredOffset,
        copies: Any,
    ) -> None:
        import cupy

        check_value("phred_offset", phred_offset, PHRED_OFFSET)
        self.feed = feed
        self.records = 0
        self._unit = 2 if interleaved else 1
        self._phred_offset = phred_offset
        self._copies = copies
        self._kernels = cupy.cuda.get_current_stream()
        self._free = deque(Slot(chunk_bytes + 1) for _ in range(SLOTS))
        for slot in self._free:
            # Kernels launched before may still use what CuPy's pool gives as new memory, and the
            # copies are on another stream.
            slot.free.record(self._kernels)
        self._coming: deque[tuple[Slot, FeedChunk]] = deque()
        self._current: Slot | None = None
        self._left = (0, 0)
        self._content_end = 0
        self._quality_range = (255, 0)
        self._classes = device_classes()
        self._found = pinned_empty(FOUND.dtype.itemsize)

    def next_chunk(self) -> ParsedChunk | None:
        """The file's next records, none if only blank lines follow; None at its end.

        Raises:
            IrregularInputError: the GPU reader does not support the input.
        """
        while True:
            if not self._coming:
                self._fetch()
            if not self._coming:
                return None
            slot, chunk = self._coming.popleft()
            begin = self._carry(slot)
            self._find_records(slot, chunk, begin)
            while self._free and self.feed.ready() and self._fetch():
                pass
            parsed = self._taken(slot, chunk, begin)
            if parsed.records > 0 or chunk.last:
                return parsed if parsed.records > 0 or parsed.end > parsed.start else None

    def _fetch(self) -> bool:
        """Start to copy one more chunk to the device; False if there is none."""
        chunk = self.feed.take()
        if chunk is None:
            return False
        if chunk.offset == 0 and chunk.first != ord("@"):
            raise IrregularInputError("the file does not begin like FASTQ")
        slot = self._free.popleft()
        self._copies.wait_event(slot.free)
        chunk.copy_to(slot.raw[HEADROOM:].data, self._copies)
        slot.copied.record(self._copies)
        chunk.release(slot.copied)
        self._coming.append((slot, chunk))
        return True

    def _carry(self, slot: Slot) -> int:
        """Copy the previous chunk's remainder in front of this one; return where it begins."""
        at, size = self._left
        begin = HEADROOM - size
        if begin < 0:
            raise IrregularInputError("a record is longer than a read's can be")
        self._kernels.wait_event(slot.copied)
        last, self._current = self._current, slot
        if last is not None:
            if size:
                source = last.raw[at:].data
                slot.raw[begin:].data.copy_from_device_async(source, size, self._kernels)
            last.free.record(self._kernels)
            self._free.append(last)
        return begin

    def _find_records(self, slot: Slot, chunk: FeedChunk, begin: int) -> None:
        if chunk.content_end is not None:
            self._content_end = chunk.content_end
        end = HEADROOM + chunk.size
        content_end = self._content_end - (chunk.offset - HEADROOM)
        tiles = -(-(end - begin // 16 * 16) // TILE)
        part = (slot.raw, np.uint32(begin), np.uint32(end))
        KERNELS.launch("count_lines", (tiles,), (THREADS,), (*part, slot.tile_lines))
        numbers = (np.uint32(tiles), np.uint32(slot.room))
        KERNELS.launch("sum_lines", (1,), (THREADS,), (slot.tile_lines, *numbers, slot.found))
        KERNELS.launch(
            "list_lines",
            (tiles,),
            (THREADS,),
            (*part, slot.tile_lines, np.uint32(slot.room), slot.line_end),
        )
        KERNELS.launch(
            "check_records",
            blocks_for(min(slot.room, end - begin) // 4 + 1),
            (THREADS,),
            (
                slot.raw,
                np.uint32(begin),
                np.uint32(max(0, content_end)),
                slot.line_end,
                np.uint32(1 if chunk.last else self._unit),
                self._classes,
                np.uint32(59 if self._phred_offset == 64 else 33),
                np.uint32(DEFAULT_LIMITS.header_bytes),
                np.uint32(MAX_READ_LENGTH),
                np.uint32(max(0, SAMPLED_RECORDS - self.records)),
                slot.seq_start,
                slot.qual_start,
                slot.lengths,
                slot.found,
            ),
        )

    def _taken(self, slot: Slot, chunk: FeedChunk, begin: int) -> ParsedChunk:
        """Wait for the findings on the chunk and check them."""
        slot.found.get(self._kernels, out=self._found)
        found = FOUND.unpack(self._found)
        offset = chunk.offset - HEADROOM
        tail = offset + found["tail"]
        if found["full"]:
            raise IrregularInputError("lines are very short")
        if found["bad"] != _NONE:
            raise IrregularInputError(f"record {self.records + found['bad'] + 1} is not valid")
        if found["records"] % self._unit:
            raise IrregularInputError("a read has no mate")
        if chunk.last and tail < self._content_end:
            raise IrregularInputError("the file ends within a record")
        self._left = found["tail"], HEADROOM + chunk.size - found["tail"]
        first_record = self.records
        self.records += found["records"]
        self._check_offset(found, end=chunk.last)
        return ParsedChunk(
            slot=slot,
            begin=begin,
            records=found["records"],
            first_record=first_record,
            min_length=found["min_length"],
            max_length=found["max_length"],
            ambiguous=found["ambiguous"],
            offset=offset,
            start=offset + begin,
            end=chunk.offset + chunk.size - 1 if chunk.last else tail,
        )

    def _check_offset(self, found: dict[str, Any], *, end: bool) -> None:
        """Leave a file that may be Phred+64 to the CPU's reader, which decides by more of it."""
        low, high = self._quality_range
        self._quality_range = min(low, found["low_quality"]), max(high, found["high_quality"])
        decided = end or self.records >= SAMPLED_RECORDS
        if self._phred_offset == "auto" and decided and may_be_phred64(*self._quality_range):
            raise IrregularInputError("the qualities may be Phred+64")


@lru_cache(maxsize=1)
def _classes() -> NDArray[np.uint8]:
    """uint8[256]: code of each byte, as the kernels' kUnknown and kNoBase where it has none."""
    return np.where(base_table(), CODES, 255).astype(np.uint8)


def device_classes() -> Any:
    """What kind of letter each byte is, uint8[256] on the device."""
    import cupy

    return cupy.asarray(_classes())


def blocks_for(warps: int) -> tuple[int]:
    """Grid for kernels of one warp a record: enough to fill the GPU, and not more than needed."""
    return grid_for(max(1, warps), WARPS, 8)
