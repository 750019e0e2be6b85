"""Copies device memory to files: in pieces through pinned memory, written by several threads.

The counterpart of ``gpu.feed``: copies from the GPU and writing overlap with the kernels that
produce the next bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.pinned import PinnedPool
from ngsgpu.io.output.in_memory import MEMORY_WRITERS, write_pages
from ngsgpu.io.output.writer import Outputs

PIECE_BYTES: Final = 8 << 20
WRITERS: Final = 4
"""Writing threads: Linux lets one at a time write to a file, and waiting ones keep cores busy."""

_Write = Callable[[memoryview, int], None]
"""Writes bytes at a place."""

_AHEAD: Final = 12
"""Pieces that may wait to be written."""


class DeviceWriter:
    """Appends device memory to outputs; use it as a context manager.

    An output that can be written in any order is written by several threads, any other by its own
    thread, in order.

    Args:
        files: the outputs.
        threads: available threads; at most ``WRITERS`` of them write.
    """

    def __init__(self, files: Outputs, *, threads: int) -> None:
        import cupy

        self._files = files
        self._device = cupy.cuda.runtime.getDevice()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        in_memory = any(file is not None and file.is_in_memory for file in files.all_for_offsets())
        writers = min(threads, MEMORY_WRITERS if in_memory else WRITERS)
        self._pinned = PinnedPool(PIECE_BYTES, writers + _AHEAD)
        self._pool = ThreadPoolExecutor(writers, thread_name_prefix="ngsgpu-write")
        self._in_order: dict[int, ThreadPoolExecutor] = {}
        self._filled: dict[int, int] = {}
        self._targets: dict[int, _Write | None] = {}
        self._tasks: deque[Future[None]] = deque()

    def put(self, index: int, data: Any, size: int, ready: Any) -> Any:
        """Append to one output.

        Args:
            index: which of the outputs.
            data: uint8 on the device.
            size: how many bytes of it, from the start.
            ready: CUDA event after which they are there.

        Returns:
            A CUDA event after which ``data`` may be overwritten.

        Raises:
            OutputError: an earlier piece could not be written.
        """
        import cupy

        while self._tasks and self._tasks[0].done():
            self._tasks.popleft().result()
        self._stream.wait_event(ready)
        target = self._target(index)
        for start in range(0, size, self._pinned.size):
            count = min(self._pinned.size, size - start)
            buffer = self._pinned.take()
            data[start : start + count].get(self._stream, out=buffer[:count], blocking=False)
            copied = cupy.cuda.Event(disable_timing=True)
            copied.record(self._stream)
            place = self._filled.get(index, 0)
            self._filled[index] = place + count
            pool = self._pool if target is not None else self._pool_in_order(index)
            piece = (index, target, place, buffer, count, copied)
            self._tasks.append(pool.submit(self._write, *piece))
        done = cupy.cuda.Event(disable_timing=True)
        done.record(self._stream)
        return done

    def _target(self, index: int) -> _Write | None:
        """Function that writes to an output at any offset; None if it does not support that."""
        if index not in self._targets:
            file = self._files.file_for_offsets(index)
            write = None
            if file is not None:
                write = partial(write_pages, file) if file.is_in_memory else file.write_at
            self._targets[index] = write
        return self._targets[index]

    def _pool_in_order(self, index: int) -> ThreadPoolExecutor:
        if index not in self._in_order:
            self._in_order[index] = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-write")
        return self._in_order[index]

    def _write(
        self,
        index: int,
        target: _Write | None,
        place: int,
        buffer: NDArray[np.uint8],
        count: int,
        copied: Any,
    ) -> None:
        import cupy

        try:
            with cupy.cuda.Device(self._device):
                copied.synchronize()
            if target is None:
                self._files.write(index, buffer[:count].copy())
            else:
                target(buffer[:count].data, place)
        finally:
            self._pinned.release(buffer)

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            OutputError: something could not be.
        """
        while self._tasks:
            self._tasks.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self.finish()
        finally:
            # Nothing may be copied to memory that is given back.
            self._stream.synchronize()
            for pool in (self._pool, *self._in_order.values()):
                pool.shutdown(wait=True, cancel_futures=True)
