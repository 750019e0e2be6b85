"""What a machine does while something runs, once a second: cores, GPUs, memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.harness.measuring import driver

SECONDS: Final = 1.0

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Timeline:
    """Samples the machine inside a ``with`` block.

    Attributes:
        rows: name to a number each second, those of ``compact``.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        before = _cores()
        free = _available_bytes()
        while not self._stop.wait(SECONDS):
            now = _cores()
            self._add("user cores", (now[0] - before[0]) / SECONDS)
            self._add("system cores", (now[1] - before[1]) / SECONDS)
            self._add("host GB", (free - _available_bytes()) / 1e9)
            before = now
            library = driver()
            if library is not None:
                self._add("GPU GB", library.used_bytes() / 1e9)
                for gpu, percent in enumerate(library.busy_percent()):
                    self._add(f"GPU {gpu} busy %", percent)

    def _add(self, name: str, value: float) -> None:
        self.rows.setdefault(name, []).append(value)

    def compact(self) -> dict[str, str]:
        """Each row as whole numbers in one text."""
        return {name: " ".join(f"{value:.0f}" for value in row) for name, row in self.rows.items()}


def _cores() -> tuple[float, float]:
    """CPU seconds of programs and of the kernel since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, interrupts, soft_interrupts, _ = map(int, fields)
    return (user + nice) / _TICKS, (system + interrupts + soft_interrupts) / _TICKS


def _available_bytes() -> int:
    """Memory that programs can still get; files in tmpfs take of it."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 0
