"""Memory of the current GPU: how much a run may take, and page-locked host memory to feed it from.

What a run needs is computed before it is taken, and compared with a budget: what ``--gpu-memory``
says, or what is free. Copies between the GPU and ordinary host memory run at a fifth of the speed
of those with page-locked memory, which takes long to get; hence a pool of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import mmap
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import format_size
from ngsgpu.errors import DeviceError, DeviceMemoryError

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")

# For what CUDA takes by itself when kernels are loaded and launched, and for fragmentation.
_RESERVE = 512 << 20
_SMALL_PAGE = 4 << 10
_LARGE_PAGE = 2 << 20
_TOUCHED = 8 << 20
_FOR_ALL_CONTEXTS = 1  # cudaHostRegisterPortable


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
            raise DeviceMemoryError(
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


def each_gpu(count: int) -> Iterator[int]:
    """Make each GPU of a run the current one in turn: the one that is, and those after it.

    Args:
        count: how many GPUs.

    Yields:
        Their places, from 0.
    """
    yield 0
    if count > 1:
        from cupy import cuda

        first = cuda.runtime.getDevice()
        for place in range(1, count):
            with cuda.Device(first + place):
                yield place


@contextlib.contextmanager
def limited_gpu_memory(limit: int | None, gpus: int = 1) -> Iterator[None]:
    """Keep CuPy's arrays on each GPU of a run below a limit inside of the block.

    Args:
        limit: bytes of each; None changes nothing.
        gpus: how many GPUs, the current one and those after it.

    Raises:
        DeviceError: the arrays do not fit into the limit, or into the GPU.
    """
    with cuda_errors("computing on the GPU"):
        from cupy import cuda

        # Where CUDA does not work at all, that is better said here than by half-made objects.
        cuda.runtime.getDevice()
        if limit is None:
            yield
            return
        before = [limit_pool(limit) for _ in each_gpu(gpus)]
        try:
            yield
        finally:
            # CUDA may be of no use any more, which another error says.
            with contextlib.suppress(cuda.runtime.CUDARuntimeError):
                for place in each_gpu(gpus):
                    limit_pool(before[place])


def limit_pool(limit: int) -> int:
    """Limit what CuPy's pool takes of the current GPU.

    Args:
        limit: bytes; 0 for no limit.

    Returns:
        The limit before.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    before: int = pool.get_limit()
    if limit:
        # What others freed counts as taken, so give it back.
        pool.free_all_blocks()
    pool.set_limit(size=limit)
    return before


def free_unused() -> None:
    """Give back to the GPU what CuPy's pool keeps of arrays that are gone."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def largest_array_bytes(limit: int | None, there: int = 0) -> int:
    """Bytes of the current GPU's memory that one array can have, or a few.

    Args:
        limit: the most that the run may take, in bytes; None for no limit.
        there: bytes of arrays that the run has already, which count.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    # What the pool keeps between other arrays is of no use for a large one.
    budget = gpu_memory().budget - int(pool.free_bytes())
    if limit is not None:
        others = max(0, int(pool.total_bytes()) - there)
        budget = min(budget, limit - there - others)
    return max(0, budget)


def retry_with_less(
    attempt: Callable[[bool], _Result],
    doing: str,
    *,
    needed: Callable[[], int],
    free: Callable[[], None] = free_unused,
) -> _Result:
    """Do what takes GPU memory; where that runs out, once more with less.

    Args:
        attempt: does it; called with False, and where the memory ran out once more with True,
            when it has to take less. A failed attempt leaves nothing behind.
        doing: what is being done, a phrase for messages.
        needed: bytes that the last attempt wanted in all.
        free: gives back what can be given back, between the attempts.

    Raises:
        DeviceError: the memory did not suffice the second time either.
    """
    try:
        return attempt(False)
    except MemoryError as error:
        # As text, for the error refers to the arrays of the failed attempt.
        _LOG.warning("%s: GPU memory ran out (%s); going on with less", doing, str(error))
    # Only now are the frames of the failed attempt gone, and its arrays with them.
    free()
    try:
        return attempt(True)
    except MemoryError as error:
        raise out_of_memory(doing, needed(), error) from error


def out_of_memory(doing: str, needed: int, error: MemoryError) -> DeviceError:
    """The error of memory that ran out although less was taken the second time.

    Args:
        doing: what was being done, a phrase.
        needed: bytes that it takes in all.
        error: what CuPy said.
    """
    there = ""
    with contextlib.suppress(DeviceError):
        now = gpu_memory()
        there = f" and {format_size(now.free)} of {format_size(now.total)} are free"
    return DeviceMemoryError(
        f"{doing}: not enough GPU memory, although less was taken the second time: "
        f"{format_size(needed)} are needed{there} ({error}); use a GPU that is free, give "
        "--gpu-memory a smaller size, or use --backend cpu"
    )


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
        self.count = count
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

    def release(self, buffer: NDArray[np.uint8]) -> None:
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
            self.release(buffer)


class PinnedBuffers(PinnedPool):
    """A pool whose buffers are all there from the beginning, in one piece of large pages.

    That takes a tenth of the time of getting them one by one.

    Args:
        size: bytes of a buffer.
        count: how many there are.
        pool: threads that help to get them.
    """

    def __init__(self, size: int, count: int, pool: Executor | None = None) -> None:
        super().__init__(size, count)
        memory = registered_empty(size * count, pool)
        self._free = [memory[at : at + size] for at in range(0, size * count, size)]


def registered_empty(size: int, pool: Executor | None = None) -> NDArray[np.uint8]:
    """Page-locked host memory in large pages, uint8[size], of zeros; freed with the array.

    CUDA's own page-locked memory is of small pages, which takes several times as long to get.

    Args:
        size: bytes.
        pool: threads that help to get the pages from the system.

    Raises:
        DeviceError: the system does not give so much page-locked memory.
    """
    from cupy import cuda

    pages = mmap.mmap(-1, size + _LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError, AttributeError):
        pages.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(pages, dtype=np.uint8)
    memory = whole[-whole.ctypes.data % _LARGE_PAGE :][:size]
    parts = [memory[at : at + _TOUCHED : _SMALL_PAGE] for at in range(0, size, _TOUCHED)]
    for _ in (pool.map if pool is not None else map)(_touch, parts):
        pass
    address = memory.ctypes.data
    try:
        cuda.runtime.hostRegister(address, size, _FOR_ALL_CONTEXTS)
    except (cuda.runtime.CUDARuntimeError, MemoryError) as error:
        raise _pinned_error(size, error) from error
    owner = _Registered(memory)
    weakref.finalize(owner, _unregister, address, pages).atexit = False
    return np.asarray(owner)


class _Registered:
    """Page-locked memory as what NumPy makes arrays of, which then keep it."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self.__array_interface__ = memory.__array_interface__


def _unregister(address: int, pages: mmap.mmap) -> None:
    from cupy import cuda

    with contextlib.suppress(cuda.runtime.CUDARuntimeError):
        cuda.runtime.hostUnregister(address)
    del pages


def _touch(pages: NDArray[np.uint8]) -> None:
    pages[:] = 0


def mapped_empty(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """A CuPy array in page-locked host memory, of undefined content; freed with the array.

    Kernels read and write it as any other, over the bus. It takes no GPU memory.

    Raises:
        DeviceError: the system does not give so much.
    """
    import cupy

    kind = np.dtype(dtype)
    size = (shape if isinstance(shape, int) else math.prod(shape)) * kind.itemsize
    try:
        # Not from CuPy's pool, which rounds up to powers of two.
        memory = cupy.cuda.PinnedMemory(size)
    except (cupy.cuda.runtime.CUDARuntimeError, MemoryError) as error:
        raise _pinned_error(size, error) from error
    device = cupy.cuda.runtime.getDevice()
    here = cupy.cuda.UnownedMemory(memory.ptr, size, memory, device)
    return cupy.ndarray(shape, dtype=kind, memptr=cupy.cuda.MemoryPointer(here, 0))


def mapped_copy(array: Any) -> Any:
    """Copy an array of NumPy's, or one on the GPU, to page-locked host memory, as a CuPy array.

    Raises:
        DeviceError: the system does not give so much.
    """
    mapped = mapped_empty(array.shape, array.dtype)
    if array.nbytes == 0:
        return mapped
    if isinstance(array, np.ndarray):
        raw = (ctypes.c_uint8 * array.nbytes).from_address(mapped.data.ptr)
        np.frombuffer(memoryview(raw), dtype=array.dtype).reshape(array.shape)[...] = array
    else:
        mapped.data.copy_from_device(array.data, array.nbytes)
    return mapped


def pinned_empty(size: int) -> NDArray[np.uint8]:
    """Page-locked host memory, uint8[size], of undefined content; freed with the array.

    Several threads may ask at once: most of the time is spent on touching the pages.

    Raises:
        DeviceError: the system does not give so much.
    """
    import cupy

    if size >= _LARGE_PAGE:
        return registered_empty(size)
    try:
        memory: Any = cupy.cuda.alloc_pinned_memory(size)
    except (cupy.cuda.runtime.CUDARuntimeError, MemoryError) as error:
        raise _pinned_error(size, error) from error
    # CuPy rounds sizes up.
    return np.frombuffer(memory, dtype=np.uint8, count=size)


def _pinned_error(size: int, error: BaseException) -> DeviceError:
    return DeviceMemoryError(
        f"{format_size(size)} of page-locked host memory cannot be had ({error}); close other "
        "programs, or raise the memory limit of the container or batch job"
    )
