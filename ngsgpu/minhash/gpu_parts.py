"""Sorting the keys of a table on a GPU, all at once or one part after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ngsgpu.device.cuda.sort import radix_argsort
from ngsgpu.minhash.gpu_memory import READS_MARKED


def sorted_keys(keys: Any) -> Iterator[tuple[Any, Any]]:
    """Keys, sorted in place, and the int64 numbers that they had, once."""
    import cupy

    yield keys, radix_argsort(keys) if len(keys) else cupy.empty(0, dtype=cupy.int64)


def sorted_parts(
    keys: Any, parts: int, mark: Callable[[Any, int, int, Any], None]
) -> Iterator[tuple[Any, Any]]:
    """Sorted keys of one part after the other, and the int64 numbers that they had.

    Args:
        keys: uint64, not changed.
        parts: their number.
        mark: of the keys, marks those of a part from a number on: keys, number, part, bool array.
    """
    import cupy

    count = len(keys)
    marks = cupy.empty(min(count, READS_MARKED), dtype=bool)
    for part in range(parts):
        listed = [cupy.empty(0, dtype=cupy.int64)]
        for first in range(0, count, READS_MARKED):
            marked = marks[: min(READS_MARKED, count - first)]
            mark(keys, first, part, marked)
            listed.append(cupy.flatnonzero(marked) + first)
        members = cupy.concatenate(listed)
        del listed
        own = keys[members]
        if len(own):
            members = members[radix_argsort(own)]
        yield own, members
        del own, members
