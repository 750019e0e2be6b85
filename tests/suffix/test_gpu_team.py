"""Suffix arrays of several GPUs, on a machine without one: what is sent, and to whom."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from ngsgpu.errors import DeviceMemoryError
from ngsgpu.suffix import gpu_team, suffix_array
from tests.support.suffix import oracle


class Members:
    """GPUs that work one after the other."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        return [work(gpu) for gpu in range(self.count)]

    at_once = each


class Exchange:
    """All-to-all of arrays on the host."""

    def __init__(self, team: Members) -> None:
        self.team = team

    def __len__(self) -> int:
        return len(self.team)

    def all_to_all(self, arrays: list[Any], counts: ArrayLike) -> list[Any]:
        sizes = np.asarray(counts)
        assert [len(array) for array in arrays] == sizes.sum(axis=1).tolist()
        parts = [np.split(own, np.cumsum(of)[:-1]) for own, of in zip(arrays, sizes, strict=True)]
        return [np.concatenate([own[gpu] for own in parts]) for gpu in range(len(self.team))]


def by_ranges(splitters: ArrayLike) -> Callable[[Any], Any]:
    bounds = np.asarray(splitters, dtype=np.uint64)
    return lambda keys: np.searchsorted(bounds, keys.astype(np.uint64), side="right")


def partition(columns: Any, owners: Any, parts: int) -> Any:
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=parts)
    assert len(counts) == parts
    return tuple(column[order] for column in columns), counts


def shuffle(exchange: Exchange, tables: list[Any], owner: Any) -> list[Any]:
    ordered = [partition(table, owner(table[0]), len(exchange)) for table in tables]
    counts = np.stack([own for _, own in ordered])
    columns = [
        exchange.all_to_all([table[number] for table, _ in ordered], counts)
        for number in range(len(tables[0]))
    ]
    return [tuple(column[gpu] for column in columns) for gpu in range(len(exchange))]


def sorted_shuffle(exchange: Exchange, tables: list[Any], owner: Any) -> list[Any]:
    found = []
    for table in shuffle(exchange, tables, owner):
        order = np.argsort(table[0], kind="stable")
        found.append(tuple(column[order] for column in table))
    return found


def pack_bytes(kernel: str, units: int, text: Any, size: Any, keys: Any) -> None:
    assert (kernel, units) == ("pack_bytes", size)
    padded = np.concatenate([text, np.zeros(8, np.uint8)])
    for at in range(units):
        keys[at] = int.from_bytes(padded[at : at + 8].tobytes(), "big")


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy for CuPy and for what is told to GPUs."""
    cupy = ModuleType("cupy")
    cupy.__dict__.update(np.__dict__ | {"__name__": "cupy", "asnumpy": np.asarray})
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    ours = (by_ranges, partition, shuffle, sorted_shuffle)
    for own in ours:
        monkeypatch.setattr(gpu_team, own.__name__, own)
    monkeypatch.setattr(gpu_team.KERNELS, "launch_threads", pack_bytes)
    monkeypatch.setattr(gpu_team, "to_device", np.array)
    monkeypatch.setattr(gpu_team, "order_of_rows", lambda columns: np.lexsort(columns[::-1]))
    monkeypatch.setattr(
        gpu_team._Doubling, "places", lambda own: np.concatenate([one.places for one in own._parts])
    )


def found(text: NDArray[np.uint8], gpus: int) -> list[int]:
    places: list[int] = gpu_team.sorted_by_team(text, Exchange(Members(gpus))).tolist()  # type: ignore[arg-type]
    return places


@pytest.mark.usefixtures("on_host")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    letters=st.lists(st.integers(0, 3) | st.sampled_from([0, 255]), min_size=0, max_size=120),
    copies=st.integers(1, 4),
    end=st.integers(0, 20),
    gpus=st.integers(1, 5),
)
def test_texts(letters: list[int], copies: int, end: int, gpus: int) -> None:
    """Repeats far longer than 8 letters, texts of one letter, zeros at the end, empty blocks."""
    text = np.array(letters * copies + [0] * end, dtype=np.uint8)
    assert found(text, gpus) == oracle.suffix_array(text.tobytes())


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("gpus", [2, 3, 7])
def test_places_of_40_bits(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    """What texts of more than 2^31 letters take, on a short one."""
    monkeypatch.setattr(gpu_team, "MOST_LETTERS", 10)
    rng = np.random.default_rng(gpus)
    unit = rng.integers(60, 64, 3000).astype(np.uint8)
    text = np.concatenate([unit, unit[100:2000], unit[:50]])
    assert gpu_team._kind(len(text)) == np.uint64
    assert found(text, gpus) == suffix_array(text).tolist()


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        budget = 100 << 30

    monkeypatch.setattr(gpu_team, "gpu_memory", lambda limit: Memory)
    team: Any = Members(4)
    human = 3_100_000_000
    assert gpu_team.plan_team(human, team, None).total < 100 << 30
    with pytest.raises(DeviceMemoryError, match="on each of 4 GPUs"):
        gpu_team.plan_team(2 * human, team, None).check()
