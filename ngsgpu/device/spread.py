"""Memory that is divided over GPUs, all of which read and write it as one.

CUDA's virtual memory: a range of addresses is reserved, stripes of it lie on one GPU after the
other, and all may access them. Kernels find an array as in their own GPU's memory; what of it lies
on others comes over NVLink (CUDA driver API, virtual memory management).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, Final

from ngsgpu.device.arena import Arena, array_at
from ngsgpu.device.memory import format_size
from ngsgpu.errors import DeviceError

_LIBRARY: Final = "libcuda.so.1"
_VIRTUAL_MEMORY: Final = 102  # CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
_ACCESS: Final = 2  # CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
_ATOMICS: Final = 3  # CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED; NVLink has them, PCIe not
_PINNED: Final = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_ON_DEVICE: Final = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE: Final = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_OUT_OF_MEMORY: Final = 2  # CUDA_ERROR_OUT_OF_MEMORY

_LARGEST_PAGE: Final = 2 << 20
_GROWING_STRIPE: Final = 64 << 20
_STRIPES: Final = 64
"""Stripes on each GPU: enough that every large array lies on all of them evenly."""


class _Properties(ctypes.Structure):
    """``CUmemAllocationProp``."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("flags", ctypes.c_uint8 * 8),
    )


class _Access(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (
        ("location_type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("flags", ctypes.c_int),
    )


def stripe_bytes(size: int, gpus: int) -> int:
    """Bytes of a stripe of memory of a size that is divided over several GPUs."""
    stripe = -(-size // (gpus * _STRIPES))
    return max(1, -(-stripe // _LARGEST_PAGE)) * _LARGEST_PAGE


def share_bytes(size: int, gpus: int) -> int:
    """The largest share of one GPU in memory that is divided over several."""
    stripe = stripe_bytes(size, gpus)
    stripes = -(-size // stripe)
    return -(-stripes // gpus) * stripe


def can_spread(devices: Sequence[int]) -> bool:
    """Whether several GPUs can have memory in common, and are linked well enough for it.

    Args:
        devices: their numbers.
    """
    if len(devices) < 2:
        return False
    try:
        cuda = _cuda()
    except OSError:
        return False
    # Whoever asks may be the first to use CUDA.
    if cuda.cuInit(0) != 0:
        return False
    value = ctypes.c_int()

    def has(attribute: int, device: int) -> bool:
        return cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) == 0 and bool(
            value.value
        )

    def linked(attribute: int, one: int, other: int) -> bool:
        status = cuda.cuDeviceGetP2PAttribute(ctypes.byref(value), attribute, one, other)
        return status == 0 and bool(value.value)

    return all(has(_VIRTUAL_MEMORY, device) for device in devices) and all(
        linked(attribute, *pair)
        for attribute in (_ACCESS, _ATOMICS)
        for pair in itertools.permutations(devices, 2)
    )


class SpreadMemory:
    """Memory in stripes on several GPUs, one after the other; freed when it is not referred to.

    Args:
        size: bytes.
        devices: numbers of the GPUs, which ``can_spread``, or of one.
        most: bytes that it may have later; its stripes are small then.

    Attributes:
        ptr: its address, the same on all of them.

    Raises:
        MemoryError: a GPU does not have as much.
        DeviceError: CUDA fails.
    """

    def __init__(self, size: int, devices: Sequence[int], most: int = 0) -> None:
        self._cuda = _cuda()
        self._devices = tuple(devices)
        self._stripe = _GROWING_STRIPE if most else stripe_bytes(size, len(devices))
        self._mapped = 0
        self._reserved = -(-max(size, most) // self._stripe) * self._stripe
        self.ptr = 0
        address = ctypes.c_uint64()
        try:
            self._call(
                "cuMemAddressReserve",
                ctypes.byref(address), ctypes.c_size_t(self._reserved), ctypes.c_size_t(0),
                ctypes.c_uint64(0), ctypes.c_uint64(0),
            )  # fmt: skip
            self.ptr = int(address.value)
            self.grow(size)
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes that it has now."""
        return self._mapped * self._stripe

    def grow(self, size: int) -> None:
        """Map more memory behind what is there.

        Args:
            size: bytes that it has at least afterwards; at most those reserved.

        Raises:
            MemoryError: a GPU does not have as much.
            DeviceError: CUDA fails.
        """
        first = self._mapped
        try:
            for number in range(first, -(-size // self._stripe)):
                self._map(number)
        finally:
            if self._mapped > first:
                self._allow(first)

    def _map(self, number: int) -> None:
        """Give a stripe memory of its GPU."""
        own = _Properties(
            type=_PINNED, location_type=_ON_DEVICE,
            device=self._devices[number % len(self._devices)],
        )  # fmt: skip
        handle = ctypes.c_uint64()
        self._call(
            "cuMemCreate",
            ctypes.byref(handle), ctypes.c_size_t(self._stripe), ctypes.byref(own),
            ctypes.c_uint64(0),
        )  # fmt: skip
        try:
            self._call(
                "cuMemMap",
                ctypes.c_uint64(self.ptr + number * self._stripe), ctypes.c_size_t(self._stripe),
                ctypes.c_size_t(0), handle, ctypes.c_uint64(0),
            )  # fmt: skip
            self._mapped += 1
        finally:
            # The memory lasts as long as it is mapped.
            self._call("cuMemRelease", handle)

    def _allow(self, first: int) -> None:
        """Let all GPUs read and write the stripes from a number on."""
        devices = sorted(set(self._devices))
        access = (_Access * len(devices))(
            *(_Access(_ON_DEVICE, device, _READ_WRITE) for device in devices)
        )
        self._call(
            "cuMemSetAccess",
            ctypes.c_uint64(self.ptr + first * self._stripe),
            ctypes.c_size_t((self._mapped - first) * self._stripe), access,
            ctypes.c_size_t(len(access)),
        )  # fmt: skip

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status == _OUT_OF_MEMORY:
            raise MemoryError(f"{format_size(self._reserved)} on {len(self._devices)} GPUs")
        if status != 0:
            raise DeviceError(f"memory in common of several GPUs: {name}: CUDA's error {status}")

    def close(self) -> None:
        """Free the memory."""
        address, self.ptr = self.ptr, 0
        if not address:
            return
        self._wait()
        for number in range(self._mapped):
            self._cuda.cuMemUnmap(
                ctypes.c_uint64(address + number * self._stripe), ctypes.c_size_t(self._stripe)
            )
        self._cuda.cuMemAddressFree(ctypes.c_uint64(address), ctypes.c_size_t(self._reserved))

    def _wait(self) -> None:
        """Wait for all work on the GPUs: unlike CUDA's freeing, unmapping does not."""
        import cupy

        for device in set(self._devices):
            with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
                cupy.cuda.Device(device).synchronize()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at exit, parts of Python are gone
            self.close()


def seen_from_here(array: Any) -> Any:
    """An array in such memory, or in pinned host memory, as one of the current GPU."""
    return array_at(array.data.ptr, array.shape, array.dtype, array)


def spread_arena(size: int, devices: Sequence[int]) -> Arena:
    """An arena in memory that is divided over GPUs.

    Args:
        size: bytes that arrays are going to take.
        devices: numbers of the GPUs, which ``can_spread``.

    Raises:
        MemoryError: a GPU does not have as much.
        DeviceError: CUDA fails.
    """
    memory = SpreadMemory(size, devices)
    return Arena(memory.size, array_at(memory.ptr, memory.size, "uint8", memory))


def _cuda() -> ctypes.CDLL:
    return ctypes.CDLL(_LIBRARY)
