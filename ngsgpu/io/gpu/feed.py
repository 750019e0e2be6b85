"""Reads input files ahead into pinned memory, from which they are copied to the GPU.

Several threads read a plain file, each a different chunk; ``Source`` inflates a compressed one. A
chunk's buffer is reused when its copy to the GPU has finished.
"""

from __future__ import annotations

import logging
import stat
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.pinned import pinned_empty
from ngsgpu.io.compress.source import Chunk, Source
from ngsgpu.io.paths import FileIdentity, Watched, identify, read_at

_LOG = logging.getLogger("ngsgpu")

LINE_ENDS: Final = b"\r\n"
_BLANK: Final = 4096
"""Bytes at the end of a chunk that are searched for its last letter."""


class IrregularInputError(Exception):
    """This input is not for the GPU's reader: it is wrong, or unusual; the CPU's reader decides."""


def say_read_by_cpu(reason: object) -> None:
    """Log that the CPU reader takes over from the GPU reader, and why."""
    _LOG.info("%s; reading on the CPU", str(reason).partition(";")[0])


def read_whole(file: FileIO, data: NDArray[np.uint8], offset: int) -> None:
    """Fill an array with the bytes of a file from an offset on.

    Raises:
        IrregularInputError: the disk fails, or the file ends before.
    """
    try:
        done = read_at(file, data, offset)
    except OSError as error:
        raise IrregularInputError(str(error)) from error
    if done < len(data):
        raise IrregularInputError("the file was truncated while it was read")


class PinnedBuffer:
    """A reusable buffer in pinned memory.

    Args:
        size: bytes.

    Attributes:
        array: uint8[size].
        copied: CUDA event after the last copy from it; None before the first.
    """

    def __init__(self, size: int) -> None:
        self.array = pinned_empty(size)
        self.copied: Any = None

    @property
    def pointer(self) -> int:
        """Address of the first byte."""
        return int(self.array.ctypes.data)

    def wait(self) -> None:
        """Wait until nothing copies from the buffer any more."""
        if self.copied is not None:
            self.copied.synchronize()


@dataclass(frozen=True, slots=True)
class PinnedChunk:
    """Consecutive bytes of a (decompressed) file.

    Attributes:
        buffer: holds them, from its start.
        size: how many; in the last chunk with one line feed that the file does not have.
        offset: where in the file they begin.
        content_end: end of the last byte of them that belongs to no line end, as a place in the
            file; None if all do.
        last: whether the file ends with them.
    """

    buffer: PinnedBuffer
    size: int
    offset: int
    content_end: int | None
    last: bool


class HostCache:
    """Host memory for inflated data, so that a second pass need not inflate them again.

    Args:
        room: bytes that may be kept.
    """

    def __init__(self, room: int) -> None:
        self._room = room

    def reserve(self, size: int) -> bool:
        """Reserve ``size`` bytes; False if the limit is exceeded."""
        self._room -= size
        return self._room >= 0


class Feed(Protocol):
    """The chunks of one file, in order.

    Attributes:
        kept: the bytes taken so far, if they are cached; otherwise None.
        identity: used to detect later changes of the file.
        compression: as in ``Source``.
        size: decompressed size in bytes; None if unknown.
    """

    identity: FileIdentity
    compression: str
    size: int | None
    kept: list[NDArray[np.uint8]] | None

    def ready(self) -> bool:
        """Whether ``take`` would return without waiting."""

    def take(self) -> PinnedChunk | None:
        """The next chunk; None after the last.

        Raises:
            IrregularInputError: the file cannot be read, or ends in thousands of blank lines.
        """

    def release(self, chunk: PinnedChunk, copied: Any) -> None:
        """Let the buffer of a chunk be used again after a CUDA event."""

    def close(self) -> None:
        """Release file and threads."""


def open_feed(
    path: str,
    pool: ThreadPoolExecutor,
    host_cache: HostCache,
    *,
    threads: int,
    chunk_bytes: int,
    ahead: int,
) -> Feed:
    """Open a file.

    Args:
        path: the file.
        pool: reading threads.
        host_cache: caches inflated data up to its limit.
        threads: threads that inflate BGZF.
        chunk_bytes: size of a chunk.
        ahead: chunks in memory.

    Raises:
        InputError: the file cannot be opened, or has an unsupported compression format.
        IrregularInputError: it is not a regular file.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise IrregularInputError(str(error)) from error
    if not stat.S_ISREG(mode):
        raise IrregularInputError(f"{path} is not a regular file")
    source = Source(path, threads=threads, chunk_bytes=chunk_bytes)
    if source.compression == "plain":
        source.close()
        return PlainFeed(path, pool, chunk_bytes=chunk_bytes, ahead=ahead)
    return InflatedFeed(source, host_cache, chunk_bytes=chunk_bytes)


class PlainFeed:
    """Reads a file that is not compressed with the threads of a pool."""

    compression = "plain"

    def __init__(
        self, path: str, pool: ThreadPoolExecutor, *, chunk_bytes: int, ahead: int
    ) -> None:
        import cupy

        self.kept: list[NDArray[np.uint8]] | None = None
        self._pool = pool
        self._chunk_bytes = chunk_bytes
        self._device = cupy.cuda.runtime.getDevice()
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115  # closed by close()
        self._watched = Watched(path, self._file.fileno())
        self.identity = identify(self._file.fileno())
        self.size: int | None = self.identity.size
        self._chunks = -(-self.identity.size // chunk_bytes)
        self._submitted = 0
        self._reading: deque[Future[PinnedChunk]] = deque()
        for _ in range(min(ahead, self._chunks)):
            self._submit(None)

    def _submit(self, buffer: PinnedBuffer | None) -> None:
        self._reading.append(self._pool.submit(self._read, self._submitted, buffer))
        self._submitted += 1

    def _read(self, index: int, buffer: PinnedBuffer | None) -> PinnedChunk:
        import cupy

        with cupy.cuda.Device(self._device):
            if buffer is None:
                buffer = PinnedBuffer(self._chunk_bytes + 1)
            buffer.wait()
        offset = index * self._chunk_bytes
        size = min(self._chunk_bytes, self.identity.size - offset)
        read_whole(self._file, buffer.array[:size], offset)
        self._watched.check()
        return _chunk(buffer, size, offset, last=index + 1 == self._chunks)

    def ready(self) -> bool:
        """Whether ``take`` would return without waiting."""
        return not self._reading or self._reading[0].done()

    def take(self) -> PinnedChunk | None:
        """The next chunk; None after the last.

        Raises:
            IrregularInputError: the file cannot be read, or ends in thousands of blank lines.
        """
        return self._reading.popleft().result() if self._reading else None

    def release(self, chunk: PinnedChunk, copied: Any) -> None:
        """Let the buffer of a chunk be used again after a CUDA event."""
        chunk.buffer.copied = copied
        if self._submitted < self._chunks:
            self._submit(chunk.buffer)

    def close(self) -> None:
        """Wait for the threads and close the file."""
        for future in self._reading:
            if not future.cancel():
                future.exception()
        self._reading.clear()
        self._file.close()


class InflatedFeed:
    """Copies the inflated bytes of a source to pinned memory."""

    def __init__(self, source: Source, host_cache: HostCache, *, chunk_bytes: int) -> None:
        self._source = source
        self._host_cache = host_cache
        self.kept: list[NDArray[np.uint8]] | None = []
        self.compression = source.compression
        self.identity = source.watched.identity or identify(source.path)
        self.size: int | None = None
        self._chunks: Iterator[Chunk] = source.chunks()
        self._next = next(self._chunks, None)
        self._chunk_bytes = chunk_bytes
        self._buffers = deque(PinnedBuffer(chunk_bytes + 1) for _ in range(2))
        self._offset = 0

    def ready(self) -> bool:
        """Whether ``take`` would return without waiting; unknown here."""
        return False

    def take(self) -> PinnedChunk | None:
        """The next chunk; None after the last.

        Raises:
            InputError: the data cannot be inflated.
            IrregularInputError: the data end in thousands of blank lines.
        """
        current = self._next
        if current is None:
            return None
        self._next = next(self._chunks, None)
        buffer = self._buffers.popleft() if self._buffers else PinnedBuffer(self._chunk_bytes + 1)
        buffer.wait()
        data = current.data
        np.copyto(buffer.array[: current.size], data)
        if self.kept is not None:
            if self._host_cache.reserve(self._chunk_bytes):
                self.kept.append(data)
            else:
                self.kept = None
        chunk = _chunk(buffer, current.size, self._offset, last=self._next is None)
        self._offset += current.size
        return chunk

    def release(self, chunk: PinnedChunk, copied: Any) -> None:
        """Let the buffer of a chunk be used again after a CUDA event."""
        chunk.buffer.copied = copied
        self._buffers.append(chunk.buffer)

    def close(self) -> None:
        """Stop inflating."""
        self._source.close()


def _chunk(buffer: PinnedBuffer, size: int, offset: int, *, last: bool) -> PinnedChunk:
    """A chunk of the first ``size`` bytes of a buffer; adds the line feed to the last one."""
    tail = buffer.array[max(0, size - _BLANK) : size].tobytes()
    content = tail.rstrip(LINE_ENDS)
    content_end = None
    if content:
        content_end = offset + size - len(tail) + len(content)
    elif size > _BLANK:
        raise IrregularInputError("there are thousands of blank lines")
    if last:
        buffer.array[size] = ord("\n")
    return PinnedChunk(buffer, size + last, offset, content_end, last)
