"""Thinning an index: the part of it that a smaller fraction of all features has.

Whether a feature stays follows from its key alone, so that the result is the index that building
with the smaller fraction would have made. Entries are read one after the other, by parts of equal
keys' top bits, and each part is written where the sizes of the parts before it say.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.cpu import write_part
from ngsgpu.classify.index.index import COUNT_BITS, KEY_BITS, MAX_IN_ENTRY, MIN_BITS, Index
from ngsgpu.classify.params import ALL_KEYS
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all

_PART_BITS: Final = 8
_LOW_HALF = np.int64(ALL_KEYS - 1)


@njit(nogil=True, cache=True)
def _add_sizes(
    directory: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    bits: Integer,
    first: Integer,
    last: Integer,
    sizes: NDArray[np.int64],
) -> None:
    """Add entries and locations of lines ``first`` to ``last`` to those of their keys' low half."""
    for line in range(first, last):
        for i in range(np.int64(directory[line, 0]), np.int64(directory[line + 1, 0])):
            rest = np.int64(entries[i] >> np.uint32(COUNT_BITS))
            low = ((np.int64(line) << (KEY_BITS - bits)) | rest) & _LOW_HALF
            sizes[low, 0] += 1
            sizes[low, 1] += np.int64(entries[i] & np.uint32(MAX_IN_ENTRY))


@njit(nogil=True, cache=True)
def _keep(
    directory: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    locations: NDArray[np.uint32],
    bits: Integer,
    first: Integer,
    last: Integer,
    kept: Integer,
    condensed: NDArray[np.uint64],
    left: NDArray[np.uint32],
) -> None:
    """Copy what is kept of lines ``first`` to ``last``.

    Args:
        directory: of the index.
        entries: of the index.
        locations: of the index.
        bits: of the directory.
        first: first line.
        last: end of the lines.
        kept: see ``SketchRules``.
        condensed: uint64, output: key << 32 | count of each entry; long enough for them.
        left: uint32, output: the locations.
    """
    entry: Integer = 0
    place: Integer = 0
    for line in range(first, last):
        at = np.int64(directory[line, 1])
        for i in range(np.int64(directory[line, 0]), np.int64(directory[line + 1, 0])):
            rest = np.int64(entries[i] >> np.uint32(COUNT_BITS))
            key = (np.int64(line) << (KEY_BITS - bits)) | rest
            count = np.int64(entries[i] & np.uint32(MAX_IN_ENTRY))
            if key & _LOW_HALF < kept:
                condensed[entry] = (np.uint64(key) << np.uint64(32)) | np.uint64(count)
                left[place : place + count] = locations[at : at + count]
                entry += 1
                place += count
            at += count


def sizes_by_key(index: Index, threads: int = 1) -> NDArray[np.int64]:
    """Entries and locations of an index that each ``SketchRules.kept`` keeps.

    Args:
        index: whole.
        threads: number of threads.

    Returns:
        int64[ALL_KEYS + 1, 2].
    """
    parts = np.linspace(0, len(index.directory) - 1, threads + 1).astype(np.int64).tolist()

    def count(part: int) -> NDArray[np.int64]:
        sizes = np.zeros((ALL_KEYS, 2), dtype=np.int64)
        _add_sizes(index.directory, index.entries, index.bits, parts[part], parts[part + 1], sizes)
        return sizes

    found = np.zeros((ALL_KEYS + 1, 2), dtype=np.int64)
    np.cumsum(sum(map_all(threads, count, range(threads), name="thin")), axis=0, out=found[1:])
    return found


def thinned(index: Index, kept: int, threads: int = 1) -> Index:
    """The index without the keys that are not kept.

    Args:
        index: whole.
        kept: see ``SketchRules``.
        threads: number of threads; does not affect the result.
    """
    parts = 1 << min(_PART_BITS, MIN_BITS, index.bits)
    lines = (len(index.directory) - 1) // parts
    spans = [(part * lines, (part + 1) * lines) for part in range(parts)]
    sizes = np.zeros((parts + 1, 2), dtype=np.int64)

    def count(part: int) -> None:
        own = np.zeros((ALL_KEYS, 2), dtype=np.int64)
        _add_sizes(index.directory, index.entries, index.bits, *spans[part], own)
        sizes[part + 1] = own[:kept].sum(axis=0)

    map_all(threads, count, range(parts), name="thin")
    np.cumsum(sizes, axis=0, out=sizes)
    result = Index.allocate(*sizes[-1].tolist())
    buckets = (1 << result.bits) // parts

    def write(part: int) -> None:
        (first_entry, first_location), (_, last_location) = sizes[part : part + 2].tolist()
        condensed = np.empty(int(sizes[part + 1, 0]) - first_entry, dtype=np.uint64)
        _keep(
            index.directory, index.entries, index.locations, index.bits, *spans[part], kept,
            condensed, result.locations[first_location:last_location],
        )  # fmt: skip
        write_part(
            condensed, result.bits, first_entry, first_location,
            part * buckets, (part + 1) * buckets, result.entries, result.directory,
        )  # fmt: skip

    map_all(threads, write, range(parts), name="thin")
    return result
