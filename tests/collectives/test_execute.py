"""Copies between GPUs, on NumPy arrays: right for every order that streams and events allow."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.collectives import Exchange, make_plan, read_topology
from ngsgpu.collectives import execute as module
from ngsgpu.collectives.transfers import PIECE_ALIGNMENT, host_transfers, planned_transfers
from tests.support.collectives.devices import Devices, Team

TYPES = ("u1", "i2", "f4", "u8", "c16")
PLANS = [
    ("p100-quad", "all2all", "optimal"),
    ("dgx1-quad", "all2all", "optimal"),
    ("dgx1-quad", "all2all", "buffered"),
    ("hgx-4", "all2all", "optimal"),
    ("pcie-4", "all2all", "direct"),
    ("dgx1", "all2all", "buffered"),
    ("dgx1", "all2all", "rings"),
]


def exchange_of(devices: Devices, **how: Any) -> Exchange:
    return Exchange(Team(devices.gpus), devices=devices, **how)  # type: ignore[arg-type]


def sent(counts: Any, dtype: str, rng: np.random.Generator) -> list[np.ndarray]:
    """What each GPU has."""
    rows = np.asarray(counts).sum(axis=1)
    return [
        rng.integers(0, 256, int(n) * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
        for n in rows
    ]


def expected(arrays: list[np.ndarray], counts: Any) -> list[np.ndarray]:
    """What each GPU gets."""
    ends = np.cumsum(counts, axis=1)
    return [
        np.concatenate(
            [own[e[g] - n[g] : e[g]] for own, e, n in zip(arrays, ends, counts, strict=True)]
        )
        for g in range(len(arrays))
    ]


def moved(exchange: Exchange, devices: Devices, arrays: Any, counts: Any, seed: int) -> list[Any]:
    """All-to-all of arrays that are not there yet when it is issued."""
    later = [np.zeros_like(array) for array in arrays]
    for gpu, (own, array) in enumerate(zip(later, arrays, strict=True)):
        devices.work(gpu, own, lambda own=own, array=array: own.__setitem__(slice(None), array))
    found = exchange.all_to_all(later, counts)
    # As if their memory was used for something else.
    for gpu, own in enumerate(later):
        devices.work(gpu, own, lambda own=own: own.view(np.uint8).fill(7))
    copies = [np.empty_like(own) for own in found]
    for gpu, (own, copy) in enumerate(zip(found, copies, strict=True)):
        devices.work(gpu, own, lambda own=own, copy=copy: copy.__setitem__(slice(None), own))
        devices.work(gpu, own, lambda own=own: own.view(np.uint8).fill(9))
    devices.run(seed)
    return copies


def check(devices: Devices, counts: Any, dtype: str, seed: int, **how: Any) -> None:
    arrays = sent(counts, dtype, np.random.default_rng(seed))
    found = moved(exchange_of(devices, **how), devices, arrays, counts, seed)
    for own, wanted in zip(found, expected(arrays, counts), strict=True):
        assert own.dtype == wanted.dtype
        assert own.tobytes() == wanted.tobytes()


@st.composite
def matrices(draw: st.DrawFn, gpus: int | None = None, most: int = 3000) -> np.ndarray:
    n = gpus or draw(st.integers(1, 5))
    size = st.one_of(st.just(0), st.integers(0, 40), st.integers(0, most))
    return np.array(draw(st.lists(size, min_size=n * n, max_size=n * n))).reshape(n, n)


@settings(max_examples=40, deadline=None)
@given(
    matrices(), st.sampled_from(TYPES), st.integers(0, 9),
    st.sampled_from(["auto", "pull", "copies", "host"]),
)  # fmt: skip
def test_every_way(counts: np.ndarray, dtype: str, seed: int, way: str) -> None:
    check(Devices(len(counts)), counts, dtype, seed, way=way)


@pytest.mark.parametrize("own", PLANS)
def test_plans(own: tuple[str, str, str]) -> None:
    name, kind, method = own
    plan = make_plan(kind, read_topology(name), method).plan  # type: ignore[arg-type]

    for seed in range(2):
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 20_000, (plan.gpus, plan.gpus)) * rng.integers(0, 2, plan.gpus)
        devices = Devices(plan.gpus)
        check(devices, counts, TYPES[seed], seed, plan=plan, way="copies")
        ways = {way for path in plan.paths for way in pairwise(path)}
        assert {way for way in devices.used if way[0] != way[1]} <= ways


def test_staging_is_that_of_a_plan() -> None:
    """What waits at a GPU is no more than the largest steps of the plan bring there."""
    plan = make_plan("all2all", read_topology("dgx1"), "buffered").plan
    sizes = np.full((8, 8), 30 * PIECE_ALIGNMENT)
    transfers = planned_transfers(plan, sizes)
    chunk = 30 * PIECE_ALIGNMENT // plan.chunks
    stops = [
        sum(path[1] == gpu not in (path[0], path[-1]) for path in plan.paths) for gpu in range(8)
    ]
    assert transfers.staging == [chunk * own for own in stops] + [0]


def test_scatter_and_gather() -> None:
    for way in ("pull", "copies", "host"):
        devices = Devices(3)
        exchange = exchange_of(devices, way=way)
        values = np.arange(100, dtype=np.int16)
        parts = exchange.scatter(values, [10, 0, 61], main=1)
        devices.run(0)
        assert [own.tolist() for own in parts] == [[*range(10)], [], [*range(10, 71)]]
        whole = exchange.gather(parts, main=2)
        devices.run(0)
        assert whole.tolist() == [*range(71)]


def test_two_host_buffers_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data larger than a slot goes through both, and no copy overwrites what is not read yet."""
    sizes = np.array([[0, 10_000], [512, 0]])
    transfers = host_transfers(sizes, 1024)
    assert transfers.staging == [0, 0, 4 * 1024]
    assert {one.to.at for one in transfers.copies if one.to.node == 2} == {0, 1024, 2048}
    assert len(transfers.copies) == 2 * 10 + 2
    counts = np.array([[5, 700], [33, 2]])
    monkeypatch.setattr(module, "host_transfers", lambda sizes: host_transfers(sizes, 512))
    for seed in range(5):
        check(Devices(2), counts, "u8", seed, way="host")


def test_way_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is pulled, more is copied; without access data goes through the host."""
    monkeypatch.setattr(module, "PULL_BYTES", 100)
    few, many = np.array([[900, 50], [50, 1]]), np.array([[0, 101], [5, 0]])
    devices = Devices(2)
    check(devices, few, "u1", 0)
    assert (devices.kernels, devices.used) == (2, [])
    devices = Devices(2)
    check(devices, many, "u1", 0)
    assert (devices.kernels, devices.used) == (0, [(0, 1), (1, 0)])
    devices = Devices(9)
    check(devices, np.ones((9, 9), dtype=int), "u1", 0)
    assert devices.kernels == 0


def test_without_access(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ngsgpu")
    devices = Devices(2, access=False)
    check(devices, np.array([[3, 5], [7, 0]]), "u8", 0)
    assert (0, 2) in devices.used
    assert caplog.messages == [
        "GPUs without access to each other's memory: 0 and 1; data goes between them through "
        "pinned host memory"
    ]


def test_wrong_use() -> None:
    exchange = exchange_of(Devices(2))
    arrays = [np.zeros(4, np.uint8), np.zeros(3, np.uint8)]
    for counts, message in (
        ([[1, 1]], "matrix of 2 x 2"),
        ([[1, -1], [0, 0]], "from 0 on"),
        ([[1, 1], [3, 1]], "GPU 1 sends 4 values, and its array has 3"),
    ):
        with pytest.raises(ValueError, match=message):
            exchange.all_to_all(arrays, counts)
    with pytest.raises(ValueError, match="contiguous"):
        exchange.all_to_all([arrays[0][::2], arrays[1]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="gets 4 values"):
        exchange.all_to_all(arrays, [[2, 0], [2, 0]], out=arrays[::-1])
    with pytest.raises(ValueError, match="none of auto"):
        exchange_of(Devices(2), way="fast")
    plan = make_plan("scatter", read_topology("p100-quad")).plan
    with pytest.raises(ValueError, match="a plan of scatter for 4 GPUs"):
        exchange_of(Devices(4), plan=plan)
