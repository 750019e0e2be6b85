"""What is asked of CUDA for copies between GPUs, with memory of the host in place of theirs."""

# ruff: noqa: N802  # names are CUDA's

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ngsgpu.collectives import Exchange, peers
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceError
from tests.support.device import FIRST, Device, four_gpus, stack


class Cuda:
    """CUDA's runtime, of four GPUs that do at once what is ordered.

    Attributes:
        calls: those that order or copy something, each with the GPU that was current.
        apart: pairs of GPUs without access to each other's memory.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.apart: set[tuple[int, int]] = set()
        self.access: set[tuple[int, int]] = set()

    def getDevice(self) -> int:
        return stack()[-1]

    def setDevice(self, device: int) -> None:
        stack()[-1] = device

    def deviceCanAccessPeer(self, a: int, b: int) -> int:
        return int((a, b) not in self.apart and (b, a) not in self.apart)

    def _deviceEnsurePeerAccess(self, peer: int) -> None:
        self.access.add((stack()[-1], peer))

    def eventRecord(self, event: int, stream: int) -> None:
        self.calls.append(("record", stack()[-1], event // 1000, stream))

    def streamWaitEvent(self, stream: int, event: int) -> None:
        self.calls.append(("wait", stack()[-1], stream))

    def memcpyAsync(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        self.calls.append(("copy", stack()[-1], stream))
        ctypes.memmove(to, source, size)

    def memcpyPeerAsync(self, to: int, b: int, source: int, a: int, size: int, stream: int) -> None:
        self.calls.append(("peer copy", stack()[-1], a, b, stream))
        ctypes.memmove(to, source, size)


class OnGpu(np.ndarray):
    """An array as CuPy's."""

    device: Any = None


def on(gpu: int, array: Any) -> Any:
    made = np.array(array).view(OnGpu)
    made.device = Device(gpu)
    return made


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    """GPUs, streams of number 0 for the current ones, and pulling by the host."""
    import cupy

    four_gpus(monkeypatch)
    own, made = Cuda(), [0]
    for name in dir(own):
        if callable(getattr(own, name)) and not name.startswith("__"):
            monkeypatch.setattr(cupy.cuda.runtime, name, getattr(own, name), raising=False)

    def numbered(**how: Any) -> Any:
        made[0] += 1
        return SimpleNamespace(
            ptr=1000 * stack()[-1] + made[0], synchronize=lambda: None, record=lambda stream: None
        )

    monkeypatch.setattr(cupy.cuda, "Event", numbered)
    monkeypatch.setattr(cupy.cuda, "Stream", numbered)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: SimpleNamespace(ptr=0))
    monkeypatch.setattr(cupy, "empty", lambda size, dtype: on(stack()[-1], np.zeros(size, dtype)))

    def launch(kernel: str, grid: Any, block: Any, arguments: Any, stream: Any) -> None:
        assert (kernel, grid[1], len(arguments)) == ("pull", 3, 17)
        own.calls.append(("pull", stack()[-1], stream.ptr))
        to = int(arguments[0])
        for source, size in zip(arguments[1:9], arguments[9:], strict=True):
            ctypes.memmove(to, int(source), int(size))
            to += int(size)

    monkeypatch.setattr(peers, "KERNELS", SimpleNamespace(launch=launch))
    monkeypatch.setattr(peers, "grid_for", lambda *given: (7,))
    monkeypatch.setattr(peers, "pinned_empty", lambda size: np.empty(size, np.uint8))
    return own


def exchanged(way: Any) -> None:
    """All-to-all on three GPUs, from the second on."""
    team = Team(3)
    counts = np.array([[3, 0, 5], [1, 2, 0], [700, 4, 1]])
    arrays = [on(FIRST + gpu, np.arange(n) + 1000 * gpu) for gpu, n in enumerate(counts.sum(1))]
    found = Exchange(team, way=way).all_to_all(arrays, counts)
    ends = np.cumsum(counts, axis=1)
    for gpu, own in enumerate(found):
        wanted = [a[e[gpu] - n[gpu] : e[gpu]] for a, e, n in zip(arrays, ends, counts, strict=True)]
        assert np.array_equal(own, np.concatenate(wanted))
        assert own.device.id == FIRST + gpu if own.device else True
    assert stack() == [FIRST]


def test_pull(cuda: Cuda) -> None:
    """Each GPU's kernel is on its own current stream; access is given in both directions."""
    exchanged("auto")
    assert cuda.access == {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}
    assert [own[1:] for own in cuda.calls if own[0] == "pull"] == [(1, 0), (2, 0), (3, 0)]
    assert all(own[1] == own[2] for own in cuda.calls if own[0] == "record")


def test_copies(cuda: Cuda) -> None:
    """Each pair has a stream on the GPU that data leaves; what stays is copied there."""
    exchanged("copies")
    copies = [own for own in cuda.calls if own[0] == "peer copy"]
    assert sorted(own[2:4] for own in copies) == [(1, 3), (2, 1), (3, 1), (3, 2)]
    assert all(own[1] == own[2] for own in copies)
    assert all(own[4] // 1000 == own[2] for own in copies)
    assert [own[1:] for own in cuda.calls if own[0] == "copy"] == [(1, 0), (2, 0), (3, 0)]


def test_host(cuda: Cuda) -> None:
    cuda.apart = {(1, 3)}
    exchanged("auto")
    assert not [own for own in cuda.calls if own[0] in ("peer copy", "pull")]


def test_what_is_missing_is_said(cuda: Cuda) -> None:
    cuda.apart = {(1, 3), (2, 3)}
    with pytest.raises(DeviceError, match=r"memory: 1 and 3, 2 and 3; nvidia-smi topo -p2p r"):
        Exchange(Team(3), way="copies")
    team = Team(2)
    team.devices = (team.devices[0],) * 2
    with pytest.raises(DeviceError, match="NCCL needs different GPUs; or use the way copies"):
        Exchange(team, way="nccl")
    with pytest.raises(DeviceError, match=r"NCCL .*pip install nvidia-nccl-cu13"):
        Exchange(Team(2), way="nccl")


def test_arrays_elsewhere_are_refused(cuda: Cuda) -> None:
    exchange = Exchange(Team(2))
    with pytest.raises(ValueError, match="the array of GPU 1 is on another one"):
        exchange.all_to_all([on(FIRST, [1]), on(FIRST, [2])], [[1, 0], [0, 1]])
