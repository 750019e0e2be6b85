"""Memory of the current GPU: how much a run may take, and page-locked host memory to feed it from.

What a run needs is computed before it is taken, and compared with a budget: what ``--gpu-memory``
says, or what is free. Copies between the GPU and ordinary host memory run at a fifth of the speed
of those with page-locked memory, which takes long to get; hence a pool of it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import format_size
from ngsgpu.errors import DeviceError

# For what CUDA takes by itself when kernels are loaded and launched, and for fragmentation.
_RESERVE = 512 << 20


@dataclass(frozen=True)
class GpuMemory:
    """Memory of a GPU in bytes.

    Attributes:
        total: in all.
        free: that this process can still have, what CuPy keeps for it included.
        budget: that this run may take.
    """

    total: int
    free: int
    budget: int

    def require(self, needed: int, what: str) -> None:
        """Refuse what does not fit.

        Args:
            needed: bytes.
            what: that need them, as ``the minhash tables``.

        Raises:
            DeviceError: the budget is smaller; the message names both.
        """
        if needed > self.budget:
            raise DeviceError(
                f"{what} need {format_size(needed)} of GPU memory and {format_size(self.budget)} "
                f"may be used ({format_size(self.free)} of {format_size(self.total)} are free); "
                "use a GPU with more memory, raise --gpu-memory, or use --backend cpu"
            )


def gpu_memory(limit: int | None = None) -> GpuMemory:
    """Ask the current GPU for its memory.

    Args:
        limit: the most that the run may take, in bytes (``--gpu-memory``); None takes what is free
            less a reserve for CUDA itself.

    Raises:
        DeviceError: CUDA does not answer.
    """
    with cuda_errors("asking the GPU for its memory"):
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        # Freed arrays stay with CuPy, from where new ones are made.
        free += cupy.get_default_memory_pool().free_bytes()
    usable = max(0, free - _RESERVE)
    return GpuMemory(total, free, usable if limit is None else min(limit, usable))


@contextlib.contextmanager
def limited_gpu_memory(limit: int | None) -> Iterator[None]:
    """Keep CuPy's arrays on the current GPU below a limit inside of the block.

    Args:
        limit: bytes; None changes nothing.

    Raises:
        DeviceError: the arrays do not fit into the limit, or into the GPU.
    """
    with cuda_errors("computing on the GPU"):
        if limit is None:
            yield
            return
        import cupy

        pool = cupy.get_default_memory_pool()
        before = pool.get_limit()
        # What others freed counts as taken, so give it back.
        pool.free_all_blocks()
        pool.set_limit(size=limit)
        try:
            yield
        finally:
            pool.set_limit(size=before)


class PinnedPool:
    """Page-locked host buffers of one size, used again and again; safe among threads.

    Buffers are made when first needed. Give one back only after the copies from or to it have
    ended: nothing here waits for the GPU.

    Args:
        size: bytes of a buffer.
        count: the most buffers there are; whoever asks for more waits.
    """

    def __init__(self, size: int, count: int) -> None:
        self.size = size
        self._left = threading.Semaphore(count)
        self._lock = threading.Lock()
        self._free: list[NDArray[np.uint8]] = []

    def take(self) -> NDArray[np.uint8]:
        """A buffer, uint8[size], of undefined content; waits until there is one.

        Raises:
            DeviceError: the system does not give so much page-locked memory.
        """
        self._left.acquire()
        with self._lock:
            if self._free:
                return self._free.pop()
        try:
            return pinned_empty(self.size)
        except BaseException:
            self._left.release()
            raise

    def give_back(self, buffer: NDArray[np.uint8]) -> None:
        """Let others have a buffer that ``take`` gave."""
        if buffer.nbytes != self.size:
            raise ValueError(f"a buffer of {buffer.nbytes} bytes is not from this pool")
        with self._lock:
            self._free.append(buffer)
        self._left.release()

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[NDArray[np.uint8]]:
        """A buffer for the block."""
        buffer = self.take()
        try:
            yield buffer
        finally:
            self.give_back(buffer)


def pinned_empty(size: int) -> NDArray[np.uint8]:
    """Page-locked host memory, uint8[size], of undefined content; freed with the array.

    Raises:
        DeviceError: the system does not give so much.
    """
    import cupy

    try:
        memory: Any = cupy.cuda.alloc_pinned_memory(size)
    except (cupy.cuda.runtime.CUDARuntimeError, MemoryError) as error:
        raise DeviceError(
            f"{format_size(size)} of page-locked host memory cannot be had ({error}); close other "
            "programs, or raise the memory limit of the container or batch job"
        ) from error
    # CuPy rounds sizes up.
    return np.frombuffer(memory, dtype=np.uint8, count=size)
