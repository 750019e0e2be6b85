"""Rewrites inputs with some bases replaced or masked, using the layout recorded by a first pass.

The inputs are not split into records again: several threads copy, edit and write pieces of them, in
any order if the output allows it. Of a compressed output each thread reads, edits and compresses
parts from beginning to end (``packed``). Since bases and qualities keep their places, every byte of
an output has the same offset as in the input.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.edits import AS_THEY_ARE, EditCounts, Edits, EditStyle, write_edits
from ngsgpu.io.output.in_memory import MAPPED_BYTES
from ngsgpu.io.output.packed import PackedOutput, PackedPart, packed_outputs
from ngsgpu.io.output.writer import OutputSet, Packed
from ngsgpu.io.reread import (
    FileLayout,
    PieceReader,
    ReadFilesLayout,
    Segment,
    check_same,
    open_again,
)

PIECE_BYTES: Final = 1 << 20
"""Bytes a thread copies at a time: small enough to stay in its core's cache."""

_ORDERED: Final = 4
"""Pieces at a time of an output that is written in order, each of which passes through queues."""

_TURNS: Final = 4
"""How often each thread maps a part of a copy, at least."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file that hold some sequences whole.

    Attributes:
        file: the file.
        start: first byte.
        end: end of the bytes.
        base: of the segment they are part of.
        first_record: number of the first record whose sequence they hold.
        last_record: end of those records.
    """

    file: FileLayout
    start: int
    end: int
    base: int
    first_record: int
    last_record: int


def pieces_of(file: FileLayout, piece_bytes: int = PIECE_BYTES) -> Iterator[Piece]:
    """Cut a file into pieces, each from the start of a sequence to that of a later one."""
    for segment in file.segments:
        yield from _pieces_of_segment(file, segment, piece_bytes)


def _pieces_of_segment(file: FileLayout, segment: Segment, piece_bytes: int) -> Iterator[Piece]:
    size = segment.end - segment.start
    step = max(1, segment.records * piece_bytes // max(1, size))
    start = segment.start
    for record in range(0, max(1, segment.records), step):
        first = segment.first_record + record
        last = min(first + step, segment.first_record + segment.records)
        ends_segment = last == segment.first_record + segment.records
        end = segment.end if ends_segment else segment.base + int(file.starts[last])
        yield Piece(file, start, end, segment.base, first, last)
        start = end


def parts_of(file: FileLayout, part_bytes: int) -> Iterator[list[Piece]]:
    """Cut a file into parts of a minimum size (but for the last), in consecutive pieces."""
    part: list[Piece] = []
    for piece in pieces_of(file, part_bytes):
        part.append(piece)
        if piece.end - part[0].start >= part_bytes:
            yield part
            part = []
    if part:
        yield part


def write_patched(
    lanes: Sequence[ReadFilesLayout],
    targets: Sequence[Sequence[int]],
    outputs: OutputSet,
    edits: Edits,
    *,
    paired: bool,
    max_length: int,
    threads: int = 1,
    piece_bytes: int = PIECE_BYTES,
    copied: Mapping[int, AtomicFile] | None = None,
    style: EditStyle = AS_THEY_ARE,
    advance: Callable[[int], None] = lambda reads: None,
) -> EditCounts:
    """Write the files of some lanes with bases replaced.

    Args:
        lanes: positions of the sequences.
        targets: for each file of each lane, the index of its output.
        outputs: the outputs; lanes that share one are concatenated.
        edits: the bases to replace.
        paired: whether reads 2p and 2p + 1 are mates; they are counted separately then.
        max_length: of all reads, in bases.
        threads: threads that copy and edit.
        piece_bytes: bytes per piece; does not affect the result.
        copied: outputs that are already copies of their inputs (``Precopy``).
        style: how edits are written.
        advance: called with the number of reads written since the last call.

    Raises:
        InputError: an input cannot be read, or has changed since the first pass.
        OutputError: an output cannot be written.
    """
    run = _Run(outputs, edits, (2 if paired else 1, max(1, max_length)), threads, advance)
    run.copied = copied or {}
    run.style = style
    filled = [0] * (1 + max((target for lane in targets for target in lane), default=0))
    packed = packed_outputs(lanes, targets, outputs)
    with ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-patch") as run.pool:
        run.pack(packed)
        for lane, indices in zip(lanes, targets, strict=True):
            run.copy(lane, indices, filled, piece_bytes, without=packed)
            for file, index in zip(lane.files, indices, strict=True):
                filled[index] += file.size
    return run.counts()


class _Run:
    """One run of ``write_patched``."""

    pool: ThreadPoolExecutor
    copied: Mapping[int, AtomicFile]
    style: EditStyle

    def __init__(
        self,
        outputs: OutputSet,
        edits: Edits,
        shape: tuple[int, int],
        threads: int,
        advance: Callable[[int], None],
    ) -> None:
        self._outputs = outputs
        self._edits = edits
        self._shape = shape
        self._threads = threads
        self._advance = advance
        self._tasks: deque[tuple[Future[NDArray[np.uint8] | None], int, int]] = deque()
        self._packing: deque[tuple[Future[tuple[list[Packed], int]], PackedPart]] = deque()
        self._own = threading.local()
        self._counts: list[EditCounts] = []
        self._lock = threading.Lock()

    def pack(self, packed: Mapping[int, PackedOutput]) -> None:
        """Write outputs whose parts can be compressed in any order, all of them side by side."""
        with ExitStack() as stack:
            stack.callback(self._drop)
            parts = [output.parts(stack) for output in packed.values()]
            for part in heapq.merge(*parts, key=attrgetter("start")):
                task = self.pool.submit(self._pack, part)
                self._packing.append((task, part))
                self._finish_packing(leave=2 * self._threads + 2)
            self._finish_packing()
            for output in packed.values():
                for source in output.sources:
                    check_same(source.file)

    def _pack(self, part: PackedPart) -> tuple[list[Packed], int]:
        """Edited and compressed bytes of a part, and the number of reads that begin in it."""
        own, read = self._workspace(), 0
        texts: list[NDArray[np.uint8]] = []
        for source, start, end in part.pieces:
            span = source.span(start, end)
            size = span.end - span.start
            if len(own.buffer) < size or texts:
                own.buffer = np.empty(size + size // 8, dtype=np.uint8)
            data = own.buffer[:size]
            source.reader.prepare(span.start, span.end)(data)
            for records, counts in ((span.before, own.uncounted), (span.own, own.counts)):
                begun, ended = (record - span.before[0] for record in records)
                write_edits(
                    data,
                    0,
                    span.starts[begun:ended],
                    source.first_read + records[0] * source.step,
                    source.step,
                    self._edits,
                    counts,
                    self.style,
                    is_fastq=True,
                )
            read += span.own[1] - span.own[0]
            texts.append(data[start - span.start : end - span.start])
        text = texts[0] if len(texts) == 1 else np.concatenate(texts)
        return part.packed(text), read

    def _finish_packing(self, *, leave: int = 0) -> None:
        """Wait for parts, the oldest first, until only ``leave`` are left."""
        while len(self._packing) > leave:
            task, part = self._packing.popleft()
            packed, reads = task.result()
            for one in packed:
                self._outputs.write_packed(part.index, *one)
            self._advance(reads)

    def copy(
        self,
        lane: ReadFilesLayout,
        indices: Sequence[int],
        filled: list[int],
        piece_bytes: int,
        without: Container[int],
    ) -> None:
        """Copy the files of a lane; output ``i`` already has ``filled[i]`` bytes."""
        with ExitStack() as stack:
            readers: list[PieceReader | None] = []
            for file, index in zip(lane.files, indices, strict=True):
                written = index in self.copied or index in without
                reader = None if written else open_again(file, self._threads)
                if reader is not None:
                    stack.callback(reader.close)
                readers.append(reader)
            # Nothing may read from a file that is closed.
            stack.callback(self._drop)
            size = sum(file.size for file in lane.files)
            mapped_bytes = max(piece_bytes, min(MAPPED_BYTES, size // (_TURNS * self._threads)))
            each = [
                iter(())
                if index in without
                else parts_of(file, mapped_bytes)
                if reader is None
                else ([piece] for piece in pieces_of(file, piece_bytes * self._at_a_time(index)))
                for file, index, reader in zip(lane.files, indices, readers, strict=True)
            ]
            for row in zip_longest(*each):
                for mate, part in enumerate(row):
                    if part is None:
                        continue
                    index, reader = indices[mate], readers[mate]
                    place = filled[index] + part[0].start
                    task: Future[NDArray[np.uint8] | None]
                    if reader is None:
                        copy = self.copied[index]
                        task = self.pool.submit(self._edit_copy, part, lane, mate, copy, place)
                    else:
                        (piece,) = part
                        read = reader.prepare(piece.start, piece.end)
                        target = self._outputs.file_for_offsets(index)
                        task = self.pool.submit(self._copy, piece, read, lane, mate, target, place)
                    reads = part[-1].last_record - part[0].first_record
                    self._tasks.append((task, index, reads))
                    self._finish(leave=4 * self._threads // self._at_a_time(index) + 2)
            self._finish()
            for file in lane.files:
                check_same(file)

    def _at_a_time(self, index: int) -> int:
        """Pieces of an output that are copied by one task."""
        ordered = index not in self.copied and self._outputs.file_for_offsets(index) is None
        return _ORDERED if ordered else 1

    def _copy(
        self,
        piece: Piece,
        read: Callable[[NDArray[np.uint8]], None],
        lane: ReadFilesLayout,
        mate: int,
        target: AtomicFile | None,
        place: int,
    ) -> NDArray[np.uint8] | None:
        """Copy a piece; return its bytes where they have to be written in order."""
        own = self._workspace()
        size = piece.end - piece.start
        if target is None:
            data = np.empty(size, dtype=np.uint8)
        else:
            if len(own.buffer) < size:
                own.buffer = np.empty(2 * size, dtype=np.uint8)
            data = own.buffer[:size]
        read(data)
        self._edit(piece, lane, mate, data)
        if target is None:
            return data
        target.write_at(data.data, place)
        return None

    def _edit_copy(
        self, part: Sequence[Piece], lane: ReadFilesLayout, mate: int, copy: AtomicFile, place: int
    ) -> None:
        """Replace the bases of a part in its copy, which is mapped for as long as that takes."""
        start, end = part[0].start, part[-1].end
        if end == start:
            return
        data = copy.mapped(end - start, place)
        for piece in part:
            self._edit(piece, lane, mate, data[piece.start - start : piece.end - start])

    def _edit(
        self, piece: Piece, lane: ReadFilesLayout, mate: int, data: NDArray[np.uint8]
    ) -> None:
        """Replace the bases of a piece, whose bytes are ``data``."""
        step = len(lane.files)
        write_edits(
            data,
            piece.base - piece.start,
            piece.file.starts[piece.first_record : piece.last_record],
            lane.first_read + mate + piece.first_record * step,
            step,
            self._edits,
            self._workspace().counts,
            self.style,
            is_fastq=True,
        )

    def _workspace(self) -> _Workspace:
        own: _Workspace | None = getattr(self._own, "workspace", None)
        if own is None:
            counts = EditCounts(0, 0, np.zeros(self._shape, dtype=np.int64))
            uncounted = EditCounts(0, 0, np.zeros(self._shape, dtype=np.int64))
            own = self._own.workspace = _Workspace(np.empty(0, dtype=np.uint8), counts, uncounted)
            with self._lock:
                self._counts.append(counts)
        return own

    def _finish(self, *, leave: int = 0) -> None:
        """Wait for tasks, the oldest first, until only ``leave`` are left."""
        while len(self._tasks) > leave:
            task, index, reads = self._tasks.popleft()
            data = task.result()
            if data is not None:
                self._outputs.write(index, data)
            self._advance(reads)

    def _drop(self) -> None:
        """Start no more tasks and wait for running ones; their results are discarded."""
        running: list[Future[Any]] = [task for task, *_ in self._tasks]
        running += [task for task, _ in self._packing]
        for task in running:
            task.cancel()
        wait(running)
        self._tasks.clear()
        self._packing.clear()

    def counts(self) -> EditCounts:
        """What all threads counted."""
        total = EditCounts(0, 0, np.zeros(self._shape, dtype=np.int64))
        for counts in self._counts:
            total.reads += counts.reads
            total.ambiguous += counts.ambiguous
            total.by_position += counts.by_position
        return total


@dataclass(slots=True)
class _Workspace:
    """Workspace of a thread."""

    buffer: NDArray[np.uint8]
    counts: EditCounts
    uncounted: EditCounts
