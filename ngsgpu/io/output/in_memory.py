"""Files in memory (tmpfs), filled by several threads at once.

Only one thread at a time can write to a file. Mapping its pages costs more CPU time, but uses
several cores.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

import numpy as np

from ngsgpu.errors import OutputError
from ngsgpu.io.output.atomic import AtomicFile

_RESERVED: Final = 128 << 20
"""Maximum bytes by which a file is extended beyond its content."""


class FileInMemory:
    """A file whose pages are reserved, so that a full disk is noticed, and mapped for each part."""

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._reserved = 0
        self._end = 0

    def write_at(self, data: memoryview, offset: int) -> None:
        """Write all of ``data`` at a place in the file; may be called in any thread."""
        end = offset + len(data)
        with self._lock:
            self._end = max(self._end, end)
            if end > self._reserved:
                self._reserved = self._reserve(end)
        np.copyto(self._file.mapped(len(data), offset), np.frombuffer(data, dtype=np.uint8))

    def _reserve(self, end: int) -> int:
        """Reserve pages up to ``end``, and some more if there is room; returns up to where."""
        for wanted in (end + min(end, _RESERVED), end):
            try:
                self._file.reserve(self._reserved, wanted)
            except OutputError:
                if wanted == end:
                    raise
            else:
                return wanted
        return end

    def finish(self) -> None:
        """Release surplus reserved space."""
        self._file.cut(self._end)


class MemoryWriter:
    """Appends to a file in memory with the threads of a pool.

    Args:
        file: the file.
        pool: the threads.
        ahead: most pieces that are written at a time.
    """

    compresses = False

    def __init__(self, file: AtomicFile, pool: ThreadPoolExecutor, ahead: int) -> None:
        self.file = file
        self._memory = FileInMemory(file)
        self._pool = pool
        self._ahead = ahead
        self._end = 0
        self._tasks: deque[Future[None]] = deque()
        self._failure: BaseException | None = None

    def put(self, data: memoryview) -> None:
        """Hand over data, waiting while too much is being written already."""
        self._wait(self._ahead - 1)
        self.raise_failure()
        if len(data) > 0:
            self._tasks.append(self._pool.submit(self._memory.write_at, data, self._end))
            self._end += len(data)

    def finish(self) -> None:
        """Wait until everything is written."""
        self._wait(0)
        if self._end > 0 and self._failure is None:
            self._memory.finish()

    def stop(self) -> None:
        """Drop what waits."""
        for task in self._tasks:
            task.cancel()
        wait(self._tasks)

    def raise_failure(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _wait(self, most: int) -> None:
        """Wait until at most this many pieces are in flight."""
        while self._tasks and (len(self._tasks) > most or self._tasks[0].done()):
            failure = self._tasks.popleft().exception()
            self._failure = self._failure or failure
