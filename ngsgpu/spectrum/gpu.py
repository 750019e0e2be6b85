"""Launches of the spectrum correction's kernels: counting, the set of solid k-mers, correction.

K-mers are collected from the reads in GPU memory, sorted and counted, in parts if all of them do
not fit at a time: a part has those whose hashes begin alike. Those that occur at least twice are
kept until the thresholds are known, and become the set of solid k-mers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.arena import persistent
from ngsgpu.device.cuda.kernels import (
    THREADS,
    KernelModule,
    grid_for,
    multiprocessors,
)
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.cuda.structs import Struct, fields_of
from ngsgpu.device.memory import format_size
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import ADVICE
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.kmers.gpu import distinct_of, row_bytes
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.kmers import kmer_occurrences
from ngsgpu.spectrum import cpu
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

BLOCK: Final = 128
"""Threads that correct reads, of a block at most; kBlock of the kernels."""

MOST_ROWS: Final = 1_200_000_000
"""K-mers that are sorted at a time, at most."""

RESULT_BYTES: Final = 1 + 4 + 4 + 2 + 4 + 8
"""Of a read: class, part, edits, place in the list; then the starts of the edits."""

_SMALLEST_BLOCK: Final = 32
_BLOCKS_PER_MULTIPROCESSOR: Final = 4
_FULL: Final = 16
"""Blocks that read or write in a row, for each multiprocessor."""

_VOTE_BYTES: Final = 16
"""Of a base; kVoteBytes of the kernels."""

_BASE_BYTES: Final = 13
_ALIGNMENT: Final = 128
_PIECES: Final = 8

Advance = Callable[[int], None]


def table_bytes(keys: int) -> int:
    """GPU memory of a table of so many k-mers, half of whose slots are taken."""
    return 8 * SLOTS * _buckets(keys)


def _buckets(keys: int) -> int:
    return max(SLOTS, -(-2 * keys // SLOTS))


def filter_words(keys: int) -> int:
    """Words of a Bloom filter, as on the CPU."""
    return 1 << max(4, (keys - 1).bit_length())


def count_on_gpu(
    reads: DeviceReadSet, k: int, rows: int, kept_bytes: int, advance: Advance = lambda kmers: None
) -> KeptKmers:
    """Count the canonical k-mers of a read set, as ``counts.count_reads``.

    Args:
        reads: the read set; k-mers with ambiguous bases do not count.
        k: k-mer length, up to 31.
        rows: k-mers that there is room for at a time.
        kept_bytes: GPU memory for those that are kept; the others go to the host.
        advance: called with the number of k-mers counted since the last call.

    Raises:
        DeviceMemoryError: there are too many equal k-mers for that room.
    """
    import cupy

    kept = KeptKmers(1, kept_bytes, persistent)
    occurrences = kmer_occurrences(reads.uniform_length, reads.lengths, reads.reads, k)
    if occurrences == 0:
        return kept
    whole = (0, 1 << PART_BITS, occurrences)
    parts = [whole] if occurrences <= rows else _parts(reads, k, rows)
    ambiguous = reads.ambiguous_struct()
    buffer = cupy.empty(max(size for *_, size in parts), dtype=cupy.uint64)
    found = cupy.zeros(1, dtype=cupy.uint64)
    for first, last, _ in parts:
        found[:] = 0
        KERNELS.launch(
            "collect_kmers",
            grid_for(reads.reads, THREADS, _FULL),
            (THREADS,),
            (reads.struct, ambiguous, np.int64(reads.reads), np.int32(k), np.int32(first),
             np.int32(last), buffer, found),
        )  # fmt: skip
        own = buffer[: int(found[0])]
        radix_sort(own)
        counted = distinct_of(own.reshape(1, -1), len(own), None)
        kept.take(counted, 2, max(THREADS, len(buffer) // _PIECES))
        del counted
        advance(len(own))
    return kept


def _parts(reads: DeviceReadSet, k: int, rows: int) -> list[tuple[int, int, int]]:
    """Divide the k-mers by their hashes into parts of at most ``rows``: first, last, their number.

    Raises:
        DeviceMemoryError: there is no such division.
    """
    import cupy

    found = cupy.zeros(1 << PART_BITS, dtype=cupy.uint64)
    KERNELS.launch(
        "count_parts",
        grid_for(reads.reads, THREADS, _FULL),
        (THREADS,),
        (reads.struct, reads.ambiguous_struct(), np.int64(reads.reads), np.int32(k), found),
    )
    sizes = found.get().astype(np.int64).tolist()
    if max(sizes) > rows:
        raise DeviceMemoryError(
            f"{max(sizes):,} k-mers are to be counted at a time, which takes "
            f"{format_size(row_bytes(1) * max(sizes))} of GPU memory, and "
            f"{format_size(row_bytes(1) * rows)} may be used; {ADVICE}"
        )
    parts = [(0, 0, 0)]
    for i, size in enumerate(sizes):
        first, _, sum_of = parts[-1]
        if sum_of + size <= rows:
            parts[-1] = (first, i + 1, sum_of + size)
        else:
            parts.append((i, i + 1, size))
    return parts


@dataclass(frozen=True, slots=True)
class DeviceSolid:
    """A set of solid k-mers on the GPU; see ``solid.Solid``.

    Attributes:
        words: uint64, buckets of the table or words of the filter.
        struct: ``SOLID`` on the device.
    """

    words: Any
    struct: Any


def make_solid_on_gpu(
    kept: KeptKmers, solid_from: int, strong_from: int, *, bloom: bool
) -> DeviceSolid:
    """The set of k-mers that were kept; see ``solid.make_solid``."""
    import cupy

    keys = int(kept.histogram[solid_from:].sum()) if bloom else kept.size
    size = filter_words(keys) if bloom else _buckets(keys)
    with persistent():
        words = cupy.zeros(size if bloom else SLOTS * size, dtype=cupy.uint64)
        struct = SOLID.on_device(words=words, buckets=size, bloom=int(bloom))
    levels = [np.uint32(solid_from)] if bloom else [np.uint32(solid_from), np.uint32(strong_from)]
    for kmers, counts in kept.pieces:
        kmers = kmers.ravel()
        if type(counts) is np.ndarray:
            kmers, counts = to_device(kmers), to_device(counts)
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
    return DeviceSolid(words, struct)


@dataclass(frozen=True, slots=True)
class Batches:
    """How listed reads are corrected.

    Attributes:
        reads: how many at a time.
        blocks: that work on them.
        threads: of a block.
        bytes: GPU memory.
    """

    reads: int
    blocks: int
    threads: int
    bytes: int


def scratch_bytes(max_length: int) -> int:
    """GPU memory of a thread."""
    size = (max_length + 1) * (_VOTE_BYTES + _BASE_BYTES)
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def edit_bytes(max_length: int) -> int:
    """GPU memory for the edits of a read of a batch, twice, and for where they end."""
    return 8 * max(1, max_length) + 32


def batches_within(room: int, reads: int, max_length: int, most_blocks: int) -> Batches | None:
    """Divide memory between the threads of a batch and its edits; None if it is too little."""
    scratch, each = scratch_bytes(max_length), edit_bytes(max_length)
    for threads in (BLOCK, _SMALLEST_BLOCK):
        blocks = min(most_blocks, room // 2 // (threads * scratch))
        own = (room - blocks * threads * scratch) // each
        if blocks > 0 and own > 0:
            own = min(own, max(1, reads))
            blocks = min(blocks, -(-own // threads))
            return Batches(own, blocks, threads, blocks * threads * scratch + own * each)
    return None


def most_blocks() -> int:
    """Blocks that the current GPU runs at a time."""
    return _BLOCKS_PER_MULTIPROCESSOR * multiprocessors()


class Corrector:
    """Corrects the reads of a read set on the current GPU; the result equals the CPU's.

    Args:
        reads: the read set.
        solid: its solid k-mers.
        rules: of the search, with the length of k-mers.
        rule: number of the rule, as in ``cpu``.
        mutations: see ``SpectrumParameters``.
        trim: whether reads are going to be trimmed.
        scores: uint8, Phred score of each stored quality.
    """

    def __init__(
        self,
        reads: DeviceReadSet,
        solid: DeviceSolid,
        rules: SearchRules,
        *,
        rule: int,
        mutations: int,
        trim: bool,
        scores: NDArray[np.uint8],
    ) -> None:
        import cupy

        self._reads, self._solid = reads, solid
        self._kmer, self._rule = rules.kmer, rule
        self._choices = np.int32(rule), np.int32(mutations), np.int32(trim)
        self._rules = RULES.on_device(**rules._asdict())
        self._ambiguous = reads.ambiguous_struct()
        self._scores = to_device(scores)
        self._classes = cupy.zeros(reads.reads, dtype=cupy.uint8)
        self._begins = cupy.zeros(reads.reads, dtype=cupy.int32)
        self._ends = cupy.empty(reads.reads, dtype=cupy.int32)
        self._ends[:] = reads.uniform_length if reads.uniform_length >= 0 else reads.lengths
        self._counts = cupy.zeros(reads.reads, dtype=cupy.uint16)

    def weak_reads(self) -> Any:
        """The reads that are to be corrected, uint32, ascending."""
        import cupy

        reads = self._reads
        listed = cupy.empty(reads.reads, dtype=cupy.uint32)
        found = cupy.zeros(1, dtype=cupy.uint64)
        if reads.reads > 0:
            KERNELS.launch(
                "list_weak",
                grid_for(reads.reads, THREADS, _FULL),
                (THREADS,),
                (reads.struct, self._ambiguous, np.int64(reads.reads), self._solid.struct,
                 np.int32(self._kmer), np.int32(self._rule), listed, found),
            )  # fmt: skip
        listed = listed[: int(found[0])]
        radix_sort(listed)
        return listed

    def correct(self, listed: Any, batches: Batches, advance: Advance) -> NDArray[np.uint32]:
        """Correct listed reads; their edits, in the order of reads.

        Args:
            listed: see ``weak_reads``.
            batches: how they are corrected.
            advance: called with the number of reads corrected since the last call.
        """
        import cupy

        room = max(1, self._reads.max_length)
        stride = scratch_bytes(self._reads.max_length)
        scratch = cupy.empty(batches.blocks * batches.threads * stride, dtype=cupy.uint8)
        edits = cupy.empty(batches.reads * room, dtype=cupy.uint32)
        pieces = [np.zeros(0, dtype=np.uint32)]
        for begin in range(0, len(listed), batches.reads):
            own = listed[begin : begin + batches.reads]
            KERNELS.launch(
                "correct_reads",
                (batches.blocks,),
                (batches.threads,),
                (self._reads.struct, self._ambiguous, self._scores, self._solid.struct,
                 self._rules, *self._choices, own, np.int64(len(own)), scratch, np.int64(stride),
                 np.int32(room), self._classes, self._begins, self._ends, self._counts, edits),
            )  # fmt: skip
            pieces.append(self._packed(own, edits, room))
            advance(len(own))
        return np.concatenate(pieces)

    def _packed(self, own: Any, edits: Any, room: int) -> NDArray[np.uint32]:
        """The edits of a batch."""
        import cupy

        ends = cupy.cumsum(self._counts[own], dtype=cupy.int64)
        size = int(ends[-1])
        out = cupy.empty(size, dtype=cupy.uint32)
        if size > 0:
            KERNELS.launch_threads(
                "pack_edits",
                len(own),
                own,
                np.int64(len(own)),
                self._counts,
                ends,
                edits,
                np.int32(room),
                out,
            )
        home: NDArray[np.uint32] = out.get()
        return home

    def results(self, edits: NDArray[np.uint32]) -> tuple[cpu.Results, NDArray[np.int64]]:
        """The decisions on all reads with these edits, and where the edits of each read begin."""
        import cupy

        starts = cupy.cumsum(self._counts, dtype=cupy.int64)
        starts -= self._counts
        found = cpu.Results(
            self._classes.get(), self._begins.get(), self._ends.get(), self._counts.get(), edits
        )
        return found, starts.get()
