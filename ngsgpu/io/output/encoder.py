"""A stream that is compressed piece by piece, by several threads."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np

from ngsgpu.io.compress.formats import Packing


class Encoder:
    """Cuts a stream into pieces and has them compressed by a pool, keeping the order."""

    def __init__(
        self, pool: ThreadPoolExecutor, packing: Packing, level: int, *, ahead: int
    ) -> None:
        self._pool = pool
        self._packing = packing
        self._level = level
        self._ahead = ahead
        self._held: list[memoryview] = []
        self._held_bytes = 0
        self._tasks: deque[tuple[Future[bytes | memoryview], int]] = deque()
        self._sizes: list[tuple[int, int]] = []

    @property
    def packer(self) -> tuple[Packing, int]:
        """What compresses, and its level."""
        return self._packing, self._level

    def encode(self, data: memoryview | None) -> list[bytes | memoryview]:
        """Compressed bytes that are due: those of earlier data, mostly; None ends the stream."""
        done: list[bytes | memoryview] = []
        at = 0
        if data is not None:
            while (missing := self._packing.piece_bytes - self._held_bytes) <= len(data) - at:
                self._hold(data[at : at + missing])
                self._submit(done)
                at += missing
            if at < len(data):
                self._hold(data[at:])
            return done
        if self._held:
            self._submit(done)
        while self._tasks:
            self._take(done)
        return [*done, self._packing.end(self._sizes)]

    def note_packed(self, sizes: tuple[int, int]) -> None:
        """Note a piece that was compressed elsewhere; all output is made so, or none."""
        self._sizes.append(sizes)

    def _hold(self, data: memoryview) -> None:
        self._held.append(data)
        self._held_bytes += len(data)

    def _submit(self, done: list[bytes | memoryview]) -> None:
        task = self._pool.submit(_packed, self._packing, self._held, self._level)
        self._tasks.append((task, self._held_bytes))
        self._held, self._held_bytes = [], 0
        while len(self._tasks) > self._ahead:
            self._take(done)

    def _take(self, done: list[bytes | memoryview]) -> None:
        task, size = self._tasks.popleft()
        done.append(task.result())
        self._sizes.append((len(done[-1]), size))


class _Joined(threading.local):
    """Memory of a thread: new memory for each piece would cost more than filling it."""

    buffer = np.empty(0, dtype=np.uint8)


_JOINED: Final = _Joined()


def _packed(packing: Packing, parts: list[memoryview], level: int) -> bytes | memoryview:
    """A piece, compressed. Its parts are joined here, where other threads of Python go on."""
    if len(parts) == 1:
        return packing.pack(parts[0], level)
    size = sum(map(len, parts))
    if len(_JOINED.buffer) < size:
        _JOINED.buffer = np.empty(size, dtype=np.uint8)
    whole = _JOINED.buffer[:size]
    np.concatenate([np.frombuffer(part, dtype=np.uint8) for part in parts], out=whole)
    return packing.pack(whole.data, level)
