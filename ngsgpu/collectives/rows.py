"""Rows of columns to the GPUs that own their keys: partition, then all-to-all; sorted if wanted.

A table is a tuple of CuPy arrays of the same length, one a column, on each GPU. The first column is
the key, by which rows are divided. For ranges of keys::

    exchange = Exchange(Team(4))
    tables = exchange.team.each(lambda gpu: (keys[gpu], values[gpu]))
    mine = sorted_shuffle(exchange, tables, by_ranges(splitters))

after which GPU g has all rows whose keys are in its range, sorted by key; rows of equal keys are in
the order of the GPUs that they came from, and of the rows there. The same rows give the same result
whatever the timing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ngsgpu.collectives.execute import Exchange
from ngsgpu.collectives.peers import KERNELS
from ngsgpu.device.cuda.kernels import THREADS
from ngsgpu.device.cuda.sort import order_of_rows, radix_sort
from ngsgpu.device.errors import cuda_errors

Table = tuple[Any, ...]
"""Columns on a GPU."""

Owner = Callable[[Any], Any]
"""Gives for keys on the current GPU a CuPy array, uint8, of the numbers of the GPUs that get them;
called with that GPU current, and its kernels go on the current stream."""

ITEMS: Final = 2048
"""Items per block; kItems of the kernels."""

MOST_PARTS: Final = 64
"""kParts of the kernels."""

_SIZES: Final = (1, 2, 4, 8, 16)

_SAMPLES: Final = 1 << 14
"""Keys of each GPU by which ranges are chosen."""


def by_ranges(splitters: ArrayLike) -> Owner:
    """An owner by ranges: GPU g gets keys from ``splitters[g - 1]`` up to below ``splitters[g]``.

    Args:
        splitters: ascending, one less than there are GPUs; any range may be empty.
    """
    bounds = np.asarray(splitters)
    if (bounds[1:] < bounds[:-1]).any():
        raise ValueError("splitters must ascend")

    def owners(keys: Any) -> Any:
        import cupy

        if keys.dtype.kind != "u":
            raise ValueError(f"ranges of keys need unsigned integers, not {keys.dtype}")
        found = cupy.empty(len(keys), dtype=cupy.uint8)
        if len(keys):
            KERNELS.launch_threads(
                f"own_ranges_{keys.itemsize}",
                len(keys),
                keys,
                np.int64(len(keys)),
                cupy.asarray(bounds.astype(keys.dtype)),
                np.int32(len(bounds) + 1),
                found,
            )
        return found

    return owners


def sample_of(keys: Any) -> NDArray[Any]:
    """Keys of a column on the current GPU, at even distances, for ``even_splitters``."""
    import cupy

    places = np.unique(np.linspace(0, len(keys) - 1, min(_SAMPLES, len(keys)), dtype=np.int64))
    found: NDArray[Any] = cupy.asnumpy(keys[cupy.asarray(places)])
    return found


def even_splitters(
    samples: Sequence[NDArray[Any]], sizes: Sequence[int], ranges: int
) -> NDArray[Any]:
    """Keys that divide the rows of all GPUs into ranges of about the same size.

    Args:
        samples: of each GPU, from ``sample_of``; not all empty.
        sizes: rows of each GPU.
        ranges: how many.
    """
    weights = [
        np.full(len(own), size / max(1, len(own))) for own, size in zip(samples, sizes, strict=True)
    ]
    keys = np.concatenate(samples)
    order = np.argsort(keys)
    sums = np.cumsum(np.concatenate(weights)[order])
    wanted = sums[-1] * np.arange(1, ranges) / ranges
    found: NDArray[Any] = keys[order][np.minimum(np.searchsorted(sums, wanted), len(keys) - 1)]
    return found


def partition(
    columns: Sequence[Any], owners: Any, parts: int, out: Sequence[Any] | None = None
) -> tuple[Table, NDArray[np.int64]]:
    """Order rows on the current GPU by the part that they are for; rows of a part stay in order.

    Args:
        columns: contiguous CuPy arrays of n values of 1, 2, 4, 8 or 16 bytes.
        owners: CuPy uint8[n], part of each row, below ``parts``.
        parts: at most ``MOST_PARTS``.
        out: for the columns, arrays like them; by default new ones.

    Returns:
        The columns, and how many rows each part has, int64[parts].

    Raises:
        ValueError: an owner is no part, or a column is of another type.
        DeviceError: CUDA fails.
    """
    result, ends, wrong = _partition(columns, owners, parts, out)
    return result, _rows(ends, wrong, parts)


def shuffle(exchange: Exchange, tables: Sequence[Table], owner: Owner) -> list[Table]:
    """Give each GPU the rows whose keys it owns.

    Args:
        exchange: of the GPUs.
        tables: on each GPU its rows; lengths may differ and be 0, types may not.
        owner: of keys, from the first column.

    Returns:
        On each GPU its rows: those of GPU 0 in their order, then those of GPU 1, and so on. Memory
        is that of this thread's allocator: for the rows twice (ordered by owner, and as they
        arrive) and 1 byte a row.

    Raises:
        ValueError: columns are not as they should be, or an owner is no GPU.
        DeviceError: CUDA fails.
    """
    gpus = len(exchange)
    if len(tables) != gpus or len({len(table) for table in tables}) != 1:
        raise ValueError(f"{gpus} GPUs need a table each, of as many columns")

    def begin(gpu: int) -> tuple[Table, Any, Any]:
        return _partition(tables[gpu], owner(tables[gpu][0]), gpus, None)

    with cuda_errors("ordering rows by owner"):
        # All GPUs work before the first one is waited for.
        begun = exchange.team.each(begin)
        counts = np.stack([_rows(ends, wrong, gpus) for _, ends, wrong in begun])
    ordered = [one[0] for one in begun]
    del begun
    return exchange_rows(exchange, ordered, counts)


def exchange_rows(exchange: Exchange, tables: Sequence[Table], counts: ArrayLike) -> list[Table]:
    """Give each GPU rows that are ordered by owner already; see ``Exchange.all_to_all``.

    Args:
        exchange: of the GPUs.
        tables: on each GPU its rows.
        counts: int[n, n]; GPU i has ``counts[i, j]`` rows for GPU j.
    """
    columns = [
        exchange.all_to_all([table[number] for table in tables], counts)
        for number in range(len(tables[0]))
    ]
    return [tuple(own[gpu] for own in columns) for gpu in range(len(tables))]


def sorted_shuffle(
    exchange: Exchange, tables: Sequence[Table], owner: Owner, keys: int = 1
) -> list[Table]:
    """Give each GPU the rows whose keys it owns, sorted; see ``shuffle``.

    Args:
        exchange: of the GPUs.
        tables: on each GPU its rows; keys are unsigned integers.
        owner: of keys, from the first column.
        keys: number of columns, from the first on, to sort by; the first one counts most.

    Returns:
        On each GPU its rows; those of equal keys are in the order of ``shuffle``.

    Raises:
        ValueError, DeviceError: as for ``shuffle``.
    """
    return sort_rows(exchange, shuffle(exchange, tables, owner), keys)


def sort_rows(exchange: Exchange, tables: list[Table], keys: int = 1) -> list[Table]:
    """Sort the rows of each GPU, on all at the same time; stable, see ``sorted_shuffle``.

    The tables are used up: a single column is sorted in place.
    """
    import cupy

    streams = exchange.team.each(lambda gpu: cupy.cuda.get_current_stream())

    def work(gpu: int) -> Table:
        with streams[gpu], cuda_errors("sorting rows"):
            table, tables[gpu] = tables[gpu], ()
            if len(table) == keys == 1:
                radix_sort(table[0])
                return table
            if len(table[0]) < 2:
                return table
            order = order_of_rows(table[:keys])
            return tuple(column[order] for column in table)

    return exchange.team.at_once(work)


def _partition(
    columns: Sequence[Any], owners: Any, parts: int, out: Sequence[Any] | None
) -> tuple[Table, Any, Any]:
    """Columns ordered by owner, the sums of what blocks have of each part, whether any is wrong."""
    import cupy

    size = len(owners)
    if not 1 <= parts <= MOST_PARTS:
        raise ValueError(f"from 1 to {MOST_PARTS} parts, not {parts}")
    if owners.dtype != np.uint8 or any(
        column.shape != (size,) or not column.flags.c_contiguous or column.itemsize not in _SIZES
        for column in columns
    ):
        raise ValueError("columns must be contiguous, as long as the owners, of 1 to 16 bytes")
    if out is None:
        out = [cupy.empty_like(column) for column in columns]
    wrong = cupy.zeros(1, dtype=cupy.int32)
    if size == 0:
        return tuple(out), cupy.zeros(0, dtype=cupy.int64), wrong
    blocks = -(-size // ITEMS)
    found = cupy.empty(parts * blocks, dtype=cupy.int64)
    whole = np.int64(size), np.int32(parts)
    KERNELS.launch("count_parts", (blocks,), (THREADS,), (owners, *whole, found, wrong))
    ends = cupy.cumsum(found)
    del found
    for column, into in zip(columns, out, strict=True):
        arguments = (owners, ends, column, *whole, into)
        KERNELS.launch(f"place_items_{column.itemsize}", (blocks,), (THREADS,), arguments)
    return tuple(out), ends, wrong


def _rows(ends: Any, wrong: Any, parts: int) -> NDArray[np.int64]:
    """Rows of each part; waits for the GPU."""
    if len(ends) == 0:
        return np.zeros(parts, dtype=np.int64)
    if int(wrong[0]):
        raise ValueError(f"an owner is none of {parts} GPUs")
    blocks = len(ends) // parts
    last: NDArray[np.int64] = ends[blocks - 1 :: blocks].get()
    return np.diff(last, prepend=0)
