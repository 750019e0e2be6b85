"""Minhash tables of read ends: find the reads that begin inside a sequence.

A read has two ends: end ``2 r`` is read r, end ``2 r + 1`` its reverse complement. An end is
indexed by the smallest hash among the k-mers of its first ``window`` bases. If a read begins
within a sequence and neither has an error there, the sequence's window at that position has the
same smallest hash, so one look-up per distinct window minimum finds all reads that begin there. The
sequence need not be a read. One function finds most ends; the others find those in which errors
hide the k-mer.

Unlike in the tables of whole reads (``ngsgpu.minhash.tables``), an end's window is as long as the
minimum overlap, so the windows of read and sequence agree except for errors, and few functions
suffice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.minhash.cpu import sort_by_key
from ngsgpu.minhash.end_set import END_MASK, EndSet, add_end
from ngsgpu.minhash.params import PLACE_BITS, EndParameters
from ngsgpu.pool import map_all
from ngsgpu.readset import ReadArrays, ReadSet
from ngsgpu.readset.cpu import plane_start, read_length
from ngsgpu.sequence.codec import base_at
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.kmers import append

ENTRY_BYTES = 8
MARK_BITS = 24
NO_KEY = ~np.uint64(0)

MAX_IN_CELL = 1 << 25
"""Entries of a cell beyond which a look-up does not go on."""

ENTRIES_PER_CELL = 4
"""Entries that share a cell of the directory on average, at most twice as many."""


class EndTables(NamedTuple):
    """The tables, as passed to kernels.

    Attributes:
        entries: uint64[hashes, 2 x reads], mark << 40 | place << 32 | end, by key and then by
            end; the place is the position of the k-mer in the end.
        cells: uint32[hashes, 2^cell_bits + 1], first entry of each cell; a cell holds the keys
            with the same highest bits, the mark their next 24.
        kmer: k-mer length.
        window: bases of an end whose k-mers count.
        first_function: number added to a k-mer by the first hash function.
        cell_bits: key bits that select the cell.
    """

    entries: NDArray[np.uint64]
    cells: NDArray[np.uint32]
    kmer: int
    window: int
    first_function: int
    cell_bits: int


@njit(nogil=True, cache=True)
def sign_ends(
    reads: ReadArrays,
    first: int,
    last: int,
    k: int,
    window: int,
    first_function: int,
    keys: NDArray[np.uint64],
    positions: NDArray[np.uint8],
) -> None:
    """Signatures of both ends of reads ``first`` to ``last`` under ``len(keys)`` functions.

    ``keys[f, end]`` becomes the low 2k bits of the smallest hash, ``positions[f, end]`` the (first)
    position of its k-mer in the end. Reads shorter than the window get ``NO_KEY``.
    """
    mask = ~np.uint64(0) if k == 32 else (np.uint64(1) << np.uint64(2 * k)) - np.uint64(1)
    smallest = np.empty(len(keys), dtype=np.uint64)
    for read in range(first, last):
        length = read_length(reads, read)
        start = plane_start(reads, read)
        words = (length + 63) >> 6
        for reverse_complemented in range(2):
            end = 2 * read + reverse_complemented
            if length < window:
                for function in range(len(keys)):
                    keys[function, end] = NO_KEY
                continue
            smallest[:] = NO_KEY
            kmer = np.uint64(0)
            for position in range(window):
                if reverse_complemented:
                    code = 3 - base_at(reads.planes, start, words, length - 1 - position)
                else:
                    code = base_at(reads.planes, start, words, position)
                kmer = append(kmer, np.uint64(code), k)
                if position < k - 1:
                    continue
                for function in range(len(keys)):
                    value = mix64(kmer + np.uint64(first_function + function))
                    if value < smallest[function]:
                        smallest[function] = value
                        positions[function, end] = position - (k - 1)
            for function in range(len(keys)):
                keys[function, end] = smallest[function] & mask


@njit(nogil=True, cache=True, inline="always")
def split_key(key: np.uint64, k: int, cell_bits: int) -> tuple[np.int64, np.uint64]:
    """Cell and mark of a key."""
    rest = np.uint64(2 * k - cell_bits)
    mark_shift = rest - np.uint64(MARK_BITS) if rest > np.uint64(MARK_BITS) else np.uint64(0)
    cell = np.int64(key >> rest) if rest < np.uint64(64) else np.int64(0)
    return cell, (key >> mark_shift) & np.uint64((1 << MARK_BITS) - 1)


@njit(nogil=True, cache=True)
def fill_ends(
    keys: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    positions: NDArray[np.uint8],
    k: int,
    cell_bits: int,
    entries: NDArray[np.uint64],
    cells: NDArray[np.uint32],
) -> None:
    """Turn sorted (key, end) pairs into a table."""
    at = 0
    for i in range(len(keys)):
        cell, mark = split_key(keys[i], k, cell_bits)
        while at <= cell:
            cells[at] = i
            at += 1
        place = np.uint64(positions[ends[i]])
        entries[i] = (mark << np.uint64(40)) | (place << np.uint64(32)) | np.uint64(ends[i])
    while at < len(cells):
        cells[at] = len(keys)
        at += 1


def cell_bits_for(reads: int, kmer: int) -> int:
    """Bits of the key that choose the cell, for a number of reads."""
    return min(2 * kmer, 28, max(0, (2 * reads // ENTRIES_PER_CELL).bit_length() - 1))


def planned_bytes(reads: int, parameters: EndParameters, threads: int) -> int:
    """Maximum memory in bytes for building and holding the tables of ``reads`` reads."""
    cells = 4 * ((1 << cell_bits_for(reads, parameters.kmer)) + 1)
    held = parameters.hashes * (2 * reads * ENTRY_BYTES + cells)
    signatures = 2 * reads * parameters.hashes * (8 + 1)
    sorting = 2 * reads * min(threads, parameters.hashes) * 2 * (8 + 4)
    return held + signatures + sorting


def build_end_tables(
    reads: ReadSet,
    parameters: EndParameters,
    *,
    threads: int = 1,
    advance: Callable[[int], None] = lambda tables: None,
) -> EndTables:
    """Build all tables.

    Args:
        reads: the read set.
        parameters: k-mer length, window, number of tables, hash functions.
        threads: how many threads work; the result does not depend on it.
        advance: called with the number of tables that were finished since the last call.
    """
    count, hashes = 2 * reads.reads, parameters.hashes
    bits = cell_bits_for(reads.reads, parameters.kmer)
    keys = np.empty((hashes, count), dtype=np.uint64)
    positions = np.zeros((hashes, count), dtype=np.uint8)
    pieces = np.linspace(0, reads.reads, 4 * threads + 1).astype(np.int64).tolist()

    def sign(bounds: tuple[int, int]) -> None:
        sign_ends(
            reads.arrays,
            *bounds,
            parameters.kmer,
            parameters.window,
            parameters.first_function,
            keys,
            positions,
        )

    map_all(threads, sign, itertools.pairwise(pieces), name="sign")
    long_enough = np.arange(count, dtype=np.uint32)
    if reads.reads and reads.min_length < parameters.window:
        long_enough = np.flatnonzero(keys[0] != NO_KEY).astype(np.uint32)
    entries = np.empty((hashes, len(long_enough)), dtype=np.uint64)
    cells = np.empty((hashes, (1 << bits) + 1), dtype=np.uint32)

    def build(function: int) -> None:
        # An own copy, since sorting moves keys and ends.
        own, ends = keys[function][long_enough], long_enough.copy()
        spare, spare_ends = np.empty_like(own), np.empty_like(ends)
        if sort_by_key(own, ends, spare, spare_ends, 2 * parameters.kmer):
            own, ends = spare, spare_ends
        fill_ends(
            own, ends, positions[function], parameters.kmer, bits, entries[function],
            cells[function],
        )  # fmt: skip
        advance(1)

    map_all(threads, build, range(hashes), name="build")
    return EndTables(
        entries, cells, parameters.kmer, parameters.window, parameters.first_function, bits
    )


@njit(nogil=True, cache=True)
def hash_kmers(
    tables: EndTables,
    codes: NDArray[np.uint8],
    first: Integer,
    last: Integer,
    hashes: NDArray[np.uint64],
) -> None:
    """Hashes of the k-mers of a sequence that end at positions ``first`` to ``last``, exclusive.

    ``hashes[f, i]`` becomes the hash of the k-mer at position i.
    """
    k = tables.kmer
    kmer = np.uint64(0)
    first = max(first, np.int64(k - 1))
    for position in range(first - (k - 1), last):
        kmer = append(kmer, np.uint64(codes[position]), k)
        if position < first:
            continue
        for function in range(len(hashes)):
            number = np.uint64(tables.first_function + function)
            hashes[function, position - (k - 1)] = mix64(kmer + number)


@njit(nogil=True, cache=True)
def find_begins(
    tables: EndTables,
    hashes: NDArray[np.uint64],
    first: Integer,
    last: Integer,
    most: int,
    met: EndSet,
    ends: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> int:
    """Find the reads that begin at positions ``first`` to ``last``, exclusive, of a sequence.

    The sequence must reach ``window`` bases beyond ``last - 1``, and ``hashes`` hold its k-mers
    (``hash_kmers``).

    Args:
        tables: the tables.
        hashes: uint64[functions, positions].
        first: first position.
        last: position after the last.
        most: maximum bucket entries examined per look-up.
        met: known ends; new ones are added.
        ends: int64, set to the new ends; surplus ends are dropped.
        starts: int64, set to where they begin.

    Returns:
        The number of new ends, in the order of functions, positions and ends. An end that begins at
        several positions counts for the first of them.
    """
    count = 0
    reach = tables.window - tables.kmer
    full_mask = ~np.uint64(0)
    mask = (
        full_mask
        if tables.kmer == 32
        else (np.uint64(1) << np.uint64(2 * tables.kmer)) - np.uint64(1)
    )
    for function in range(len(hashes)):
        row = hashes[function]
        best: Integer = np.int64(-1)
        begin = first
        while begin < last:
            # The leftmost minimum of the window at ``begin``, and how many windows share it.
            if best < begin:
                best = begin
                for position in range(begin + 1, begin + reach + 1):
                    if row[position] < row[best]:
                        best = position
            stop = begin + 1
            following = best
            while stop < last and best >= stop:
                if row[stop + reach] < row[best]:
                    following = stop + reach
                    break
                stop += 1
            cell, mark = split_key(row[best] & mask, tables.kmer, tables.cell_bits)
            looked_at = 0
            begins = np.int64(tables.cells[function, cell])
            ends_at = min(np.int64(tables.cells[function, cell + 1]), begins + MAX_IN_CELL)
            for i in range(begins, ends_at):
                entry = tables.entries[function, i]
                if entry >> np.uint64(40) != mark:
                    continue
                if looked_at == most:
                    break
                looked_at += 1
                place = np.int64((entry >> np.uint64(32)) & np.uint64((1 << PLACE_BITS) - 1))
                start = best - place
                if start < begin or start >= stop:
                    continue
                end = np.int64(entry & END_MASK)
                if count < len(ends) and add_end(met, end):
                    ends[count] = end
                    starts[count] = start
                    count += 1
            best = following
            begin = stop
    return count
