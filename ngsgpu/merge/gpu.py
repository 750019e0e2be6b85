"""Merging on a GPU: records split on the device, one batch after the other, written by threads.

A batch is as many pairs as the chunks of both files have in common. Two kernels make the bytes of
its outputs, which are copied back and written while the next batch is read and merged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.structs import Struct, fields_of
from ngsgpu.device.pinned import pinned_empty
from ngsgpu.errors import UnsuitableError
from ngsgpu.io.gpu.parse import HEADROOM, THREADS, WARPS, ParsedChunk, device_classes
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
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.merge.cpu import COUNTERS, DENSITIES, Counts, Tally, Wanted
from ngsgpu.merge.params import Rules
from ngsgpu.merge.qualities import Tables

logger = logging.getLogger("ngsgpu")

KERNELS: Final = KernelModule("ngsgpu.merge")
TILE_PAIRS: Final = 64
"""Pairs per block; kTilePairs of the kernels."""

RULES: Final = Struct(
    __name__, "Rules", {**fields_of(Rules), "wanted": "int32_t", "interleaved": "int32_t"}
)
"""``Rules``, and the outputs to write."""

TABLES: Final = Struct(
    __name__,
    "Tables",
    {
        **dict.fromkeys(("agree", "differ", "scores", "alone"), "const uint8_t*"),
        **dict.fromkeys(
            ("match", "mismatch", "alike", "unlike", "base", "prior", "usual"), "const int32_t*"
        ),
        "longest": "int32_t",
    },
)
"""``Tables``, and the longest fragment in ``prior`` and ``usual``."""

OUTPUTS: Final = 3
_PLANES: Final = 3
_BATCHES: Final = 3
"""Batches on the device: one being merged, and two being written."""

_MEMORY_PER_CHUNK_BYTE: Final = 32
"""Device memory, in chunks: slots of two files, outputs of three batches, and the findings."""

_MAX_BINS: Final = 2 * MAX_READ_LENGTH + 1


def merge_on_gpu(
    lanes: Sequence[ReadFiles],
    rules: Rules,
    tables: Tables,
    wanted: Wanted,
    files: OutputSet,
    file_numbers: Mapping[int, int],
    *,
    phred_offset: PhredOffset,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    memory: int | None = None,
    advance: Callable[[int], None] = lambda pairs: None,
) -> Tally:
    """Merge all pairs of some files on the current GPU; equal to ``ngsgpu.merge.cpu_run``.

    Args:
        lanes: regular files.
        rules: merging rules.
        tables: scores of merged bases.
        wanted: outputs to write.
        files: the outputs.
        file_numbers: for each written output of the kernels, its index in ``files``.
        phred_offset: as for ``ngsgpu.io.text.reader.read_batches``.
        threads: threads that read and write.
        chunk_bytes: bytes per chunk of a file; does not affect the result.
        memory: device memory limit in bytes; makes chunks smaller.
        advance: called with the number of pairs merged since the last call.

    Raises:
        InputError: a file cannot be opened or inflated.
        IrregularInputError: an input is invalid or unusual; the CPU decides. The output written so
            far must then be discarded.
        OutputError: an output cannot be written.
        UnsuitableError: a read is too long for the GPU's shared memory.
        DeviceError: CUDA fails.
    """
    if memory is not None:
        chunk_bytes = min(chunk_bytes, max(MIN_CHUNK, memory // _MEMORY_PER_CHUNK_BYTE))
    with DeviceWriter(files, threads=min(threads, MAX_READERS)) as writer:
        run = _Run(rules, tables, wanted, writer, file_numbers, chunk_bytes, advance)
        for lane in lanes:
            run.merge_lane(lane, threads, phred_offset)
        run.finish()
        return run.tally()


def plane_words(longest: int) -> int:
    """Words per plane of a read, plus one."""
    return -(-longest // 32) + 1


def shared_bytes(words: int) -> int:
    """Shared memory of a block of ``find_overlaps``."""
    return 4 * WARPS * 2 * _PLANES * words


class _Batch:
    """Device memory for the results of a batch."""

    def __init__(self, sizes: Sequence[int], pairs: int) -> None:
        import cupy

        self.outputs = [cupy.empty(size, dtype=cupy.uint8) for size in sizes]
        self.found = cupy.empty(pairs, dtype=cupy.int32)
        self.offsets = cupy.empty(OUTPUTS * pairs, dtype=cupy.uint32)
        self.tile_bytes = cupy.empty(OUTPUTS * (pairs // TILE_PAIRS + 1), dtype=cupy.uint32)
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
        rules: Rules,
        tables: Tables,
        wanted: Wanted,
        writer: DeviceWriter,
        file_numbers: Mapping[int, int],
        chunk_bytes: int,
        advance: Callable[[int], None],
    ) -> None:
        import cupy

        self._writer = writer
        self._file_numbers = file_numbers
        self._chunk_bytes = chunk_bytes
        self._advance = advance
        self._rules = RULES.on_device(
            **rules._asdict(), wanted=wanted.unmerged, interleaved=wanted.interleaved
        )
        self._held = {name: cupy.asarray(table) for name, table in tables._asdict().items()}
        self._tables = TABLES.on_device(**self._held, longest=len(tables.prior) - 1)
        self._classes = device_classes()
        # The kernel has about a kilobyte besides the planes.
        limit = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        self._shared_bytes = int(limit) - 2048
        self._stream = cupy.cuda.get_current_stream()
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._bad_pair = no_bad_pair()
        self._pairs = 0
        # A record never grows by being written again, but for a last line feed.
        one = HEADROOM + chunk_bytes + 64
        self._sizes = [
            2 * one if not rules.correct_only else 1,
            (2 if wanted.interleaved else 1) * one if wanted.unmerged else 1,
            one if wanted.unmerged else 1,
        ]
        self._batches: list[_Batch] = []
        self._turn = 0
        self._pending: _Batch | None = None
        self._counters = cupy.zeros(len(COUNTERS), dtype=cupy.uint64)
        self._lengths = cupy.zeros((2, _MAX_BINS), dtype=cupy.uint64)
        self._inserts = cupy.zeros(_MAX_BINS, dtype=cupy.uint64)
        self._overlaps = cupy.zeros(_MAX_BINS, dtype=cupy.uint64)
        self._densities = cupy.zeros(DENSITIES, dtype=cupy.uint64)

    def merge_lane(self, lane: ReadFiles, threads: int, phred_offset: PhredOffset) -> None:
        """Merge the pairs of a lane."""
        with DeviceReadFiles(
            lane,
            threads=threads,
            chunk_bytes=self._chunk_bytes,
            phred_offset=phred_offset,
            copies=self._copies,
            bad_pair=self._bad_pair,
            first_pair=self._pairs,
        ) as device_lane:
            for pairs in device_lane.batches():
                self._merge(pairs)
            for cursor in device_lane.cursors:
                if cursor.parser.records == 0:
                    logger.warning("%s: the file is empty", cursor.path)

    def _merge(self, records: DeviceRecordBatch) -> None:
        """Merge the pairs of a batch."""
        first, second = records.parts
        pairs = records.units
        if not self._batches:
            most = len(first[0].slot.seq_start)
            self._batches = [_Batch(self._sizes, most) for _ in range(_BATCHES)]
        batch = self._batches[self._turn]
        self._turn = (self._turn + 1) % _BATCHES
        for event in batch.copied:
            self._stream.wait_event(event)
        self._launch(batch, first, second, records.step, pairs)
        batch.fetch_totals(self._stream)
        self._send()
        self._pending = batch
        self._pairs += pairs
        self._advance(pairs)

    def _launch(
        self,
        batch: _Batch,
        first: tuple[ParsedChunk, int],
        second: tuple[ParsedChunk, int],
        step: int,
        pairs: int,
    ) -> None:
        grid = (-(-pairs // TILE_PAIRS),)
        words = plane_words(max(first[0].max_length, second[0].max_length))
        if shared_bytes(words) > self._shared_bytes:
            longest = max(first[0].max_length, second[0].max_length)
            raise UnsuitableError(
                f"reads of {longest:,} bases are too long for the GPU; use --backend cpu"
            )
        common = (
            *_records(*first),
            *_records(*second),
            np.uint32(step),
            np.uint32(pairs),
            self._rules,
            self._tables,
            self._classes,
        )
        KERNELS.launch(
            "find_overlaps",
            grid,
            (THREADS,),
            (
                *common,
                np.uint32(words),
                batch.found,
                batch.offsets,
                batch.tile_bytes,
                self._counters,
                self._lengths,
                self._inserts,
                self._overlaps,
                self._densities,
                np.uint32(_MAX_BINS),
            ),
            shared_bytes=shared_bytes(words),
        )
        KERNELS.launch(
            "write_records",
            grid,
            (THREADS,),
            (
                *common,
                batch.found,
                batch.offsets,
                batch.tile_bytes,
                *batch.outputs,
                batch.totals,
                self._counters,
            ),
        )

    def _send(self) -> None:
        """Send the last batch but one to the files, as its kernels have ended or end soon."""
        batch, self._pending = self._pending, None
        if batch is None:
            return
        sizes = batch.sizes()
        batch.copied = [
            self._writer.put(index, batch.outputs[number], sizes[number], batch.made)
            for number, index in self._file_numbers.items()
            if sizes[number]
        ]

    def finish(self) -> None:
        """Send the last batch."""
        self._send()

    def tally(self) -> Tally:
        """The counts."""
        tally = Tally()
        counted = (self._counters, self._lengths, self._inserts, self._overlaps, self._densities)
        tally.add(Counts(*(array.get().astype(np.int64) for array in counted)))
        return tally


def _records(chunk: ParsedChunk, record: int) -> tuple[Any, ...]:
    """A chunk's records from this one on, as passed to kernels."""
    slot = chunk.slot
    arrays = (slot.raw, slot.line_end, slot.seq_start, slot.qual_start, slot.lengths)
    return *arrays, np.uint32(chunk.begin), np.uint32(record)
