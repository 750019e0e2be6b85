"""Files in memory (tmpfs), filled by several threads at a time."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import OutputError
from ngsgpu.io.output.atomic import AtomicFile

MEMORY_WRITERS: Final = 8
"""Threads that fill files in memory, whose pages they map and need not wait for. As pages are
zeroed first, fewer threads than this are faster by writing."""

_SMALL: Final = 256 << 10
"""Bytes that are written sooner than handed over to another thread."""
_FIRST_WINDOW: Final = 4 << 20

MAPPED_BYTES: Final = 64 << 20
"""Bytes of a file that are mapped at a time, at most. All threads of the process wait whenever some
are unmapped: 4.3 GB were changed in 0.61 s a megabyte at a time, 0.23 s by 16 and 0.15 s by 64
(16 cores)."""


def is_mapped(file: AtomicFile, threads: int) -> bool:
    """Whether a number of threads write a file faster through its mapped pages."""
    return threads >= MEMORY_WRITERS and file.is_in_memory


def write_pages(file: AtomicFile, data: memoryview, offset: int) -> None:
    """Write all of ``data`` at a place in a file in memory; may be called in any thread.

    Only one thread at a time can write to a file; several can fill its pages. These are mapped for
    as long as that takes, so that no thread has to unmap a large file in the end.

    Raises:
        OutputError: the disk is full.
    """
    np.copyto(file.pages(len(data), offset), np.frombuffer(data, dtype=np.uint8))


class Appender:
    """Appends to a file in memory; a context manager, at whose end no thread writes.

    The calling thread writes as long as it keeps up. Then several threads fill pages of the file,
    of which a window is mapped, with room for the next bytes.

    Args:
        file: the file, to which nobody else writes.
    """

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
        self._pool: ThreadPoolExecutor | None = None
        self._tasks: deque[Future[None]] = deque()
        self._window: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._begin = 0
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def append(self, data: memoryview, *, behind: bool) -> None:
        """Append bytes, which must not be changed afterwards.

        Args:
            data: the bytes.
            behind: whether more bytes wait already.

        Raises:
            OutputError: there is no room for them.
        """
        if not behind or len(data) < _SMALL:
            self._file.write_at(data, self._size)
            self._size += len(data)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MEMORY_WRITERS, thread_name_prefix="ngsgpu-fill")
        rest = np.frombuffer(data, dtype=np.uint8)
        while len(rest) > 0:
            if self._size >= self._begin + len(self._window):
                self._next_window(len(rest))
            room = self._window[self._size - self._begin :][: len(rest)]
            self._tasks.append(self._pool.submit(np.copyto, room, rest[: len(room)]))
            self._size += len(room)
            rest = rest[len(room) :]
        while len(self._tasks) > 2 * MEMORY_WRITERS:
            self._tasks.popleft().result()

    def finish(self) -> None:
        """Wait until all bytes are there, and give the rest of the window back.

        Raises:
            OutputError: the file cannot be cut.
        """
        while self._tasks:
            self._tasks.popleft().result()
        if self._size < self._begin + len(self._window):
            self._file.cut(self._size)
        self._window = np.empty(0, dtype=np.uint8)

    def _next_window(self, needed: int) -> None:
        """Map pages from the file's end on."""
        # As many as there are already: small files leave no large rest.
        wanted = max(needed, min(MAPPED_BYTES, max(_FIRST_WINDOW, self._size)))
        try:
            window = self._file.pages(wanted, self._size)
        except OutputError:
            # There may be room for these bytes yet.
            window = self._file.pages(needed, self._size)
        self._begin, self._window = self._size, window
