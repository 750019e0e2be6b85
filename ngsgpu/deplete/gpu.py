"""Depletion on a GPU: records split on the device, one batch after the other, written by threads.

A batch is as many reads or pairs as the chunks of a lane's files have in common. Two kernels make
the bytes of its outputs, which are copied back and written while the next batch is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.cpu import COUNTERS
from ngsgpu.deplete.index import HostIndex
from ngsgpu.deplete.kmers import GROUP
from ngsgpu.deplete.params import CENTRE, DepletionParameters
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.memory import format_size
from ngsgpu.device.pinned import pinned_empty
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.io.gpu.parse import HEADROOM, THREADS, ParsedChunk, device_classes
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
from ngsgpu.io.output.writer import OutputSet

logger = logging.getLogger("ngsgpu")

KERNELS: Final = KernelModule("ngsgpu.deplete")
TILE_UNITS: Final = 64
"""Units per block; kTileUnits of the kernels."""

RULES: Final = Struct(
    __name__,
    "Rules",
    {
        "table": "const uint32_t*",
        "groups": "uint32_t",
        "limit": "uint32_t",
        "kmer": "int32_t",
        "offset": "int32_t",
        "min_bases": "int64_t",
        "millionths": "int64_t",
        "keep_host": "int32_t",
        "paired": "int32_t",
        "interleaved": "int32_t",
    },
)
"""The index, ``Sampling`` and ``DepletionParameters``, and how the reads of a lane lie."""

OUTPUTS: Final = 2
_BATCHES: Final = 3
"""Batches on the device: one being depleted, and two being written."""

_MEMORY_PER_CHUNK_BYTE: Final = 32
"""Device memory besides the index, in chunks: slots of two files, outputs of three batches."""


def deplete_on_gpu(
    lanes: Sequence[ReadFiles],
    index: HostIndex,
    parameters: DepletionParameters,
    files: OutputSet,
    *,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    memory: int | None = None,
    advance: Callable[[int], None] = lambda units: None,
) -> NDArray[np.int64]:
    """Deplete all reads of some files on the current GPU; equal to ``ngsgpu.deplete.cpu_run``.

    Args:
        lanes: regular files.
        index: the host's.
        parameters: what is the host's, and what is kept.
        files: the outputs.
        threads: threads that read and write.
        chunk_bytes: bytes per chunk of a file; does not affect the result.
        memory: device memory limit in bytes; makes chunks smaller.
        advance: called with the number of pairs or reads done since the last call.

    Returns:
        The counters.

    Raises:
        InputError: a file cannot be opened or inflated.
        IrregularInputError: an input is invalid or unusual; the CPU decides. The output written so
            far must then be discarded.
        OutputError: an output cannot be written.
        DeviceMemoryError: the index leaves no memory for the reads.
        DeviceError: CUDA fails.
    """
    if memory is not None:
        rest = memory - index.table.nbytes
        if rest < _MEMORY_PER_CHUNK_BYTE * MIN_CHUNK:
            raise DeviceMemoryError(
                f"the index of {format_size(index.table.nbytes)} leaves too little of "
                f"{format_size(memory)} of GPU memory; raise --gpu-memory or use --backend cpu"
            )
        chunk_bytes = max(MIN_CHUNK, min(chunk_bytes, rest // _MEMORY_PER_CHUNK_BYTE))
    with DeviceWriter(files, threads=min(threads, MAX_READERS)) as writer:
        run = _Run(index, parameters, writer, chunk_bytes, advance)
        for lane in lanes:
            run.deplete_lane(lane, threads)
        return run.counters()


class _Batch:
    """Device memory for the results of a batch."""

    def __init__(self, sizes: Sequence[int], units: int) -> None:
        import cupy

        self.outputs = [cupy.empty(size, dtype=cupy.uint8) for size in sizes]
        self.kept = cupy.empty(units, dtype=cupy.uint8)
        self.offsets = cupy.empty(OUTPUTS * units, dtype=cupy.uint32)
        self.tile_bytes = cupy.empty(OUTPUTS * (units // TILE_UNITS + 1), dtype=cupy.uint32)
        self.totals = cupy.empty(OUTPUTS, dtype=cupy.uint32)
        self._sizes = pinned_empty(4 * OUTPUTS).view(np.uint32)
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


class _Run:
    """Everything on the device that one run needs."""

    def __init__(
        self,
        index: HostIndex,
        parameters: DepletionParameters,
        writer: DeviceWriter,
        chunk_bytes: int,
        advance: Callable[[int], None],
    ) -> None:
        import cupy

        sampling = index.parameters.sampling()
        self._table = cupy.asarray(index.table)
        self._rules: dict[str, Any] = {
            "table": self._table,
            "groups": len(index.table) // GROUP,
            "limit": int(sampling.limit),
            "kmer": sampling.kmer,
            "offset": (sampling.kmer - CENTRE) // 2,
            "min_bases": parameters.min_bases,
            "millionths": parameters.millionths,
            "keep_host": parameters.keep_host,
        }
        self._writer = writer
        self._chunk_bytes = chunk_bytes
        self._advance = advance
        self._classes = device_classes()
        self._stream = cupy.cuda.get_current_stream()
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._bad_pair = no_bad_pair()
        self._units = 0
        # A record is copied as it is, but for a last line feed.
        one = HEADROOM + chunk_bytes + 64
        self._sizes = [one, one]
        self._batches: list[_Batch] = []
        self._turn = 0
        self._pending: _Batch | None = None
        self._counters = cupy.zeros(len(COUNTERS), dtype=cupy.uint64)

    def deplete_lane(self, lane: ReadFiles, threads: int) -> None:
        """Deplete the reads of a lane."""
        rules = RULES.on_device(
            **self._rules,
            paired=lane.paired,
            interleaved=lane.interleaved,
        )
        with DeviceReadFiles(
            lane,
            threads=threads,
            chunk_bytes=self._chunk_bytes,
            phred_offset=33,
            copies=self._copies,
            bad_pair=self._bad_pair,
            first_pair=self._units,
        ) as device_lane:
            for records in device_lane.batches():
                self._deplete(records, rules, lane.outputs)
            for cursor in device_lane.cursors:
                if cursor.parser.records == 0:
                    logger.warning("%s: the file is empty", cursor.path)
        self._send(lane.outputs)

    def _deplete(self, records: DeviceRecordBatch, rules: Any, outputs: Sequence[int]) -> None:
        """Deplete the units of a batch."""
        first, second = records.parts[0], records.parts[-1]
        if not self._batches:
            most = len(first[0].slot.seq_start)
            self._batches = [_Batch(self._sizes, most) for _ in range(_BATCHES)]
        batch = self._batches[self._turn]
        self._turn = (self._turn + 1) % _BATCHES
        for event in batch.copied:
            self._stream.wait_event(event)
        self._launch(batch, first, second, records, rules)
        batch.fetch_totals(self._stream)
        self._send(outputs)
        self._pending = batch
        self._units += records.units
        self._advance(records.units)

    def _launch(
        self,
        batch: _Batch,
        first: tuple[ParsedChunk, int],
        second: tuple[ParsedChunk, int],
        records: DeviceRecordBatch,
        rules: Any,
    ) -> None:
        grid = (-(-records.units // TILE_UNITS),)
        common = (
            *_records(*first),
            *_records(*second),
            np.uint32(records.step),
            np.uint32(records.units),
            rules,
        )
        found = (batch.kept, batch.offsets, batch.tile_bytes)
        KERNELS.launch(
            "find_kept", grid, (THREADS,), (*common, self._classes, *found, self._counters)
        )
        KERNELS.launch(
            "write_kept", grid, (THREADS,), (*common, *found, *batch.outputs, batch.totals)
        )

    def _send(self, outputs: Sequence[int]) -> None:
        """Send the last batch but one to its files, as its kernels have ended or end soon."""
        batch, self._pending = self._pending, None
        if batch is None:
            return
        sizes = batch.sizes()
        batch.copied = [
            self._writer.put(output, batch.outputs[number], sizes[number], batch.made)
            for number, output in enumerate(outputs)
            if sizes[number]
        ]

    def counters(self) -> NDArray[np.int64]:
        """The counters, int64[len(COUNTERS)]."""
        counted: NDArray[np.int64] = self._counters.get().astype(np.int64)
        return counted


def _records(chunk: ParsedChunk, record: int) -> tuple[Any, ...]:
    """A chunk's records from this one on, as passed to kernels."""
    slot = chunk.slot
    arrays = (slot.raw, slot.line_end, slot.seq_start, slot.lengths)
    return *arrays, np.uint32(chunk.begin), np.uint32(record)
