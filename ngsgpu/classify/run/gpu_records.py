"""The files of classified and other reads on a GPU: records stay there until their calls are known.

What does not fit there is kept on the host, and what does not fit there either, or was read by the
CPU, is written by ``SortedReads``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.outputs.gpu_records import ChunkText, QueryText
from ngsgpu.classify.run.samples import RECORD_FILES
from ngsgpu.classify.run.sorted_reads import SortedReads
from ngsgpu.device.pinned import to_device, to_host
from ngsgpu.io.gpu.parse import ParsedChunk
from ngsgpu.io.gpu.records import DeviceRecordBatch
from ngsgpu.io.gpu.write import DeviceWriter
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch

_TEXTS_ON_THE_WAY: Final = 6
_CALLS_ON_GPU: Final = 1 << 24
"""Calls that are copied to the host together."""

_FILES: Final = (*RECORD_FILES[True], *RECORD_FILES[False])
"""Parameters of the files, in the order of ``classify.outputs.gpu_records.OUTPUTS``."""


class TextWriter:
    """Appends text on the device to outputs, and keeps it until it is copied.

    Args:
        writer: copies it.
    """

    def __init__(self, writer: DeviceWriter) -> None:
        self._writer = writer
        self._texts: deque[tuple[Any, Any]] = deque()

    def put(self, output: int, text: Any, size: int | None = None) -> None:
        """Append to an output.

        Args:
            output: which.
            text: uint8 on the device, which the current stream makes.
            size: how many bytes of it; all by default.
        """
        import cupy

        stream = cupy.cuda.get_current_stream()
        made = cupy.cuda.Event(disable_timing=True)
        made.record(stream)
        copied = self._writer.put(output, text, text.size if size is None else size, made)
        self._texts.append((text, copied))
        # The memory of a text is used again when it was copied.
        while len(self._texts) > _TEXTS_ON_THE_WAY:
            _, copied = self._texts[0]
            stream.wait_event(copied)
            self._texts.popleft()


class GpuRecords:
    """Keeps the records of a sample's queries, and writes them when these are called.

    Args:
        sorted_reads: writes those that are not kept.
        room: bytes of GPU memory for records.
        host_room: bytes of host memory for those that do not fit there.
    """

    def __init__(self, sorted_reads: SortedReads, room: int, host_room: int) -> None:
        self._sorted_reads = sorted_reads
        self._room, self._host_room = room, host_room
        self._is_full = False
        self._kept: deque[QueryText] = deque()
        self._chunks: deque[tuple[ParsedChunk, ChunkText]] = deque(maxlen=2)
        self._calls: list[Any] = []

    def take(self, records: DeviceRecordBatch) -> None:
        """Keep the records of the next queries."""
        parts: list[tuple[ChunkText, int]] = []
        for chunk, record in records.parts:
            if self._is_full:
                return
            parts.append((self._text(chunk), record))
        files = len(parts) // records.step
        self._kept.append(QueryText(tuple(parts), records.step, files, records.units))

    def _text(self, chunk: ParsedChunk) -> ChunkText:
        """A copy of a chunk's records, which several batches may share."""
        for known, text in self._chunks:
            if known is chunk:
                return text
        text = ChunkText.of(chunk)
        if text.nbytes <= self._room:
            self._room -= text.nbytes
        else:
            self._host_room -= text.nbytes
            self._is_full = self._host_room < 0
            text.move_to_host()
        self._chunks.append((chunk, text))
        return text

    def read_by_cpu(
        self, lane: ReadFiles, batches: Iterator[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Pass on records that the CPU reads; from them on, ``SortedReads`` writes."""
        self._is_full = True
        return self._sorted_reads.keep(lane, batches)

    def write(self, calls: Any, texts: TextWriter, index: Mapping[str, int]) -> None:
        """Write the records of the next queries, if they were kept.

        Args:
            calls: int32[queries] on the device, below 0 for none.
            texts: writes.
            index: which of its outputs is whose, by parameters of ``RECORD_FILES``.
        """
        if not self._kept:
            self._add(calls)
            return
        wanted = [number for number, name in enumerate(_FILES) if name in index]
        for number, text, size in self._kept.popleft().sorted(calls, wanted):
            texts.put(index[_FILES[number]], text, size)
        self._sorted_reads.leave_out(len(calls))

    def _add(self, calls: Any) -> None:
        """Hand calls to the host, those of many batches at a time: each copy waits for the GPU."""
        self._calls.append(calls)
        if sum(own.size for own in self._calls) > _CALLS_ON_GPU:
            self._hand_over()

    def _hand_over(self) -> None:
        for calls in self._calls:
            self._sorted_reads.add(to_host(calls) >= 0)
        self._calls.clear()

    def finish(self, texts: TextWriter, index: Mapping[str, int]) -> None:
        """Write what was not kept.

        Raises:
            InputError: a file has changed.
        """
        self._hand_over()

        def write(output: int, piece: NDArray[np.uint8]) -> None:
            texts.put(output, to_device(piece))

        self._sorted_reads.write(write, index)
