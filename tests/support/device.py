"""What nvidia-smi prints; GPUs and pools of their memory for machines without one."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

TABLE = """\
0, GPU-8f1c3d5e-0000, NVIDIA H200, 143771, 143167, 9.0, 580.82.07, 00000000:1B:00.0
1, GPU-a9b2c4d6-0000, NVIDIA H200, 143771, 100, 9.0, 580.82.07, 00000000:43:00.0
"""

GIB = 1 << 30
FIRST = 1
"""The current GPU of the main thread; other threads begin with 0, as in CUDA."""

_stacks = threading.local()


def stack() -> list[int]:
    """GPUs that this thread has made current, the last one is."""
    if not hasattr(_stacks, "gpus"):
        _stacks.gpus = [FIRST if threading.current_thread() is threading.main_thread() else 0]
    gpus: list[int] = _stacks.gpus
    return gpus


class Device:
    """CuPy's device."""

    def __init__(self, number: int | None = None) -> None:
        self.id = stack()[-1] if number is None else number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __enter__(self) -> None:
        stack().append(self.id)

    def __exit__(self, *error: object) -> None:
        assert stack().pop() == self.id


class Pool:
    """CuPy's memory pool of a GPU."""

    def __init__(self) -> None:
        self.limit = 0
        self.kept = GIB
        self.used = 0

    def free_bytes(self) -> int:
        return self.kept

    def total_bytes(self) -> int:
        return self.kept + self.used

    def free_all_blocks(self) -> None:
        self.kept = 0

    def get_limit(self) -> int:
        return self.limit

    def set_limit(self, size: int) -> None:
        self.limit = size


def four_gpus(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Four GPUs of 80 GiB, of which 9 are free, in place of CuPy's; ``FIRST`` is current.

    Returns:
        Their ``pools``, and the sizes of pinned buffers ``made``.
    """
    import cupy

    pools = [Pool() for _ in range(4)]
    made: list[int] = []

    def alloc(size: int) -> bytearray:
        made.append(size)
        if size > GIB:
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return bytearray(size + 13)

    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pools[stack()[-1]])
    monkeypatch.setattr(cupy.cuda, "Device", Device)
    monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (9 * GIB, 80 * GIB))
    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", alloc)
    return SimpleNamespace(pools=pools, made=made)
