"""Queries of files, read and looked up on a GPU.

FASTQ is split into records on the device (``ngsgpu.io.gpu_parse``), names and candidates come
back. What the GPU's reader does not take (FASTA, wrong or unusual input) is read by the CPU's, from
where the other has stopped, and looked up on the GPU all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

import numpy as np

from ngsgpu.classify.engine import QueryBlock
from ngsgpu.classify.gpu import THREADS, to_host
from ngsgpu.classify.gpu_query import KERNELS, DeviceEngine, DeviceMates
from ngsgpu.classify.query import CandidateArrays
from ngsgpu.classify.samples import queries_of
from ngsgpu.correct.lanes import Lane
from ngsgpu.errors import InputError
from ngsgpu.io.diagnose import PhredOffset
from ngsgpu.io.gpu_feed import IrregularInputError, Keeper, open_feed
from ngsgpu.io.gpu_parse import ParsedChunk, Parser
from ngsgpu.io.gpu_read import MOST_READERS, NO_PAIR, check_mates

logger = logging.getLogger("ngsgpu")

GPU_CHUNK_BYTES: Final = 32 << 20


class DeviceSource:
    """Gives the queries of lanes with their candidates.

    Args:
        device: finds candidates.
        threads: threads that read and inflate.
        queries_a_task: queries of a block.
        chunk_bytes: bytes of a file that are handled at a time.
        phred_offset: as for ``read_batches``.
    """

    def __init__(
        self,
        device: DeviceEngine,
        *,
        threads: int,
        queries_a_task: int,
        chunk_bytes: int,
        phred_offset: PhredOffset,
    ) -> None:
        self._device = device
        self._threads = threads
        self._queries_a_task = queries_a_task
        self._chunk_bytes = chunk_bytes
        self._phred_offset = phred_offset

    def blocks(self, lane: Lane) -> Iterator[QueryBlock]:
        """The lane's queries, in order.

        Raises:
            InputError: a file cannot be read.
        """
        done = 0
        try:
            for block in self._parsed_on_gpu(lane):
                yield from self._cut(block)
                done += len(block)
            return
        except (IrregularInputError, InputError) as reason:
            logger.debug("reading on the CPU: %s", reason)
        for block in self._parsed_on_cpu(lane, done):
            yield from self._cut(block)

    def _cut(self, block: QueryBlock) -> Iterator[QueryBlock]:
        for begin in range(0, len(block), self._queries_a_task):
            cut = slice(begin, begin + self._queries_a_task)
            yield replace(
                block,
                name_start=block.name_start[cut],
                name_end=block.name_end[cut],
                length1=block.length1[cut],
                length2=block.length2[cut],
                features=block.features[cut],
                candidates=CandidateArrays(*(array[cut] for array in block.candidates)),
            )

    def _parsed_on_cpu(self, lane: Lane, done: int) -> Iterator[QueryBlock]:
        """What the CPU reads, without the first ``done`` queries."""
        batches = lane.batches(
            threads=self._threads,
            phred_offset=self._phred_offset,
            chunk_bytes=max(self._chunk_bytes, 1 << 20),
        )
        for mates in batches:
            queries = queries_of(mates, lane)
            skipped = min(done, len(queries))
            done -= skipped
            if skipped < len(queries):
                yield self._device.find_candidates(queries.part(skipped, len(queries)))

    def _parsed_on_gpu(self, lane: Lane) -> Iterator[QueryBlock]:
        import cupy

        readers = min(self._threads, MOST_READERS)
        copies = cupy.cuda.Stream(non_blocking=True)
        bad_pair = cupy.full(1, NO_PAIR, dtype=cupy.uint64)
        pairs = 0
        with (
            ThreadPoolExecutor(readers, thread_name_prefix="ngsgpu-read") as pool,
            ExitStack() as stack,
        ):
            cursors = []
            for path in lane.inputs:
                feed = open_feed(
                    path,
                    pool,
                    Keeper(0),
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
                    copies=copies,
                )
                stack.callback(copies.synchronize)
                cursors.append(_Cursor(parser))
            while records := min(cursor.left() for cursor in cursors):
                parts = [(cursor.current, cursor.used) for cursor in cursors]
                step = 2 if lane.interleaved else 1
                if lane.paired:
                    chunk, record = parts[-1]
                    check_mates(
                        parts[0],
                        (chunk, record + step - 1),
                        step=step,
                        pairs=records // step,
                        first_pair=pairs,
                        bad_pair=bad_pair,
                    )
                block = self._block(parts, lane, records // step)
                if int(bad_pair[0]) != NO_PAIR:
                    raise IrregularInputError(f"pair {int(bad_pair[0]) + 1} is not one of mates")
                pairs += len(block)  # or single reads
                yield block
                for cursor in cursors:
                    cursor.used += records
            if any(cursor.left() for cursor in cursors):
                raise IrregularInputError("the files have different numbers of reads")
            if pairs == 0:
                raise IrregularInputError("there are no reads, which the CPU's reader says")

    def _block(self, parts: list[tuple[ParsedChunk, int]], lane: Lane, queries: int) -> QueryBlock:
        """Candidates and names of the next queries."""
        import cupy

        step = 2 if lane.interleaved else 1
        if lane.interleaved:
            chunk, record = parts[0]
            parts = [(chunk, record), (chunk, record + 1)]
        mates = [
            DeviceMates(chunk.slot.raw, chunk.slot.seq_start, chunk.slot.lengths, record, step)
            for chunk, record in parts
        ]
        chunk, record = parts[0]
        start = cupy.empty(queries, dtype=cupy.uint32)
        length = cupy.empty(queries, dtype=cupy.int64)
        grid = (max(1, min(-(-queries // THREADS), 4096)),)
        KERNELS.launch(
            "find_names",
            grid,
            (THREADS,),
            (
                chunk.slot.raw, chunk.slot.line_end, np.uint32(chunk.begin), np.int64(record),
                np.int64(step), np.int64(queries), np.int32(lane.paired), start, length,
            ),
        )  # fmt: skip
        end = cupy.cumsum(length)
        names = cupy.empty(int(end[-1]), dtype=cupy.uint8)
        grid = (max(1, min(-(-queries * 32 // THREADS), 4096)),)
        KERNELS.launch(
            "copy_names", grid, (THREADS,), (chunk.slot.raw, start, end, np.int64(queries), names)
        )
        found = self._device.find(mates, queries, self._device.letters)
        name_end = to_host(end)
        return QueryBlock(
            names=to_host(names),
            name_start=np.concatenate([np.zeros(1, dtype=np.int64), name_end[:-1]]),
            name_end=name_end,
            length1=found.length1,
            length2=found.length2,
            features=found.features,
            candidates=found.candidates,
            paired=lane.paired,
        )


class _Cursor:
    """How far into its records a file was looked at."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._chunk: ParsedChunk | None = None
        self.used = 0

    @property
    def current(self) -> ParsedChunk:
        """The chunk; after ``left`` has said that there is one."""
        assert self._chunk is not None
        return self._chunk

    def left(self) -> int:
        """Records of the chunk that were not used yet; goes on to the next chunk if none."""
        while self._chunk is None or self.used == self._chunk.records:
            self._chunk = self._parser.next_chunk()
            self.used = 0
            if self._chunk is None:
                return 0
        return self._chunk.records - self.used
