"""GPUs that can be leased, and what became of a lease: how long it was waited for, held, busy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ngsgpu.declared.numbers import is_digits
from ngsgpu.device.gpus import Gpu
from ngsgpu.device.memory import format_size
from ngsgpu.device.meter import Meter


@dataclass(frozen=True)
class Device:
    """A GPU, or a slice of one, that can be leased.

    Attributes:
        entry: its entry in ``CUDA_VISIBLE_DEVICES``: a number, ``GPU-...`` or ``MIG-...``, as spelt
            by the caller.
        uuid: identifier independent of the spelling; a slice has its own.
        gpu: what the driver knows about it, or about the GPU it is a slice of; None without driver.
    """

    entry: str
    uuid: str
    gpu: Gpu | None

    def __str__(self) -> str:
        label = f"GPU {self.entry}" if is_digits(self.entry) else self.entry
        known = [self.gpu.name] if self.gpu else []
        if self.uuid != self.entry:
            known.append(self.uuid)
        return f"{label} ({', '.join(known)})" if known else label


def utc(seconds: float) -> str:
    """A time since the epoch as ISO 8601 in UTC, to the millisecond.

    >>> utc(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass
class LeaseRecord:
    """Times of a lease and the use of its GPUs.

    Attributes:
        devices: all GPUs of the lease, those given back early included.
        waited: seconds between asking for them and getting them.
        name: identifies the lease among those of all machines.
    """

    devices: Sequence[Device]
    waited: float
    name: str
    _ended: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = time.monotonic()
        self._taken_utc = time.time()
        self._meter = Meter([device.uuid for device in self.devices])
        if any(device.gpu for device in self.devices):
            self._meter.start()

    def give_back(self, devices: Sequence[Device]) -> str:
        """Note that GPUs are given back now; returns what became of them, for the log."""
        for device in devices:
            self._ended.setdefault(device.uuid, self._seconds())
        if len(self._ended) == len(self.devices):
            self._meter.stop()
        return ", ".join(f"{device} after {self._words(device)}" for device in devices)

    def entry(self) -> dict[str, Any]:
        """The lease until now, for the statistics of a run; see docs/formats.md."""
        return {
            "lease": self.name,
            "asked": utc(self._taken_utc - self.waited),
            "waited_s": round(self.waited, 3),
            "gpus": [self._gpu(device) for device in self.devices],
        }

    def _seconds(self) -> float:
        return time.monotonic() - self._taken

    def _held(self, device: Device) -> float:
        return self._ended.get(device.uuid, self._seconds())

    def _words(self, device: Device) -> str:
        use = self._meter.use(device.uuid)
        words = [f"{self._held(device):.1f} s"]
        if use.busy_seconds is not None:
            words.append(f"{use.busy_seconds:.1f} s busy")
        if use.peak_bytes is not None:
            words.append(f"at most {format_size(use.peak_bytes)} in use")
        return ", ".join(words)

    def _gpu(self, device: Device) -> dict[str, Any]:
        gpu, use, held = device.gpu, self._meter.use(device.uuid), self._held(device)
        busy = use.busy_seconds
        return {
            "uuid": device.uuid,
            "name": gpu and gpu.name,
            "driver": gpu and gpu.driver,
            "pci": gpu and gpu.pci,
            "memory_bytes": gpu and gpu.memory,
            "leased": utc(self._taken_utc),
            "until": utc(self._taken_utc + held),
            "held_s": round(held, 3),
            "busy_s": None if busy is None else round(busy, 3),
            "peak_bytes": use.peak_bytes,
        }


NO_LEASE: dict[str, Any] = {"lease": None, "asked": None, "waited_s": 0.0, "gpus": []}
"""The entry of a run without GPUs."""
