"""Several GPUs that work on one task: the current GPU and those numbered after it.

All work on several GPUs has the same phases: it is split (reads, ranges of keys, partitions), what
each GPU needs is copied there (``each``, one after the other, since copies between GPUs want both
idle), all work at the same time (``at_once``), and results are gathered on the first (``here``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from ngsgpu.device.errors import cuda_errors

_Result = TypeVar("_Result")


class Team:
    """The current GPU and those after it.

    Args:
        gpus: how many.

    Attributes:
        devices: CuPy's devices; a GPU's number in the team is its index in them.
    """

    def __init__(self, gpus: int = 1) -> None:
        from cupy import cuda

        first = cuda.Device()
        self.devices = (first, *(cuda.Device(first.id + member) for member in range(1, gpus)))

    def __len__(self) -> int:
        return len(self.devices)

    def each(self, work: Callable[[int], _Result]) -> list[_Result]:
        """Results of ``work`` for each member, one at a time, with its GPU current."""
        return [self._on(member, work) for member in range(len(self))]

    def at_once(
        self, work: Callable[[int], _Result], stop: Callable[[], None] = lambda: None
    ) -> list[_Result]:
        """Results of ``work`` for each member, in one thread each, with its GPU current.

        Args:
            work: the task of a GPU; gets its number in the team.
            stop: called when one fails, to end the others; they are awaited, and the first failure
                is
                raised.
        """
        if len(self) == 1:
            return self.each(work)
        with ThreadPoolExecutor(len(self), thread_name_prefix="ngsgpu-gpu") as pool:
            running = [pool.submit(self._on, member, work) for member in range(len(self))]
            try:
                for one in as_completed(running):
                    one.result()
            except BaseException:
                stop()
                raise
            return [one.result() for one in running]

    @contextlib.contextmanager
    def limited(self, limit: int | None) -> Iterator[None]:
        """Keep CuPy's arrays on each GPU below a limit inside of the block.

        Args:
            limit: bytes; None changes nothing.
        """
        from cupy import cuda

        if limit is None:
            yield
            return
        before = self.each(lambda member: limit_pool(limit))
        try:
            yield
        finally:
            # CUDA may be unusable by now, which another error reports.
            with contextlib.suppress(cuda.runtime.CUDARuntimeError):
                self.each(lambda member: limit_pool(before[member]))

    def _on(self, member: int, work: Callable[[int], _Result]) -> _Result:
        with self.devices[member]:
            return work(member)


def here(array: Any) -> Any:
    """A CuPy array on the current GPU: itself, or a copy made on the current stream.

    Args:
        array: on any GPU, where the work on it has ended or was ordered before this stream.
    """
    import cupy

    if array.device == cupy.cuda.Device():
        return array
    copy = cupy.empty(array.shape, dtype=array.dtype)
    copy.data.copy_from_device_async(array.data, array.nbytes, cupy.cuda.get_current_stream())
    return copy


@contextlib.contextmanager
def limited_gpu_memory(limit: int | None, gpus: int = 1) -> Iterator[None]:
    """Keep CuPy's arrays on each GPU of a run below a limit inside of the block.

    Args:
        limit: bytes of each; None changes nothing.
        gpus: how many GPUs, the current one and those after it.

    Raises:
        DeviceError: the arrays do not fit into the limit, or into the GPU.
    """
    # If CUDA does not work at all, the team reports it rather than a half-made object.
    with cuda_errors("computing on the GPU"), Team(gpus).limited(limit):
        yield


def limit_pool(limit: int) -> int:
    """Limit CuPy's pool on the current GPU.

    Args:
        limit: bytes; 0 for no limit.

    Returns:
        The previous limit.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    before: int = pool.get_limit()
    if limit:
        # What others freed counts as taken, so give it back.
        pool.free_all_blocks()
    pool.set_limit(size=limit)
    return before


def free_unused() -> None:
    """Return the cached memory of CuPy's pool to the current GPU."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
