"""Sorts unsigned integers in GPU memory with CUB's radix sort, which Thrust calls through CuPy.

Scratch memory comes from the current allocator (an arena, or CuPy's pool). To sort within segments,
put the segment number into the high bits of 64-bit words, and the values into the low ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from ngsgpu.device.team import free_unused

_Result = TypeVar("_Result")

ARGSORT_BYTES: Final = 8 + 17
"""GPU memory of ``radix_argsort`` per 64-bit key in addition to the keys: the order, and Thrust's
copy of keys and order, plus a little."""


def radix_sort(values: Any) -> None:
    """Sort a CuPy array in place; where memory runs out, once more without what CuPy keeps unused.

    Raises:
        OutOfMemoryError: of CuPy.
    """
    if len(values) > 1:
        with _named_errors(values.nbytes):
            again_after_freeing(values.sort)


def radix_argsort(keys: Any) -> Any:
    """Sort a CuPy array in place and return the permutation.

    Returns:
        CuPy int64, the former index of each key; those of equal keys ascend.

    Raises:
        OutOfMemoryError: of CuPy.
    """
    import cupy

    order = cupy.empty(len(keys), dtype=cupy.int64)
    with _named_errors(ARGSORT_BYTES * len(keys)):
        # What ``cupy.argsort`` does, without its copy of the keys.
        cupy.cuda.thrust.argsort(keys.dtype, order.data.ptr, keys.data.ptr, 0, keys.shape)
    return order


def order_of_rows(columns: Sequence[Any]) -> Any:
    """The permutation that sorts rows by their columns, of which the first counts most.

    Args:
        columns: at least one, CuPy arrays of unsigned integers of the same length; not changed.

    Returns:
        CuPy int64; equal rows stay in order.

    Raises:
        OutOfMemoryError: of CuPy.
    """
    order = None
    for column in list(columns)[::-1]:
        keys = column.copy() if order is None else column[order]
        step = radix_argsort(keys)
        del keys
        order = step if order is None else order[step]
    return order


def again_after_freeing(work: Callable[[], _Result]) -> _Result:
    """Run something that needs memory; if that runs out, retry without CuPy's cached blocks."""
    with contextlib.suppress(MemoryError):
        return work()
    free_unused()
    return work()


@contextlib.contextmanager
def _named_errors(size: int) -> Iterator[None]:
    """Add the requested size to an out-of-memory error; Thrust does not report it."""
    import cupy

    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError:
        raise
    except MemoryError as error:
        pool = cupy.get_default_memory_pool()
        values = size, pool.total_bytes(), pool.get_limit()
        raise cupy.cuda.memory.OutOfMemoryError(*values) from error
