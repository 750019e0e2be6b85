"""Checksums of index blocks, verified on first access.

A block is the part of an index with the same high key bits: their directory lines and the next
one, their entries and their locations, about 16 KiB. Its checksum is the sum of its words, each
times its position in its array (from 1), times a number per array, modulo 2^64. One changed word or
two swapped words always change it, anything else except with a probability of about 2^-64, and a
core sums some 10 GB per second.

A run verifies only the blocks its keys lead to, each once, so that a few reads do not wait for a
large database to be checked.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import KEY_BITS, Index
from ngsgpu.jit import njit
from ngsgpu.sequence.types import Integer

BLOCK_BYTES: Final = 1 << 14
_WORDS_AT_ONCE: Final = 1 << 15
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""Odd numbers, of directory, entries and locations."""
_DIRECTORY, _ENTRIES, _LOCATIONS = (np.uint64(factor) for factor in _FACTORS)
_PLACES = np.uint64(0xFFFFFFFF)


def blocks_of(index: Index) -> int:
    """How many blocks an index has: a power of 2, not more than lines of the directory."""
    size = index.directory.nbytes + index.entries.nbytes + index.locations.nbytes
    return 1 << min(index.bits, (size // BLOCK_BYTES).bit_length())


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
    with ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-sums") as pool:
        return np.concatenate(list(pool.map(work, parts)))


def _span_sums(words: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sums of words times their places, of the span between each two of ``start``."""
    sums = np.zeros(len(start) - 1, dtype=np.uint64)
    first = 0
    while first < len(sums):
        reach = int(np.searchsorted(start, start[first] + _WORDS_AT_ONCE, side="right")) - 1
        last = min(max(first + 1, reach), len(sums))
        begin, end = int(start[first]), int(start[last])
        has_words = np.flatnonzero(start[first:last] < start[first + 1 : last + 1])
        if len(has_words) > 0:
            weighted = np.arange(begin + 1, end + 1, dtype=np.uint64)
            weighted *= words[begin:end]
            inner = start[first:last][has_words] - begin
            sums[first + has_words] = np.add.reduceat(weighted, inner)
        first = last
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
