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
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_of_warps
from ngsgpu.device.cuda.sort import ARGSORT_BYTES, order_of_rows, radix_sort
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, MemoryPlan, first_fitting
from ngsgpu.io.gpu.parse import SLOTS, ParsedChunk, device_classes, slot_bytes
from ngsgpu.io.gpu.records import CHUNK_BYTES, MIN_CHUNK
from ngsgpu.kmers.params import MAX_COUNT, words_of

KERNELS: Final = KernelModule("ngsgpu.kmers")
ROWS: Final = 2048
"""Sorted k-mers per block; kRows of the kernels."""

MOST_ROWS: Final = (1 << 31) - 1
"""Of a buffer: places of its k-mers are uint32, and sorts of more rows are slower."""

_CHUNK_SHARE: Final = 64
SMALL_BYTES: Final = 8 << 20
"""Memory for what takes little."""

_LEAST_ROWS: Final = 2 * MAX_READ_LENGTH
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

    def starts(self, bits: int) -> NDArray[np.int64]:
        """Where the k-mers begin that have the same ``bits`` highest bits, int64[2^bits + 1]."""
        import cupy

        firsts = cupy.arange(1, 1 << bits, dtype=cupy.uint64) << cupy.uint64(64 - bits)
        middle = cupy.searchsorted(self.kmers[0], firsts).get()
        return np.concatenate(([0], middle, [len(self)])).astype(np.int64)

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


def joined_row_bytes(words: int, count_bytes: int = 2) -> int:
    """GPU memory for each row that ``add_up`` gets."""
    wider = 3 * (count_bytes - 2)  # counts as they came, in order, and added up
    return max(8 * words + 24 + ARGSORT_BYTES, 18 * words + 32) + 4 + wider


class KmerBuffer:
    """Room for k-mers, in the current GPU's memory.

    Args:
        k: k-mer length.
        rows: k-mers that there is room for.
        least: lowest quality character of a base that counts; 0 counts all.
        count_type: of the counts.

    Attributes:
        total: k-mers counted before.
    """

    def __init__(self, k: int, rows: int, least: int = 0, count_type: str = "uint16") -> None:
        import cupy

        self._count_type = count_type

        self.total = 0
        self._k = k
        self._words = words_of(k)
        self._rows = rows
        self._least = least
        self._most = 0
        self._classes = device_classes()
        self._kmers = cupy.empty((self._words, rows), dtype=cupy.uint64)
        self._found = cupy.zeros(2, dtype=cupy.uint64)

    @property
    def bases(self) -> int:
        """Letters of all records so far."""
        return int(self._found[1])

    @property
    def most(self) -> int:
        """K-mers that are there, or more."""
        return self._most

    def records_that_fit(self, chunk: ParsedChunk, records: int) -> int:
        """How many of some records of a chunk have room for sure."""
        most = max(1, chunk.max_length - self._k + 1)
        # Sequence and qualities are equally long.
        whole = min(most * records, len(chunk.slot.raw) // 2)
        for _ in range(2):
            room = self._rows - self._most
            if whole <= room:
                return records
            if most <= room:
                return min(records, room // most)
            self._most = int(self._found[0])
        return 0

    def find(self, chunk: ParsedChunk, record: int, records: int) -> None:
        """Add the k-mers of the first records of a chunk, for which there must be room.

        Args:
            chunk: a parsed chunk on the GPU.
            record: number of the first record.
            records: number of records.
        """
        most = max(0, chunk.max_length - self._k + 1) * records
        self._most += min(most, len(chunk.slot.raw) // 2)
        slot = chunk.slot
        KERNELS.launch(
            f"find_kmers_{self._words}",
            grid_of_warps(records),
            (THREADS,),
            (
                slot.raw, slot.seq_start, slot.qual_start, slot.lengths,
                np.uint32(record), np.uint32(records), self._classes, np.int32(self._least),
                np.int32(self._k), self._kmers, np.int64(self._rows), self._found,
            ),
        )  # fmt: skip

    def append(self, kmers: NDArray[np.uint64]) -> int:
        """Add k-mers from the host, uint64[n, words], as far as there is room; return how many."""
        at = int(self._found[0])
        size = min(len(kmers), self._rows - at)
        if size > 0:
            self._kmers[:, at : at + size] = to_device(np.ascontiguousarray(kmers[:size].T))
            self._found[0] = at + size
        self._most = at + size
        return size

    def counted(self) -> Counted:
        """Count what is there, and be empty."""
        size = int(self._found[0])
        kmers = self._kmers[:, :size]
        if self._words == 1:
            radix_sort(kmers[0])
        elif size > 0:
            order = order_of_rows(kmers)
            for column in kmers:
                column[...] = column[order]
            del order
        found = distinct_of(kmers, self._rows, None, self._count_type)
        self.total += size
        self._most = 0
        self._found[0] = 0
        return found


def add_up(kmers: NDArray[np.uint64], counts: NDArray[Any]) -> Counted:
    """Add up counts of equal k-mers from the host, uint64[n, words] in any order."""
    return summed(to_device(np.ascontiguousarray(kmers.T)), to_device(counts))


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
    """

    rows: int
    chunk_bytes: int


def plan_counting(
    letters: int | None, words: int, budget: int, gpus: int = 1, count_bytes: int = 2
) -> CountPlan:
    """Divide the memory of a GPU.

    Args:
        letters: most letters that the files have; None if that is unknown.
        words: of a k-mer.
        budget: GPU memory that may be used, in bytes.
        gpus: that divide the files' letters between them, chunk by chunk.
        count_bytes: bytes of a count.

    Raises:
        DeviceMemoryError: it is too little.
    """
    chunk_bytes = max(MIN_CHUNK, min(CHUNK_BYTES, budget // _CHUNK_SHARE))
    reading = SLOTS * slot_bytes(chunk_bytes + 1) + SMALL_BYTES
    row = row_bytes(words, count_bytes)
    rows = min(MOST_ROWS, (budget - reading) // row)
    if letters is not None:
        share = letters if gpus == 1 else letters // gpus + chunk_bytes
        rows = min(rows, max(share, _LEAST_ROWS))
    rows = max(rows, _LEAST_ROWS)
    plan = CountPlan(
        doing="counting k-mers",
        allocations=(Allocation("reading", reading), Allocation("k-mers", rows * row)),
        budget=budget,
        rows=rows,
        chunk_bytes=chunk_bytes,
    )
    return first_fitting([plan])
