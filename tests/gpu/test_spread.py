"""Memory that is divided over the GPUs of this machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def free_bytes(member: int) -> int:
    from cupy import cuda

    return int(cuda.runtime.memGetInfo()[0])


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


def test_it_is_taken_of_all_and_given_back(team: Team) -> None:
    # What CUDA itself takes at first is taken by the first.
    SpreadMemory(1 << 20, numbers(team)).close()
    before = team.each(free_bytes)
    size = (1 << 30) * len(team)
    memory = SpreadMemory(size, numbers(team))
    taken = [one - other for one, other in zip(before, team.each(free_bytes), strict=True)]
    share = size // len(set(numbers(team)))
    assert all(share <= one <= share + (64 << 20) for one in taken)
    del memory
    assert team.each(free_bytes) == before


def test_too_much(team: Team) -> None:
    before = team.each(free_bytes)
    with pytest.raises(MemoryError):
        SpreadMemory(2 * sum(before), numbers(team))
    assert team.each(free_bytes) == before
