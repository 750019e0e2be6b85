"""How busy GPUs are and how much of their memory is in use, sampled while they are leased.

The samples are the driver's own (NVML, as shown by ``nvidia-smi``) and need no CUDA context. They
are of the whole GPU: with a lease that is the leasing process and what it started.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_LIBRARY: Final = "libnvidia-ml.so.1"
_INTERVAL_SECONDS: Final = 0.2


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    )


_MEMORY_VERSION: Final = ctypes.sizeof(_Memory) | 2 << 24


@dataclass
class Use:
    """The use of a GPU; None: the driver does not report it.

    Attributes:
        busy_seconds: time in which at least one kernel ran.
        peak_bytes: most memory in use, CUDA's own included.
    """

    busy_seconds: float | None = None
    peak_bytes: int | None = None


class Meter:
    """Samples GPUs in the background, from ``start`` until ``stop``.

    Args:
        uuids: of the GPUs.
    """

    def __init__(self, uuids: Sequence[str]) -> None:
        self._uses = {uuid: Use() for uuid in uuids}
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start sampling; without the driver's library, nothing is reported."""
        threading.Thread(target=self._sample, name="ngsgpu-meter", daemon=True).start()

    def stop(self) -> None:
        """Take no more samples."""
        self._stopped.set()

    def use(self, uuid: str) -> Use:
        """The use of a GPU until now."""
        return self._uses[uuid]

    def _sample(self) -> None:
        before = time.monotonic()
        # The command itself makes CUDA ready first.
        if self._stopped.wait(_INTERVAL_SECONDS):
            return
        with contextlib.suppress(OSError, AttributeError):
            library = _load()
            if library.nvmlInit_v2() != 0:
                return
            while not self._stopped.wait(_INTERVAL_SECONDS):
                now = time.monotonic()
                for uuid, use in self._uses.items():
                    _add_sample(library, uuid, use, now - before)
                before = now
            library.nvmlShutdown()


def _load() -> Any:
    return ctypes.CDLL(_LIBRARY)


def _add_sample(library: Any, uuid: str, use: Use, seconds: float) -> None:
    gpu, share = ctypes.c_void_p(), _Utilization()
    memory = _Memory(version=_MEMORY_VERSION)
    if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(gpu)) != 0:
        return
    # Slices of a GPU have no utilisation.
    if library.nvmlDeviceGetUtilizationRates(gpu, ctypes.byref(share)) == 0:
        use.busy_seconds = (use.busy_seconds or 0.0) + seconds * share.gpu / 100
    if library.nvmlDeviceGetMemoryInfo_v2(gpu, ctypes.byref(memory)) == 0:
        use.peak_bytes = max(use.peak_bytes or 0, memory.used)
