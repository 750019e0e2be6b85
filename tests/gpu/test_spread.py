"""Memory that is divided over the GPUs of this machine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ngsgpu.device import spread
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.spread import SpreadMemory, can_spread, seen_from_here, spread_arena
from ngsgpu.device.team import Team

pytestmark = pytest.mark.gpu


@pytest.fixture(params=[1, 3])
def team(request: pytest.FixtureRequest) -> Team:
    """All GPUs, each of them so many times; one alone has all stripes."""
    from cupy import cuda

    team = Team(cuda.runtime.getDeviceCount())
    if len(team) > 1 and not can_spread(numbers(team)):
        pytest.skip("these GPUs are not linked well enough")
    team.devices *= request.param
    return team


def numbers(team: Team) -> list[int]:
    return [device.id for device in team.devices]


class Driver:
    """CUDA's driver, which keeps accounts of the memory that is taken and given back.

    What is free on a GPU says nothing, for other processes take and give back, too.

    Args:
        fails_at: number of the stripe from which on there is no memory; None: the GPU's own answer.
    """

    def __init__(self, fails_at: int | None = None) -> None:
        self._cuda = spread._cuda()
        self._fails_at = fails_at
        self.reserved: dict[int, int] = {}
        self.mapped: dict[int, int] = {}
        self.held: set[int] = set()
        self.bytes_on: Counter[int] = Counter()
        self.created = 0
        self._notes = {
            "cuMemAddressReserve": self._note_reserved,
            "cuMemAddressFree": self._note_unreserved,
            "cuMemCreate": self._note_created,
            "cuMemRelease": self._note_released,
            "cuMemMap": self._note_mapped,
            "cuMemUnmap": self._note_unmapped,
        }

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._cuda, name)
        note = self._notes.get(name)

        def noted(*arguments: Any) -> int:
            if name == "cuMemCreate" and self.created == self._fails_at:
                return spread._OUT_OF_MEMORY
            status = int(call(*arguments))
            if note is not None and status == 0:
                note(*arguments)
            return status

        return noted

    def _note_reserved(self, address: Any, size: Any, *_: Any) -> None:
        self.reserved[address._obj.value] = size.value

    def _note_unreserved(self, address: Any, size: Any) -> None:
        assert self.reserved.pop(address.value) == size.value

    def _note_created(self, handle: Any, size: Any, properties: Any, _: Any) -> None:
        self.created += 1
        self.held.add(handle._obj.value)
        self.bytes_on[properties._obj.device] += size.value

    def _note_released(self, handle: Any) -> None:
        self.held.remove(handle.value)

    def _note_mapped(self, address: Any, size: Any, *_: Any) -> None:
        self.mapped[address.value] = size.value

    def _note_unmapped(self, address: Any, size: Any) -> None:
        assert self.mapped.pop(address.value) == size.value

    @property
    def has_all_back(self) -> bool:
        """Whether nothing is taken: memory lasts until it is neither held nor mapped."""
        return not (self.reserved or self.mapped or self.held)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver that memory is taken from."""
    own = Driver()
    monkeypatch.setattr(spread, "_cuda", lambda: own)
    return own


@pytest.mark.parametrize("count", [1, 1000, 40_000_003])
def test_what_one_gpu_writes_all_read(team: Team, count: int) -> None:
    import cupy

    arena = spread_arena(2 * 8 * count, numbers(team))
    rng = np.random.default_rng(count)
    values = rng.integers(0, 1 << 63, count, dtype=np.uint64)
    with arena.in_use():
        array = cupy.asarray(values)
        other = cupy.empty(count, dtype=cupy.uint64)
    team.devices[0].synchronize()

    def read(member: int) -> Any:
        return (seen_from_here(array) + np.uint64(member)).get()

    for member, found in enumerate(team.at_once(read)):
        assert np.array_equal(found, values + np.uint64(member))

    def write(member: int) -> None:
        begin, end = (count * at // len(team) for at in (member, member + 1))
        seen_from_here(other)[begin:end] = seen_from_here(array)[begin:end]
        team.devices[member].synchronize()

    team.at_once(write)
    assert np.array_equal(other.get(), values)
    radix_sort(other)
    assert np.array_equal(other.get(), np.sort(values))


def test_it_is_taken_of_all_and_given_back(team: Team, driver: Driver) -> None:
    size = (1 << 28) * len(team)
    memory = SpreadMemory(size, numbers(team))
    share = size // len(set(numbers(team)))
    assert set(driver.bytes_on) == set(numbers(team))
    assert all(share <= one <= share + (64 << 20) for one in driver.bytes_on.values())
    assert sum(driver.mapped.values()) == memory.size
    assert not driver.held
    del memory
    assert driver.has_all_back


def test_it_is_really_given_back(team: Team) -> None:
    """More in all than any GPU has, piece after piece."""
    from cupy import cuda

    piece = 1 << 30
    total = max(team.each(lambda member: int(cuda.runtime.memGetInfo()[1])))
    for _ in range(total // piece + 8):
        SpreadMemory(piece * len(set(numbers(team))), numbers(team)).close()


def test_too_much(team: Team, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """So much that the first stripe alone is more than a GPU has: nothing is taken from others."""
    from cupy import cuda

    monkeypatch.setattr(spread, "_STRIPES", 1)
    total = max(team.each(lambda member: int(cuda.runtime.memGetInfo()[1])))
    with pytest.raises(MemoryError):
        SpreadMemory(2 * total * len(team), numbers(team))
    assert driver.created == 0
    assert driver.has_all_back


@pytest.mark.parametrize("stripes", [1, 5, 17])
def test_too_much_after_some_stripes(
    team: Team, stripes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Driver(fails_at=stripes)
    monkeypatch.setattr(spread, "_cuda", lambda: own)
    with pytest.raises(MemoryError):
        SpreadMemory((64 << 21) * len(team), numbers(team))
    assert own.created == stripes
    assert own.has_all_back
