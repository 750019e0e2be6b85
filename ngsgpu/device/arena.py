"""One allocation of GPU memory from which all arrays of a run are cut.

A run plans its memory before allocating any. With CuPy's pool it would use more: persistent arrays
fragment the space left by short-lived ones until nothing large fits. Here persistent arrays fill
the allocation from its start and the others from its end, so that memory use equals the plan::

    arena = Arena(plan.arena_bytes)
    with arena.in_use():
        scratch = cupy.empty(...)
        with persistent():
            table = cupy.empty(...)

Memory is reused as soon as an array is freed, which is correct for work on one stream.
"""

from __future__ import annotations

import contextlib
import math
import threading
from bisect import bisect
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

ALIGNMENT = 512
"""Alignment of arrays in bytes, as in CuPy's pool."""

_current = threading.local()


class Extents:
    """Which parts of a range of bytes are taken.

    Args:
        size: bytes of the range.

    Attributes:
        used: bytes taken now.
        peak: the most that were taken at a time.
    """

    def __init__(self, size: int) -> None:
        self.used = 0
        self.peak = 0
        self._free = [(0, size)] if size else []
        self._taken: dict[int, int] = {}

    @property
    def largest(self) -> int:
        """Bytes of the largest free part."""
        return max((end - begin for begin, end in self._free), default=0)

    def take(self, size: int, *, from_end: bool) -> int | None:
        """Take the first sufficiently large extent, from the start or from the end.

        Returns:
            Its offset; None if there is none.
        """
        indices = range(len(self._free))
        for index in reversed(indices) if from_end else indices:
            begin, end = self._free[index]
            if end - begin < size:
                continue
            at = end - size if from_end else begin
            rest = [(begin, at)] if from_end else [(at + size, end)]
            self._free[index : index + 1] = [part for part in rest if part[0] < part[1]]
            self._taken[at] = size
            self.used += size
            self.peak = max(self.peak, self.used)
            return at
        return None

    def release(self, at: int) -> None:
        """Free an extent returned by ``take``."""
        size = self._taken.pop(at)
        self.used -= size
        begin, end = at, at + size
        index = bisect(self._free, (begin, end))
        if index < len(self._free) and self._free[index][0] == end:
            end = self._free.pop(index)[1]
        if index > 0 and self._free[index - 1][1] == begin:
            index -= 1
            begin = self._free.pop(index)[0]
        self._free.insert(index, (begin, end))


def array_at(address: int, shape: int | tuple[int, ...], dtype: Any, owner: object) -> Any:
    """Memory that is there already as an array of the current GPU.

    Args:
        address: where it begins.
        shape: of the array.
        dtype: of the array.
        owner: what keeps the memory; lives as long as the array.
    """
    import cupy

    size = np.dtype(dtype).itemsize * (shape if isinstance(shape, int) else math.prod(shape))
    memory = cupy.cuda.UnownedMemory(address, size, owner, cupy.cuda.Device().id)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


class Arena:
    """A piece of the current GPU's memory, as an allocator of CuPy's; safe among threads.

    Args:
        size: bytes.
        memory: uint8[size], the piece; None takes it now.

    Raises:
        cupy.cuda.memory.OutOfMemoryError: the GPU does not have as much.
    """

    def __init__(self, size: int, memory: Any = None) -> None:
        import cupy

        self.size = size
        self._memory: Any = cupy.empty(size, dtype=cupy.uint8) if memory is None else memory
        self._base = int(self._memory.data.ptr)
        self._extents = Extents(size // ALIGNMENT * ALIGNMENT)
        self._lock = threading.Lock()
        # Arrays may end at any time, even while one is being made, and only leave a note here.
        self._ended: deque[int] = deque()
        self._lasting = False

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Make CuPy allocate this thread's new arrays from the arena."""
        import cupy

        allocator = cupy.cuda.PythonFunctionAllocator(self._take, self._give_back)
        before = getattr(_current, "arena", None)
        _current.arena = self
        try:
            with cupy.cuda.using_allocator(allocator.malloc):
                yield
        finally:
            _current.arena = before

    @property
    def room(self) -> int:
        """Bytes of the largest array that fits now."""
        with self._lock:
            self._settle()
            return self._extents.largest

    @property
    def peak(self) -> int:
        """The most bytes that were in use at a time."""
        return self._extents.peak

    def _settle(self) -> None:
        while self._ended:
            self._extents.release(self._ended.popleft())

    def _take(self, size: int, device: int) -> int:
        from cupy import cuda

        rounded = -(-size // ALIGNMENT) * ALIGNMENT
        with self._lock:
            self._settle()
            at = self._extents.take(rounded, from_end=not self._lasting)
        if at is None:
            raise cuda.memory.OutOfMemoryError(size, self._extents.used, self.size)
        return self._base + at

    def _give_back(self, pointer: int, device: int) -> None:
        # Where a failure's traceback holds both an arena and its arrays, the garbage collector
        # takes them apart in any order, and may empty the arena first.
        own = vars(self)
        if "_ended" in own:
            own["_ended"].append(pointer - own["_base"])


@contextlib.contextmanager
def persistent() -> Iterator[None]:
    """Arrays made inside persist until the run ends; no effect without an arena."""
    arena: Arena | None = getattr(_current, "arena", None)
    if arena is None:
        yield
        return
    before = arena._lasting
    arena._lasting = True
    try:
        yield
    finally:
        arena._lasting = before


def room() -> int | None:
    """Bytes of the largest array that fits into the arena in use; None without one."""
    arena: Arena | None = getattr(_current, "arena", None)
    return None if arena is None else arena.room
