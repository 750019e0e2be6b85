"""Pinned host memory, for fast copies to and from the GPU and for reading by kernels.

Copies between the GPU and pageable host memory run at a fifth of the speed of those with pinned
memory, which is slow to allocate; hence a pool of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ngsgpu.device.arena import array_at
from ngsgpu.device.memory import format_size, usable_cpus
from ngsgpu.errors import DeviceError, DeviceMemoryError
from ngsgpu.pool import map_all

_SMALL_PAGE: Final = 4 << 10
_LARGE_PAGE: Final = 2 << 20
_TOUCHED: Final = 8 << 20
_FOR_ALL_CONTEXTS: Final = 1  # cudaHostRegisterPortable
_HOST_TO_DEVICE: Final = 1

_PIECE: Final = 4 << 20
_MANY_PIECES: Final = 16
"""With fewer, preparing to copy them takes longer than that saves."""
_COPYING_THREADS: Final = 8


class PinnedPool:
    """Pinned host buffers of one size, used repeatedly; thread-safe.

    Release a buffer only after the copies from or to it have finished: the pool does not wait for
    the GPU.

    Args:
        size: bytes per buffer.
        count: maximum number of buffers; further requests wait.
        threads: allocate all buffers now, in one piece, which takes a tenth of the time; None
            allocates each on first use.
    """

    def __init__(self, size: int, count: int, threads: Executor | None = None) -> None:
        self.size = size
        self.count = count
        self._left = threading.Semaphore(count)
        self._lock = threading.Lock()
        self._free: list[NDArray[np.uint8]] = []
        if threads is not None:
            memory = registered_empty(size * count, threads)
            self._free = [memory[at : at + size] for at in range(0, size * count, size)]

    def take(self) -> NDArray[np.uint8]:
        """Return an uninitialised buffer, uint8[size]; waits until one is free.

        Raises:
            DeviceError: could not allocate pinned memory.
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
        """Return a buffer from ``take`` to the pool."""
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


class ReusedMemory:
    """Pinned host memory that is used again once no array refers to it; thread-safe.

    Registering it with CUDA takes longer than filling it, and everything else on the GPU waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[int, list[NDArray[np.uint8]]] = {}

    def empty(self, size: int) -> NDArray[np.uint8]:
        """Uninitialised pinned memory, uint8[size].

        Sizes are rounded up to powers of two, so that it serves arrays of similar sizes.

        Raises:
            DeviceError: could not allocate pinned memory.
        """
        room = max(_LARGE_PAGE, 1 << max(0, size - 1).bit_length())
        with self._lock:
            free = self._free.setdefault(room, [])
            memory = free.pop() if free else None
        if memory is None:
            memory = pinned_empty(room)
        lent = _Registered(memory[:size])
        weakref.finalize(lent, free.append, memory).atexit = False
        return np.asarray(lent)


def registered_empty(size: int, pool: Executor | None = None) -> NDArray[np.uint8]:
    """Pinned host memory in huge pages, uint8[size], zeroed; freed with the array.

    CUDA's own pinned memory uses small pages, which takes several times as long to allocate.

    Args:
        size: bytes.
        pool: threads that touch the pages.

    Raises:
        DeviceError: could not allocate pinned memory.
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
    """Pinned memory as what NumPy makes arrays of, which then keep this object."""

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
    """An uninitialised CuPy array in pinned host memory; freed with the array.

    Kernels access it like any other, over the bus. It uses no GPU memory.

    Raises:
        DeviceError: could not allocate pinned memory.
    """
    import cupy

    kind = np.dtype(dtype)
    size = (shape if isinstance(shape, int) else math.prod(shape)) * kind.itemsize
    if size >= _MANY_PIECES * _PIECE:
        with ThreadPoolExecutor(min(_COPYING_THREADS, usable_cpus())) as pool:
            pages = registered_empty(size, pool)
        address = pages.ctypes.data
        # Where kernels need another address, CUDA's own memory has the same for both.
        if cupy.cuda.runtime.pointerGetAttributes(address).devicePointer == address:
            return array_at(address, shape, kind, pages)
        del pages
    try:
        # Not from CuPy's pool, which rounds up to powers of two.
        memory = cupy.cuda.PinnedMemory(size)
    except (cupy.cuda.runtime.CUDARuntimeError, MemoryError) as error:
        raise _pinned_error(size, error) from error
    return array_at(memory.ptr, shape, kind, memory)


def mapped_zeros(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """As ``mapped_empty``, but with zeros.

    Raises:
        DeviceError: could not allocate pinned memory.
    """
    array = mapped_empty(shape, dtype)
    # The pages of large arrays are new ones.
    if array.nbytes < _MANY_PIECES * _PIECE:
        ctypes.memset(array.data.ptr, 0, array.nbytes)
    return array


def mapped_copy(array: Any) -> Any:
    """Copy a NumPy array, or one on the GPU, to pinned host memory, as a CuPy array.

    Raises:
        DeviceError: could not allocate pinned memory.
    """
    import cupy

    mapped = mapped_empty(array.shape, array.dtype)
    if array.nbytes == 0:
        return mapped
    if isinstance(array, np.ndarray):
        raw = (ctypes.c_uint8 * array.nbytes).from_address(mapped.data.ptr)
        np.frombuffer(memoryview(raw), dtype=array.dtype).reshape(array.shape)[...] = array
    else:
        # A plain copy would not wait for a stream that does not block the default one.
        stream = cupy.cuda.get_current_stream()
        mapped.data.copy_from_device_async(array.data, array.nbytes, stream)
        stream.synchronize()
    return mapped


def pinned_empty(size: int) -> NDArray[np.uint8]:
    """Uninitialised pinned host memory, uint8[size]; freed with the array.

    Thread-safe: most of the time is spent on touching the pages.

    Raises:
        DeviceError: could not allocate pinned memory.
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
        f"could not allocate {format_size(size)} of pinned host memory ({error}); close other "
        "programs, or raise the memory limit of the container or batch job"
    )


def to_device(array: NDArray[Any]) -> Any:
    """Copy an array to the device directly from its memory, even from a mapped file.

    CuPy would copy it to pinned memory first, which takes longer to allocate than to fill. Large
    arrays are copied in pieces by several threads through a little of it: one thread that reads
    pages for the first time is slower than the bus.
    """
    import cupy

    there = cupy.empty(array.shape, dtype=array.dtype)
    array = np.ascontiguousarray(array)
    if array.nbytes >= _MANY_PIECES * _PIECE:
        _copy_pieces(array.reshape(-1).view(np.uint8), there.data.ptr)
    elif array.size > 0:
        cupy.cuda.runtime.memcpy(there.data.ptr, array.ctypes.data, array.nbytes, _HOST_TO_DEVICE)
    return there


_COPIES: Final = ReusedMemory()
"""What pieces pass through."""


def _copy_pieces(source: NDArray[np.uint8], target: int) -> None:
    """Copy bytes to an address on the device, where the current stream may still be at work."""
    from cupy import cuda

    threads = min(_COPYING_THREADS, usable_cpus())
    device = cuda.runtime.getDevice()
    ready = cuda.Event(disable_timing=True)
    ready.record(cuda.get_current_stream())
    starts = iter(range(0, source.nbytes, _PIECE))

    def copy(buffer: NDArray[np.uint8]) -> None:
        with cuda.Device(device):
            stream = cuda.Stream(non_blocking=True)
            stream.wait_event(ready)
            while (start := next(starts, None)) is not None:
                piece = source[start : start + _PIECE]
                buffer[: piece.size] = piece
                cuda.runtime.memcpyAsync(
                    target + start, buffer.ctypes.data, piece.size, _HOST_TO_DEVICE, stream.ptr
                )
                stream.synchronize()

    memory = _COPIES.empty(threads * _PIECE).reshape(threads, _PIECE)
    map_all(threads, copy, memory, name="copy")


def to_host(array: Any) -> NDArray[Any]:
    """Copy an array from the device, through pinned memory."""
    host = empty_pinned(array.shape, array.dtype)
    if array.size > 0:
        array.get(out=host)
    return host


def empty_pinned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array in CuPy's pool of pinned memory.

    As that of ``cupyx``, which imports SciPy where it is installed, and with it half a second of
    others.
    """
    import cupy

    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory: Any = cupy.cuda.alloc_pinned_memory(max(1, size))
    return np.ndarray(shape, dtype, buffer=memory)
