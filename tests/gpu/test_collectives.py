"""Data between GPUs: every way gives the same; a GPU that is listed twice shows most of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ngsgpu.collectives import (
    Exchange,
    Way,
    by_ranges,
    make_plan,
    partition,
    read_topology,
    shuffle,
    sorted_shuffle,
)
from ngsgpu.device.gpus import visible_gpus
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceError

TYPES = ("u1", "i2", "f4", "u8", "c16")


def team_of(places: tuple[int, ...]) -> Team:
    """A team of GPUs by their numbers; skips where there are not as many."""
    import cupy

    if max(places) >= len(visible_gpus()):
        pytest.skip(f"needs {max(places) + 1} GPUs")
    team = Team()
    team.devices = tuple(cupy.cuda.Device(place) for place in places)
    return team


@pytest.fixture(params=[(0,), (0, 0), (0, 0, 0, 0), (0, 1), (1, 0, 1), (0, 1, 2, 3)], ids=str)
def team(request: pytest.FixtureRequest) -> Team:
    return team_of(request.param)


def spread(team: Team, arrays: list[Any]) -> list[Any]:
    import cupy

    return team.each(lambda gpu: cupy.asarray(arrays[gpu]))


def home(arrays: Any) -> list[bytes]:
    return [array.get().tobytes() for array in arrays]


@pytest.mark.parametrize("way", ["auto", "pull", "copies", "nccl", "host"])
@pytest.mark.parametrize("most", [3, 5000, 3_000_000])
def test_all_to_all(team: Team, way: Way, most: int) -> None:
    """Irregular, odd and empty parts of every type; many calls at once."""
    gpus = len(team)
    try:
        exchange = Exchange(team, way=way)
    except DeviceError as error:
        assert way == "nccl" and "NCCL" in str(error)
        pytest.skip(str(error))
    rng = np.random.default_rng(most)
    issued = []
    for dtype in TYPES:
        counts = rng.integers(0, most, (gpus, gpus)) * rng.integers(0, 2, (gpus, gpus))
        arrays = [
            rng.integers(0, 256, int(n) * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
            for n in counts.sum(axis=1)
        ]
        ends = np.cumsum(counts, axis=1)
        wanted = [
            b"".join(
                own[e[g] - n[g] : e[g]].tobytes()
                for own, e, n in zip(arrays, ends, counts, strict=True)
            )
            for g in range(gpus)
        ]
        issued.append((exchange.all_to_all(spread(team, arrays), counts), wanted))
    for found, wanted in issued:
        assert home(found) == wanted


@pytest.mark.parametrize(("name", "method"), [("p100-quad", "rings"), ("dgx1-quad", "buffered")])
def test_plans(name: str, method: Any) -> None:
    """Plans whose chunks go over other GPUs."""
    team = team_of((0, 0, 0, 0))
    plan = make_plan("all2all", read_topology(name), method).plan
    counts = np.random.default_rng(1).integers(0, 100_000, (4, 4))
    arrays = [np.arange(int(n), dtype=np.uint32) for n in counts.sum(axis=1)]
    direct, planned = (
        Exchange(team, plan=own, way="copies").all_to_all(spread(team, arrays), counts)
        for own in (None, plan)
    )
    assert home(direct) == home(planned)


def test_scatter_and_gather(team: Team) -> None:
    values = np.arange(100_003, dtype=np.uint16)
    counts = np.random.default_rng(1).multinomial(len(values), [1 / len(team)] * len(team))
    main = len(team) - 1
    with team.devices[main]:
        import cupy

        there = cupy.asarray(values)
    for way in ("pull", "copies", "host"):
        exchange = Exchange(team, way=way)  # type: ignore[arg-type]
        parts = exchange.scatter(there, counts.tolist(), main)
        assert [len(part) for part in parts] == counts.tolist()
        assert exchange.gather(parts, main).get().tobytes() == values.tobytes()


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 100_001, 3_000_000])
@pytest.mark.parametrize("parts", [1, 2, 3, 8, 64])
def test_partition(size: int, parts: int) -> None:
    """Stable, of every type."""
    import cupy

    rng = np.random.default_rng(size)
    owners = rng.integers(0, parts, size, dtype=np.uint8)
    columns = [rng.integers(0, 250, size).astype(dtype) for dtype in TYPES]
    found, counts = partition([*map(cupy.asarray, columns)], cupy.asarray(owners), parts)
    order = np.argsort(owners, kind="stable")
    assert counts.tolist() == np.bincount(owners, minlength=parts).tolist()
    for own, column in zip(found, columns, strict=True):
        assert own.get().tobytes() == column[order].tobytes()
    if size and parts < 64:
        with pytest.raises(ValueError, match="an owner is none"):
            partition([], cupy.full(size, 200, dtype=cupy.uint8), parts)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_shuffle(team: Team, dtype: str) -> None:
    """Rows in the order of GPUs and there; sorted ones stable, by one key or by two."""
    gpus = len(team)
    rng = np.random.default_rng(gpus)
    keys = [rng.integers(0, 200, n).astype(dtype) for n in rng.integers(0, 50_000, gpus)]
    more = [rng.integers(0, 3, len(own)).astype("u4") for own in keys]
    values = [np.arange(len(own)) + (gpu << 32) for gpu, own in enumerate(keys)]
    splitters = np.sort(rng.integers(0, 200, gpus - 1))
    exchange = Exchange(team)

    def tables() -> list[Any]:
        columns = (spread(team, own) for own in (keys, more, values))
        return list(zip(*columns, strict=True))

    owner = by_ranges(splitters)
    results = shuffle(exchange, tables(), owner)
    by_one, by_two = (sorted_shuffle(exchange, tables(), owner, n) for n in (1, 2))
    alone = sorted_shuffle(exchange, [own[:1] for own in tables()], owner)
    whole = [np.concatenate(own) for own in (keys, more, values)]
    owners = np.searchsorted(splitters.astype(dtype), whole[0], side="right")
    for gpu in range(gpus):
        mine = [own[owners == gpu] for own in whole]
        assert home(results[gpu]) == [own.tobytes() for own in mine]
        order = np.argsort(mine[0], kind="stable")
        assert home(by_one[gpu]) == [own[order].tobytes() for own in mine]
        assert home(alone[gpu]) == [mine[0][order].tobytes()]
        order = np.lexsort((mine[1], mine[0]))
        assert home(by_two[gpu]) == [own[order].tobytes() for own in mine]


def test_clear_errors() -> None:
    with pytest.raises(DeviceError, match="NCCL"):
        Exchange(team_of((0, 0)), way="nccl")
