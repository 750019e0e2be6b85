"""K-mers of several GPUs are divided, exchanged and added up as one GPU would, on NumPy arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ngsgpu.collectives import Exchange
from ngsgpu.kmers import gpu_team
from ngsgpu.kmers.gpu import Counted, joined_row_bytes
from tests.support.collectives.devices import Devices


class OnHost(np.ndarray):
    """An array as CuPy's, which ``get`` brings to the host."""

    def get(self) -> np.ndarray:
        return np.array(self)


def on_host(array: Any) -> Any:
    return np.asarray(array).view(OnHost)


class Arena:
    """Memory that is measured but not taken."""

    def __init__(self, room: int) -> None:
        self.room = room

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        yield


class Team:
    """GPUs that work one after the other; what was issued for them is done before."""

    def __init__(self, gpus: int) -> None:
        self.exchanger = Devices(gpus)
        self.devices = [contextlib.nullcontext() for _ in range(gpus)]

    def __len__(self) -> int:
        return len(self.devices)

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        return [work(gpu) for gpu in range(len(self))]

    def at_once(self, work: Callable[[int], Any]) -> list[Any]:
        self.exchanger.run(0)
        self.exchanger.issued.clear()
        for stream in (*self.exchanger.here, *self.exchanger.lanes.values()):
            stream.last = None
        return self.each(work)


def distinct(kmers: Any, counts: Any) -> Counted:
    """Equal k-mers, uint64[words, n], and their sums, of the type of the counts."""
    found, places = np.unique(np.asarray(kmers), axis=1, return_inverse=True)
    sums = np.bincount(places.reshape(-1), np.asarray(counts, dtype=np.int64), found.shape[1])
    limited = np.minimum(sums, np.iinfo(counts.dtype).max).astype(counts.dtype)
    return Counted(on_host(np.ascontiguousarray(found)), on_host(limited))


class Buffer:
    """Room for k-mers on the host."""

    def __init__(self, k: int, rows: int, least: int, count_type: str) -> None:
        self.words, self.rows, self.count_type = -(-k // 32), rows, np.dtype(count_type)
        self.parts: list[Any] = []
        self.total = self.bases = 0

    @property
    def most(self) -> int:
        return sum(map(len, self.parts))

    def append(self, kmers: Any) -> int:
        size = min(len(kmers), self.rows - self.most)
        self.parts += [kmers[:size]] if size else []
        return size

    def counted(self) -> Counted:
        whole = np.concatenate([np.empty((0, self.words), np.uint64), *self.parts])
        self.total, self.parts = self.total + len(whole), []
        return distinct(whole.T, np.ones(len(whole), dtype=self.count_type))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy in place of CuPy where the team computes."""
    import cupy

    for name in ("empty", "asarray", "searchsorted"):
        own = getattr(np, name)
        monkeypatch.setattr(cupy, name, lambda *given, own=own: on_host(own(*given)))
    monkeypatch.setattr(cupy.cuda, "Event", lambda **how: SimpleNamespace())
    monkeypatch.setattr(gpu_team, "KmerBuffer", Buffer)
    monkeypatch.setattr(gpu_team, "summed", distinct)
    monkeypatch.setattr(gpu_team, "_SMALL_BYTES", 0)
    monkeypatch.setattr("ngsgpu.collectives.rows._SAMPLES", 8)


def buffers_of(
    gpus: int, k: int, rows: int, room: int, count_type: str = "uint16"
) -> gpu_team.KmerBuffers:
    team: Any = Team(gpus)
    exchange = None if gpus == 1 else Exchange(team, devices=team.exchanger)
    arenas: Any = [Arena(room) for _ in range(gpus)]
    return gpu_team.KmerBuffers(team, arenas, k, rows, 0, exchange, count_type)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.integers(1, 5),
    st.sampled_from([31, 55]),
    st.integers(0, 99),
    st.integers(0, 300),
    st.sampled_from(["uint16", "uint32"]),
)
def test_sums_are_those_of_one(
    host: None, gpus: int, k: int, seed: int, size: int, count_type: str
) -> None:
    """In order, in as many passes as the memory wants, for skewed and for equal k-mers."""
    rng = np.random.default_rng(seed)
    words = -(-k // 32)
    kmers = rng.integers(0, rng.choice([1, 3, 200]), (size, words), dtype=np.uint64)
    if seed % 3:
        kmers <<= np.uint64(55)
    row = joined_row_bytes(words, np.dtype(count_type).itemsize)
    buffers = buffers_of(gpus, k, size // 2 + 1, row * (50 + size // gpus), count_type)
    left = kmers
    while len(left) and (taken := buffers.append(left[: 1 + seed])):
        left = left[taken:]
    # With one GPU some may not fit.
    taken = len(kmers) - len(left)
    expected = distinct(kmers[:taken].T, np.ones(taken, dtype=count_type))
    counted = buffers.counted()
    assert buffers.total == taken
    buffers.free()
    ranges = buffers.ranges(counted)
    assert ranges is not None
    parts = [own for number in range(ranges.passes) for own in ranges.of_pass(number)]
    found = np.concatenate([np.asarray(own.kmers) for own in parts], axis=1)
    assert np.array_equal(found, np.asarray(expected.kmers))
    counts = np.concatenate([np.asarray(own.counts) for own in parts])
    assert np.array_equal(counts, np.asarray(expected.counts))
    assert counts.dtype == count_type


def test_passes_and_no_room(host: None) -> None:
    kmers = np.arange(4000, dtype=np.uint64).reshape(-1, 1) << np.uint64(50)
    for rows, passes in ((4000, 1), (900, 4), (2, None)):
        buffers = buffers_of(2, 31, 4000, joined_row_bytes(1) * rows)
        for begin in range(0, 4000, 100):
            assert buffers.append(kmers[begin : begin + 100]) == 100
        counted = buffers.counted()
        assert [len(own) for own in counted] == [2000, 2000]
        ranges = buffers.ranges(counted)
        assert (ranges and ranges.passes) == passes
