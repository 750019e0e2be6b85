"""Arrays of a GPU that grow while reads come, without one."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu_pack import Growing
from tests.support.correct.fake_gpu import Array, FakeGpus, OutOfMemoryError


class Mapped:
    """Memory that grows where it is."""

    def __init__(self) -> None:
        self.bytes = np.zeros(1 << 16, np.uint8)
        self.ptr = self.bytes.ctypes.data
        self.size = 0


class Room:
    """As ``ngsgpu.readset.gpu_pack.Room``, of host memory."""

    devices = (0, 1)

    def __init__(self, largest_copied: int) -> None:
        self.largest_copied = largest_copied
        self.sizes: list[int] = []

    def grow(self, memory: Mapped | None, size: int) -> Mapped:
        memory = memory or Mapped()
        memory.size = -(-size // 512) * 512
        self.sizes.append(memory.size)
        return memory


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    reads = ReadSet.from_sequences([])
    return FakeGpus(reads, CorrectionParameters(), 1.0).install(monkeypatch)


def filled(growing: Growing, pieces: int) -> Any:
    """Numbers in ascending order, some at a time."""
    for piece in range(pieces):
        growing.extend(10, 0)[:] = np.arange(10 * piece, 10 * piece + 10)
    return growing.finish()


@pytest.mark.parametrize("largest", [0, 100, 1 << 20])
def test_large_arrays_grow_in_place(gpus: FakeGpus, largest: int) -> None:
    room: Any = Room(largest)
    growing = Growing(np.uint32, room)
    assert np.array_equal(filled(growing, 100), np.arange(1000))
    assert growing.is_spread == (largest < 4000)
    assert room.sizes == sorted(set(room.sizes))
    if growing.is_spread:
        # Each time a little more than before, nothing is reserved for what may never come.
        assert room.sizes[-1] < 4000 + 512


@pytest.mark.parametrize("with_room", [False, True])
def test_arrays_that_cannot_be_there_twice(
    gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch, with_room: bool
) -> None:
    """Larger ones than needed are not taken where memory is short, nor are all copied each time."""
    moved: list[int] = []
    move = Growing._move

    def counted(growing: Growing, larger: Array) -> None:
        moved.append(growing.used)
        move(growing, larger)

    monkeypatch.setattr(Growing, "_move", counted)
    given = sys.modules["cupy"].empty

    def empty(shape: int, dtype: Any) -> Array:
        if shape > 300 and (with_room or shape > growing.used + 10):
            raise OutOfMemoryError(shape, 0)
        array: Array = given(shape, dtype)
        return array

    monkeypatch.setattr(sys.modules["cupy"], "empty", empty)
    room: Any = Room(1 << 20) if with_room else None
    growing = Growing(np.uint32, room)
    assert np.array_equal(filled(growing, 100), np.arange(1000))
    assert (len(moved) < 20) == with_room
