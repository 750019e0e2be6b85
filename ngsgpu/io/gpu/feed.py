"""The bytes of a file on their way to GPU memory.

``PinnedFile`` reads a file ahead into pinned memory by several threads, each a different piece. A
``Feed`` (``feeds``) gives the text of a file in chunks that are copied to the device.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.pinned import pinned_empty
from ngsgpu.io.compress.seek import Checkpoint
from ngsgpu.io.paths import FileIdentity, Watched, identify, read_at

_LOG = logging.getLogger("ngsgpu")

_LINE_ENDS: Final = b"\r\n"
TAIL_BYTES: Final = 4096
"""Bytes at the end of a chunk that are searched for its last letter."""


class IrregularInputError(Exception):
    """Input that the GPU's reader leaves to the CPU's: it is wrong, or unusual."""


def say_read_by_cpu(reason: object) -> None:
    """Log that the CPU reader takes over from the GPU reader, and why."""
    _LOG.info("%s; reading on the CPU", str(reason).partition(";")[0])


def read_whole(file: FileIO, data: NDArray[np.uint8], offset: int) -> None:
    """Fill an array with the bytes of a file from an offset on.

    Args:
        file: the open file.
        data: array to fill, uint8.
        offset: first byte in the file.

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


class PinnedFile:
    """A regular file that is read ahead into pinned memory, piece by piece.

    Args:
        path: the file.
        pool: reading threads.
        piece_bytes: bytes of each piece but the last.
        ahead: pieces in memory.

    Attributes:
        identity: used to detect later changes of the file.
        pieces: number of pieces.
    """

    def __init__(
        self, path: str, pool: ThreadPoolExecutor, *, piece_bytes: int, ahead: int
    ) -> None:
        import cupy

        self._pool = pool
        self._piece_bytes = piece_bytes
        self._device = cupy.cuda.runtime.getDevice()
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115  # closed by close()
        self._watched = Watched(path, self._file.fileno())
        self.identity = identify(self._file.fileno())
        self.pieces = -(-self.identity.size // piece_bytes)
        self._submitted = 0
        self._reading: deque[Future[tuple[PinnedBuffer, int]]] = deque()
        for _ in range(min(ahead, self.pieces)):
            self._submit(None)

    def _submit(self, buffer: PinnedBuffer | None) -> None:
        self._reading.append(self._pool.submit(self._read, self._submitted, buffer))
        self._submitted += 1

    def _read(self, index: int, buffer: PinnedBuffer | None) -> tuple[PinnedBuffer, int]:
        import cupy

        with cupy.cuda.Device(self._device):
            if buffer is None:
                buffer = PinnedBuffer(self._piece_bytes + 1)
            buffer.wait()
        offset = index * self._piece_bytes
        size = min(self._piece_bytes, self.identity.size - offset)
        read_whole(self._file, buffer.array[:size], offset)
        self._watched.check()
        return buffer, size

    def ready(self) -> bool:
        """Whether ``take`` would return without waiting."""
        return not self._reading or self._reading[0].done()

    def take(self) -> tuple[PinnedBuffer, int] | None:
        """The next piece, in a buffer that is a byte longer, and its size; None after the last.

        Raises:
            InputError: the file changes while it is read.
            IrregularInputError: the file cannot be read.
        """
        return self._reading.popleft().result() if self._reading else None

    def release(self, buffer: PinnedBuffer, copied: Any) -> None:
        """Let a buffer be used again after a CUDA event."""
        buffer.copied = copied
        if self._submitted < self.pieces:
            self._submit(buffer)

    def close(self) -> None:
        """Wait for the threads and close the file."""
        for future in self._reading:
            if not future.cancel():
                future.exception()
        self._reading.clear()
        self._file.close()


@dataclass(frozen=True, slots=True)
class FeedChunk:
    """Consecutive bytes of a (decompressed) file, on the host or the device.

    Attributes:
        size: how many; in the last chunk with one line feed that the file does not have.
        offset: where in the file they begin.
        first: the first byte.
        content_end: end of the last byte of them that belongs to no line end, as a place in the
            file; None if all do.
        last: whether the file ends with them.
        copy_to: has them copied to device memory on a stream.
        release: lets their memory be used again after a CUDA event.
    """

    size: int
    offset: int
    first: int
    content_end: int | None
    last: bool
    copy_to: Callable[[Any, Any], None]
    release: Callable[[Any], None]


def pinned_chunk(
    buffer: PinnedBuffer, size: int, offset: int, *, last: bool, release: Callable[[Any], None]
) -> FeedChunk:
    """The first ``size`` bytes of a buffer, which has room for another one.

    Args:
        buffer: the buffer, filled.
        size: number of bytes in it.
        offset: their place in the text.
        last: whether the text ends with them.
        release: called when the chunk has been copied.

    Raises:
        IrregularInputError: they end in thousands of blank lines.
    """
    content_end = end_of_content(buffer.array[max(0, size - TAIL_BYTES) : size], offset, size)
    if last:
        buffer.array[size] = ord("\n")
    size += last

    def copy_to(target: Any, stream: Any) -> None:
        target.copy_from_host_async(buffer.pointer, size, stream)

    return FeedChunk(size, offset, int(buffer.array[0]), content_end, last, copy_to, release)


def end_of_content(tail: NDArray[np.uint8], offset: int, size: int) -> int | None:
    """``FeedChunk.content_end`` of a chunk that ends in ``tail``.

    Args:
        tail: last bytes of the chunk, uint8.
        offset: place of the chunk in the text.
        size: size of the chunk in bytes.

    Raises:
        IrregularInputError: it ends in thousands of blank lines.
    """
    content = tail.tobytes().rstrip(_LINE_ENDS)
    if content:
        return offset + size - len(tail) + len(content)
    if size > TAIL_BYTES:
        raise IrregularInputError("there are thousands of blank lines")
    return None


class HostCache:
    """Host memory for inflated data, so that a second pass need not inflate them again.

    Args:
        room: bytes that may be kept.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()

    def reserve(self, size: int) -> bool:
        """Reserve ``size`` bytes; False if the limit is exceeded."""
        with self._lock:
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

    def take(self) -> FeedChunk | None:
        """The next chunk; None after the last.

        Raises:
            InputError: the data cannot be inflated.
            IrregularInputError: the file cannot be read, or ends in thousands of blank lines.
        """

    def checkpoints(self, size: int) -> tuple[Checkpoint, ...]:
        """Places for reading a gzip file again, once all was taken, ``size`` bytes; () if none."""

    def close(self) -> None:
        """Release file and threads."""
