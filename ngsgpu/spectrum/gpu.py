"""Launches of the spectrum correction's kernels: counting, and the set of solid k-mers.

K-mers are collected from the reads in GPU memory, sorted and counted, in parts if all of them do
not fit at a time: a part has those whose hashes begin alike, and each of several GPUs counts some
of the parts. Those that occur at least twice are kept until the thresholds are known, and become
the set of solid k-mers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from ngsgpu.device.arena import persistent
from ngsgpu.device.arena import room as room_in_arena
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_for
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.cuda.structs import Struct, fields_of
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, MemoryPlan
from ngsgpu.device.spread import seen_from_here
from ngsgpu.device.team import here
from ngsgpu.kmers.gpu import distinct_of, row_bytes
from ngsgpu.kmers.kept import KeptKmers, kept_bytes
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.kmers import kmer_occurrences
from ngsgpu.spectrum.params import SearchRules

KERNELS: Final = KernelModule("ngsgpu.spectrum")

SOLID: Final = Struct(__name__, "Solid", {
    "words": "const uint64_t*",
    "buckets": "uint64_t",
    "bloom": "int32_t",
})  # fmt: skip
"""A set of k-mers: buckets of ``SLOTS`` slots, or words of a Bloom filter."""

RULES: Final = Struct(__name__, "SearchRules", fields_of(SearchRules))

SLOTS: Final = 4
"""Slots of a bucket; kSlots of the kernels."""

PART_BITS: Final = 12
"""Bits of a hash by which k-mers are divided; kPartBits of the kernels."""

MOST_ROWS: Final = 1_200_000_000
"""K-mers that are sorted at a time, at most."""

FULL: Final = 16
"""Blocks that read or write in a row, for each multiprocessor."""

_PIECES: Final = 8
_FEWEST_BROUGHT: Final = 1 << 14

Advance = Callable[[int], None]


def table_bytes(keys: int) -> int:
    """GPU memory of a table for a number of k-mers, half of whose slots are taken."""
    return 8 * SLOTS * _buckets(keys)


def _buckets(keys: int) -> int:
    return max(SLOTS, -(-2 * keys // SLOTS))


def filter_words(keys: int) -> int:
    """Words of a Bloom filter, as on the CPU."""
    return 1 << max(4, (keys - 1).bit_length())


class Part(NamedTuple):
    """K-mers that are counted at a time.

    Attributes:
        first: the first of their parts, by the ``PART_BITS`` highest bits of their hashes.
        last: the end of these.
        size: how many there are, at most.
    """

    first: int
    last: int
    size: int


def divide_kmers(reads: DeviceReadSet, k: int, rows: int, gpus: int = 1) -> list[list[Part]]:
    """What each of several GPUs counts: about as many k-mers, in parts that there is room for.

    Args:
        reads: the read set, of the current GPU.
        k: k-mer length, up to 31.
        rows: k-mers that a GPU has room for at a time.
        gpus: how many.

    Raises:
        DeviceMemoryError: there is no such division, for too many k-mers are equal.
    """
    occurrences = kmer_occurrences(reads.uniform_length, reads.lengths, reads.reads, k)
    if occurrences == 0:
        return [[] for _ in range(gpus)]
    if gpus == 1 and occurrences <= rows:
        return [[Part(0, 1 << PART_BITS, occurrences)]]
    sizes = _part_sizes(reads, k)
    largest = Allocation("k-mers", row_bytes(1) * max(sizes))
    MemoryPlan(
        doing=f"counting {max(sizes):,} k-mers at a time",
        allocations=(largest,),
        budget=row_bytes(1) * rows,
    ).check()
    up_to = np.cumsum([0, *sizes])
    ends = np.searchsorted(up_to, [up_to[-1] * gpu // gpus for gpu in range(gpus)]).tolist()
    ends.append(len(sizes))
    return [_joined(sizes, ends[gpu], ends[gpu + 1], rows) for gpu in range(gpus)]


def _part_sizes(reads: DeviceReadSet, k: int) -> list[int]:
    """Number of k-mers of each of the smallest parts."""
    import cupy

    found = cupy.zeros(1 << PART_BITS, dtype=cupy.uint64)
    KERNELS.launch(
        "count_parts",
        grid_for(reads.reads, THREADS, FULL),
        (THREADS,),
        (reads.struct, reads.ambiguous_struct(), np.int64(reads.reads), np.int32(k), found),
    )
    sizes: list[int] = found.get().astype(np.int64).tolist()
    return sizes


def _joined(sizes: list[int], first: int, last: int, rows: int) -> list[Part]:
    """The smallest parts from one up to another, joined to as few of at most ``rows`` as may be."""
    parts: list[Part] = []
    for i in range(first, last):
        if parts and parts[-1].size + sizes[i] <= rows:
            parts[-1] = Part(parts[-1].first, i + 1, parts[-1].size + sizes[i])
        else:
            parts.append(Part(i, i + 1, sizes[i]))
    return [part for part in parts if part.size > 0]


def count_on_gpu(
    reads: DeviceReadSet,
    k: int,
    parts: Sequence[Part],
    room: int,
    advance: Advance = lambda kmers: None,
) -> KeptKmers:
    """Count canonical k-mers of a read set; with all parts, as ``counts.count_reads``.

    Args:
        reads: the read set, of the current GPU; k-mers with ambiguous bases do not count.
        k: k-mer length, up to 31.
        parts: which k-mers; see ``divide_kmers``.
        room: bytes of GPU memory for those that are kept; the others go to the host.
        advance: called with the number of k-mers counted since the last call.
    """
    import cupy

    kept = KeptKmers(1, room, persistent)
    if not parts:
        return kept
    ambiguous = reads.ambiguous_struct()
    buffer = cupy.empty(max(part.size for part in parts), dtype=cupy.uint64)
    found = cupy.zeros(1, dtype=cupy.uint64)
    for part in parts:
        found[:] = 0
        KERNELS.launch(
            "collect_kmers",
            grid_for(reads.reads, THREADS, FULL),
            (THREADS,),
            (reads.struct, ambiguous, np.int64(reads.reads), np.int32(k), np.int32(part.first),
             np.int32(part.last), buffer, found),
        )  # fmt: skip
        own = buffer[: int(found[0])]
        radix_sort(own)
        counted = distinct_of(own.reshape(1, -1), len(own), None)
        kept.take(counted, 2, max(THREADS, len(buffer) // _PIECES))
        del counted
        advance(len(own))
    return kept


@dataclass(frozen=True, slots=True)
class DeviceSolid:
    """A set of solid k-mers on a GPU; see ``solid.Solid``.

    Attributes:
        words: uint64, buckets of the table or words of the filter.
        buckets: how many there are.
        bloom: whether it is a filter.
        struct: ``SOLID`` on the device.
    """

    words: Any
    buckets: int
    bloom: bool
    struct: Any

    @classmethod
    def of(cls, words: Any, buckets: int, bloom: bool) -> DeviceSolid:
        """The filter made of some words, for the current GPU.

        Args:
            words: CuPy array of the filter's or table's words.
            buckets: number of buckets.
            bloom: whether it is a Bloom filter.
        """
        struct = SOLID.on_device(words=words, buckets=buckets, bloom=int(bloom))
        return cls(words, buckets, bloom, struct)

    def on_current_device(self, *, divided: bool = False) -> DeviceSolid:
        """The set of another GPU for the current one: a copy.

        Args:
            divided: whether it is divided over both; then it stays where it is.
        """
        words = (seen_from_here if divided else here)(self.words)
        return DeviceSolid.of(words, self.buckets, self.bloom)


def solid_bytes(kept: Sequence[KeptKmers], solid_from: int, *, bloom: bool) -> int:
    """GPU memory of the set of k-mers that were kept.

    Args:
        kept: k-mers that were kept on each GPU.
        solid_from: lowest count of a solid k-mer.
        bloom: whether the set is a Bloom filter.
    """
    size, a_bucket = _solid_size(kept, solid_from, bloom), 8 if bloom else 8 * SLOTS
    return size * a_bucket


def _solid_size(kept: Sequence[KeptKmers], solid_from: int, bloom: bool) -> int:
    """Words of a filter, or buckets of a table."""
    if bloom:
        return filter_words(sum(int(own.histogram[solid_from:].sum()) for own in kept))
    return _buckets(sum(own.size for own in kept))


def make_solid_on_gpu(
    kept: Sequence[KeptKmers],
    solid_from: int,
    strong_from: int,
    *,
    bloom: bool,
    keeping: Callable[[], AbstractContextManager[object]] = persistent,
) -> DeviceSolid:
    """The set of k-mers that were kept, on the current GPU; see ``solid.make_solid``.

    Args:
        kept: what each GPU has kept.
        solid_from: count from which a k-mer is solid.
        strong_from: count from which it is strong.
        bloom: make a Bloom filter.
        keeping: entered to allocate the set.
    """
    import cupy

    size = _solid_size(kept, solid_from, bloom)
    with keeping():
        words = cupy.empty(size if bloom else SLOTS * size, dtype=cupy.uint64)
    # By a kernel, for which memory may be of several GPUs.
    words ^= words
    levels = [np.uint32(solid_from)] if bloom else [np.uint32(solid_from), np.uint32(strong_from)]
    for own in kept:
        for kmers, counts in _brought(own):
            KERNELS.launch_threads(
                "fill_filter" if bloom else "fill_table",
                len(counts),
                kmers,
                counts,
                np.int64(len(counts)),
                *levels,
                words,
                np.uint64(size),
            )
    with persistent():
        return DeviceSolid.of(words, size, bloom)


def _brought(kept: KeptKmers) -> Iterator[tuple[Any, Any]]:
    """K-mers that were kept, and their counts, on the current GPU; a few at a time if they move."""
    import cupy

    for kmers, counts in kept.pieces:
        kmers = kmers.ravel()
        is_home = type(counts) is np.ndarray
        if not is_home and counts.device == cupy.cuda.Device():
            yield kmers, counts
            continue
        bring = to_device if is_home else here
        # Two times as many are there at a time: those before are still referred to.
        rows = max(_FEWEST_BROUGHT, (room_in_arena() or 0) // (4 * kept_bytes(1)))
        for begin in range(0, len(counts), rows):
            end = begin + rows
            yield bring(kmers[begin:end]), bring(counts[begin:end])
