"""Running the CUDA kernels of the correction: sizes, batches, and what comes back.

The kernels give, for each anchor, the correction of its certain positions and its whole
consensus, and vote on candidates; ``finish`` combines them as ``corrections`` does on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct import cpu
from ngsgpu.correct.corrections import VOTES_THAT_DECIDE, Corrections
from ngsgpu.correct.params import CorrectionParameters, Rules, quality_weights
from ngsgpu.device.kernels import KernelModule
from ngsgpu.errors import UsageError
from ngsgpu.minhash.gpu import DeviceTables
from ngsgpu.minhash.params import MAX_ENTRIES

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

KERNELS = KernelModule("ngsgpu.correct")
MAX_THREADS = 256
SHARED_BYTES = 220 << 10
"""Shared memory of a multiprocessor that blocks may take."""

ROWS, MASKS = 64, 4  # of msa.cuh

TIERS = ((256, 160), (512, 320), (1024, 640), (2048, 1400), (2 * MAX_ENTRIES, MAX_ENTRIES))
"""Hash cells and candidates a mate. An anchor with more is left to the next tier; what is too
large for shared memory lies in global memory."""

EDIT_BYTES = 1 << 30
"""Memory for the edits of a batch, of which most is never written."""

ANCHORS_A_BATCH = 1 << 20
CONFLICT = 1 << 31


@dataclass(frozen=True, slots=True)
class Sizes:
    """Memory of a block of ``correct_anchors``: hash cells and candidates of a mate, columns."""

    cells: int
    limit: int
    max_length: int
    margin: int
    mates: int

    @property
    def bytes(self) -> int:
        """Bytes a block takes, as the kernel lays them out."""
        columns = self.max_length + 2 * self.margin
        words = -(-columns // 32)
        candidates = self.mates * (12 * self.cells + 16 * self.limit)
        masks = 4 * (MASKS * words + words + -(-self.max_length // 32))
        planes = 16 * -(-columns // 64)
        a_column = 24 + 4 + 2 + 1  # sums, begins, list, consensus
        rest = ROWS * 32 + masks + 4 + planes + a_column * columns + self.max_length
        return -(-(candidates + rest) // 16) * 16


def correct_on_gpu(
    reads: DeviceReadSet,
    tables: DeviceTables,
    parameters: CorrectionParameters,
    coverage: float,
    *,
    advance: Callable[[int], None] = lambda reads: None,
) -> Corrections:
    """Correct all reads of a read set; equal to ``ngsgpu.correct.host.correct_on_cpu``.

    Args:
        reads: the read set.
        tables: its minhash tables.
        parameters: how reads are corrected.
        coverage: reads per position of the genome.
        advance: called with the number of reads corrected since the last call.

    Raises:
        UsageError: a read is too long for the GPU's shared memory.
    """
    run = _Run(reads, tables, parameters, coverage)
    mates = 2 if reads.paired else 1
    for begin in range(0, len(run.anchors), run.batch):
        batch = run.anchors[begin : begin + run.batch]
        run.correct(batch)
        advance(len(batch) * mates)
    return run.finish()


def anchors_in_bucket_order(reads: DeviceReadSet, tables: DeviceTables) -> Any:
    """As ``ngsgpu.correct.host.anchors_in_bucket_order``: uint32, on the device."""
    import cupy

    ids = tables.ids[0, : tables.entries[0]] & cupy.uint32(0x7FFFFFFF)
    listed = cupy.zeros(reads.reads, dtype=bool)
    listed[ids] = True
    rest = cupy.flatnonzero(~listed).astype(cupy.uint32)
    anchors = cupy.concatenate([ids, rest])
    return anchors[(anchors & cupy.uint32(1)) == 0] if reads.paired else anchors


def flat_rules(rules: Rules) -> NDArray[np.int32]:
    """The rules as the kernels' struct: all numbers in order."""
    numbers: list[int] = []
    for value in rules:
        numbers.extend(value if isinstance(value, tuple) else (value,))
    return np.array(numbers, dtype=np.int32)


class _Run:
    """Everything on the device that one correction needs."""

    def __init__(
        self,
        reads: DeviceReadSet,
        tables: DeviceTables,
        parameters: CorrectionParameters,
        coverage: float,
    ) -> None:
        import cupy

        self.reads = reads
        self.tables = tables
        self.rules = cupy.asarray(flat_rules(parameters.rules(coverage, paired=reads.paired)))
        self.weights = cupy.asarray(quality_weights(reads.quality_bits))
        mates = 2 if reads.paired else 1
        common = {"max_length": reads.max_length, "margin": parameters.margin, "mates": mates}
        self.tiers = [Sizes(cells=cells, limit=limit, **common) for cells, limit in TIERS]
        if self.tiers[0].bytes > SHARED_BYTES:
            raise UsageError(
                f"reads of {reads.max_length:,} bases are too long for the GPU; use --backend cpu"
            )
        columns = reads.max_length + 2 * parameters.margin
        self.threads = min(MAX_THREADS, -(-columns // 32) * 32)
        self.anchors = anchors_in_bucket_order(reads, tables)
        room = EDIT_BYTES // (8 * max(1, reads.max_length) * mates)
        self.batch = max(1, min(ANCHORS_A_BATCH, room))
        count = reads.reads
        self.classes = cupy.zeros(count, dtype=cupy.uint8)
        self.edit_start = cupy.zeros(count, dtype=cupy.int64)
        self.edit_count = cupy.zeros(count, dtype=cupy.uint16)
        self.complete_start = cupy.zeros(count, dtype=cupy.int64)
        self.complete_count = cupy.zeros(count, dtype=cupy.uint16)
        self.edit_hash = cupy.zeros(count, dtype=cupy.uint64)
        self.complete_hash = cupy.zeros(count, dtype=cupy.uint64)
        self.vote_hash = cupy.zeros(count, dtype=cupy.uint64)
        self.vote_state = cupy.zeros(count, dtype=cupy.uint32)
        self.edits = cupy.empty(
            max(1, min(len(self.anchors), self.batch) * mates * 2 * reads.max_length),
            dtype=cupy.uint32,
        )
        self.edit_total = cupy.zeros(1, dtype=cupy.uint64)
        self.counters = cupy.zeros(cpu.COUNTERS, dtype=cupy.uint64)
        self.crowded = cupy.empty(max(1, min(len(self.anchors), self.batch)), dtype=cupy.uint32)
        self.crowded_count = cupy.zeros(2, dtype=cupy.int32)
        unknown = reads.unknown
        self.unknown = cupy.array(
            [
                unknown.reads.data.ptr,
                unknown.start.data.ptr,
                unknown.positions.data.ptr,
                len(unknown.reads),
            ],
            dtype=cupy.int64,
        )
        self.pieces: list[Any] = []
        self.done = 0

    def _results(self) -> Any:
        """The kernel's struct of pointers; edits are counted over all batches."""
        import cupy

        return cupy.array(
            [
                self.classes.data.ptr,
                self.edit_start.data.ptr,
                self.edit_count.data.ptr,
                self.complete_start.data.ptr,
                self.complete_count.data.ptr,
                self.edit_hash.data.ptr,
                self.complete_hash.data.ptr,
                self.edits.data.ptr - 4 * self.done,
                self.edit_total.data.ptr,
                self.vote_hash.data.ptr,
                self.vote_state.data.ptr,
                self.counters.data.ptr,
                self.crowded.data.ptr,
                self.crowded_count.data.ptr,
            ],
            dtype=cupy.int64,
        )

    def correct(self, anchors: Any) -> None:
        """Correct a batch of anchors (first mates where paired)."""
        results = self._results()
        for sizes in self.tiers:
            self.crowded_count[:] = 0
            self._launch(sizes, results, anchors)
            left = int(self.crowded_count[0])
            if not left:
                break
            # The next launch overwrites the list while it reads it, were it not copied.
            anchors = self.crowded[:left].copy()
        total = int(self.edit_total[0])
        self.pieces.append(self.edits[: total - self.done].copy())
        self.done = total

    def _launch(self, sizes: Sizes, results: Any, anchors: Any) -> None:
        import cupy

        in_shared = sizes.bytes <= SHARED_BYTES
        shared_bytes = sizes.bytes if in_shared else 0
        fitting = KERNELS.resident_blocks("correct_anchors", self.threads, shared_bytes)
        blocks = max(1, min(fitting, len(anchors)))
        # Kept until the launch is done: memory is given back in the order of the stream.
        workspace = None if in_shared else cupy.empty(blocks * sizes.bytes, dtype=cupy.uint8)
        numbers = [sizes.cells, sizes.limit, sizes.max_length, sizes.margin]
        KERNELS.launch(
            "correct_anchors",
            (blocks,),
            (self.threads,),
            (
                self.reads.struct,
                self.unknown,
                self.tables.struct,
                self.weights,
                self.rules,
                results,
                cupy.array(numbers, dtype=cupy.int32),
                anchors,
                np.int64(len(anchors)),
                np.int64(0) if workspace is None else workspace,
                np.int64(sizes.bytes),
            ),
            shared_bytes=shared_bytes,
        )

    def finish(self) -> Corrections:
        """Combine what was decided (as ``CorrectionCollector.finish``) and bring it home."""
        import cupy

        low = self.classes == cpu.LOW_QUALITY
        decided = low & ((self.vote_state & cupy.uint32(CONFLICT - 1)) >= VOTES_THAT_DECIDE)
        agreed = decided & (self.vote_state < cupy.uint32(CONFLICT))
        confirmed = agreed & (self.vote_hash == self.edit_hash)
        completed = agreed & ~confirmed & (self.vote_hash == self.complete_hash)
        rejected = decided & ~confirmed & ~completed
        self.edit_count[rejected] = 0
        edit_start = cupy.where(completed, self.complete_start, self.edit_start)
        edit_count = cupy.where(completed, self.complete_count, self.edit_count)
        edits = cupy.concatenate(self.pieces) if self.pieces else cupy.zeros(0, dtype=cupy.uint32)
        return Corrections(
            edit_start=cupy.asnumpy(edit_start),
            edit_count=cupy.asnumpy(edit_count),
            edits=cupy.asnumpy(edits),
            counters=cupy.asnumpy(self.counters).astype(np.int64),
            high_quality=int(cupy.count_nonzero(self.classes == cpu.HIGH_QUALITY)),
            confirmed=int(cupy.count_nonzero(confirmed)),
            completed=int(cupy.count_nonzero(completed)),
            anchor_only=int(cupy.count_nonzero(low & ~decided)),
            rejected=int(cupy.count_nonzero(rejected)),
        )
