"""The use of GPUs, as a stand-in for the driver's library reports it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ngsgpu.device import meter
from ngsgpu.device.meter import Meter

FINE, NOT_SUPPORTED = 0, 3


def driver() -> SimpleNamespace:
    """A half busy GPU ``GPU-a``, ``GPU-b`` that reports nothing, and no others."""
    used = iter([3 << 30, 5 << 30])
    ended: list[bool] = []

    def find(uuid, gpu):
        gpu._obj.value = uuid[-1]
        return FINE if uuid in (b"GPU-a", b"GPU-b") else NOT_SUPPORTED

    def utilization(gpu, share):
        share._obj.gpu = 50
        return FINE if gpu.value == ord("a") else NOT_SUPPORTED

    def memory(gpu, info):
        assert info._obj.version == 40 | 2 << 24  # as in nvml.h
        info._obj.used = next(used, 1 << 30) if gpu.value == ord("a") else 0
        return FINE if gpu.value == ord("a") else NOT_SUPPORTED

    return SimpleNamespace(
        nvmlInit_v2=lambda: FINE,
        nvmlShutdown=lambda: ended.append(True),
        nvmlDeviceGetHandleByUUID=find,
        nvmlDeviceGetUtilizationRates=utilization,
        nvmlDeviceGetMemoryInfo_v2=memory,
        ended=ended,
    )


def wait_for(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


def test_busy_time_and_peak_memory(monkeypatch):
    library = driver()
    monkeypatch.setattr(meter, "_INTERVAL_SECONDS", 0.002)
    monkeypatch.setattr(meter, "_load", lambda: library)
    begin = time.monotonic()
    sampler = Meter(["GPU-a", "GPU-b", "GPU-c"])
    sampler.start()
    wait_for(lambda: (sampler.use("GPU-a").busy_seconds or 0) > 0.02)
    sampler.stop()
    wait_for(lambda: library.ended)
    use = sampler.use("GPU-a")
    assert use.peak_bytes == 5 << 30
    assert use.busy_seconds <= (time.monotonic() - begin) / 2
    for uuid in ("GPU-b", "GPU-c"):
        assert (sampler.use(uuid).busy_seconds, sampler.use(uuid).peak_bytes) == (None, None)


@pytest.mark.parametrize("is_there", [False, True])
def test_without_the_driver_nothing_is_reported(monkeypatch, is_there):
    asked = []

    def load():
        asked.append(1)
        if not is_there:
            raise OSError("no such file")
        return SimpleNamespace(nvmlInit_v2=lambda: NOT_SUPPORTED)

    monkeypatch.setattr(meter, "_INTERVAL_SECONDS", 0.001)
    monkeypatch.setattr(meter, "_load", load)
    sampler = Meter(["GPU-a"])
    sampler.start()
    wait_for(lambda: asked)
    sampler.stop()
    assert sampler.use("GPU-a").busy_seconds is None
