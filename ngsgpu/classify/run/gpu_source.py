"""Queries of files, read and looked up on a GPU.

FASTQ is split into records on the device (``ngsgpu.io.gpu.records``), where names and candidates
stay. What the GPU's reader does not take (FASTA, wrong or unusual input) is read by the CPU's, from
where the other has stopped, and looked up on the GPU all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from ngsgpu.classify.query.gpu import KERNELS, GpuEngine
from ngsgpu.classify.query.gpu_batch import (
    GpuBatch,
    GpuMates,
    GpuNames,
    GpuReads,
    HostReads,
)
from ngsgpu.classify.query.queries import Queries
from ngsgpu.classify.run.samples import cuts_of, queries_of
from ngsgpu.device.kernels import THREADS
from ngsgpu.errors import InputError
from ngsgpu.io.gpu.feed import IrregularInputError, say_read_by_cpu
from ngsgpu.io.gpu.records import MAX_READERS, DeviceReadFiles, DeviceRecordBatch, no_bad_pair
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.pool import map_ahead

logger = logging.getLogger("ngsgpu")

_NAME_TILE: Final = 256
"""Queries of a block that copies names."""

_QUERIES_AT_ONCE: Final = 1 << 16
"""Queries read by the CPU that are looked up together."""

_BASES_AT_ONCE: Final = 1 << 24


class GpuSource:
    """Gives the queries of lanes with their candidates.

    Args:
        engine: finds candidates.
        threads: threads that read and inflate.
        chunk_bytes: bytes of a file that are handled at a time.
        phred_offset: as for ``read_batches``.
    """

    def __init__(
        self, engine: GpuEngine, *, threads: int, chunk_bytes: int, phred_offset: PhredOffset
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._chunk_bytes = chunk_bytes
        self._phred_offset = phred_offset

    def batches(self, lane: ReadFiles) -> Iterator[GpuBatch]:
        """The lane's queries, in order.

        Raises:
            InputError: a file cannot be read.
        """
        done = 0
        try:
            for batch in self._parsed_on_gpu(lane):
                yield batch
                done += len(batch)
            return
        except (IrregularInputError, InputError) as reason:
            say_read_by_cpu(reason)
        yield from self._parsed_on_cpu(lane, done)

    def _parsed_on_cpu(self, lane: ReadFiles, done: int) -> Iterator[GpuBatch]:
        """What the CPU reads, without the first ``done`` queries."""
        batches = lane.batches(
            threads=self._threads,
            phred_offset=self._phred_offset,
            chunk_bytes=max(self._chunk_bytes, 1 << 20),
        )

        def parts(done: int) -> Iterator[Queries]:
            for mates in batches:
                queries = queries_of(mates, lane)
                skipped = min(done, len(queries))
                done -= skipped
                queries = queries.part(skipped, len(queries))
                for begin, end in cuts_of(queries, _QUERIES_AT_ONCE, _BASES_AT_ONCE):
                    yield queries.part(begin, end)

        with ThreadPoolExecutor(self._threads, thread_name_prefix="ngsgpu-work") as pool:
            for reads in map_ahead(pool, HostReads.of, parts(done), self._threads + 1):
                yield self._engine.find(*reads.to_device())

    def _parsed_on_gpu(self, lane: ReadFiles) -> Iterator[GpuBatch]:
        import cupy

        readers = min(self._threads, MAX_READERS)
        pairs = 0
        with (
            ThreadPoolExecutor(readers, thread_name_prefix="ngsgpu-read") as pool,
            DeviceReadFiles(
                lane,
                pool,
                readers=readers,
                chunk_bytes=self._chunk_bytes,
                phred_offset=self._phred_offset,
                copies=cupy.cuda.Stream(non_blocking=True),
                bad_pair=no_bad_pair(),
            ) as device_lane,
        ):
            for records in device_lane.batches():
                yield self._find(records, strip=lane.paired)
                pairs += records.units
        if pairs == 0:
            raise IrregularInputError("there are no reads, which the CPU's reader says")

    def _find(self, records: DeviceRecordBatch, *, strip: bool) -> GpuBatch:
        """Candidates and names of the next queries."""
        mates = tuple(
            GpuMates(chunk.slot.raw, chunk.slot.seq_start, chunk.slot.lengths, record)
            for chunk, record in records.parts
        )
        names = self._names(records, strip=strip)
        return self._engine.find(GpuReads(mates, records.units, records.step), names)

    @staticmethod
    def _names(records: DeviceRecordBatch, *, strip: bool) -> GpuNames:
        """Copy the names of queries out of the chunk."""
        import cupy

        chunk, record = records.parts[0]
        queries = records.units
        used = cupy.zeros(1, dtype=cupy.uint32)
        start, length = cupy.empty((2, queries), dtype=cupy.uint32)
        text = cupy.empty(chunk.slot.raw.size, dtype=cupy.uint8)
        KERNELS.launch(
            "copy_names",
            (-(-queries // _NAME_TILE),),
            (THREADS,),
            (
                chunk.slot.raw, chunk.slot.line_end, np.uint32(chunk.begin), np.uint32(record),
                np.uint32(records.step), np.uint32(queries), np.int32(strip), used, start, length,
                text,
            ),
        )  # fmt: skip
        return GpuNames(text, start, length, used)
