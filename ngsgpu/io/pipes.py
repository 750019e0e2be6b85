"""Named pipes and standard input, which one program may write in turn.

Such a program opens all its pipes before it writes to one of them, and waits where one is full. So
the pipes of a run are opened together, before any is read, and while the reader of one has to wait,
what the others give is kept in temporary files.
"""

from __future__ import annotations

import io
import os
import select
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Final

from ngsgpu.errors import output_error
from ngsgpu.io.paths import nameless_file, temporary_place

_PATIENCE_MS: Final = 200
"""Milliseconds that a reader waits before others' bytes are kept."""
_PIECE_BYTES: Final = 1 << 16
"""What a pipe holds, usually."""


class Pipe(io.RawIOBase):
    """A pipe that is read.

    Args:
        path: its name; ``-`` is standard input.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._kept: BinaryIO | None = None
        self._begin = self._end = 0  # of what is kept and not yet read
        self._ended = self._is_read = False
        self._patience = _PATIENCE_MS
        self._is_own = False
        if path == "-":
            self._file = 0
        else:  # without waiting for the program that writes it
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._is_own = True
        _live.add(self)

    def fileno(self) -> int:
        """The descriptor."""
        return self._file

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer with available bytes; 0 at the end.

        Raises:
            OSError: the pipe cannot be read.
            OutputError: what other pipes give cannot be kept.
        """
        self._is_read = True
        try:
            while True:
                with self._lock:
                    if self._begin < self._end:
                        return self._take(buffer)
                    if self._ended:
                        return 0
                    if _giving([self], 0):
                        return os.readv(self._file, [buffer])
                if not _giving([self], self._patience):
                    self._keep_others()
        finally:
            self._is_read = False

    def _keep_others(self) -> None:
        """Keep what pipes give whose readers do not wait, until there is something for this one."""
        while self._begin == self._end and not self._ended:
            others = [other for other in list(_live) if not (other._is_read or other._ended)]
            giving = _giving([self, *others], _PATIENCE_MS)
            if self in giving:
                return
            for other in giving:
                other._keep()
                self._patience = 1  # one program writes both: it will be so again

    def close(self) -> None:
        """Close it, and drop what is kept."""
        if not self.closed:
            _live.discard(self)
            with self._lock:
                self._ended = True
                if self._kept is not None:
                    self._kept.close()
                if self._is_own:
                    os.close(self._file)
        super().close()

    def _take(self, buffer: memoryview) -> int:
        assert self._kept is not None
        part = memoryview(buffer)[: self._end - self._begin]
        count = os.preadv(self._kept.fileno(), [part], self._begin)
        self._begin += count
        if self._begin == self._end:
            self._begin = self._end = 0
            os.ftruncate(self._kept.fileno(), 0)
        return count

    def _keep(self) -> None:
        """Keep what the pipe gives now, unless its reader is about to take it."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._ended and _giving([self], 0):
                    data = os.read(self._file, _PIECE_BYTES)
                    self._ended = not data
                    self._append(data)
            finally:
                self._lock.release()

    def _append(self, data: bytes) -> None:
        try:
            if self._kept is None:
                self._kept = nameless_file()
            while data:
                count = os.pwrite(self._kept.fileno(), data, self._end)
                self._end += count
                data = data[count:]
        except OSError as error:
            raise output_error(temporary_place(), error) from error


_live: Final[set[Pipe]] = set()
"""Open pipes."""
_Identity = tuple[int, int]
_waiting: Final[dict[_Identity, Pipe]] = {}
"""Pipes that were opened together, until they are read."""


def _giving(pipes: list[Pipe], patience: int) -> list[Pipe]:
    """The pipes that have something to read, or their end, within some milliseconds."""
    # Not so before a first program has opened the pipe, and after the last one has closed it.
    asked = select.poll()
    for pipe in pipes:
        asked.register(pipe.fileno(), select.POLLIN)
    ready = {number for number, _ in asked.poll(patience)}
    return [pipe for pipe in pipes if pipe.fileno() in ready]


def _identity(path: str) -> _Identity | None:
    """The device and number of a pipe or socket, by whatever name; None of anything else."""
    try:
        state = os.fstat(0) if path == "-" else os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    is_pipe = stat.S_ISFIFO(state.st_mode) or stat.S_ISSOCK(state.st_mode)
    return (state.st_dev, state.st_ino) if is_pipe else None


def open_input(path: str) -> io.RawIOBase:
    """Open an input for reading, unbuffered: a file, a pipe, or standard input (``-``).

    Raises:
        OSError: it cannot be opened.
        ValueError: it has an impossible name.
    """
    if (own := _identity(path)) is not None:
        return _waiting.pop(own, None) or Pipe(path)
    return io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path)


@contextmanager
def opened_together(paths: Iterable[str]) -> Iterator[None]:
    """Open the pipes among some inputs before any is read; those not read by the end are closed.

    Args:
        paths: of the inputs.
    """
    with ExitStack() as opened:
        for path in paths:
            own = _identity(path)
            if own is not None and own not in _waiting:
                try:
                    pipe = Pipe(path)
                except OSError:
                    continue  # its reader says so
                _waiting[own] = pipe
                opened.callback(_close_unread, own, pipe)
        yield


def _close_unread(own: _Identity, pipe: Pipe) -> None:
    if _waiting.get(own) is pipe:
        del _waiting[own]
        pipe.close()
