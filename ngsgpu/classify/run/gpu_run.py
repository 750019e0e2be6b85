"""Classifies one sample on a GPU: the counterpart of ``cpu_run``.

The GPU splits FASTQ into records (``ngsgpu.io.gpu.records``). Input that the GPU reader does not
support (FASTA, invalid or unusual input) is read by the CPU reader, from where the other stopped,
and still classified on the GPU.

Candidates, calls and lines stay on the GPU; only output bytes are copied back. Between the two
passes of species evidence, queries stay in GPU memory as far as there is room, the rest on the
host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from ngsgpu.classify.call.gpu import GpuFirstPass
from ngsgpu.classify.call.results import SampleTotals
from ngsgpu.classify.outputs.given import LineMaker
from ngsgpu.classify.outputs.gpu import CalledBatch, GpuCaller
from ngsgpu.classify.query.gpu import KERNELS, GpuEngine
from ngsgpu.classify.query.gpu_batch import (
    GpuBatch,
    GpuMates,
    GpuNames,
    GpuReads,
    HostReads,
    batch_of_block,
)
from ngsgpu.classify.query.queries import Queries, QueryBlock
from ngsgpu.classify.run.cpu_run import SampleRun
from ngsgpu.classify.run.errors import MOST_READS, ReadErrors
from ngsgpu.classify.run.gpu_records import GpuRecords, TextWriter
from ngsgpu.classify.run.samples import ClassificationStatistics, cuts_of, queries_of
from ngsgpu.classify.run.two_pass import FirstPass, TwoPass
from ngsgpu.device.cuda.kernels import THREADS
from ngsgpu.device.pinned import to_host
from ngsgpu.device.plan import gpu_memory
from ngsgpu.errors import InputError
from ngsgpu.io.gpu.feed import IrregularInputError, say_read_by_cpu
from ngsgpu.io.gpu.records import DeviceReadFiles, DeviceRecordBatch, no_bad_pair
from ngsgpu.io.gpu.sample import sample_batch
from ngsgpu.io.gpu.write import DeviceWriter
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputGroup
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.pool import working

SHARE_OF_MEMORY: Final = 0.5
"""Of what the GPU has free, for queries that are looked at twice."""

SHARE_FOR_RECORDS: Final = 0.25
"""The same for records that are written when they are called."""

_MANY_BATCHES: Final = 8
"""With these it pays to load beside the first pass what compresses the outputs of the second."""

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
        sampled: gets the sample of the reads.
        errors: gets the first reads.
        records: keeps the records that are written when they are called; None if none are.
    """

    def __init__(
        self,
        engine: GpuEngine,
        *,
        threads: int,
        chunk_bytes: int,
        phred_offset: PhredOffset,
        sampled: ReadSample,
        errors: ReadErrors,
        records: GpuRecords | None,
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._chunk_bytes = chunk_bytes
        self._phred_offset = phred_offset
        self._sampled = sampled
        self._errors = errors
        self._records = records

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
        """Queries that the CPU parses, without the first ``done``."""
        batches = lane.batches(
            threads=self._threads,
            phred_offset=self._phred_offset,
            chunk_bytes=max(self._chunk_bytes, 1 << 20),
        )
        if self._records is not None:
            batches = self._records.read_by_cpu(lane, batches)

        def parts(done: int) -> Iterator[Queries]:
            every = 2 if lane.interleaved else 1
            for whole in batches:
                skipped = min(done, len(whole[0]) // every)
                done -= skipped
                mates = tuple(batch.slice(every * skipped, len(batch)) for batch in whole)
                if len(mates[0]) == 0:
                    continue
                self._sampled.take(mates, interleaved=lane.interleaved)
                self._errors.take(mates[0], every)
                queries = queries_of(mates, lane)
                for begin, end in cuts_of(queries, _QUERIES_AT_ONCE, _BASES_AT_ONCE):
                    yield queries.part(begin, end)

        ahead = self._threads + 1
        with working(self._threads, HostReads.of, parts(done), ahead=ahead) as read:
            for reads in read:
                yield self._engine.find(*reads.to_device())

    def _parsed_on_gpu(self, lane: ReadFiles) -> Iterator[GpuBatch]:
        import cupy

        pairs = 0
        with DeviceReadFiles(
            lane,
            threads=self._threads,
            chunk_bytes=self._chunk_bytes,
            phred_offset=self._phred_offset,
            copies=cupy.cuda.Stream(non_blocking=True),
            bad_pair=no_bad_pair(),
        ) as device_lane:
            for records in device_lane.batches():
                sample_batch(self._sampled, records)
                if not self._errors.is_full:
                    _take_first(self._errors, records)
                if self._records is not None:
                    self._records.take(records)
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


def _take_first(errors: ReadErrors, records: DeviceRecordBatch) -> None:
    """Give the first reads of a batch, with the same result as ``ReadErrors.take``."""
    chunk, first = records.parts[0]
    own = slice(first, first + records.step * min(records.units, MOST_READS), records.step)
    lengths = to_host(chunk.slot.lengths[own].copy())
    wanted = errors.wanted(lengths)
    if wanted == 0:
        return
    start = to_host(chunk.slot.qual_start[own].copy())[:wanted].astype(np.int64)
    lengths = lengths[:wanted]
    begin, end = int(start[0]), int(start[-1] + lengths[-1])
    errors.add(to_host(chunk.slot.raw[begin:end]), start - begin, lengths)


class GpuSampleRun(SampleRun):
    """Classifies one sample, whose queries are batches on the current GPU.

    Attributes:
        room: GPU memory in bytes for queries between two passes; None: half of the free memory.
        records: keeps the records that are written; None if none are.
    """

    WRITING: ClassVar[float] = 1.0
    READS_ONCE: ClassVar[bool] = False
    room: int | None = None
    records: GpuRecords | None = None

    def run(
        self, items: Iterator[Any], find: Callable[[Any], QueryBlock], group: OutputGroup
    ) -> ClassificationStatistics:
        """See ``SampleRun``."""
        if self.sorted_reads is not None:
            room = int(gpu_memory(self._options.gpu_memory).budget * SHARE_FOR_RECORDS)
            self.records = GpuRecords(self.sorted_reads, room, self._options.kept_bytes)
        return super().run(items, find, group)

    def _classify_once(
        self, items: Iterator[Any], find: Callable[[Any], QueryBlock], first: FirstPass
    ) -> SampleTotals:
        caller = GpuCaller(
            self._engine,
            self._lines.values(),
            kept=first.kept,
            weights=first.weights,
            window_reads=self._counts_windows,
        )
        with DeviceWriter(self._outputs, threads=self._options.threads) as writer:
            texts = TextWriter(writer)
            makers = {self._index[name]: maker for name, maker in self._lines.items()}
            lines = _Lines(caller, texts, makers)
            for output, maker in makers.items():
                lines.put_header(output, maker.header())
            for batch in items:
                called = caller.call(batch)
                lines.add(called)
                if self.records is not None:
                    self.records.write(called.calls, texts, self._index)
            lines.finish()
            if self.records is not None:
                self.records.finish(texts, self._index)
        totals = self._new_totals()
        caller.add_to(totals)
        return totals

    def _classify_twice(
        self, items: Iterator[Any], find: Callable[[Any], QueryBlock]
    ) -> SampleTotals:
        counter, model = self._counters()
        look = GpuFirstPass(self._engine, counter, model)
        room = self.room
        if room is None:
            room = int(gpu_memory(self._options.gpu_memory).budget * SHARE_OF_MEMORY)
        kept: list[GpuBatch | None] = []
        taxa = self._engine.taxon_of_target
        with TwoPass(self._header()) as second:
            for batch in items:
                look.add(batch)
                room -= batch.nbytes
                if room >= 0:
                    kept.append(batch.compact())
                else:
                    kept.append(None)
                    second.keep(second.prepare(batch.to_host(taxa)))
                if len(kept) == _MANY_BATCHES:
                    self._outputs.load_packers()
            look.finish()
            first = self._decide(counter, model)
            batches = _again(kept, second.blocks(self._engine))
            return self._classify_once(batches, find, first)


def _again(kept: list[GpuBatch | None], blocks: Iterator[QueryBlock]) -> Iterator[GpuBatch]:
    """Batches that were kept; those that are not on the GPU are copied there."""
    for place, batch in enumerate(kept):
        kept[place] = None
        yield batch_of_block(next(blocks)) if batch is None else batch


class _Lines:
    """Sends lines to their files, a batch behind, when it is known how many bytes they are."""

    def __init__(
        self, caller: GpuCaller, texts: TextWriter, makers: Mapping[int, LineMaker]
    ) -> None:
        self._caller = caller
        self._texts = texts
        self._makers = makers
        self._waiting: CalledBatch | None = None

    def put_header(self, output: int, header: bytes) -> None:
        """Begin an output."""
        import cupy

        if header:
            self._texts.put(output, cupy.asarray(np.frombuffer(header, dtype=np.uint8)))

    def add(self, called: CalledBatch) -> None:
        """Process the next batch."""
        self._send()
        self._waiting = called

    def finish(self) -> None:
        """Send the last batch."""
        self._send()

    def _send(self) -> None:
        called, self._waiting = self._waiting, None
        if called is None:
            return
        for output, maker in self._makers.items():
            self._texts.put(output, self._caller.lines(called, maker))
