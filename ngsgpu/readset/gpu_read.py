"""From FASTQ files to a read set on the GPU: the counterpart of ``ReadSetBuilder``.

Read in this order: ``gpu_feed`` (bytes to pinned memory), ``gpu_parse`` (chunks to records),
``gpu_lane`` (mates together), this module (packing), ``fastq.cu`` (the kernels). Whatever is wrong
or unusual about an input is left to the CPU's reader, so that errors are worded in one place, and
the two accept the same files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ngsgpu.device.errors import cuda_errors
from ngsgpu.errors import InputError
from ngsgpu.io.gpu.feed import HostCache, IrregularInputError, say_read_by_cpu
from ngsgpu.io.gpu.parse import ParsedChunk
from ngsgpu.io.gpu.records import (
    CHUNK_BYTES,
    Cursor,
    DeviceReadFiles,
    DeviceRecordBatch,
    no_bad_pair,
    total_bytes,
)
from ngsgpu.io.gpu.sample import sample_batch
from ngsgpu.io.reread import FileLayout, ReadFilesLayout, Segment
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_pack import Growing, Packer
from ngsgpu.readset.gpu_plan import chunk_bytes_within
from ngsgpu.readset.qualities import MoreLevelsError
from ngsgpu.readset.readset import MAX_READS, ReadSetBuilder

logger = logging.getLogger("ngsgpu")


class ReadFiles(Protocol):
    """The input; ``ngsgpu.io.inputs.ReadFiles``."""

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
        """Batches of records, one for each input.

        Args:
            threads: number of threads.
            phred_offset: 33, 64 or ``auto``.
            chunk_bytes: size of the pieces in which text is read.
        """


@dataclass(frozen=True, slots=True)
class DeviceInput:
    """The result of reading.

    Attributes:
        reads: the reads.
        layouts: positions of each lane's sequences, for ``ngsgpu.io.output.patch``; None if the CPU
            reader was used, as for FASTA.
    """

    reads: DeviceReadSet
    layouts: tuple[ReadFilesLayout, ...] | None


def read_to_device(
    lanes: Sequence[ReadFiles],
    *,
    quality_bits: int = 8,
    phred_offset: PhredOffset = "auto",
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    memory: int | None = None,
    keep_bytes: int = 0,
    sample: ReadSample | None = None,
    advance: Callable[[int], None] = lambda reads: None,
    devices: Sequence[int] | None = None,
) -> DeviceInput:
    """Read lanes into a read set on the current GPU; equal to what ``ReadSetBuilder`` makes.

    A read set that is a large part of the GPU is divided over several, if they are given.

    Args:
        lanes: what to read, all with mates or all without.
        quality_bits: 8, 2, 1 or 0 bits of quality kept.
        phred_offset: as for ``ngsgpu.io.text.reader.read_batches``.
        threads: threads that read and inflate.
        chunk_bytes: bytes of a file that are handled at a time; the result does not depend on it.
        memory: bytes of device memory that may be taken; makes chunks smaller. The limit itself
            is that of CuPy's memory pool.
        keep_bytes: bytes of host memory for inflated data, which a second pass then need not
            inflate again.
        sample: gets the sample of the reads.
        advance: called with the number of reads packed since the last call.
        devices: numbers of GPUs that ``can_spread``, the current one first.

    Raises:
        InputError: a file cannot be read, opened or understood; the same as the CPU's reader's.
        DeviceError: the GPU's memory does not suffice, or CUDA fails.
    """
    if memory is not None:
        chunk_bytes = chunk_bytes_within(memory, chunk_bytes)
    sample = sample or ReadSample()
    try:
        for by_level in (True, False):
            with cuda_errors("reading the input to the GPU"), suppress(MoreLevelsError):
                reader = _Reader(
                    lanes, quality_bits, phred_offset, threads, chunk_bytes, sample, advance,
                    by_level, devices,
                )  # fmt: skip
                reader.host_cache = HostCache(keep_bytes)
                return reader.read()
            del reader
            sample.clear()
    except (IrregularInputError, InputError) as reason:
        say_read_by_cpu(reason)
    sample.clear()
    host = ReadSetBuilder(
        paired=lanes[0].paired,
        quality_bits=quality_bits,
        phred_offset=33 if phred_offset == "auto" else phred_offset,
        threads=threads,
        by_level=True,
    )
    for lane in lanes:
        for mates in lane.batches(
            threads=threads, phred_offset=phred_offset, chunk_bytes=max(chunk_bytes, 1 << 20)
        ):
            sample.take(mates, interleaved=lane.interleaved)
            host.add(*mates)
            advance(sum(map(len, mates)))
    with cuda_errors("copying the reads to the GPU"):
        return DeviceInput(DeviceReadSet.from_host(host.finish()), None)


class _LayoutBuilder:
    """Builds the layout of a file."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._starts = Growing(np.uint32)

    def note(self, chunk: ParsedChunk) -> None:
        """Keep those of a chunk."""
        self.segments.append(
            Segment(chunk.start, chunk.end, chunk.offset, chunk.first_record, chunk.records)
        )
        if chunk.records:
            target = self._starts.extend(chunk.records, chunk.records)
            target[...] = chunk.slot.seq_start[: chunk.records]

    def finish(self, cursor: Cursor) -> FileLayout:
        """The layout of the whole file."""
        import cupy

        feed = cursor.parser.feed
        starts = cupy.asnumpy(self._starts.finish())
        kept = None if feed.kept is None else tuple(feed.kept)
        places = feed.checkpoints(self.segments[-1].end if self.segments else 0)
        return FileLayout(
            cursor.path,
            feed.compression,
            feed.identity,
            tuple(self.segments),
            starts,
            kept,
            places if kept is None else (),
        )


class _Reader:
    """One run of ``read_to_device``."""

    def __init__(
        self,
        lanes: Sequence[ReadFiles],
        quality_bits: int,
        phred_offset: PhredOffset,
        threads: int,
        chunk_bytes: int,
        sample: ReadSample,
        advance: Callable[[int], None],
        by_level: bool,
        devices: Sequence[int] | None,
    ) -> None:
        import cupy

        self._lanes = lanes
        self._phred_offset = phred_offset
        self._threads = threads
        self._chunk_bytes = chunk_bytes
        self._sample = sample
        self._advance = advance
        self.host_cache = HostCache(0)
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._packer = Packer(
            quality_bits=quality_bits,
            phred_offset=64 if phred_offset == 64 else 33,
            by_level=by_level,
            devices=devices,
        )
        self._bad_pair = no_bad_pair()
        self._empty: list[str] = []
        self._input_bytes = 0

    def read(self) -> DeviceInput:
        """Read all lanes."""
        self._input_bytes = total_bytes([path for lane in self._lanes for path in lane.inputs])
        layouts = tuple(self._read_lane(lane) for lane in self._lanes)
        reads = self._packer.finish(paired=self._lanes[0].paired)
        for path in self._empty:
            logger.warning("%s: the file is empty", path)
        return DeviceInput(reads, layouts)

    def _read_lane(self, lane: ReadFiles) -> ReadFilesLayout:
        first_read = self._packer.reads
        with DeviceReadFiles(
            lane,
            threads=self._threads,
            chunk_bytes=self._chunk_bytes,
            phred_offset=self._phred_offset,
            copies=self._copies,
            bad_pair=self._bad_pair,
            first_pair=first_read // 2,
            host_cache=self.host_cache,
        ) as device_lane:
            cursors = device_lane.cursors
            layouts = {cursor.path: _LayoutBuilder() for cursor in cursors}

            def note(cursor: Cursor, chunk: ParsedChunk) -> None:
                layouts[cursor.path].note(chunk)
                if chunk.records:
                    self._packer.expect_ambiguous(chunk.ambiguous)

            if all(cursor.parser.feed.size is not None for cursor in cursors):
                self._packer.input_bytes = self._input_bytes
            for batch in device_lane.batches(note):
                self._pack(batch, len(cursors))
            self._empty += [path for path, own in layouts.items() if not own.segments]
            found = tuple(layouts[cursor.path].finish(cursor) for cursor in cursors)
            return ReadFilesLayout(found, first_read)

    def _pack(self, batch: DeviceRecordBatch, files: int) -> None:
        """Pack the records of a batch."""
        if self._packer.reads + batch.records * files > MAX_READS:
            raise IrregularInputError("there are too many reads")
        sample_batch(self._sample, batch)
        self._packer.add(batch.parts[:files], batch.records)
        self._advance(batch.records * files)
