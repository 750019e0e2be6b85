"""How much GPU memory is in use, and how busy GPUs are, asked of the driver's library."""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType
from typing import Self

SECONDS_BETWEEN = 0.01


class _Memory(ctypes.Structure):
    """The library's ``nvmlMemory_t``: bytes."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Utilization(ctypes.Structure):
    """The library's ``nvmlUtilization_t``: percent of the last sample period."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Driver:
    """NVIDIA's management library, as far as it is needed here.

    Raises:
        OSError: it is not there, or does not answer.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._call("nvmlInit_v2")
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self._gpus = [ctypes.c_void_p() for _ in range(count.value)]
        for index, gpu in enumerate(self._gpus):
            self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(gpu))

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name}: status {status}")

    def used_bytes(self) -> int:
        """Bytes in use of all GPUs, by whomever."""
        used = 0
        for gpu in self._gpus:
            memory = _Memory()
            self._call("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(memory))
            used += int(memory.used)
        return used

    def busy_percent(self) -> list[int]:
        """Of each GPU, percent of the last moments in which a kernel ran."""
        found = []
        for gpu in self._gpus:
            utilization = _Utilization()
            self._call("nvmlDeviceGetUtilizationRates", gpu, ctypes.byref(utilization))
            found.append(int(utilization.gpu))
        return found


class DeviceMemory:
    """Watches the memory of all GPUs inside a ``with`` block.

    What others take meanwhile counts too: measure on a machine that nobody else uses. CUDA's own
    share, some hundred megabytes a process and GPU, is in it for every program.

    Attributes:
        peak_bytes: most in use at a time beyond what was in use before; None without a driver.
    """

    def __init__(self, driver: Driver | None) -> None:
        self.peak_bytes: int | None = None
        self._driver = driver
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._driver is not None:
            self.peak_bytes = 0
            begin = self._driver.used_bytes()
            self._thread = threading.Thread(target=self._watch, args=(self._driver, begin))
            self._thread.start()
        return self

    def _watch(self, driver: Driver, begin: int) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes or 0, driver.used_bytes() - begin)
            if self._stop.wait(SECONDS_BETWEEN):
                return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()


def find_driver() -> Driver | None:
    """The driver's library; None where there is none."""
    try:
        return Driver()
    except (OSError, AttributeError):
        return None
