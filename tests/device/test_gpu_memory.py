"""GPU memory budget and pool of page-locked buffers, with CUDA stood in for."""

from __future__ import annotations

import threading

import pytest

from ngsgpu.device.gpu_memory import GpuMemory, PinnedPool, gpu_memory, limited_gpu_memory
from ngsgpu.errors import DeviceError

GIB = 1 << 30


class Pool:
    """CuPy's memory pool."""

    def __init__(self) -> None:
        self.limit = 0
        self.kept = GIB

    def free_bytes(self) -> int:
        return self.kept

    def free_all_blocks(self) -> None:
        self.kept = 0

    def get_limit(self) -> int:
        return self.limit

    def set_limit(self, size: int) -> None:
        self.limit = size


@pytest.fixture
def cuda(monkeypatch):
    import cupy

    pool = Pool()
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pool)
    monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (9 * GIB, 80 * GIB))
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 0)
    made = []

    def alloc(size: int) -> bytearray:
        made.append(size)
        if size > GIB:
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return bytearray(size + 13)

    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", alloc)
    pool.made = made
    return pool


def test_budget(cuda):
    assert gpu_memory() == GpuMemory(80 * GIB, 10 * GIB, 10 * GIB - (512 << 20))
    assert gpu_memory(8 * GIB).budget == 8 * GIB
    assert gpu_memory(70 * GIB).budget == 10 * GIB - (512 << 20)


def test_what_does_not_fit_is_refused():
    memory = GpuMemory(80 * GIB, 10 * GIB, 8 * GIB)
    memory.require(8 * GIB, "the tables")
    with pytest.raises(DeviceError) as caught:
        memory.require(12 * GIB, "the tables")
    assert str(caught.value) == (
        "the tables need 12.0 GiB of GPU memory and 8.0 GiB may be used (10.0 GiB of 80.0 GiB are "
        "free); use a GPU with more memory, raise --gpu-memory, or use --backend cpu"
    )


def test_limit_holds_inside(cuda):
    with limited_gpu_memory(3 * GIB):
        assert (cuda.limit, cuda.kept) == (3 * GIB, 0)
    assert cuda.limit == 0
    with limited_gpu_memory(None):
        assert cuda.limit == 0


def test_limit_holds_on_every_gpu(monkeypatch):
    """Also where the first of them is not the first that can be seen."""
    import cupy

    pools = [Pool() for _ in range(4)]
    current = [1]

    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None:
            current.append(self.number)

        def __exit__(self, *error: object) -> None:
            current.pop()

    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pools[current[-1]])
    monkeypatch.setattr(cupy.cuda, "Device", Device)
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: current[-1])
    pools[2].limit = GIB
    with limited_gpu_memory(3 * GIB, gpus=3):
        assert [pool.limit for pool in pools] == [0, 3 * GIB, 3 * GIB, 3 * GIB]
        assert current == [1]
    assert [pool.limit for pool in pools] == [0, 0, GIB, 0]


def test_memory_that_runs_out_inside(cuda):
    import cupy

    with pytest.raises(DeviceError, match="not enough GPU memory"), limited_gpu_memory(GIB):
        raise cupy.cuda.memory.OutOfMemoryError(2 * GIB, 0, GIB)
    assert cuda.limit == 0


def test_buffers_are_used_again(cuda):
    pool = PinnedPool(100, 2)
    first = pool.take()
    assert (first.shape, first.dtype.str, first.flags.writeable) == ((100,), "|u1", True)
    pool.release(first)
    with pool.borrowed() as second:
        assert second is first
        pool.take()
    assert cuda.made == [100, 100]
    with pytest.raises(ValueError, match="not from this pool"):
        pool.release(second[:50])


def test_who_asks_for_more_waits(cuda):
    pool = PinnedPool(10, 1)
    buffer = pool.take()
    taken = []
    thread = threading.Thread(target=lambda: taken.append(pool.take()))
    thread.start()
    thread.join(0.1)
    assert not taken
    pool.release(buffer)
    thread.join(10)
    assert taken[0] is buffer


def test_page_locked_memory_that_runs_out(cuda):
    pool = PinnedPool(2 * GIB, 1)
    for _ in range(2):  # a failure takes no buffer from the pool
        with pytest.raises(DeviceError, match=r"2\.0 GiB of page-locked host memory cannot"):
            pool.take()
