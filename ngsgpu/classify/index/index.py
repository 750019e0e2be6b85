"""The index of a partition: the windows that contain each key.

Three arrays, memory-mapped from their files:

- ``locations``: uint32, numbers of windows, counted over all targets of the partition; those of a
  key are contiguous and ascending, and keys are in ascending order.
- ``entries``: uint32, one per key in the same order: the key's low bits (those not determined by
  ``directory``) in the upper half, the number of its locations in the lower. A key with more than
  65,535 locations has several entries; a removed key has an entry with none, so that the index
  still knows it when targets are added.
- ``directory``: uint32[2^bits + 1, 2], for each value of a key's top ``bits`` bits the first of
  its entries and of its locations. There are about four to eight entries for each.

A look-up reads one cache line of each.

Checksums are kept of blocks of the index. A block is the part with the same high key bits: their
directory lines and the next one, their entries and their locations, about 16 KiB. Its checksum is
the sum of its words, each times its position in its array (from 1), times a number per array,
modulo 2^64. One changed word or two swapped words always change it, anything else except with a
probability of about 2^-64, and a core sums some 10 GB per second. A run verifies only the blocks
its keys lead to, each once, so that a few reads do not wait for a large database to be checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all, parts_within

KEY_BITS: Final = 32
MIN_BITS: Final = 16
"""Bits of the directory at least, so that an entry's half holds the rest of the key."""
COUNT_BITS: Final = 16
MAX_IN_ENTRY: Final = (1 << COUNT_BITS) - 1
ENTRIES_PER_BUCKET: Final = 8
MAX_LOCATIONS: Final = (1 << 32) - 1
REMOVED: Final = (1 << 32) - 1
"""The window of a pair that removes its key; comes after all other pairs."""


@dataclass(frozen=True, slots=True)
class Index:
    """See the module.

    Attributes:
        directory: uint32[2^bits + 1, 2].
        entries: uint32[entries].
        locations: uint32[locations].
    """

    directory: NDArray[np.uint32]
    entries: NDArray[np.uint32]
    locations: NDArray[np.uint32]

    @classmethod
    def allocate(cls, entries: int, locations: int) -> Index:
        """Arrays of an index, of which only the end of the directory is set."""
        bits = directory_bits(entries)
        index = cls(
            np.empty(((1 << bits) + 1, 2), dtype=np.uint32),
            np.empty(entries, dtype=np.uint32),
            np.empty(locations, dtype=np.uint32),
        )
        index.directory[-1] = entries, locations
        return index

    @property
    def bits(self) -> int:
        """Bits of a key that choose a line of the directory."""
        return int(len(self.directory) - 1).bit_length() - 1


class Limits(NamedTuple):
    """Which locations an index keeps.

    Attributes:
        locations: of a key at most.
        remove_overfull: whether keys with more lose all of theirs, not only the last ones.
        taxa: of a key at most; 0 where taxa do not matter.
    """

    locations: int
    remove_overfull: int
    taxa: int

    @classmethod
    def of(cls, parameters: DatabaseParameters) -> Limits:
        """The limits of a database."""
        taxa = parameters.max_taxa if parameters.ambiguous_rank else 0
        return cls(parameters.max_locations, int(parameters.remove_overfull), taxa)


class Members(NamedTuple):
    """The targets of a partition.

    Attributes:
        target: int32[n], their numbers in the database, ascending.
        first_window: uint32[n + 1], where the windows of each begin, and their number.
        shift: int64[targets + 1], by numbers in the database: what to add to the number of a
            window; -1 for targets of other partitions, and at the end.
    """

    target: NDArray[np.int32]
    first_window: NDArray[np.uint32]
    shift: NDArray[np.int64]

    @classmethod
    def of(cls, number: int, partition: NDArray[np.int32], windows: NDArray[np.int64]) -> Members:
        """The members of a partition, by each target's partition and windows.

        Args:
            number: number of the partition.
            partition: partition of each target, int32[n].
            windows: number of windows of each target, int64[n].
        """
        target = np.flatnonzero(partition == number).astype(np.int32)
        first_window = np.zeros(len(target) + 1, dtype=np.uint32)
        np.cumsum(windows[target], out=first_window[1:])
        shift = np.full(len(partition) + 1, -1, dtype=np.int64)
        shift[target] = first_window[:-1]
        return cls(target, first_window, shift)


@dataclass(frozen=True, slots=True)
class WindowTaxa:
    """The taxon of each window, for the removal of ambiguous features.

    Attributes:
        first_window: uint32[targets + 1], where each target's windows begin.
        taxon: int32[targets], the target's taxon at the rank that counts, or -1.
    """

    first_window: NDArray[np.uint32]
    taxon: NDArray[np.int32]


NO_TAXA: Final = WindowTaxa(np.zeros(1, dtype=np.uint32), np.zeros(0, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class Pairs:
    """(key, window) pairs of pieces of targets, in the order of targets and windows.

    Attributes:
        keys: uint32[pairs].
        windows: uint32[pairs], numbers within the target.
        start: int64[pieces + 1], where each piece's pairs begin.
        target: int64[pieces], the piece's target.
    """

    keys: NDArray[np.uint32]
    windows: NDArray[np.uint32]
    start: NDArray[np.int64]
    target: NDArray[np.int64]


@njit(nogil=True, cache=True)
def bucket_of(key: np.uint32, bits: Integer) -> Integer:
    """The directory line of a key."""
    return np.int64(key >> np.uint32(32 - bits))


@njit(nogil=True, cache=True)
def find_key(
    directory: NDArray[np.uint32], entries: NDArray[np.uint32], bits: Integer, key: np.uint32
) -> tuple[Integer, Integer]:
    """Look a key up; the arrays may hold anything.

    Returns:
        Its first location and how many it has.
    """
    bucket = bucket_of(key, bits)
    wanted = key & np.uint32((np.int64(1) << (32 - bits)) - 1)
    location: Integer = np.int64(directory[bucket, 1])
    count: Integer = 0
    last = min(np.uintp(directory[bucket + 1, 0]), np.uintp(entries.size))
    for i in range(np.uintp(directory[bucket, 0]), last):
        entry = entries[i]
        remainder = entry >> np.uint32(COUNT_BITS)
        if remainder >= wanted:
            if remainder > wanted:
                break
            count += np.int64(entry & np.uint32(MAX_IN_ENTRY))
        else:
            location += np.int64(entry & np.uint32(MAX_IN_ENTRY))
    return location, count


@njit(nogil=True, cache=True)
def _unfold(
    directory: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    bits: Integer,
    keys: NDArray[np.uint32],
) -> None:
    """Write the key of every location to ``keys``; the arrays may hold anything."""
    for bucket in range(directory.shape[0] - 1):
        location = np.int64(directory[bucket, 1])
        last = min(np.int64(directory[bucket + 1, 0]), np.int64(entries.size))
        for i in range(np.int64(directory[bucket, 0]), last):
            key = (np.int64(bucket) << (32 - bits)) | np.int64(entries[i] >> np.uint32(COUNT_BITS))
            count = np.int64(entries[i] & np.uint32(MAX_IN_ENTRY))
            keys[location : location + count] = key
            location += count


def keys_of_locations(index: Index) -> NDArray[np.uint32]:
    """The key of every location, uint32[locations]: with ``locations``, the pairs again."""
    keys = np.empty(len(index.locations), dtype=np.uint32)
    _unfold(index.directory, index.entries, index.bits, keys)
    return keys


def removed_keys(index: Index) -> NDArray[np.uint32]:
    """Keys of an index without a location, ascending."""
    place = np.flatnonzero(index.entries & MAX_IN_ENTRY == 0)
    bucket = np.searchsorted(index.directory[:, 0], place, side="right") - 1
    rest = index.entries[place] >> COUNT_BITS
    return ((bucket << (KEY_BITS - index.bits)) | rest).astype(np.uint32)


def directory_bits(entries: int) -> int:
    """Directory bits for this many entries."""
    return max(MIN_BITS, min(28, (-(-entries // ENTRIES_PER_BUCKET) - 1).bit_length()))


def index_bytes(locations: int) -> int:
    """Approximate maximum size in bytes of an index of this many pairs."""
    return 10 * locations + (8 << MIN_BITS)


BLOCK_BYTES: Final = 1 << 14
_FILE_HEADER: Final = 128
_FILES: Final = 4
_WORDS_AT_ONCE: Final = 1 << 15
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""Odd numbers, of directory, entries and locations."""
_DIRECTORY, _ENTRIES, _LOCATIONS = (np.uint64(factor) for factor in _FACTORS)
_PLACES = np.uint64(0xFFFFFFFF)


def blocks_of(index: Index) -> int:
    """How many blocks an index has: a power of 2, not more than lines of the directory."""
    size = index.directory.nbytes + index.entries.nbytes + index.locations.nbytes
    return _blocks(index.bits, size)


def _blocks(bits: int, size: int) -> int:
    return 1 << min(bits, (size // BLOCK_BYTES).bit_length())


def stored_bytes(entries: int, locations: int) -> int:
    """Bytes on the disk of an index with as many entries and locations, and of its checksums."""
    bits = directory_bits(entries)
    size = 8 * ((1 << bits) + 1) + 4 * entries + 4 * locations
    return size + 8 * _blocks(bits, size) + _FILES * _FILE_HEADER


def block_sums(index: Index, threads: int = 1) -> NDArray[np.uint64]:
    """Checksums of the blocks of a whole index, uint64[blocks]."""
    blocks = blocks_of(index)
    lines = len(index.directory) // blocks
    bounds = index.directory[::lines].astype(np.int64)
    line = np.arange(blocks + 1, dtype=np.int64) * lines
    words = index.directory.reshape(-1)
    arrays = (
        (words, 2 * line, _DIRECTORY),
        (index.entries, bounds[:, 0], _ENTRIES),
        (index.locations, bounds[:, 1], _LOCATIONS),
    )

    def work(part: NDArray[np.int64]) -> NDArray[np.uint64]:
        sums = np.zeros(len(part), dtype=np.uint64)
        for array, start, factor in arrays:
            sums += _span_sums(array, start[part[0] : part[-1] + 2]) * factor
        for at in (2 * line[part + 1], 2 * line[part + 1] + 1):  # the line after the block's
            sums += words[at] * (at + 1).astype(np.uint64) * _DIRECTORY
        return sums

    parts = np.array_split(np.arange(blocks), min(blocks, threads))
    return np.concatenate(map_all(threads, work, parts, name="sums"))


def _span_sums(words: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sums of words times their places, of the span between each two of ``start``."""
    sums = np.zeros(len(start) - 1, dtype=np.uint64)
    for first, last in parts_within(start[1:] - start[0], _WORDS_AT_ONCE):
        begin, end = int(start[first]), int(start[last])
        has_words = np.flatnonzero(start[first:last] < start[first + 1 : last + 1])
        if len(has_words) > 0:
            weighted = np.arange(begin + 1, end + 1, dtype=np.uint64)
            weighted *= words[begin:end]
            inner = start[first:last][has_words] - begin
            sums[first + has_words] = np.add.reduceat(weighted, inner)
    return sums


@njit(nogil=True, cache=True)
def _sum(words: NDArray[np.uint32], begin: Integer, end: Integer) -> np.uint64:
    """Sum of words times their places."""
    total = np.uint64(0)
    for i in range(np.uintp(begin), np.uintp(end)):
        total += np.uint64(words[i]) * ((np.uint64(i) + np.uint64(1)) & _PLACES)
    return total


@njit(nogil=True, cache=True)
def check_blocks(
    keys: NDArray[np.uint32],
    directory: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    locations: NDArray[np.uint32],
    sums: NDArray[np.uint64],
    checked: NDArray[np.uint8],
) -> Integer:
    """Compare the blocks that keys lead to and that were not compared before.

    Threads may do so at the same time; at worst, two compare the same block.

    Args:
        keys: uint32.
        directory: see ``ngsgpu.classify.index.index``; any bytes.
        entries: see there; any bytes.
        locations: see there; any bytes.
        sums: uint64[blocks], see ``block_sums``.
        checked: uint8[blocks], 1 for those that were compared and are whole; changed.

    Returns:
        Whether all are whole.
    """
    lines = (directory.shape[0] - 1) // sums.size
    shift = np.int64(KEY_BITS)
    while (np.int64(1) << (KEY_BITS - shift)) < sums.size:
        shift -= 1
    words = directory.reshape(-1)
    for i in range(keys.size):
        block = np.int64(keys[i]) >> shift
        if checked[block]:
            continue
        begin, end = block * lines, (block + 1) * lines
        first = min(np.int64(directory[begin, 0]), entries.size)
        last = min(np.int64(directory[end, 0]), entries.size)
        own = _sum(words, 2 * begin, 2 * end + 2) * _DIRECTORY
        own += _sum(entries, first, max(first, last)) * _ENTRIES
        first = min(np.int64(directory[begin, 1]), locations.size)
        last = min(np.int64(directory[end, 1]), locations.size)
        own += _sum(locations, first, max(first, last)) * _LOCATIONS
        if own != sums[block]:
            return False
        checked[block] = 1
    return True
