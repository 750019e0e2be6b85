"""Making an index of (key, window) pairs on the CPU.

The arrays are made from (key, window) pairs by one stable distribution over the keys' top bits
and, in each part, which fits a core's cache, two more over the rest (a radix sort), so that equal
keys meet with their windows in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import (
    COUNT_BITS,
    KEY_BITS,
    MAX_IN_ENTRY,
    NO_TAXA,
    Index,
    Limits,
    Pairs,
    WindowTaxa,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all

_PART_PAIRS: Final = 1 << 14
_MAX_PART_BITS: Final = 14
_WINDOW_MASK = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True)
def _count_parts(
    keys: NDArray[np.uint32],
    start: NDArray[np.int64],
    shift: NDArray[np.int64],
    part_shift: Integer,
    counts: NDArray[np.int64],
) -> None:
    """Count the pairs of each part, except those of pieces with a negative ``shift``."""
    for piece in range(shift.size):
        if shift[piece] >= 0:
            for i in range(start[piece], start[piece + 1]):
                counts[keys[i] >> part_shift] += 1


@njit(nogil=True, cache=True)
def _distribute(
    keys: NDArray[np.uint32],
    windows: NDArray[np.uint32],
    start: NDArray[np.int64],
    shift: NDArray[np.int64],
    part_shift: Integer,
    place: NDArray[np.int64],
    pairs: NDArray[np.uint64],
) -> None:
    """Put each pair into its part, as key and window of the partition in one word."""
    for piece in range(shift.size):
        if shift[piece] >= 0:
            for i in range(start[piece], start[piece + 1]):
                part = keys[i] >> part_shift
                window = np.uint64(windows[i]) + np.uint64(shift[piece])
                pairs[place[part]] = (np.uint64(keys[i]) << np.uint64(32)) | window
                place[part] += 1


@njit(nogil=True, cache=True)
def _sort_by_bits(
    source: NDArray[np.uint64],
    sink: NDArray[np.uint64],
    low: Integer,
    bits: Integer,
    counts: NDArray[np.int64],
) -> None:
    """One stable pass of a radix sort, by ``bits`` bits from bit ``low`` up."""
    mask = np.uint64((1 << bits) - 1)
    counts[: 1 << bits] = 0
    for i in range(source.size):
        counts[(source[i] >> np.uint64(low)) & mask] += 1
    total = 0
    for digit in range(1 << bits):
        count = counts[digit]
        counts[digit] = total
        total += count
    for i in range(source.size):
        digit = (source[i] >> np.uint64(low)) & mask
        sink[counts[digit]] = source[i]
        counts[digit] += 1


@njit(nogil=True, cache=True)
def _sort_part(
    pairs: NDArray[np.uint64], spare: NDArray[np.uint64], bits: Integer, counts: NDArray[np.int64]
) -> None:
    """Sort pairs by the lowest ``bits`` bits of their keys, in two stable passes."""
    first = (bits + 1) // 2
    _sort_by_bits(pairs, spare[: pairs.size], 32, first, counts)
    _sort_by_bits(spare[: pairs.size], pairs, 32 + first, bits - first, counts)


@njit(nogil=True, cache=True)
def _has_more_taxa(
    pairs: NDArray[np.uint64],
    start: Integer,
    end: Integer,
    first_window: NDArray[np.uint32],
    taxon: NDArray[np.int32],
    most: Integer,
) -> bool:
    """Whether the locations of a key belong to more than ``most`` taxa; -1 does not count."""
    seen = np.empty(most, dtype=np.int32)
    count = 0
    for i in range(start, end):
        window = np.uint32(pairs[i] & _WINDOW_MASK)
        own = taxon[np.searchsorted(first_window, window, side="right") - 1]
        if own < 0 or (seen[:count] == own).any():
            continue
        if count == most:
            return True
        seen[count] = own
        count += 1
    return False


@njit(nogil=True, cache=True)
def _condense_part(
    pairs: NDArray[np.uint64],
    limits: Limits,
    first_window: NDArray[np.uint32],
    taxon: NDArray[np.int32],
    entries: NDArray[np.uint64],
    locations: NDArray[np.uint32],
) -> tuple[Integer, Integer]:
    """Make entries and locations from the sorted pairs of a part.

    Args:
        pairs: uint64, sorted.
        limits: rules for keeping locations.
        first_window: see ``WindowTaxa``.
        taxon: see ``WindowTaxa``.
        entries: output: key << 32 | count; may share memory with ``pairs`` (never larger).
        locations: output: the windows.

    Returns:
        Numbers of entries and of locations.
    """
    entry_count = location_count = 0
    i = 0
    while i < pairs.size:
        key = pairs[i] >> np.uint64(32)
        end = i + 1
        while end < pairs.size and pairs[end] >> np.uint64(32) == key:
            end += 1
        kept = end - i
        if pairs[end - 1] & _WINDOW_MASK == _WINDOW_MASK:  # see REMOVED
            kept = 0
        if kept > limits.locations:
            kept = 0 if limits.remove_overfull else limits.locations
        if limits.taxa > 0 and _has_more_taxa(pairs, i, end, first_window, taxon, limits.taxa):
            kept = 0
        for j in range(kept):
            locations[location_count + j] = np.uint32(pairs[i + j] & _WINDOW_MASK)
        location_count += kept
        while True:
            count = min(kept, MAX_IN_ENTRY)
            entries[entry_count] = (key << np.uint64(32)) | np.uint64(count)
            entry_count += 1
            kept -= count
            if kept == 0:
                break
        i = end
    return entry_count, location_count


@njit(nogil=True, cache=True)
def write_part(
    condensed: NDArray[np.uint64],
    bits: Integer,
    first_entry: Integer,
    first_location: Integer,
    first_bucket: Integer,
    last_bucket: Integer,
    entries: NDArray[np.uint32],
    directory: NDArray[np.uint32],
) -> None:
    """Write a part's entries in their final form, and its lines of the directory.

    Args:
        condensed: uint64, key << 32 | count.
        bits: of the directory.
        first_entry: entries of the parts before.
        first_location: locations of the parts before.
        first_bucket: first line of the directory that is this part's.
        last_bucket: end of its lines.
        entries: all entries.
        directory: all lines.
    """
    rest = np.uint64(32 + 32 - bits)
    low = (np.uint64(1) << np.uint64(32 - bits)) - np.uint64(1)
    bucket = first_bucket
    location = first_location
    for i in range(condensed.size):
        own = np.int64(condensed[i] >> rest)
        while bucket <= own:
            directory[bucket, 0] = first_entry + i
            directory[bucket, 1] = location
            bucket += 1
        remainder = (condensed[i] >> np.uint64(32)) & low
        count = condensed[i] & _WINDOW_MASK
        entries[first_entry + i] = (remainder << np.uint64(COUNT_BITS)) | count
        location += np.int64(count)
    while bucket < last_bucket:
        directory[bucket, 0] = first_entry + condensed.size
        directory[bucket, 1] = location
        bucket += 1


def build_index(
    pairs: Sequence[Pairs],
    shifts: Sequence[NDArray[np.int64]],
    limits: Limits,
    *,
    taxa: WindowTaxa = NO_TAXA,
    threads: int = 1,
) -> Index:
    """Sort pairs into an index.

    Args:
        pairs: in the order of the targets and windows.
        shifts: for each of ``pairs`` int64[pieces], added to a window number to get that in the
            partition; -1 for pieces of other partitions.
        limits: rules for keeping locations.
        taxa: of the windows, if ``limits`` needs them.
        threads: number of threads; does not affect the result.
    """
    total = sum(len(chunk.keys) for chunk in pairs)
    part_bits = min(_MAX_PART_BITS, max(0, (total // _PART_PAIRS).bit_length()))
    part_shift = KEY_BITS - part_bits
    parts = 1 << part_bits
    counts = np.zeros((len(pairs) + 1, parts), dtype=np.int64)

    def count(chunk: int) -> None:
        own = pairs[chunk]
        _count_parts(own.keys, own.start, shifts[chunk], part_shift, counts[chunk + 1])

    map_all(threads, count, range(len(pairs)), name="index")
    part_start = np.zeros(parts + 1, dtype=np.int64)
    np.cumsum(counts.sum(axis=0), out=part_start[1:])
    place = part_start[:-1] + np.cumsum(counts, axis=0)[:-1]
    words = np.empty(int(part_start[-1]), dtype=np.uint64)

    def distribute(chunk: int) -> None:
        own = pairs[chunk]
        _distribute(
            own.keys, own.windows, own.start, shifts[chunk], part_shift, place[chunk], words
        )

    map_all(threads, distribute, range(len(pairs)), name="index")
    return _index_of_parts(words, part_start, part_shift, limits, taxa, threads)


def _index_of_parts(
    words: NDArray[np.uint64],
    part_start: NDArray[np.int64],
    part_shift: int,
    limits: Limits,
    taxa: WindowTaxa,
    threads: int,
) -> Index:
    """Sort and condense each part, then put all together."""
    parts = len(part_start) - 1
    held = np.empty(len(words), dtype=np.uint32)
    sizes = np.zeros((parts + 1, 2), dtype=np.int64)
    largest = int(np.diff(part_start).max(initial=0))

    def condense(first: int) -> None:
        spare = np.empty(largest, dtype=np.uint64)
        counts = np.empty(1 << ((part_shift + 1) // 2), dtype=np.int64)
        for part in range(first, parts, threads):
            span = slice(part_start[part], part_start[part + 1])
            _sort_part(words[span], spare, part_shift, counts)
            sizes[part + 1] = _condense_part(
                words[span], limits, taxa.first_window, taxa.taxon, words[span], held[span]
            )

    map_all(threads, condense, range(threads), name="index")
    np.cumsum(sizes, axis=0, out=sizes)
    index = Index.allocate(*sizes[-1].tolist())
    buckets = (1 << index.bits) // parts

    def write(first: int) -> None:
        for part in range(first, parts, threads):
            start = part_start[part]
            entries, locations = (sizes[part + 1] - sizes[part]).tolist()
            first_entry, first_location = sizes[part].tolist()
            write_part(
                words[start : start + entries], index.bits, first_entry, first_location,
                part * buckets, (part + 1) * buckets, index.entries, index.directory,
            )  # fmt: skip
            target = slice(first_location, first_location + locations)
            index.locations[target] = held[start : start + locations]

    map_all(threads, write, range(threads), name="index")
    return index
