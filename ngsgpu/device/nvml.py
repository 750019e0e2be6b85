"""The driver's library NVML, from which ``nvidia-smi`` has its numbers.

Loading it takes a fraction of the time of starting that program. It makes no CUDA context and does
not fix the GPUs visible to this process.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

LOST: Final = 15
"""Status of a GPU that has fallen off the bus."""

_LIBRARY: Final = "libnvidia-ml.so.1"
_NO_LIBRARY, _NO_FUNCTION = 12, 13
_TEXT_BYTES: Final = 96
"""The longest name, with its end; versions and UUIDs are shorter."""


class NvmlError(Exception):
    """A call failed.

    Attributes:
        status: as of nvml.h; a missing library or function has NVML's own status for that.
    """

    def __init__(self, function: str, status: int) -> None:
        super().__init__(f"{function}: status {status}")
        self.status = status


class MemoryUse(NamedTuple):
    """Memory of a GPU in bytes; what the driver reserves is neither free nor used."""

    total: int
    free: int
    used: int


class _Memory(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    )


class _OldMemory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class _Pci(ctypes.Structure):
    _fields_ = (
        ("legacy_address", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "kind", "subsystem")),
        ("address", ctypes.c_char * 32),
    )


_MEMORY_VERSION: Final = ctypes.sizeof(_Memory) | 2 << 24


class Nvml:
    """The library's functions; see ``opened``.

    Args:
        library: as loaded.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function that returns a status.

        Raises:
            NvmlError: it failed, or this driver does not have it.
        """
        known = getattr(self._library, function, None)
        status = _NO_FUNCTION if known is None else known(*arguments)
        if status != 0:
            raise NvmlError(function, status)

    def text(self, function: str, *arguments: Any) -> str:
        """The text that a function writes into a buffer."""
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self.call(function, *arguments, buffer, ctypes.c_uint(_TEXT_BYTES))
        return buffer.value.decode(errors="replace")

    def count(self) -> int:
        """Number of GPUs, lost ones included."""
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value

    def gpu(self, name: int | str) -> ctypes.c_void_p:
        """The handle of a GPU, by its number or UUID."""
        gpu = ctypes.c_void_p()
        if isinstance(name, str):
            self.call("nvmlDeviceGetHandleByUUID", name.encode(), ctypes.byref(gpu))
        else:
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(name), ctypes.byref(gpu))
        return gpu

    def memory(self, gpu: ctypes.c_void_p) -> MemoryUse:
        """Memory of a GPU; drivers before 510 count what they reserve as used."""
        memory: Any = _Memory(version=_MEMORY_VERSION)
        try:
            self.call("nvmlDeviceGetMemoryInfo_v2", gpu, ctypes.byref(memory))
        except NvmlError as error:
            if error.status != _NO_FUNCTION:
                raise
            memory = _OldMemory()
            self.call("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(memory))
        return MemoryUse(memory.total, memory.free, memory.used)

    def capability(self, gpu: ctypes.c_void_p) -> tuple[int, int]:
        """Compute capability of a GPU."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call(
            "nvmlDeviceGetCudaComputeCapability", gpu, ctypes.byref(major), ctypes.byref(minor)
        )
        return major.value, minor.value

    def pci(self, gpu: ctypes.c_void_p) -> str:
        """Bus address of a GPU, as ``00000000:1B:00.0``."""
        pci = _Pci()
        self.call("nvmlDeviceGetPciInfo_v3", gpu, ctypes.byref(pci))
        address: bytes = pci.address
        return address.decode(errors="replace")


@contextlib.contextmanager
def opened() -> Iterator[Nvml]:
    """NVML, initialised during the block.

    Raises:
        NvmlError: there is no such library, or the driver does not run.
    """
    try:
        nvml = Nvml(_load())
    except OSError as error:
        raise NvmlError(_LIBRARY, _NO_LIBRARY) from error
    nvml.call("nvmlInit_v2")
    try:
        yield nvml
    finally:
        with contextlib.suppress(NvmlError):
            nvml.call("nvmlShutdown")


def _load() -> Any:
    return ctypes.CDLL(_LIBRARY)
