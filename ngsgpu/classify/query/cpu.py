"""Candidates of queries: look up features, sort the locations, find the best ranges.

As in MetaCache (Kobus 2022, sections 6.4.3 and 8.6): the locations of all features of a query are
sorted by target and window, and counted in ranges of consecutive windows of a target; each
target's candidate is its range with the most hits, on ties the first. The best candidates are
kept: those with more hits, on ties that of the earlier target; if the lowest rank is above
sequence, a taxon has one candidate, the best of its targets.

The hits of a range are the features in it, not their locations (other than in MetaCache): a
feature that repeats within a range counts once, so that hits do not depend on how repeats fall
into windows. Locations of a feature with gaps of less than a range form a run, and a range contains
the feature exactly if it meets the run. A range that ends with window r thus has as many hits as
there are runs that begin at r or before, less those that end before the range begins: locations
are sorted twice, as starts and as ends of runs (once where no feature repeats so closely). What is
reported of a range begins with the first start or end in it.

The list of the best is filled from one partition after another. Since the order is total and
targets belong to one partition, the result equals that of a single partition.

The arrays of an index come from a file: whatever they hold, kernels stay within their bounds.
Arrays computed here (``first_window``, ``block_target``, ``target``, ``taxon``) are trusted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import bucket_of, find_key
from ngsgpu.classify.params import SketchRules
from ngsgpu.classify.query.queries import CandidateArrays, Mates
from ngsgpu.classify.sketch.cpu import (
    find_syncmers,
    new_scratch,
    sketch_windows,
    unpack_bases,
    windows_of,
)
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.intrinsics import prefetch

BLOCK_BITS: Final = 6
"""Windows whose target is kept: every 64th."""

_INSERTION_SORTED: Final = 24
"""Locations that are sorted by insertion; more are sorted by merging."""


_AHEAD: Final = 16
"""Keys by which the processor is asked for memory before it is needed."""
_QUERIES_AHEAD: Final = 2


class PartitionArrays(NamedTuple):
    """The arrays of a partition, as passed to kernels.

    Attributes:
        directory: see ``ngsgpu.classify.index.index``.
        entries: see there.
        locations: see there.
        bits: of the directory.
        first_window: uint32[targets + 1], where each target's windows begin.
        block_target: int32, the target of the first window of each block of 64 windows.
        target: int32[targets], numbers of the partition's targets in the database, ascending.
        taxon: int32[targets], each target's taxon at the lowest rank of calls, or the lowest one
            above it, -1 without one; empty if calls may be sequences.
        sums: uint64, checksums of the index's blocks, see ``ngsgpu.classify.index.index``; empty
            if
            nothing is to be verified.
        checked: uint8, 1 for each verified block.
    """

    directory: NDArray[np.uint32]
    entries: NDArray[np.uint32]
    locations: NDArray[np.uint32]
    bits: int
    first_window: NDArray[np.uint32]
    block_target: NDArray[np.int32]
    target: NDArray[np.int32]
    taxon: NDArray[np.int32]
    sums: NDArray[np.uint64]
    checked: NDArray[np.uint8]


@njit(nogil=True, cache=True)
def sketch_queries(
    first: Mates,
    second: Mates,
    rules: SketchRules,
    codes: NDArray[np.uint8],
    keys: NDArray[np.uint32],
    key_start: NDArray[np.int64],
) -> None:
    """Compute the keys of queries.

    Args:
        first: reads or first mates.
        second: second mates; without records for single reads.
        rules: windows and sketches.
        codes: uint8, scratch for the longest read.
        keys: uint32, output: the keys of all queries, concatenated; see ``max_keys``.
        key_start: int64[n + 1], output: where each query's keys begin.
    """
    scratch = new_scratch(rules)
    at: Integer = np.int64(0)
    for i in range(first.start.size):
        key_start[i] = at
        at, batch, found = _sketch_mate(first, i, rules, codes, scratch, keys, at, at, 0)
        if second.start.size > 0:
            at, _, _ = _sketch_mate(second, i, rules, codes, scratch, keys, at, batch, found)
    key_start[first.start.size] = at


@njit(nogil=True, cache=True)
def _sketch_mate(
    mates: Mates,
    i: Integer,
    rules: SketchRules,
    codes: NDArray[np.uint8],
    scratch: NDArray[np.uint32],
    keys: NDArray[np.uint32],
    at: Integer,
    batch: Integer,
    found: Integer,
) -> tuple[Integer, Integer, Integer]:
    """Append the keys of a read or mate; see ``find_syncmers`` for what is returned."""
    no_windows = np.empty(0, dtype=np.uint32)
    end = unpack_bases(mates.data, mates.start[i], mates.end[i], codes, 0)
    if rules.smer > 0:
        return find_syncmers(
            codes, 0, end, end + 1, 0, rules, scratch, keys, no_windows, at, batch, found
        )
    last = windows_of(end, rules)
    at = sketch_windows(codes, 0, end, 0, last, rules, scratch, keys, no_windows, at)
    return at, batch, found


def max_keys(lengths: NDArray[np.int32], rules: SketchRules) -> int:
    """How many keys reads of these lengths have at most."""
    if rules.smer > 0:
        return int(lengths.sum(dtype=np.int64))
    windows = int((lengths // rules.stride).sum(dtype=np.int64)) + len(lengths)
    return windows * rules.sketch


@njit(nogil=True, cache=True)
def look_up(
    keys: NDArray[np.uint32],
    key_start: NDArray[np.int64],
    partition: PartitionArrays,
    location: NDArray[np.int64],
    count: NDArray[np.int64],
) -> Integer:
    """Look up the locations of keys.

    Args:
        keys: uint32.
        key_start: int64[n + 1], where each query's keys begin.
        partition: the index.
        location: int64[keys], output: each key's first location.
        count: int64[keys], output: its number of locations; always within ``locations``.

    Returns:
        The maximum number of locations of a query.
    """
    directory, entries, bits = partition.directory, partition.entries, partition.bits
    room = np.int64(partition.locations.size)
    total_keys = key_start[-1]
    for i in range(-2 * _AHEAD, total_keys):
        # The cache lines of later keys are prefetched while this one is looked up.
        if i + 2 * _AHEAD < total_keys:
            prefetch(directory, 2 * bucket_of(keys[i + 2 * _AHEAD], bits))
        if 0 <= i + _AHEAD < total_keys:
            prefetch(entries, np.int64(directory[bucket_of(keys[i + _AHEAD], bits), 0]))
        if i >= 0:
            first, many = find_key(directory, entries, bits, keys[i])
            location[i] = min(first, room)
            count[i] = min(many, room - location[i])
    most = np.int64(0)
    for query in range(key_start.size - 1):
        total = np.int64(0)
        for i in range(key_start[query], key_start[query + 1]):
            total += count[i]
        most = max(most, total)
    return most


@njit(nogil=True, cache=True)
def _merge_runs(
    values: NDArray[np.uint32],
    spare: NDArray[np.uint32],
    ends: NDArray[np.int64],
    runs: Integer,
) -> bool:
    """Merge ascending runs, two by two, until one is left.

    Args:
        values: the runs, concatenated.
        spare: scratch of the same length.
        ends: the end of each run; overwritten.
        runs: number of runs, at least one.

    Returns:
        Whether the result is in ``spare`` rather than in ``values``.
    """
    swapped = False
    while runs > 1:
        begin = np.int64(0)
        merged = 0
        for run in range(0, runs, 2):
            # Unsigned indices are not looked at for being negative.
            i = np.uintp(begin)
            middle = np.uintp(ends[run])
            end = ends[run + 1] if run + 1 < runs else ends[run]
            last = np.uintp(end)
            j = middle
            out = i
            while i < middle and j < last:
                left = values[i]
                right = values[j]
                takes_left = np.uintp(left <= right)
                spare[out] = min(left, right)
                i += takes_left
                j += np.uintp(1) - takes_left
                out += np.uintp(1)
            while i < middle:
                spare[out] = values[i]
                i += np.uintp(1)
                out += np.uintp(1)
            while j < last:
                spare[out] = values[j]
                j += np.uintp(1)
                out += np.uintp(1)
            ends[merged] = end
            merged += 1
            begin = end
        runs = merged
        values, spare = spare, values
        swapped = not swapped
    return swapped


@njit(nogil=True, cache=True)
def _sort_small(values: NDArray[np.uint32], count: Integer) -> None:
    """Sort a few values by insertion."""
    for i in range(1, count):
        value = values[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@njit(nogil=True, cache=True)
def insert_candidate(
    best: CandidateArrays,
    query: Integer,
    target: Integer,
    hits: Integer,
    begin: Integer,
    end: Integer,
    taxon: Integer,
) -> None:
    """Put a candidate into a query's list if it is one of the best.

    More hits come first, of equal ones the earlier target. A taxon that is not -1 has one place.
    """
    most = best.target.shape[1]
    count = 0
    while count < most and best.target[query, count] >= 0:
        count += 1
    if taxon >= 0:
        for i in range(count):
            if best.taxon[query, i] == taxon:
                had = best.hits[query, i]
                if hits < had or (hits == had and target > best.target[query, i]):
                    return
                for j in range(i + 1, count):
                    _move(best, query, j, j - 1)
                count -= 1
                break
    place = count
    while place > 0:
        other = best.hits[query, place - 1]
        if hits < other or (hits == other and target > best.target[query, place - 1]):
            break
        place -= 1
    if place == most:
        return
    for j in range(min(count, most - 1), place, -1):
        _move(best, query, j - 1, j)
    best.target[query, place] = target
    best.hits[query, place] = hits
    best.window_begin[query, place] = begin
    best.window_end[query, place] = end
    best.taxon[query, place] = taxon


@njit(nogil=True, cache=True)
def _move(best: CandidateArrays, query: Integer, source: Integer, sink: Integer) -> None:
    best.target[query, sink] = best.target[query, source]
    best.hits[query, sink] = best.hits[query, source]
    best.window_begin[query, sink] = best.window_begin[query, source]
    best.window_end[query, sink] = best.window_end[query, source]
    best.taxon[query, sink] = best.taxon[query, source]


@njit(nogil=True, cache=True)
def _target_of(window: Integer, partition: PartitionArrays) -> Integer:
    """The target of a window, by its number in the partition."""
    target = np.int64(partition.block_target[window >> BLOCK_BITS])
    while np.int64(partition.first_window[target + 1]) <= window:
        target += 1
    return target


@njit(nogil=True, cache=True)
def _scan_ranges(
    found: NDArray[np.uint32],
    last: NDArray[np.uint32],
    count: Integer,
    span: Integer,
    partition: PartitionArrays,
    best: CandidateArrays,
    query: Integer,
) -> None:
    """Find each target's best range among sorted locations and keep the best of them.

    Args:
        found: uint32, windows of the partition with which runs begin, ascending.
        last: uint32, windows with which runs end, ascending.
        count: how many.
        span: windows that a range may have.
        partition: the targets.
        best: the lists of candidates.
        query: the query.
    """
    last_place = best.target.shape[1] - 1
    i = np.int64(0)
    while i < count:
        window = np.int64(found[i])
        target = _target_of(window, partition)
        target_end = np.int64(partition.first_window[target + 1])
        left = first_start = i
        hits: Integer = 1
        begin = end = window
        i += 1
        while i < count and np.int64(found[i]) < target_end:
            window = np.int64(found[i])
            while left < i and window - np.int64(last[left]) >= span:
                left += 1
            if i - left + 1 > hits:
                hits = i - left + 1
                while window - np.int64(found[first_start]) >= span:
                    first_start += 1
                begin = min(np.int64(last[left]), np.int64(found[first_start]))
                end = window
            i += 1
        if best.target[query, last_place] >= 0 and hits < best.hits[query, last_place]:
            continue
        taxon = -1
        if partition.taxon.size > 0:
            taxon = partition.taxon[target]
            if taxon < 0:
                continue
        first = np.int64(partition.first_window[target])
        # A list that does not ascend, as it should, would lead before the target.
        begin, end = max(begin - first, np.int64(0)), max(end - first, np.int64(0))
        insert_candidate(best, query, partition.target[target], hits, begin, end, taxon)


@njit(nogil=True, cache=True)
def _copy_runs(
    partition: PartitionArrays,
    first: Integer,
    count: Integer,
    span: Integer,
    takes_ends: bool,
    values: NDArray[np.uint32],
    at: Integer,
) -> Integer:
    """Copy the starts or the ends of the runs of a feature.

    Args:
        partition: has the locations.
        first: number of the first location.
        count: number of locations.
        span: windows from which on a gap ends a run; 0: each location is a run.
        takes_ends: whether ends are copied.
        values: uint32, output.
        at: first index in it.

    Returns:
        The end of the values written.
    """
    last_window = np.uint32(partition.first_window[-1] - np.uint32(1))
    before = np.int64(-1)
    for i in range(first, first + count):
        value = min(partition.locations[i], last_window)
        window = np.int64(value)
        if (
            before >= 0
            and window - before < span
            and _target_of(before, partition) == _target_of(window, partition)
        ):
            if takes_ends:
                values[at - 1] = value
        else:
            values[at] = value
            at += 1
        before = window
    return at


@njit(nogil=True, cache=True)
def _sorted_runs(
    keys: tuple[Integer, Integer],
    location: NDArray[np.int64],
    location_count: NDArray[np.int64],
    span: Integer,
    takes_ends: bool,
    partition: PartitionArrays,
    values: NDArray[np.uint32],
    spare: NDArray[np.uint32],
    list_end: NDArray[np.int64],
) -> tuple[Integer, bool]:
    """The starts or the ends of the runs of a query's features, ascending.

    Args:
        keys: the query's first key, and the end of its keys.
        location: see ``add_candidates``.
        location_count: likewise.
        span: see ``_copy_runs``.
        takes_ends: likewise.
        partition: has the locations.
        values: uint32, scratch or output.
        spare: uint32, scratch or output.
        list_end: int64, scratch.

    Returns:
        Their number, and whether they are in ``spare`` rather than in ``values``.
    """
    count = np.int64(0)
    lists = 0
    for i in range(keys[0], keys[1]):
        if location_count[i] > 0:
            count = _copy_runs(
                partition, location[i], location_count[i], span, takes_ends, values, count
            )
            list_end[lists] = count
            lists += 1
    if count <= _INSERTION_SORTED:
        _sort_small(values, count)
        return count, False
    return count, _merge_runs(values, spare, list_end, lists)


@njit(nogil=True, cache=True)
def add_candidates(
    key_start: NDArray[np.int64],
    location: NDArray[np.int64],
    location_count: NDArray[np.int64],
    span: NDArray[np.int64],
    counts_once: bool,
    partition: PartitionArrays,
    values: NDArray[np.uint32],
    list_end: NDArray[np.int64],
    best: CandidateArrays,
) -> None:
    """Add the candidates of a partition to the lists of queries.

    Args:
        key_start: int64[n + 1], where each query's keys begin.
        location: int64, each key's first location, from ``look_up``.
        location_count: int64, its number of locations.
        span: int64[n], maximum windows in a range of the query.
        counts_once: whether a feature that repeats in a range is one hit.
        partition: the partition.
        values: uint32[4, m], scratch for the most locations of a query.
        list_end: int64, scratch for the most keys of a query.
        best: the lists.
    """
    for query in range(key_start.size - 1):
        if query + _QUERIES_AHEAD < key_start.size - 1:
            later = query + _QUERIES_AHEAD
            for i in range(key_start[later], key_start[later + 1]):
                prefetch(partition.locations, location[i])
        keys = key_start[query], key_start[query + 1]
        total = np.int64(0)
        for i in range(keys[0], keys[1]):
            total += location_count[i]
        if total == 0:
            continue
        gap = span[query] if counts_once else np.int64(0)
        count, swapped = _sorted_runs(
            keys, location, location_count, gap, False, partition, values[0], values[1], list_end
        )
        found = values[1] if swapped else values[0]
        last = found
        if count < total:
            _, swapped = _sorted_runs(
                keys, location, location_count, gap, True, partition, values[2], values[3], list_end
            )
            last = values[3] if swapped else values[2]
        _scan_ranges(found, last, count, span[query], partition, best, query)


@njit(nogil=True, cache=True)
def merge_candidates(other: CandidateArrays, best: CandidateArrays) -> None:
    """Put the candidates of ``other`` into the lists of the same queries."""
    for query in range(best.target.shape[0]):
        for i in range(other.target.shape[1]):
            if other.target[query, i] < 0:
                break
            insert_candidate(
                best,
                query,
                other.target[query, i],
                other.hits[query, i],
                other.window_begin[query, i],
                other.window_end[query, i],
                other.taxon[query, i],
            )
