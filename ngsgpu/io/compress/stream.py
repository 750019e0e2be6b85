"""Byte streams, and what a compression format has to say so that files of it can be read."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol


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

    def __init__(self, raw: io.FileIO, path: str, threads: int) -> None:
        self.below = raw
        self.path = path
        self.threads = threads
        self._head = b""
        self._ended = False

    def peek(self, size: int) -> bytes:
        """The first ``size`` bytes of what was not read yet, or all if there are fewer.

        Raises:
            OSError: the disk fails.
        """
        while len(self._head) < size and not self._ended:
            more = self.below.read(size - len(self._head))
            self._ended = not more
            self._head += more or b""
        return self._head[:size]

    def unread(self, data: bytes) -> None:
        """Put back bytes that were read."""
        self._head = data + self._head

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
        matches: whether an opened file is of this format; looks at it with ``peek`` only.
        stream: begins to decompress; the stream closes the opened file. Errors of the system pass
            as ``OSError`` with ``errno``; data that end early are an ``EOFError``.
        errors: what else the stream raises where the data are damaged.
        endings: of names, by which the decompressed size is estimated.
    """

    name: str
    title: str
    matches: Callable[[Opened], bool]
    stream: Callable[[Opened], Stream]
    errors: tuple[type[Exception], ...] = ()
    endings: tuple[str, ...] = ()


MAGIC_BYTES: Final = 32
"""Bytes by which most formats are known."""
