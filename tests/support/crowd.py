"""Several GPUs on machines that have fewer of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from ngsgpu.device.spread import can_spread
from ngsgpu.device.team import Team
from ngsgpu.readset import gpu_divided


def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each GPU be several members of a team that wants more GPUs than there are.

    All is as on several GPUs, but for their links, and for limits of memory: members of the same
    GPU have one pool. One GPU can have memory in common with itself.
    """
    from cupy import cuda

    count = cuda.runtime.getDeviceCount()

    def begin(team: Team, gpus: int = 1) -> None:
        first = cuda.Device().id
        team.devices = tuple(cuda.Device((first + member) % count) for member in range(gpus))

    @contextlib.contextmanager
    def unlimited(team: Team, limit: int | None) -> Iterator[None]:
        yield

    def linked(devices: Sequence[int]) -> bool:
        own = sorted(set(devices))
        return len(devices) > 1 and (len(own) == 1 or can_spread(own))

    monkeypatch.setattr(Team, "__init__", begin)
    monkeypatch.setattr(Team, "limited", unlimited)
    monkeypatch.setattr(gpu_divided, "can_spread", linked)
