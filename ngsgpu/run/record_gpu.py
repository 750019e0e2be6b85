"""Record by record on a GPU: records split on the device, one batch after the other.

A batch is as many units as the chunks of a lane's files have in common. Two kernels of the stage
make the bytes of its outputs (``RecordKernels``), which are copied back and written by threads
while the next batch is read.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from ngsgpu.device.pinned import pinned_empty
from ngsgpu.device.plan import Allocation, MemoryPlan, plan_on_gpu
from ngsgpu.io.gpu.parse import HEADROOM
from ngsgpu.io.gpu.records import (
    CHUNK_BYTES,
    MAX_READERS,
    MIN_CHUNK,
    DeviceReadFiles,
    DeviceRecordBatch,
    no_bad_pair,
)
from ngsgpu.io.gpu.write import DeviceWriter
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import Outputs
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.run.options import RunOptions

MOST_CHUNK_BYTES: Final = 16 << 20
"""Bytes per chunk of a file, at most."""

logger = logging.getLogger("ngsgpu")

TILE_UNITS: Final = 64
"""Units per block of the kernels; kTileUnits of ``record.cuh``."""

MEMORY_PER_CHUNK_BYTE: Final = 32
"""Device memory, in chunks: slots of two files, outputs of three batches, and what is found."""

LEAST_BYTES: Final = MEMORY_PER_CHUNK_BYTE * MIN_CHUNK
"""Device memory with which the records can be read."""

BATCHES: Final = 3
"""Batches on the device: one being worked on, and two being written."""


class RecordKernels(ABC):
    """The kernels of a stage, and all that they need on the device.

    Attributes:
        FOUND: NumPy type of what is found out of a unit.
        sizes: bytes that each output of a batch may take.
    """

    FOUND: ClassVar[type[np.integer[Any]]]
    sizes: Sequence[int]

    @abstractmethod
    def launch(self, batch: ResultBatch, records: DeviceRecordBatch) -> None:
        """Find out what becomes of the records, and make the bytes of the outputs."""

    @abstractmethod
    def counts(self) -> Any:
        """What was counted, as ``RecordStage.no_counts``."""


class ResultBatch:
    """Device memory for the results of a batch.

    Args:
        sizes: bytes of the outputs.
        units: at most.
        found: NumPy type of what is found out of a unit.

    Attributes:
        found: of each unit, for the second kernel.
        offsets: uint32[outputs * units], places of records in their tile's bytes.
        tile_bytes: uint32[outputs * tiles].
        outputs: their bytes.
        totals: uint32[outputs], how many bytes these are.
        made: CUDA event after which all is there.
        copied: CUDA events after which it may be overwritten.
    """

    def __init__(self, sizes: Sequence[int], units: int, found: type[np.integer[Any]]) -> None:
        import cupy

        count = len(sizes)
        self.outputs = [cupy.empty(size, dtype=cupy.uint8) for size in sizes]
        self.found = cupy.empty(units, dtype=found)
        self.offsets = cupy.empty(count * units, dtype=cupy.uint32)
        self.tile_bytes = cupy.empty(count * (units // TILE_UNITS + 1), dtype=cupy.uint32)
        self.totals = cupy.empty(count, dtype=cupy.uint32)
        self._sizes = pinned_empty(4 * count).view(np.uint32)
        self.made = cupy.cuda.Event(disable_timing=True)
        self.copied: list[Any] = []

    def fetch_totals(self, stream: Any) -> None:
        """Start to bring home how many bytes each output has."""
        self.totals.get(stream, out=self._sizes, blocking=False)
        self.made.record(stream)

    def sizes(self) -> list[int]:
        """Wait for the batch; bytes of each output."""
        self.made.synchronize()
        return [int(size) for size in self._sizes]


def output_bytes(chunk_bytes: int) -> int:
    """Bytes of records of a chunk that are written again, with a line feed that may be missing."""
    return HEADROOM + chunk_bytes + 64


def record_arguments(records: DeviceRecordBatch) -> tuple[Any, ...]:
    """Both mates' records as passed to kernels (of reads without mates twice the same), and units.

    The kernels make ``Records`` of them.
    """
    arguments: list[Any] = []
    for chunk, record in (records.parts[0], records.parts[-1]):
        slot = chunk.slot
        arguments += [slot.raw, slot.line_end, slot.seq_start, slot.qual_start, slot.lengths]
        arguments += [np.uint32(chunk.begin), np.uint32(record)]
    return *arguments, np.uint32(records.step), np.uint32(records.units)


def grid_of_tiles(units: int) -> tuple[int]:
    """Grid of the kernels."""
    return (-(-units // TILE_UNITS),)


def plan_records_on_gpu(
    doing: str, tables: Sequence[Allocation], options: RunOptions
) -> MemoryPlan:
    """Plan the memory of a run on the current GPU.

    Args:
        doing: the work.
        tables: what lies there beside the records.
        options: memory budget, and bytes per chunk.

    Raises:
        DeviceError: CUDA does not respond.
    """
    chunk_bytes = min(options.chunk_bytes, MOST_CHUNK_BYTES)
    if options.gpu_memory is not None:
        room = options.gpu_memory - sum(own.bytes for own in tables)
        chunk_bytes = min(chunk_bytes, max(MIN_CHUNK, room // MEMORY_PER_CHUNK_BYTE))
    records = Allocation("records", MEMORY_PER_CHUNK_BYTE * chunk_bytes)
    return plan_on_gpu(doing, options.gpu_memory, *tables, records)


def run_on_gpu(
    kernels_for: Callable[[int], RecordKernels],
    lanes: Iterable[tuple[ReadFiles, Mapping[int, int]]],
    files: Outputs,
    *,
    phred_offset: PhredOffset,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    memory: int | None = None,
    advance: Callable[[int], None] = lambda units: None,
) -> Any:
    """Run a stage on the current GPU; equal to its run on the CPU.

    Args:
        kernels_for: makes the stage's kernels, for chunks of a number of bytes.
        lanes: regular files, and for each output that they have, its index among ``files``.
        files: the outputs.
        phred_offset: as for ``ngsgpu.io.text.reader.read_batches``.
        threads: threads that read and write.
        chunk_bytes: bytes per chunk of a file; does not affect the result.
        memory: device memory for the records in bytes; makes chunks smaller.
        advance: called with the number of units done since the last call.

    Returns:
        The counts.

    Raises:
        InputError: a file cannot be opened or inflated.
        IrregularInputError: an input is invalid or unusual; the CPU decides. The output written so
            far must then be discarded.
        OutputError: an output cannot be written.
        UnsuitableError: a read is too long for the GPU's shared memory.
        DeviceError: CUDA fails.
    """
    if memory is not None:
        chunk_bytes = min(chunk_bytes, max(MIN_CHUNK, memory // MEMORY_PER_CHUNK_BYTE))
    with DeviceWriter(files, threads=min(threads, MAX_READERS)) as writer:
        kernels = kernels_for(chunk_bytes)
        run = _Run(kernels, writer, chunk_bytes, advance)
        for lane, targets in lanes:
            run.do(lane, targets, threads, phred_offset)
        return kernels.counts()


class _Run:
    """Batch after batch."""

    def __init__(
        self,
        kernels: RecordKernels,
        writer: DeviceWriter,
        chunk_bytes: int,
        advance: Callable[[int], None],
    ) -> None:
        import cupy

        self._kernels = kernels
        self._writer = writer
        self._chunk_bytes = chunk_bytes
        self._advance = advance
        self._stream = cupy.cuda.get_current_stream()
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._bad_pair = no_bad_pair()
        self._units = 0
        self._batches: list[ResultBatch] = []
        self._turn = 0
        self._pending: ResultBatch | None = None

    def do(
        self, lane: ReadFiles, targets: Mapping[int, int], threads: int, phred_offset: PhredOffset
    ) -> None:
        """Work on the records of a lane."""
        with DeviceReadFiles(
            lane,
            threads=threads,
            chunk_bytes=self._chunk_bytes,
            phred_offset=phred_offset,
            copies=self._copies,
            bad_pair=self._bad_pair,
            first_pair=self._units,
        ) as device_lane:
            for records in device_lane.batches():
                self._work(records, targets)
            for cursor in device_lane.cursors:
                if cursor.parser.records == 0:
                    logger.warning("%s: the file is empty", cursor.path)
        self._send(targets)

    def _work(self, records: DeviceRecordBatch, targets: Mapping[int, int]) -> None:
        """Work on the units of a batch."""
        if not self._batches:
            most = len(records.parts[0][0].slot.seq_start)
            self._batches = [
                ResultBatch(self._kernels.sizes, most, self._kernels.FOUND) for _ in range(BATCHES)
            ]
        batch = self._batches[self._turn]
        self._turn = (self._turn + 1) % BATCHES
        for event in batch.copied:
            self._stream.wait_event(event)
        self._kernels.launch(batch, records)
        batch.fetch_totals(self._stream)
        self._send(targets)
        self._pending = batch
        self._units += records.units
        self._advance(records.units)

    def _send(self, targets: Mapping[int, int]) -> None:
        """Send the last batch but one to its files, as its kernels have ended or end soon."""
        batch, self._pending = self._pending, None
        if batch is None:
            return
        sizes = batch.sizes()
        batch.copied = [
            self._writer.put(index, batch.outputs[number], sizes[number], batch.made)
            for number, index in targets.items()
            if sizes[number]
        ]
