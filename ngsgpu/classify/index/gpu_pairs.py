"""(key, window) words on GPUs, and where they come from: the features that sketching left there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import Members
from ngsgpu.classify.sketch.gpu import GpuSketches
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_of
from ngsgpu.device.cuda.sort import again_after_freeing
from ngsgpu.device.team import Team

KERNELS: Final = KernelModule("ngsgpu.classify.index", "build.cu")

MAX_PART_BITS: Final = 10
"""Maximum number of key bits that define parts; as in ``build.cu``."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys with the same top bits.

    Attributes:
        number: the bits.
        bits: how many.
    """

    number: int
    bits: int

    def within(self, bits: int) -> KeyRange:
        """The larger range that contains it, of keys with the same top ``bits`` bits."""
        return KeyRange(self.number >> (self.bits - bits), bits)

    def halves(self) -> tuple[KeyRange, KeyRange]:
        """Two ranges that are this one."""
        return KeyRange(2 * self.number, self.bits + 1), KeyRange(
            2 * self.number + 1, self.bits + 1
        )

    def of(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Share of this range in numbers for ranges of ``MAX_PART_BITS`` bits (the last axis)."""
        width = 1 << (MAX_PART_BITS - self.bits)
        own = sizes[..., self.number * width : (self.number + 1) * width].sum(axis=-1)
        return np.asarray(own, dtype=np.int64)


class PairSource(Protocol):
    """Makes the words of ranges of keys."""

    def pairs(self, keys: KeyRange) -> Any:
        """CuPy uint64 on the current GPU, in no order."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Features on a GPU, and their windows in the partition.

    Attributes:
        sketches: the features.
        shift: int64[pieces], added to a window number.
        taken: bool[pieces], whether it belongs to the partition.
    """

    sketches: GpuSketches
    shift: NDArray[np.int64]
    taken: NDArray[np.bool_]


class SketchPairs:
    """Makes the words of a partition from features on several GPUs or on the host.

    Args:
        members: the targets of the partition.
        sketches: of (at least) the targets, in their order.
        team: the GPUs.

    Attributes:
        sizes: int64[sources, 2^MAX_PART_BITS], pairs of each range of keys.
    """

    def __init__(self, members: Members, sketches: Sequence[GpuSketches], team: Team) -> None:
        self._team = team
        self._sources = [
            _Piece(own, first - own.first_window + own.bias, first >= 0)
            for own in sketches
            if ((first := members.shift[own.target]) >= 0).any()
        ]
        self.sizes = np.zeros((len(self._sources), 1 << MAX_PART_BITS), dtype=np.int64)
        team.each(self._count)

    @property
    def bytes_on_host(self) -> int:
        """Size of the features on the host, in bytes."""
        return sum(own.sketches.keys.nbytes for own in self._sources if own.sketches.on_host)

    def pairs(self, keys: KeyRange, sources: slice = slice(None)) -> Any:
        """See ``PairSource``; of some sources only."""
        import cupy
        from cupy import cuda

        counts = keys.of(self.sizes)
        pairs = empty_pairs(int(counts[sources].sum()))
        current, at = cuda.Device(), 0
        for device in self._team.devices:
            own = self._held_by(device, sources)
            count = int(counts[own].sum())
            here = pairs[at : at + count]
            at += count
            if count > 0 and device == current:
                self._make(own, keys, here)
            elif count > 0:
                with device:
                    lent = empty_pairs(count)
                    self._make(own, keys, lent)
                    cupy.cuda.Stream.null.synchronize()
                cuda.runtime.memcpyPeer(
                    here.data.ptr, current.id, lent.data.ptr, device.id, 8 * count
                )
        return pairs

    def _held_by(self, device: Any, sources: slice = slice(None)) -> list[int]:
        """The sources that are on a GPU, or that it reads."""
        numbers = range(len(self._sources))[sources]
        return [number for number in numbers if self._sources[number].sketches.device == device]

    def _count(self, member: int) -> None:
        """Count the words of the sources on the current GPU."""
        import cupy

        own = self._held_by(self._team.devices[member])
        if not own:
            return
        counts = cupy.zeros((len(own), 1 << MAX_PART_BITS), dtype=cupy.uint32)
        for line, i in zip(counts, own, strict=True):
            source = self._sources[i]
            KERNELS.launch(
                "count_parts", grid_of(len(source.sketches.keys), THREADS * 64), (THREADS,),
                (*self._keys(source), cupy.asarray(source.taken), np.int32(MAX_PART_BITS), line),
            )  # fmt: skip
        self.sizes[own] = counts.get()

    def _make(self, sources: Sequence[int], keys: KeyRange, pairs: Any) -> None:
        """Make the words of sources on the current GPU."""
        import cupy

        count = cupy.zeros(1, dtype=cupy.uint64)
        for i in sources:
            source = self._sources[i]
            KERNELS.launch(
                "make_words",
                grid_of(len(source.sketches.keys), THREADS * 8), (THREADS,),
                (
                    *self._keys(source), cupy.asarray(source.shift), cupy.asarray(source.taken),
                    np.int32(keys.bits), np.uint32(keys.number), pairs, count,
                ),
            )  # fmt: skip

    def _keys(self, source: _Piece) -> tuple[Any, ...]:
        """The features, as passed to kernels."""
        own = source.sketches
        return own.keys, np.int64(len(own.keys)), own.key_start, own.piece, np.int64(own.windows)


def empty_pairs(count: int) -> Any:
    """CuPy uint64[count] of undefined content."""
    import cupy

    return again_after_freeing(lambda: cupy.empty(count, dtype=cupy.uint64))
