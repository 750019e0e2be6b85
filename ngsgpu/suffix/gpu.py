"""Suffix arrays on a GPU, equal to those of ``array``.

Prefix doubling with compaction [Schmidt 2022, chapter 5]: all suffixes are sorted by their first 32
bases (8 bytes), which tells most of those of a genome apart, and each gets a rank, the place of the
first suffix with the same key. The others alone are sorted again, by their ranks and those of the
suffixes 32 bases further on, then 64, 128 and so on, until none is left.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.sort import ARGSORT_BYTES, radix_argsort
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, MemoryPlan, plan_on_gpu
from ngsgpu.device.team import limited_gpu_memory

KERNELS: Final = KernelModule("ngsgpu.suffix")
MOST_LETTERS: Final = (1 << 31) - 1
"""Of a text on a GPU: places are uint32, and those of the CPU int32 up to here."""

_LETTER_BYTES: Final = 1 + 8 + ARGSORT_BYTES + 4
"""GPU memory of a letter at its most: text, key, the order of keys, and its scratch, ranks."""

FIRST_LETTERS: Final = 8
"""By which suffixes are sorted at first, if letters are bytes."""

_FIRST_BASES: Final = 32


def plan_array(size: int, limit: int | None) -> MemoryPlan:
    """Plan the suffix array of a text on the current GPU.

    Args:
        size: its letters.
        limit: GPU memory that may be used, in bytes; None: free memory.
    """
    return plan_on_gpu(
        f"the suffix array of {size:,} letters", limit,
        Allocation("letters", size * _LETTER_BYTES),
        beyond=f"{MOST_LETTERS:,} letters" if size > MOST_LETTERS else "",
    )  # fmt: skip


def suffix_array_on_gpu(
    text: NDArray[np.uint8], *, bases: bool = False, limit: int | None = None
) -> NDArray[np.int32]:
    """The suffix array of a text; see ``suffix_array``.

    Args:
        text: uint8[n], at most ``MOST_LETTERS``.
        bases: whether all its letters are 0 to 3.
        limit: GPU memory that may be used, in bytes; None: free memory.

    Raises:
        DeviceMemoryError: it does not fit.
        DeviceError: CUDA fails.
    """
    if len(text) == 0:
        return np.empty(0, dtype=np.int32)
    with limited_gpu_memory(limit), cuda_errors("sorting suffixes on the GPU"):
        plan_array(len(text), limit).check()
        home: NDArray[np.uint32] = _sorted(to_device(text), bases).get()
        return home.view(np.int32)


def is_suffix_array_on_gpu(text: NDArray[np.uint8], places: NDArray[np.int32]) -> bool:
    """Whether an array is the suffix array of a text; see ``is_suffix_array``.

    It takes 9 bytes a letter on the GPU.

    Raises:
        DeviceError: CUDA fails.
    """
    import cupy

    size = np.int64(len(text))
    if len(text) != len(places) or len(text) == 0:
        return len(text) == len(places)
    with cuda_errors("checking a suffix array on the GPU"):
        there, own = to_device(text), to_device(places.view(np.uint32))
        ranks = cupy.full(len(text), 0xFFFFFFFF, dtype=cupy.uint32)
        wrong = cupy.zeros(1, dtype=cupy.uint32)
        KERNELS.launch_threads("rank_places", len(text), own, size, ranks, wrong)
        if not int(wrong[0]):
            KERNELS.launch_threads("check_places", len(text), there, own, size, ranks, wrong)
        return not int(wrong[0])


def _sorted(text: Any, bases: bool) -> Any:
    """The suffix array of a text on the GPU, uint32[n]."""
    import cupy

    size = len(text)
    keys = cupy.empty(size, dtype=cupy.uint64)
    KERNELS.launch_threads(
        "pack_bases" if bases else "pack_bytes", size, text, np.int64(size), keys
    )
    places = radix_argsort(keys).astype(cupy.uint32)
    marks = _marks_of(keys)
    del keys
    ranks = cupy.empty(size, dtype=cupy.uint32)
    rank_by_doubling(marks, places, ranks, known=_FIRST_BASES if bases else FIRST_LETTERS)
    return places


def rank_by_doubling(marks: Any, places: Any, ranks: Any, *, known: int) -> None:
    """Sort suffixes that are sorted by their first letters, in place, and rank them.

    Args:
        marks: CuPy uint8[m], 1 where other first letters begin.
        places: CuPy uint32[m], the suffixes.
        ranks: CuPy uint32[n], gets the rank of each suffix.
        known: how many letters they are sorted by. Suffixes that agree in these, or in twice as
            many and so on, either both go on behind them or belong to a text without gaps.
    """
    import cupy

    slots, suffixes, heads = _ranked(marks, None, places, ranks)
    while len(slots):
        keys = cupy.empty(len(slots), dtype=cupy.uint64)
        count = np.int64(len(slots))
        listed = (suffixes, heads, count, np.int64(known), ranks, np.int64(len(ranks)))
        KERNELS.launch_threads("next_keys", len(slots), *listed, keys)
        order = radix_argsort(keys)
        sorted_suffixes = cupy.empty_like(suffixes)
        KERNELS.launch_threads("reorder", len(slots), suffixes, order, count, sorted_suffixes)
        del order
        KERNELS.launch_threads("put_back", len(slots), sorted_suffixes, slots, count, places)
        slots, suffixes, heads = _ranked(_marks_of(keys), slots, sorted_suffixes, ranks)
        known *= 2


def _marks_of(keys: Any) -> Any:
    """Marks of the first of equal keys among sorted ones, 1 there: CuPy uint8[m]."""
    import cupy

    marks = cupy.empty(len(keys), dtype=cupy.uint8)
    KERNELS.launch_threads("mark_heads", len(keys), keys, np.int64(len(keys)), marks)
    return marks


def _ranked(marks: Any, slots: Any, suffixes: Any, ranks: Any) -> tuple[Any, Any, Any]:
    """Give sorted suffixes their ranks; what is left of them: slots, suffixes, ranks.

    Args:
        marks: uint8[m], 1 where other keys begin.
        slots: uint32[m], their places in the array; None if they are the whole array.
        suffixes: uint32[m].
        ranks: uint32[n], of all suffixes.
    """
    import cupy

    size = len(marks)
    groups = cupy.cumsum(marks, dtype=cupy.uint32)
    starts = cupy.flatnonzero(marks)
    heads = cupy.empty(size, dtype=cupy.uint32)
    own = np.uint64(0) if slots is None else slots
    KERNELS.launch_threads(
        "write_ranks", size, groups, starts, own, suffixes, np.int64(size), ranks, heads
    )
    del groups, starts
    # What is alone in its group has its place.
    alone = marks.astype(cupy.bool_)
    alone[:-1] &= marks[1:].astype(cupy.bool_)
    left = cupy.flatnonzero(~alone)
    own = left.astype(cupy.uint32) if slots is None else slots[left]
    return own, suffixes[left], heads[left]
