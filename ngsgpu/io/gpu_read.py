"""From FASTQ files to a read set on the GPU: the counterpart of ``ReadSetBuilder``.

Read in this order: ``gpu_feed`` (bytes to pinned memory), ``gpu_parse`` (chunks to records), this
module (mates together, packing), ``fastq.cu`` (the kernels). Whatever is wrong or unusual about an
input is left to the CPU's reader, so that errors are worded in one place, and the two accept the
same files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from ngsgpu.device.errors import cuda_errors
from ngsgpu.errors import InputError
from ngsgpu.io.batch import RecordBatch
from ngsgpu.io.diagnose import PhredOffset
from ngsgpu.io.gpu_feed import IrregularInputError, Keeper, open_feed
from ngsgpu.io.gpu_pack import Growing, Packer
from ngsgpu.io.gpu_parse import KERNELS, SLOTS, THREADS, ParsedChunk, Parser, blocks_for, slot_bytes
from ngsgpu.io.places import FilePlaces, LanePlaces, Segment
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.readset import MAX_READS, ReadSetBuilder

logger = logging.getLogger("ngsgpu")

CHUNK_BYTES: Final = 16 << 20
"""Small enough for the L2 cache of a GPU, and for many threads to have one each."""

SMALLEST_CHUNK: Final = 1 << 16
MOST_READERS: Final = 12
NO_PAIR: Final = 2**64 - 1


class Lane(Protocol):
    """What is read; ``ngsgpu.correct.lanes.Lane``."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The file, or the files of first and second mates."""

    @property
    def interleaved(self) -> bool:
        """Whether mates alternate in the one file."""

    @property
    def paired(self) -> bool:
        """Whether the reads have mates."""

    def batches(
        self, *, threads: int, phred_offset: PhredOffset, chunk_bytes: int
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Batches of records, one for each input."""


@dataclass(frozen=True, slots=True)
class DeviceInput:
    """What was read.

    Attributes:
        reads: the reads.
        places: where each lane's sequences lie, for ``ngsgpu.io.patch``; None where the CPU's
            reader had to read, as FASTA.
    """

    reads: DeviceReadSet
    places: tuple[LanePlaces, ...] | None


def read_to_device(
    lanes: Sequence[Lane],
    *,
    quality_bits: int = 8,
    phred_offset: PhredOffset = "auto",
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    memory: int | None = None,
    keep_bytes: int = 0,
    advance: Callable[[int], None] = lambda reads: None,
) -> DeviceInput:
    """Read lanes into a read set on the current GPU; equal to what ``ReadSetBuilder`` makes.

    Args:
        lanes: what to read, all with mates or all without.
        quality_bits: 8, 2, 1 or 0 bits of quality kept.
        phred_offset: as for ``ngsgpu.io.reader.read_batches``.
        threads: threads that read and inflate.
        chunk_bytes: bytes of a file that are handled at a time; the result does not depend on it.
        memory: bytes of device memory that may be taken; makes chunks smaller. The limit itself
            is that of CuPy's memory pool.
        keep_bytes: bytes of host memory for inflated data, which a second pass then need not
            inflate again.
        advance: called with the number of reads packed since the last call.

    Raises:
        InputError: a file cannot be read, opened or understood; the same as the CPU's reader's.
        DeviceError: the GPU's memory does not suffice, or CUDA fails.
    """
    if memory is not None:
        # The slots take about an eighth of the memory.
        chunk_bytes = min(chunk_bytes, max(SMALLEST_CHUNK, memory // 96))
    try:
        with cuda_errors("reading the input to the GPU"):
            reader = _Reader(lanes, quality_bits, phred_offset, threads, chunk_bytes, advance)
            reader.keeper = Keeper(keep_bytes)
            return reader.read()
    except (IrregularInputError, InputError) as reason:
        logger.debug("reading on the CPU: %s", reason)
    host = ReadSetBuilder(
        paired=lanes[0].paired,
        quality_bits=quality_bits,
        phred_offset=33 if phred_offset == "auto" else phred_offset,
        threads=threads,
    )
    for lane in lanes:
        for mates in lane.batches(
            threads=threads, phred_offset=phred_offset, chunk_bytes=max(chunk_bytes, 1 << 20)
        ):
            host.add(*mates)
            advance(sum(map(len, mates)))
    with cuda_errors("copying the reads to the GPU"):
        return DeviceInput(DeviceReadSet.from_host(host.finish()), None)


def working_bytes(files: int, chunk_bytes: int = CHUNK_BYTES) -> int:
    """Device memory that reading takes beside the read set.

    Args:
        files: 2 for pairs in two files, else 1.
        chunk_bytes: as for ``read_to_device``.
    """
    return files * SLOTS * slot_bytes(chunk_bytes)


class _Cursor:
    """How far into its records a file was packed, and where its sequences lie."""

    def __init__(self, path: str, parser: Parser, packer: Packer) -> None:
        self.path = path
        self.parser = parser
        self.chunk: ParsedChunk | None = None
        self.used = 0
        self.segments: list[Segment] = []
        self._starts = Growing(np.uint32)
        self._packer = packer

    def left(self) -> int:
        """Records of the chunk that were not packed yet; goes on to the next chunk if none."""
        while self.chunk is None or self.used == self.chunk.records:
            self.chunk = self.parser.next_chunk()
            self.used = 0
            if self.chunk is None:
                return 0
            self._note(self.chunk)
        return self.chunk.records - self.used

    def _note(self, chunk: ParsedChunk) -> None:
        self.segments.append(
            Segment(chunk.start, chunk.end, chunk.offset, chunk.first_record, chunk.records)
        )
        if chunk.records:
            target = self._starts.extend(chunk.records, chunk.records)
            target[...] = chunk.slot.seq_start[: chunk.records]
            self._packer.expect_unknown(chunk.unknown)

    def places(self) -> FilePlaces:
        """Where the sequences lie."""
        import cupy

        feed = self.parser.feed
        starts = cupy.asnumpy(self._starts.finish())
        kept = None if feed.kept is None else tuple(feed.kept)
        return FilePlaces(
            self.path, feed.compression, feed.identity, tuple(self.segments), starts, kept
        )


class _Reader:
    """One run of ``read_to_device``."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        quality_bits: int,
        phred_offset: PhredOffset,
        threads: int,
        chunk_bytes: int,
        advance: Callable[[int], None],
    ) -> None:
        import cupy

        self._lanes = lanes
        self._phred_offset = phred_offset
        self._threads = threads
        self._chunk_bytes = chunk_bytes
        self._advance = advance
        self.keeper = Keeper(0)
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._packer = Packer(
            quality_bits=quality_bits,
            phred_offset=64 if phred_offset == 64 else 33,
        )
        self._bad_pair = cupy.full(1, NO_PAIR, dtype=cupy.uint64)
        self._empty: list[str] = []
        self._input_bytes = 0

    def read(self) -> DeviceInput:
        """Read all lanes."""
        try:
            files = [Path(path) for lane in self._lanes for path in lane.inputs]
            self._input_bytes = sum(file.stat().st_size for file in files)
        except OSError as error:
            raise IrregularInputError(str(error)) from error
        readers = min(self._threads, MOST_READERS)
        with ThreadPoolExecutor(readers, thread_name_prefix="ngsgpu-read") as pool:
            places = tuple(self._read_lane(lane, pool, readers) for lane in self._lanes)
        reads = self._packer.finish(paired=self._lanes[0].paired)
        for path in self._empty:
            logger.warning("%s: the file is empty", path)
        return DeviceInput(reads, places)

    def _read_lane(self, lane: Lane, pool: ThreadPoolExecutor, readers: int) -> LanePlaces:
        first_read = self._packer.reads
        with ExitStack() as stack:
            cursors = []
            for path in lane.inputs:
                feed = open_feed(
                    path,
                    pool,
                    self.keeper,
                    threads=self._threads,
                    chunk_bytes=self._chunk_bytes,
                    ahead=2 + readers // len(lane.inputs),
                )
                stack.callback(feed.close)
                parser = Parser(
                    feed,
                    chunk_bytes=self._chunk_bytes,
                    interleaved=lane.interleaved,
                    phred_offset=self._phred_offset,
                    copies=self._copies,
                )
                stack.callback(self._copies.synchronize)
                cursors.append(_Cursor(path, parser, self._packer))
            if all(cursor.parser.feed.size is not None for cursor in cursors):
                self._packer.input_bytes = self._input_bytes
            while count := min(cursor.left() for cursor in cursors):
                self._pack(lane, cursors, count)
            if any(cursor.left() for cursor in cursors):
                raise IrregularInputError("the files have different numbers of reads")
            if int(self._bad_pair[0]) != NO_PAIR:
                raise IrregularInputError(f"pair {int(self._bad_pair[0]) + 1} is not one of mates")
            self._empty += [cursor.path for cursor in cursors if not cursor.segments]
            return LanePlaces(tuple(cursor.places() for cursor in cursors), first_read)

    def _pack(self, lane: Lane, cursors: list[_Cursor], count: int) -> None:
        """Check and pack the next ``count`` records of each file."""
        if self._packer.reads + count * len(cursors) > MAX_READS:
            raise IrregularInputError("there are too many reads")
        parts = [(cursor.chunk, cursor.used) for cursor in cursors if cursor.chunk is not None]
        if lane.paired:
            (first, record1), (second, record2) = parts[0], parts[-1]
            if lane.interleaved:
                record2 += 1
            step = 2 if lane.interleaved else 1
            check_mates(
                (first, record1),
                (second, record2),
                step=step,
                pairs=count // step,
                first_pair=self._packer.reads // 2,
                bad_pair=self._bad_pair,
            )
        self._packer.add(parts, count)
        for cursor in cursors:
            cursor.used += count
        self._advance(count * len(cursors))


def check_mates(
    first: tuple[ParsedChunk, int],
    second: tuple[ParsedChunk, int],
    *,
    step: int,
    pairs: int,
    first_pair: int,
    bad_pair: Any,
) -> None:
    """Check on the device that records have the names of mates, by the rule of ``io.pairs``.

    Args:
        first: chunk and number in it of the first mate of the first pair.
        second: the same of its second mate.
        step: from one pair's record to the next one's.
        pairs: how many.
        first_pair: number of the first pair.
        bad_pair: uint64[1] on the device, becomes the smallest number of a pair that is none.
    """
    KERNELS.launch(
        "check_mates",
        blocks_for(pairs),
        (THREADS,),
        (
            *_headers(*first),
            *_headers(*second),
            np.uint32(step),
            np.uint32(pairs),
            np.uint64(first_pair),
            bad_pair,
        ),
    )


def _headers(chunk: ParsedChunk, record: int) -> tuple[Any, ...]:
    return chunk.slot.raw, chunk.slot.line_end, np.uint32(chunk.begin), np.uint32(record)
