"""K-mers in GPU memory: found in the records of a chunk, sorted and counted; the plan of a run.

Sorting beats a hash table here: a radix sort reads and writes a k-mer of one word eight times in
order, where an insertion waits for one place at random (``docs/gpu.md`` has the bytes). K-mers of
several words are sorted by their last word, then by the one before, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.device.cuda.kernels import THREADS, KernelModule
from ngsgpu.device.cuda.sort import ARGSORT_BYTES, order_of_rows, radix_sort
from ngsgpu.device.plan import Allocation, MemoryPlan, first_fitting
from ngsgpu.io.gpu.parse import HEADROOM, SLOTS, slot_bytes
from ngsgpu.io.gpu.records import CHUNK_BYTES, MIN_CHUNK
from ngsgpu.kmers.params import MAX_COUNT

KERNELS: Final = KernelModule("ngsgpu.kmers")
ROWS: Final = 2048
"""Sorted k-mers per block; kRows of the kernels."""

MOST_ROWS: Final = (1 << 31) - 1
"""Of a buffer: places of its k-mers are uint32, and sorts of more rows are slower."""

_CHUNK_SHARE: Final = 64
SMALL_BYTES: Final = 8 << 20
"""Memory for what takes little."""

_LEAST_ROWS: Final = 2 * MAX_READ_LENGTH

LETTERS: Final = 32
"""Packed letters of a word."""

WORD_BYTES: Final = 12
"""A word of packed letters, and its marks."""

MOST_WORDS: Final = 1 << 24
"""Of a block of packed letters: 200 MB."""

PADDING: Final = 8
"""Words behind a block that kernels read; no k-mer begins there."""

_TEXT_SHARE: Final = 2
"""One part in this number of the memory is for letters at most; others go to the host."""

_BLOCK_SHARE: Final = 16
"""The same for a block of letters."""
_PIECES: Final = 8
_PIECE_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Counted:
    """Distinct k-mers on the GPU.

    Attributes:
        kmers: uint64[words, n], in ascending order.
        counts: uint16[n] or uint32[n].
    """

    kmers: Any
    counts: Any

    def __len__(self) -> int:
        return len(self.counts)

    def histogram(self) -> NDArray[np.int64]:
        """Distinct k-mers by count, int64[MAX_COUNT + 1]; the last is of higher ones, too."""
        import cupy

        found = cupy.zeros(MAX_COUNT + 1, dtype=cupy.uint64)
        name = _of_counts("tally", self.counts)
        KERNELS.launch_threads(name, len(self), self.counts, np.int64(len(self)), found)
        home: NDArray[np.int64] = found.get().astype(np.int64)
        return home

    def pieces(self, min_count: int, rows: int) -> Iterator[tuple[Any, Any]]:
        """K-mers, uint64[m, words], and their counts, without the less frequent ones.

        Args:
            min_count: lowest count.
            rows: most k-mers of a piece.
        """
        import cupy

        for begin in range(0, len(self), rows):
            counts = self.counts[begin : begin + rows]
            kmers = self.kmers[:, begin : begin + rows]
            if min_count > 1:
                kept = cupy.flatnonzero(counts >= min_count)
                kmers, counts = kmers[:, kept], counts[kept]
            yield cupy.ascontiguousarray(kmers.T), counts


def piece_rows(rows: int) -> int:
    """Most k-mers that leave the GPU at a time, if a buffer has room for them."""
    return max(ROWS, min(_PIECE_ROWS, rows // _PIECES))


def _of_counts(kernel: str, counts: Any) -> str:
    """Name of a kernel for counts of a type."""
    return kernel if counts.dtype == np.uint16 else f"{kernel}_wide"


def row_bytes(words: int, count_bytes: int = 2) -> int:
    """GPU memory for each k-mer of a buffer: itself, and what sorting and counting it takes."""
    sorting = 8 if words == 1 else 16 + ARGSORT_BYTES
    listing = 8 * words + 4 + count_bytes
    leaving = (16 * words + 18 + count_bytes) // _PIECES + 1
    return 8 * words + max(sorting, listing + leaving) + 2


def summed(columns: Any, counts: Any) -> Counted:
    """Add up counts of equal k-mers.

    Args:
        columns: uint64[words, n], in any order; sorted in place.
        counts: uint16[n] or uint32[n].
    """
    if len(counts) > 0:
        order = order_of_rows(columns)
        counts = counts[order]
        for column in columns:
            column[...] = column[order]
        del order
    return distinct_of(columns, len(counts), counts)


def counted_rows(kmers: Any, size: int, count_type: str = "uint16") -> Counted:
    """Count equal k-mers.

    Args:
        kmers: uint64[words, rows], changed.
        size: of the rows, how many are there.
        count_type: of the counts.
    """
    rows = kmers.shape[1]
    kmers = kmers[:, :size]
    if len(kmers) == 1:
        radix_sort(kmers[0])
    elif size > 0:
        order = order_of_rows(kmers)
        for column in kmers:
            column[...] = column[order]
        del order
    return distinct_of(kmers, rows, None, count_type)


def distinct_of(kmers: Any, stride: int, counts: Any, count_type: str = "uint16") -> Counted:
    """Count equal ones of sorted k-mers.

    Args:
        kmers: uint64[words, n], the columns ``stride`` apart.
        stride: that.
        counts: uint16[n] or uint32[n], how often each one occurs; None: once.
        count_type: of the sums, if each occurs once; otherwise that of ``counts``.
    """
    import cupy

    if counts is not None:
        count_type = counts.dtype

    words, size = kmers.shape
    if size == 0:
        return Counted(cupy.empty((words, 0), cupy.uint64), cupy.empty(0, count_type))
    blocks = -(-size // ROWS)
    firsts = cupy.empty(blocks, dtype=cupy.uint32)
    rows = (kmers, np.int64(stride), np.int64(size))
    KERNELS.launch(f"count_firsts_{words}", (blocks,), (THREADS,), (*rows, firsts))
    up_to = cupy.cumsum(firsts, dtype=cupy.int64)
    distinct = int(up_to[-1])
    found = cupy.empty((words, distinct), dtype=cupy.uint64)
    starts = cupy.empty(distinct, dtype=cupy.uint32)
    KERNELS.launch(
        f"list_firsts_{words}",
        (blocks,),
        (THREADS,),
        (*rows, up_to, np.int64(distinct), found, starts),
    )
    out = cupy.empty(distinct, dtype=count_type)
    KERNELS.launch_threads(
        _of_counts("count_rows", out),
        distinct,
        starts,
        np.int64(distinct),
        np.int64(size),
        np.uint64(0) if counts is None else counts,
        out,
    )
    return Counted(found, out)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPlan(MemoryPlan):
    """Memory of a run on the GPU.

    Attributes:
        rows: k-mers that there is room for.
        chunk_bytes: of a file.
        block_words: of the packed letters.
        passes: how often k-mers are found, about; 0 if that is unknown.
    """

    rows: int
    chunk_bytes: int
    block_words: int
    passes: int = 0

    def line(self) -> str:
        """See ``Plan``."""
        several = f"; in about {self.passes} ranges of k-mers" if self.passes > 1 else ""
        return MemoryPlan.line(self) + several


def plan_counting(letters: int | None, words: int, budget: int, count_bytes: int = 2) -> CountPlan:
    """Divide the memory of a GPU.

    Args:
        letters: most letters that the files have; None if that is unknown.
        words: of a k-mer.
        budget: GPU memory that may be used, in bytes.
        count_bytes: bytes of a count.

    Raises:
        DeviceMemoryError: it is too little.
    """
    chunk_bytes = max(MIN_CHUNK, min(CHUNK_BYTES, budget // _CHUNK_SHARE))
    reading = SLOTS * slot_bytes(chunk_bytes + 1) + 4 * chunk_bytes + SMALL_BYTES
    row = row_bytes(words, count_bytes)
    # Letters and separators are half of a chunk's bytes and of those carried into it, at most
    # HEADROOM; what the CPU reads is cut to what a block has room for.
    most_words = min(MOST_WORDS, budget // (_BLOCK_SHARE * WORD_BYTES))
    own_words = max(chunk_bytes, HEADROOM) // LETTERS
    block_words = max(min(most_words, (letters or 0) // LETTERS), own_words) + 4
    block = WORD_BYTES * (block_words + PADDING)
    packed = budget if letters is None else block * (letters // (LETTERS * block_words) + 2)
    beside = max(reading, _LEAST_ROWS * row + SMALL_BYTES)
    text = max(2 * block, min(packed, budget // _TEXT_SHARE, budget - beside))
    rows = min(MOST_ROWS, max(0, budget - text - SMALL_BYTES) // row)
    if letters is not None:
        rows = min(rows, letters)
    rows = max(rows, _LEAST_ROWS)
    plan = CountPlan(
        doing="counting k-mers",
        allocations=(
            Allocation("reading", reading, ("reading",)),
            Allocation("letters", text),
            Allocation("k-mers", rows * row + SMALL_BYTES, ("counting",)),
        ),
        budget=budget,
        rows=rows,
        chunk_bytes=chunk_bytes,
        block_words=block_words,
        passes=-(-(letters or 0) // rows),
    )
    return first_fitting([plan])
