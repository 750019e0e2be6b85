"""Memory that is divided over GPUs, as far as it can be tested without them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.device import spread
from ngsgpu.device.spread import SpreadMemory, can_spread, share_bytes, stripe_bytes


@given(st.integers(0, 1 << 42), st.integers(1, 16))
def test_stripes_are_shared_evenly(size: int, gpus: int) -> None:
    stripe = stripe_bytes(size, gpus)
    assert stripe % (2 << 20) == 0
    stripes = -(-size // stripe)
    assert stripes <= 64 * gpus
    shares = Counter(number % gpus for number in range(stripes))
    assert share_bytes(size, gpus) == stripe * max(shares.values(), default=0)
    # Rounded up by a stripe, which is a page or a 64th.
    assert share_bytes(size, gpus) <= size / gpus * (1 + 1 / 64) + 2 * (2 << 20)


def test_one_gpu_shares_nothing() -> None:
    assert not can_spread([0])
    assert not can_spread([])


class Driver:
    """CUDA's driver, as far as memory that grows asks it; ``room`` stripes can be had."""

    BASE: Final = 1 << 40

    def __init__(self, room: int) -> None:
        self.room = room
        self.devices: list[int] = []
        self.mapped: list[int] = []
        self.allowed: set[int] = set()
        self.freed = 0

    CALLS: Final = {
        "cuMemAddressReserve": "_reserve",
        "cuMemCreate": "_create",
        "cuMemMap": "_map",
        "cuMemSetAccess": "_allow",
        "cuMemRelease": "_release",
        "cuMemUnmap": "_unmap",
        "cuMemAddressFree": "_free",
    }

    def __getattr__(self, name: str) -> Any:
        return getattr(self, self.CALLS[name])

    def _reserve(self, address: Any, size: Any, *_: Any) -> int:
        address._obj.value = self.BASE
        self.reserved = size.value
        return 0

    def _create(self, handle: Any, size: Any, own: Any, flags: Any) -> int:
        if len(self.devices) == self.room:
            return spread._OUT_OF_MEMORY
        self.devices.append(own._obj.device)
        return 0

    def _map(self, address: Any, size: Any, *_: Any) -> int:
        self.mapped.append((address.value - self.BASE) // size.value)
        return 0

    def _allow(self, address: Any, size: Any, access: Any, count: Any) -> int:
        stripe = spread._GROWING_STRIPE
        first = (address.value - self.BASE) // stripe
        self.allowed |= set(range(first, first + size.value // stripe))
        return 0

    def _release(self, handle: Any) -> int:
        return 0

    def _unmap(self, address: Any, size: Any) -> int:
        self.freed += 1
        return 0

    def _free(self, address: Any, size: Any) -> int:
        assert size.value == self.reserved
        return 0


def test_memory_grows_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(7)
    monkeypatch.setattr(spread, "_cuda", lambda: driver)
    stripe = spread._GROWING_STRIPE
    memory = SpreadMemory(stripe + 1, [0, 1, 2], 100 * stripe)
    assert (memory.ptr, memory.size, driver.reserved) == (Driver.BASE, 2 * stripe, 100 * stripe)
    for size in (stripe, 5 * stripe):
        memory.grow(size)
    assert driver.devices == [0, 1, 2, 0, 1]
    # What could be had is of use when there is more.
    with pytest.raises(MemoryError):
        memory.grow(9 * stripe)
    assert (memory.ptr, memory.size) == (Driver.BASE, 7 * stripe)
    assert driver.allowed == set(driver.mapped) == set(range(7))
    driver.room = 9
    memory.grow(9 * stripe)
    assert driver.mapped == sorted(driver.allowed) == list(range(9))
    memory.close()
    assert driver.freed == 9
