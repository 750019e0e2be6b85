"""Correction of ranges of reads on a GPU: their memory, and launches of the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.arena import room as room_in_arena
from ngsgpu.device.cuda.kernels import THREADS, grid_for, multiprocessors
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.memory import format_size
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import ADVICE
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.spectrum.gpu import FULL, KERNELS, RULES, Advance, DeviceSolid
from ngsgpu.spectrum.params import SearchRules

BLOCK: Final = 128
"""Threads that correct reads, of a block at most; kBlock of the kernels."""

BATCH_BYTES: Final = 2 << 30
"""GPU memory of a batch of reads, at most."""

RESULT_BYTES: Final = 1 + 4 + 4 + 2 + 4 + 8
"""Of a read: class, part, edits, place in the list; then the starts of the edits."""

RANGES_PER_GPU: Final = 8
"""Ranges of reads for each of several GPUs at least, so that all have work to the end."""

_LEAST_READS: Final = 1 << 16
"""Of a range, so that it fills a GPU."""

_FEWEST_READS: Final = 1 << 12
"""Of a range, however little memory there is."""

_START_BYTES: Final = 16
"""Of a read, for where its edits begin, after all others."""

_SMALLEST_BLOCK: Final = 32
_BLOCKS_PER_MULTIPROCESSOR: Final = 4

_VOTE_BYTES: Final = 16
"""Of a base; kVoteBytes of the kernels."""

_BASE_BYTES: Final = 13
_ALIGNMENT: Final = 128


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
    """Divide memory between the threads of a batch and its edits; None if it is too little.

    Args:
        room: GPU memory in bytes.
        reads: number of reads.
        max_length: bases of the longest read.
        most_blocks: blocks that the GPU runs at a time.
    """
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


def range_of(reads: int, gpus: int, room: int) -> int:
    """Reads that a GPU corrects before it takes further ones.

    Args:
        reads: how many there are.
        gpus: that divide them.
        room: bytes that there are for what is known of a range, and for batches.
    """
    share = reads
    if gpus > 1:
        share = max(_LEAST_READS, -(-reads // (RANGES_PER_GPU * gpus)))
    return max(1, min(reads, share, max(_FEWEST_READS, room // 2 // RESULT_BYTES)))


class Decisions(NamedTuple):
    """Decisions on all reads, on the host; as ``cpu.Results``, without the edits.

    Attributes:
        classes: uint8[reads].
        begin: int32[reads].
        end: int32[reads].
        counts: uint16[reads].
        starts: int64[reads], where the edits of each read begin, from those of its range on.
    """

    classes: NDArray[np.uint8]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    counts: NDArray[np.uint16]
    starts: NDArray[np.int64]

    @classmethod
    def allocate(cls, reads: int) -> Self:
        """Buffers for a number of reads."""
        return cls(
            np.empty(reads, dtype=np.uint8),
            np.empty(reads, dtype=np.int32),
            np.empty(reads, dtype=np.int32),
            np.empty(reads, dtype=np.uint16),
            np.empty(reads, dtype=np.int64),
        )


class Corrector:
    """Corrects reads of a read set on the current GPU; the result equals the CPU's.

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
        self._reads, self._solid = reads, solid
        self._kmer, self._rule = rules.kmer, rule
        self._choices = np.int32(rule), np.int32(mutations), np.int32(trim)
        self._rules = RULES.on_device(**rules._asdict())
        self._ambiguous = reads.ambiguous_struct()
        self._scores = to_device(scores)

    def correct(
        self, first: int, last: int, decisions: Decisions, advance: Advance
    ) -> list[NDArray[np.uint32]]:
        """Correct the reads from one up to another; return their edits, in the order of reads.

        Args:
            first: the first read.
            last: their end.
            decisions: gets what is decided on these reads.
            advance: called with the number of reads corrected since the last call.

        Raises:
            DeviceMemoryError: the memory of the arena in use does not suffice.
        """
        import cupy

        reads = self._reads
        size = last - first
        classes = cupy.zeros(size, dtype=cupy.uint8)
        begins = cupy.zeros(size, dtype=cupy.int32)
        ends = cupy.empty(size, dtype=cupy.int32)
        uniform = reads.uniform_length
        ends[:] = uniform if uniform >= 0 else reads.lengths[first:last]
        counts = cupy.zeros(size, dtype=cupy.uint16)
        listed = self._weak_reads(first, last)
        advance(size - len(listed))
        found: tuple[Any, ...] = classes, begins, ends, counts
        edits = self._edits(first, listed, self._batches(size, len(listed)), found, advance)
        del listed
        starts = cupy.cumsum(counts, dtype=cupy.int64)
        starts -= counts
        homes: tuple[Any, ...] = decisions
        for home, own in zip(homes, (*found, starts), strict=True):
            own.get(out=home[first:last])
        return edits

    def _weak_reads(self, first: int, last: int) -> Any:
        """The reads of a range that are to be corrected, counted from its first, ascending."""
        import cupy

        listed = cupy.empty(last - first, dtype=cupy.uint32)
        found = cupy.zeros(1, dtype=cupy.uint64)
        KERNELS.launch(
            "list_weak",
            grid_for(last - first, THREADS, FULL),
            (THREADS,),
            (self._reads.struct, self._ambiguous, np.int64(first), np.int64(last),
             self._solid.struct, np.int32(self._kmer), np.int32(self._rule), listed, found),
        )  # fmt: skip
        listed = listed[: int(found[0])]
        radix_sort(listed)
        return listed

    def _batches(self, reads: int, listed: int) -> Batches:
        """Plan the correction of a range's listed reads in the memory that is left."""
        longest = self._reads.max_length
        left = BATCH_BYTES + _START_BYTES * reads
        if (room := room_in_arena()) is not None:
            left = min(left, room)
        left -= _START_BYTES * reads
        found = batches_within(left, listed, longest, most_blocks())
        if found is None:
            raise DeviceMemoryError(
                f"correcting reads of up to {longest:,} bases takes more GPU memory than the "
                f"{format_size(max(0, left))} that are left; {ADVICE}"
            )
        return found

    def _edits(
        self, first: int, listed: Any, batches: Batches, found: tuple[Any, ...], advance: Advance
    ) -> list[NDArray[np.uint32]]:
        """Correct the listed reads of a range; their edits, batch by batch."""
        import cupy

        room = max(1, self._reads.max_length)
        stride = scratch_bytes(self._reads.max_length)
        scratch = cupy.empty(batches.blocks * batches.threads * stride, dtype=cupy.uint8)
        edits = cupy.empty(batches.reads * room, dtype=cupy.uint32)
        pieces = []
        for begin in range(0, len(listed), batches.reads):
            own = listed[begin : begin + batches.reads]
            KERNELS.launch(
                "correct_reads",
                (batches.blocks,),
                (batches.threads,),
                (self._reads.struct, self._ambiguous, self._scores, self._solid.struct,
                 self._rules, *self._choices, np.int64(first), own, np.int64(len(own)), scratch,
                 np.int64(stride), np.int32(room), *found, edits),
            )  # fmt: skip
            pieces.append(_packed(own, found[-1], edits, room))
            advance(len(own))
        return pieces


def _packed(own: Any, counts: Any, edits: Any, room: int) -> NDArray[np.uint32]:
    """The edits of a batch of reads, without the room between them."""
    import cupy

    ends = cupy.cumsum(counts[own], dtype=cupy.int64)
    size = int(ends[-1])
    out = cupy.empty(size, dtype=cupy.uint32)
    if size > 0:
        KERNELS.launch_threads(
            "pack_edits", len(own), own, np.int64(len(own)), counts, ends, edits, np.int32(room),
            out,
        )  # fmt: skip
    home: NDArray[np.uint32] = out.get()
    return home
