"""Exact matches of reads in an FM index on a GPU, equal to those of ``cpu``, and its proof."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, plan_on_gpu
from ngsgpu.pool import Shared
from ngsgpu.suffix.fm import FmIndex

KERNELS: Final = KernelModule("ngsgpu.suffix.query", "query.cu")

_KEPT: Final = 6
"""Matches of a read that are kept when they are counted, as in ``query.cu``."""


class DeviceIndex:
    """An FM index on the current GPU; safe to use from several threads.

    Args:
        index: the index.
        limit: GPU memory that may be used, in bytes; None: free memory.
        threads: that search at the same time.

    Raises:
        DeviceMemoryError: it does not fit.
        DeviceError: CUDA fails.
    """

    def __init__(self, index: FmIndex, limit: int | None = None, threads: int = 1) -> None:
        from cupy import cuda

        with cuda_errors("copying the index to the GPU"):
            size = index.words.nbytes + index.sample.nbytes
            plan_on_gpu("the index", limit, Allocation("index", size)).check()
            self.words = to_device(index.words)
            self.sample = to_device(index.sample)
            self.totals = to_device(index.totals)
            self._streams = Shared(cuda.Stream(non_blocking=True) for _ in range(threads))
            cuda.Device().synchronize()
        self.primary = np.int64(index.primary)
        self._damage = index.damage

    def matches(
        self, codes: NDArray[np.uint8], starts: NDArray[np.int64], shortest: int, *, whole: bool
    ) -> NDArray[np.int64]:
        """The maximal matches of reads, int64[m, 5]; see ``find_maximal``.

        Raises:
            InputError: the index is damaged.
            DeviceError: CUDA fails.
        """
        import cupy

        reads = len(starts) - 1
        if reads == 0 or len(codes) == 0:
            return np.empty((0, 5), dtype=np.int64)
        with cuda_errors("searching on the GPU"), self._streams.borrowed() as stream, stream:
            own = cupy.asarray(codes), cupy.asarray(starts), np.int64(reads)
            search = (*self._arguments(), *own, np.int64(shortest), np.int32(whole))
            kept = cupy.empty(4 * _KEPT * reads, dtype=cupy.int64)
            counts = cupy.empty(reads, dtype=cupy.int32)
            KERNELS.launch_threads("count_matches", reads, *search, kept, counts)
            if int(counts.min()) < 0:
                raise self._damage()
            ends = cupy.cumsum(counts, dtype=cupy.int64)
            found = cupy.empty((int(ends[-1]), 5), dtype=cupy.int64)
            KERNELS.launch_threads("write_matches", reads, *search, kept, ends, found)
            home: NDArray[np.int64] = found.get()
            return home

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the suffixes of rows are in the text, int64[m]; -1 in a damaged index."""
        import cupy

        if len(rows) == 0:
            return np.empty(0, dtype=np.int64)
        with cuda_errors("searching on the GPU"), self._streams.borrowed() as stream, stream:
            places = cupy.empty(len(rows), dtype=cupy.int64)
            KERNELS.launch_threads(
                "find_row_places", len(rows), *self._arguments(), self.sample,
                cupy.asarray(rows), np.int64(len(rows)), places,
            )  # fmt: skip
            home: NDArray[np.int64] = places.get()
            return home

    def _arguments(self) -> tuple[Any, Any, Any]:
        return self.words, self.totals, self.primary


def is_index_on_gpu(
    index: FmIndex, codes: NDArray[np.uint8], *, both_strands: bool = True, limit: int | None = None
) -> bool:
    """Whether an index is that of a text; see ``is_index``. It takes 1 byte a letter on the GPU.

    Raises:
        DeviceMemoryError: the index does not fit.
        DeviceError: CUDA fails.
    """
    import cupy

    from ngsgpu.suffix.bucket.text import pack_text
    from ngsgpu.suffix.check import has_right_sizes

    size = len(codes) * (2 if both_strands else 1)
    if not has_right_sizes(index, size):
        return False
    there = DeviceIndex(index, limit)
    with cuda_errors("checking the index on the GPU"):
        text = pack_text(codes, both_strands=both_strands)
        there.sample[0] = size
        wrong = cupy.zeros(1, dtype=cupy.uint32)
        own = there._arguments()
        KERNELS.launch_threads("check_counts", size // 128 + 1, *own, wrong)
        if not int(wrong[0]):
            count = len(index.sample)
            KERNELS.launch_threads(
                "check_walks", count, *own, there.sample, np.int64(count), text.words, wrong
            )
        return not int(wrong[0])
