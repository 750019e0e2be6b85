"""Byte streams, and what a compression format has to say so that files of it can be read."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

Part = bytes | NDArray[np.uint8]
"""Inflated bytes."""


class Stream(Protocol):
    """The decompressed bytes of a file."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer at least partly; 0 at the end."""

    def close(self) -> None:
        """Release files and threads."""


class Opened(io.RawIOBase):
    """An opened file whose first bytes may be looked at before they are read.

    Args:
        raw: the file, at its start; closed with this one.
        path: its name as given, for messages.
        threads: threads that may decompress it.

    Attributes:
        path: as given.
        threads: as given.
        below: the file, at some later place; for libraries that open files or descriptors.
    """

    def __init__(self, raw: io.RawIOBase, path: str, threads: int) -> None:
        self.below = raw
        self.path = path
        self.threads = threads
        self._head = memoryview(b"")
        self._ended = False

    def peek(self, size: int) -> bytes:
        """The first ``size`` bytes of what was not read yet, or all if there are fewer.

        Raises:
            OSError: the disk fails.
        """
        while len(self._head) < size and not self._ended:
            more = self.below.read(size - len(self._head))
            self._ended = not more
            self._head = memoryview(bytes(self._head) + (more or b""))
        return bytes(self._head[:size])

    def unread(self, data: bytes) -> None:
        """Put back bytes that were read."""
        self._head = memoryview(data + bytes(self._head))

    def read_whole(self, size: int) -> bytes:
        """Read ``size`` bytes, or all if there are fewer."""
        parts = []
        while size and (part := self.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer with a single read; 0 at the end."""
        if self._head:
            size = min(len(buffer), len(self._head))
            buffer[:size] = self._head[:size]
            self._head = self._head[size:]
            return size
        return self.below.readinto(buffer) or 0

    def close(self) -> None:
        """Close the file below, too."""
        self.below.close()
        super().close()


class Parts:
    """Decompressed bytes that wait to be copied to a buffer."""

    def __init__(self) -> None:
        self._parts: deque[NDArray[np.uint8]] = deque()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def extend(self, parts: Iterable[Part]) -> None:
        """Add parts at the end; empty ones are dropped."""
        self._parts.extend(np.frombuffer(part, dtype=np.uint8) for part in parts if len(part))

    def copy_into(self, buffer: memoryview) -> int:
        """Move bytes into a buffer until it is full or none is left; how many."""
        out = np.frombuffer(buffer, dtype=np.uint8)
        filled = 0
        while self._parts and filled < len(out):
            part = self._parts.popleft()
            size = min(len(part), len(out) - filled)
            # Unlike the assignment of a memoryview this lets other threads run.
            np.copyto(out[filled : filled + size], part[:size])
            filled += size
            if size < len(part):
                self._parts.appendleft(part[size:])
        return filled


class Owning:
    """A decompressing file that also closes the file below it."""

    def __init__(self, stream: io.BufferedIOBase, below: io.IOBase) -> None:
        self._stream = stream
        self._below = below

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer at least partly; 0 at the end."""
        return self._stream.readinto(buffer)

    def close(self) -> None:
        """Close both."""
        self._stream.close()
        self._below.close()


@dataclass(frozen=True, slots=True)
class Compression:
    """One compression or container format; listed in ``formats.FORMATS``.

    Attributes:
        name: as in ``Source.compression``.
        title: the name in messages.
        magic: what its files begin with, one of these.
        stream: begins to decompress; the stream closes the opened file. Errors of the system pass
            as ``OSError`` with ``errno``; data that end early are an ``EOFError``.
        errors: what else the stream raises where the data are damaged.
        endings: of names, by which the decompressed size is estimated.
        confirms: whether a file with such a beginning is of this format; looks at it with ``peek``
            only. None: it is.
    """

    name: str
    title: str
    magic: tuple[bytes, ...]
    stream: Callable[[Opened], Stream]
    errors: tuple[type[Exception], ...] = ()
    endings: tuple[str, ...] = ()
    confirms: Callable[[Opened], bool] | None = None

    def matches(self, file: Opened) -> bool:
        """Whether an opened file is of this format.

        Raises:
            OSError: the disk fails.
        """
        if not file.peek(max(map(len, self.magic))).startswith(self.magic):
            return False
        return self.confirms is None or self.confirms(file)


MAGIC_BYTES: Final = 32
"""Bytes by which most formats are known."""
