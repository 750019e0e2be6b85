"""The suffixes of a bucket, sorted.

They are sorted by their first 32 letters, which leaves groups that agree. Large groups are sorted
again by 16 letters more at a time; small ones, and large ones that agree in a whole period of the
difference cover, are merged by comparing suffixes, letters first and then ranks of the cover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ngsgpu.device.cuda.sort import radix_argsort
from ngsgpu.suffix.bucket.cover import Cover
from ngsgpu.suffix.bucket.text import KERNELS, PackedText

KEY_LETTERS: Final = 32
_STEP: Final = 16
"""Letters that a round adds to the order of large groups."""

_MOST_MERGED: Final = 64
"""Suffixes of the largest group that is merged before it agrees in a whole period."""

SUFFIX_BYTES: Final = 64
"""GPU memory of a suffix while it is sorted, at its most: place, key, slot and group, the order of
keys with its scratch; and what gets lost between arrays."""

MOST_SUFFIXES: Final = (1 << 31) - 1
"""Of a bucket: its slots are uint32."""


def sorted_suffixes(
    text: PackedText, cover: Cover, take: Callable[[], tuple[Any, Any]]
) -> Any:  # fmt: skip
    """Sort suffixes.

    Args:
        text: the text.
        cover: ranks; without them, suffixes that agree in a period are left in any order.
        take: makes CuPy int64[m], the suffixes, and uint64[m], their first 32 letters.

    Returns:
        CuPy int64[m], the suffixes in their order.
    """
    import cupy

    places, keys = take()
    count = np.int64(len(places))
    order = radix_argsort(keys)
    marks = cupy.empty(len(places), dtype=cupy.uint8)
    KERNELS.launch_threads("mark_groups", len(places), keys, count, np.int64(KEY_LETTERS), marks)
    del keys
    taken = cupy.empty_like(places)
    KERNELS.launch_threads("take_in_order", len(places), places, order, count, taken)
    del places, order
    _split_large(text, cover.period, taken, marks)
    return _merged(text, cover, taken, marks)


def groups_of(marks: Any) -> tuple[Any, Any, int]:
    """Number groups.

    Args:
        marks: CuPy uint8[m], not 0 where a group begins.

    Returns:
        CuPy uint32[m], the group of each, from 1; uint32[g + 1], where the groups begin and the
        last one ends; and the size of the largest.
    """
    import cupy

    heads = marks != 0
    groups = cupy.cumsum(heads, dtype=cupy.uint32)
    found = cupy.flatnonzero(heads)
    starts = cupy.empty(len(found) + 1, dtype=cupy.uint32)
    starts[:-1] = found
    starts[-1] = len(marks)
    return groups, starts, int((starts[1:] - starts[:-1]).max())


def _split_large(text: PackedText, period: int, places: Any, marks: Any) -> None:
    """Sort large groups by more letters, in place; mark where new groups begin."""
    import cupy

    heads, slots = marks, None
    for depth in range(KEY_LETTERS, period, _STEP):
        groups, starts, largest = groups_of(heads)
        if largest <= _MOST_MERGED:
            return
        size = np.int64(len(groups))
        large = cupy.empty(len(groups), dtype=cupy.uint8)
        KERNELS.launch_threads(
            "find_large", len(groups), groups, starts, size, np.int64(_MOST_MERGED), large
        )
        chosen = cupy.flatnonzero(large)
        own = cupy.empty(len(chosen), dtype=cupy.uint32)
        firsts = cupy.empty_like(own)
        listed = np.uint64(0) if slots is None else slots
        count = np.int64(len(own))
        KERNELS.launch_threads(
            "take_large", len(own), groups, starts, listed, chosen, count, own, firsts
        )
        slots = own
        del groups, starts, large, chosen, listed, heads
        keys = cupy.empty(len(slots), dtype=cupy.uint64)
        KERNELS.launch_threads(
            "round_keys",
            len(slots),
            *text.arguments(),
            places,
            slots,
            firsts,
            count,
            np.int64(depth),
            keys,
        )
        del firsts
        order = radix_argsort(keys)
        heads = cupy.empty(len(slots), dtype=cupy.uint8)
        KERNELS.launch_threads(
            "mark_groups", len(slots), keys, count, np.int64(depth + _STEP), heads
        )
        del keys
        moved = cupy.empty(len(slots), dtype=cupy.int64)
        KERNELS.launch_threads("take_slots", len(slots), places, slots, order, count, moved)
        del order
        KERNELS.launch_threads("put_slots", len(slots), moved, slots, heads, count, places, marks)
        del moved


def _merged(text: PackedText, cover: Cover, places: Any, marks: Any) -> Any:
    """Sort each group by comparing its suffixes."""
    import cupy

    groups, starts, largest = groups_of(marks)
    if largest == 1:
        return places
    out = cupy.empty_like(places)
    width = 1
    while width < largest:
        KERNELS.launch_threads(
            "merge_runs",
            len(places),
            *text.arguments(),
            *cover.arguments(),
            places,
            groups,
            starts,
            marks,
            np.int64(len(places)),
            np.int64(width),
            out,
        )
        places, out = out, places
        width *= 2
    return places
