"""Files in memory (tmpfs), filled by several threads at a time."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self

import numpy as np

from ngsgpu.errors import OutputError
from ngsgpu.io.output.atomic import AtomicFile

MEMORY_WRITERS: Final = 8
"""Threads that fill files in memory, whose pages they map and need not wait for. As pages are
zeroed first, fewer than so many threads are sooner done by writing."""

_PART: Final = 4 << 20

_AHEAD: Final = 128 << 20
"""Maximum bytes by which a file is longer than its content, so that it rarely has to grow."""


def is_mapped(file: AtomicFile, threads: int) -> bool:
    """Whether a file is written sooner by way of its pages, by so many threads."""
    return threads >= MEMORY_WRITERS and file.is_in_memory


class FileInMemory:
    """A file of which each part is mapped and gets its pages when it is written.

    Only one thread at a time can write to a file; mapping its pages uses several.
    """

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._size = 0
        self._end = 0

    def write_at(self, data: memoryview, offset: int) -> None:
        """Write all of ``data`` at a place in the file; may be called in any thread.

        Raises:
            OutputError: the disk is full.
        """
        end = offset + len(data)
        with self._lock:
            self._end = max(self._end, end)
            if end > self._size:
                self._size = self._lengthen(end)
        pages = self._file.mapped(len(data), offset)
        self._file.populate(pages, offset)
        np.copyto(pages, np.frombuffer(data, dtype=np.uint8))

    def _lengthen(self, end: int) -> int:
        """Lengthen the file to ``end``, and some more if it may be; returns its size."""
        for wanted in (end + min(end, _AHEAD), end):
            try:
                self._file.resize(wanted)
            except OutputError:
                if wanted == end:
                    raise
            else:
                return wanted
        return end

    def finish(self) -> None:
        """Cut off what is too much."""
        self._file.resize(self._end)


class PartsInMemory:
    """Appends to a file, several parts at a time; a context manager, at whose end no thread writes.

    Args:
        file: the file, to which nobody else writes.
    """

    def __init__(self, file: AtomicFile) -> None:
        self._file = FileInMemory(file)
        self._pool = ThreadPoolExecutor(MEMORY_WRITERS, thread_name_prefix="ngsgpu-fill")
        self._tasks: deque[Future[None]] = deque()
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def append(self, data: memoryview | None) -> None:
        """Append bytes, which must not be changed afterwards; None ends the file.

        Raises:
            OutputError: there is no room for them, or was not for earlier ones.
        """
        whole = memoryview(b"") if data is None else data
        for at in range(0, len(whole), _PART):
            part = whole[at : at + _PART]
            self._tasks.append(self._pool.submit(self._file.write_at, part, self._size))
            self._size += len(part)
        while len(self._tasks) > (0 if data is None else 2 * MEMORY_WRITERS):
            self._tasks.popleft().result()
        if data is None:
            self._file.finish()
