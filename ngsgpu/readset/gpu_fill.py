"""Fills unknown bases of a read set on a GPU; see ``ngsgpu.readset.fill``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_for
from ngsgpu.readset.fill import FOUND, LOOKED_AT, Neighbours, fill
from ngsgpu.readset.gpu import AMBIGUOUS, DeviceAmbiguousBases, DeviceReadSet
from ngsgpu.readset.readset import AmbiguousBases

KERNELS: Final = KernelModule("ngsgpu.readset", "fill.cu")

_BLOCKS_PER_MULTIPROCESSOR: Final = 16


def fill_unknown_on_gpu(reads: DeviceReadSet) -> int:
    """Replace unknown bases of a read set where other reads agree; return how many.

    Args:
        reads: the read set, which is changed.

    Raises:
        MemoryError: the GPU's memory does not suffice.
    """
    import cupy

    ambiguous = AmbiguousBases(*map(cupy.asnumpy, reads.ambiguous))
    looked_at = cupy.full(reads.reads, LOOKED_AT, dtype=cupy.uint8)
    return fill(_DeviceFiller(reads, looked_at), ambiguous, reads.bases)


@dataclass(frozen=True)
class _DeviceFiller:
    """A ``Filler`` on the current GPU."""

    reads: DeviceReadSet
    looked_at: Any

    def neighbours(self, unknown: AmbiguousBases, k: int) -> Neighbours:
        """See ``Filler``."""
        import cupy

        bases, there = len(unknown.positions), _there(unknown)
        kmers = cupy.empty(2 * bases, dtype=cupy.uint64)
        ways = cupy.empty(2 * bases, dtype=cupy.uint8)
        self._launch(
            "find_neighbours", len(unknown.reads), _struct(there), np.int32(k), kmers, ways
        )
        return Neighbours(cupy.asnumpy(kmers), cupy.asnumpy(ways))

    def count(
        self, unknown: AmbiguousBases, k: int, table: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """See ``Filler``."""
        import cupy

        counts = cupy.zeros((len(table), 2, 4), dtype=cupy.int64)
        there = _there(unknown)
        self._launch(
            "count_neighbours",
            self.reads.reads,
            np.int64(self.reads.reads),
            _struct(there),
            np.int32(k),
            cupy.asarray(table),
            np.uint64(len(table) - 1),
            self.looked_at,
            counts,
        )
        return np.asarray(cupy.asnumpy(counts))

    def put(
        self, reads: NDArray[np.uint32], positions: NDArray[np.int32], bases: NDArray[np.uint8]
    ) -> None:
        """See ``Filler``."""
        import cupy

        arguments = map(cupy.asarray, (reads, positions, bases))
        self._launch("put_bases", len(reads), np.int64(len(reads)), *arguments)

    def end_round(self) -> None:
        """See ``Filler``."""
        self.looked_at[:] //= FOUND

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        """Launch a kernel with a thread for each of a number of things, none of them for none."""
        if threads:
            grid = grid_for(threads, THREADS, _BLOCKS_PER_MULTIPROCESSOR)
            KERNELS.launch(kernel, grid, (THREADS,), (self.reads.struct, *arguments))


def _there(unknown: AmbiguousBases) -> DeviceAmbiguousBases:
    """Unknown bases on the current GPU."""
    import cupy

    return DeviceAmbiguousBases(*map(cupy.asarray, unknown))


def _struct(unknown: DeviceAmbiguousBases) -> Any:
    """The struct ``AMBIGUOUS``, valid as long as its arrays are kept."""
    return AMBIGUOUS.on_device(**unknown._asdict(), count=len(unknown.reads))
