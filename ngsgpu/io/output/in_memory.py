"""Files in memory (tmpfs), filled by several threads at a time."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self

import numpy as np

from ngsgpu.io.output.atomic import AtomicFile

MEMORY_WRITERS: Final = 8
"""Threads that fill files in memory, whose pages they map and need not wait for. As pages are
zeroed first, fewer than so many threads are sooner done by writing."""

_PART: Final = 4 << 20


def is_mapped(file: AtomicFile, threads: int) -> bool:
    """Whether a file is written sooner by way of its pages, by so many threads."""
    return threads >= MEMORY_WRITERS and file.is_in_memory


def write_pages(file: AtomicFile, data: memoryview, offset: int) -> None:
    """Write all of ``data`` at a place in a file in memory; may be called in any thread.

    Only one thread at a time can write to a file; several can fill its pages. These are mapped for
    as long as that takes, so that no thread has to unmap a large file in the end.

    Raises:
        OutputError: the disk is full.
    """
    np.copyto(file.pages(len(data), offset), np.frombuffer(data, dtype=np.uint8))


class PartsInMemory:
    """Appends to a file, several parts at a time; a context manager, at whose end no thread writes.

    Args:
        file: the file, to which nobody else writes.
    """

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
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
            self._tasks.append(self._pool.submit(write_pages, self._file, part, self._size))
            self._size += len(part)
        while len(self._tasks) > (0 if data is None else 2 * MEMORY_WRITERS):
            self._tasks.popleft().result()
