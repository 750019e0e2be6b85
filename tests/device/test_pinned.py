"""Pinned host memory that serves again."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.device import pinned
from ngsgpu.device.pinned import ReusedMemory


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what was allocated; here, no memory is pinned."""
    sizes: list[int] = []

    def empty(size: int) -> NDArray[np.uint8]:
        sizes.append(size)
        return np.empty(size, dtype=np.uint8)

    monkeypatch.setattr(pinned, "pinned_empty", empty)
    return sizes


def test_serves_again_when_nothing_refers_to_it(made: list[int]) -> None:
    memory = ReusedMemory()
    first = memory.empty(3 << 20)
    assert len(first) == 3 << 20
    assert first.dtype == np.uint8
    part = first[5:9]
    part[:] = 7
    place = first.ctypes.data
    del first
    gc.collect()
    assert memory.empty(3 << 20).ctypes.data != place
    assert part.tolist() == [7] * 4
    del part
    gc.collect()
    again = memory.empty((4 << 20) - 1)
    assert len(again) == (4 << 20) - 1
    assert made == [4 << 20] * 2


def test_sizes_of_their_own(made: list[int]) -> None:
    memory = ReusedMemory()
    for size in (0, 1, 5 << 20, 5 << 20, 2 << 20):
        assert len(memory.empty(size)) == size
        gc.collect()
    assert made == [2 << 20, 8 << 20]


def test_no_two_have_the_same_memory(made: list[int]) -> None:
    memory = ReusedMemory()
    sys.setswitchinterval(1e-5)

    def use(number: int) -> bool:
        own = memory.empty(1 << 12)
        own[:] = number
        view = own[::2]
        del own
        return bool((view == number).all())

    try:
        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(use, [number % 251 for number in range(4000)]))
    finally:
        sys.setswitchinterval(0.005)
    assert len(made) <= 8
