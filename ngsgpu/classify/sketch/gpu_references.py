"""From FASTA files to letters on GPUs: the counterpart of ``references.read_ahead``.

Threads read and inflate; the host looks for headers only, which it needs for the names, and sends
the text as it is. Kernels check it and put the letters of sequences side by side (``build.cu``).
A batch of text may end inside of a sequence: its last letters, those of windows that are not
complete, are put in front of the letters of the next batch.

Whatever is wrong or unusual about a file is left to the CPU's reader, so that errors are worded in
one place.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.sketch.references import TargetSink
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.io.compress.source import Source
from ngsgpu.io.gpu.feed import IrregularInputError, read_whole
from ngsgpu.io.paths import Watched
from ngsgpu.io.text.reader import DEFAULT_LIMITS

PIECE_BYTES: Final = 4 << 20
"""Bytes a thread reads at a time."""

_FOR_PACKED: Final = 4
"""Buffers that are kept for the text of compressed files."""

_MARK: Final = ord(">")
_LF: Final = ord("\n")
_CR: Final = ord("\r")


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive bytes of a (decompressed) file.

    Attributes:
        path: the file.
        data: uint8, the bytes, in pinned memory.
        marks: int64, places of ``>`` in them.
        first: whether the file begins with them.
        last: whether it ends with them.
    """

    path: str
    data: NDArray[np.uint8]
    marks: NDArray[np.int64]
    first: bool
    last: bool


class PieceReader:
    """Reads files with several threads and yields their contents in order.

    Args:
        files: the files.
        pool: reading threads.
        pinned: pinned buffers of ``PIECE_BYTES`` or less.
        threads: size of ``pool``.
    """

    def __init__(
        self,
        files: Sequence[str],
        pool: ThreadPoolExecutor,
        pinned: PinnedPool,
        threads: int,
    ) -> None:
        self._files = files
        self._pool = pool
        self._pinned = pinned
        self._ahead = pinned.count - _FOR_PACKED
        self._threads = threads
        # Buffers that are being read into or wait, and those that are being copied from.
        self._filled = 0
        self._copied: deque[tuple[Any, NDArray[np.uint8]]] = deque()
        self._buffers: dict[int, NDArray[np.uint8]] = {}
        self._open: set[Any] = set()

    def pieces(self) -> Generator[Piece, None, None]:
        """Yield the pieces; give each back after its copy was begun.

        Raises:
            InputError: a file cannot be opened or inflated.
            IrregularInputError: it is not a regular file, or cannot be read.
        """
        waiting: deque[tuple[_Task, Future[Iterator[Piece]]]] = deque()
        packed: deque[Future[Iterator[Piece]]] = deque()
        tasks = self._tasks()
        task = next(tasks, None)
        try:
            while task is not None or waiting:
                while task is not None:
                    while packed and packed[0].done():
                        packed.popleft()
                    if task.size is None:
                        if len(packed) > self._threads:
                            break
                        packed.append(self._pool.submit(self._inflate, task))
                        waiting.append((task, packed[-1]))
                    else:
                        self._reclaim()
                        if self._filled + len(self._copied) >= self._ahead and waiting:
                            break
                        waiting.append((task, self._pool.submit(self._read, task, self._take())))
                        self._filled += 1
                    task = next(tasks, None)
                done, future = waiting.popleft()
                yield from future.result()
                if done.last:
                    self._open.remove(done.file)
                    done.file.close()
        finally:
            for _, future in waiting:
                if not future.cancel():
                    future.exception()
            while self._open:
                self._open.pop().close()

    def release(self, piece: Piece, copied: Any) -> None:
        """Let the buffer of a piece be used again after a CUDA event."""
        buffer = self._buffers.pop(id(piece))
        self._copied.append((copied, buffer))

    def close(self) -> None:
        """Wait until nothing copies from the buffers any more."""
        while self._copied:
            self._reclaim(wait=True)

    def _reclaim(self, *, wait: bool = False) -> None:
        """Reclaim copied buffers; at least one, if ``wait``."""
        while self._copied and (wait or self._copied[0][0].done):
            copied, buffer = self._copied.popleft()
            copied.synchronize()
            self._pinned.release(buffer)
            wait = False

    def _take(self) -> NDArray[np.uint8]:
        if self._filled + len(self._copied) >= self._ahead + _FOR_PACKED:
            self._reclaim(wait=True)
        return self._pinned.take()

    def _tasks(self) -> Iterator[_Task]:
        for path in self._files:
            try:
                status = Path(path).stat()
            except OSError as error:
                raise IrregularInputError(str(error)) from error
            if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
                raise IrregularInputError(f"{path} is not a regular file, or empty")
            source = Source(path, threads=self._threads, chunk_bytes=4 * PIECE_BYTES)
            if source.compression != "plain":
                self._open.add(source)
                yield _Task(path, source, 0, None, True, True)
                continue
            source.close()
            file = Path(path).open("rb", buffering=0)  # noqa: SIM115  # closed after its last task
            self._open.add(file)
            watched = Watched(path, file.fileno())
            for offset in range(0, status.st_size, self._pinned.size):
                size = min(self._pinned.size, status.st_size - offset)
                last = offset + size == status.st_size
                yield _Task(path, file, offset, size, offset == 0, last, watched)

    def _read(self, task: _Task, buffer: NDArray[np.uint8]) -> Iterator[Piece]:
        data = buffer[: task.size or 0]
        read_whole(task.file, data, task.offset)
        if task.watched is not None:
            task.watched.check()
        piece = Piece(task.path, data, np.flatnonzero(data == _MARK), task.first, task.last)

        def give() -> Iterator[Piece]:
            self._filled -= 1
            self._buffers[id(piece)] = buffer
            yield piece

        return give()

    def _inflate(self, task: _Task) -> Iterator[Piece]:
        """Inflate a whole file; it is copied to pinned memory when its turn comes."""
        parts: list[tuple[NDArray[np.uint8], NDArray[np.int64]]] = []
        for chunk in task.file.chunks():
            data = chunk.data
            for begin in range(0, chunk.size, self._pinned.size):
                part = data[begin : begin + self._pinned.size]
                parts.append((part, np.flatnonzero(part == _MARK)))
        if not parts:
            raise IrregularInputError(f"{task.path} is empty")

        def give() -> Iterator[Piece]:
            for number, (part, marks) in enumerate(parts):
                buffer = self._take()
                np.copyto(buffer[: len(part)], part)
                piece = Piece(
                    task.path, buffer[: len(part)], marks, number == 0, number == len(parts) - 1
                )
                self._buffers[id(piece)] = buffer
                yield piece

        return give()


@dataclass(frozen=True, slots=True)
class _Task:
    """A thread's task: read ``size`` bytes, or inflate (``size`` is None)."""

    path: str
    file: Any
    offset: int
    size: int | None
    first: bool
    last: bool
    watched: Watched | None = None


@dataclass(slots=True)
class TextBatch:
    """Text of consecutive records, to be copied to a GPU.

    Attributes:
        size: bytes so far.
        blanks: begin and end of headers, or of parts of them.
        records: where each record begins.
        targets: and its target.
        ends: whether the last record ends with the text.
    """

    size: int = 0
    blanks: list[tuple[int, int]] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    targets: list[list[int]] = field(default_factory=list)
    ends: bool = False


class RecordFinder:
    """Finds the headers in pieces and reports them to the sink.

    Args:
        sink: receives the records.
    """

    def __init__(self, sink: TargetSink) -> None:
        self._sink = sink
        self._path = ""
        self._record = 0
        self._before = _LF
        self._header: list[bytes] | None = None
        self._target: list[int] = []

    def add(self, piece: Piece, batch: Callable[[int, bool], tuple[TextBatch, int]]) -> None:
        """Enter the headers of a piece into batches.

        Args:
            piece: the next one.
            batch: returns, for a position in the piece and whether a record begins there, the batch
                for
                the bytes from there on, and the offset of positions in the piece.
        """
        data = piece.data
        if piece.first:
            self._path, self._record, self._before = piece.path, 0, _LF
            if data[0] != _MARK:
                raise IrregularInputError(f"{piece.path} does not begin with >")
        elif self._before == _CR and data[0] != _LF:
            raise IrregularInputError("a line contains a carriage return")
        at = self._end_header(data, batch) if self._header is not None else 0
        for mark in piece.marks.tolist():
            if mark < at:
                continue
            if (data[mark - 1] if mark > 0 else self._before) != _LF:
                raise IrregularInputError("a line contains >")
            own, shift = batch(mark, True)
            own.records.append(mark + shift)
            self._target = []
            own.targets.append(self._target)
            self._header = []
            at = self._end_header(data, batch, mark)
        self._before = int(data[-1])
        if piece.last and self._header is not None:
            raise IrregularInputError("a record has no sequence")

    def _end_header(
        self,
        data: NDArray[np.uint8],
        batch: Callable[[int, bool], tuple[TextBatch, int]],
        begin: int = 0,
    ) -> int:
        """Look for the line feed after a header, from ``begin`` on; gives where the line ends."""
        header = self._header
        assert header is not None
        at, size = begin, 256
        end = -1
        while end < 0 and at < len(data):
            text = data[at : at + size].tobytes()
            end = text.find(b"\n")
            header.append(text if end < 0 else text[:end])
            at += len(text) if end < 0 else end
            size *= 4
        own, shift = batch(begin, False)
        own.blanks.append((begin + shift, at + shift))
        if sum(map(len, header)) > DEFAULT_LIMITS.header_bytes:
            raise IrregularInputError("a header is very long")
        if end >= 0:
            whole = b"".join(header)[1:].removesuffix(b"\r")
            if b"\0" in whole or b"\r" in whole:
                raise IrregularInputError("a header contains a NUL byte or a carriage return")
            self._target.append(self._sink.start(self._path, self._record, whole))
            self._record += 1
            self._header = None
        return at
