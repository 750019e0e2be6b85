"""Runs the CUDA kernels of the correction: sizes, batches, and their results on the GPU.

For each anchor the kernels give the correction of its certain positions and its whole consensus,
and vote on candidates; ``gpu_combine`` combines them as ``corrections`` does on the host.
``gpu_run`` plans and places the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.align.rules import RULES
from ngsgpu.correct.forests.gpu import DeviceForests
from ngsgpu.correct.gpu_tiers import (
    SHARED_BYTES,
    block_threads,
    tiers_for,
    useful_tiers,
    workspace_block_bytes,
)
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.workspace import COUNTERS, sampled_anchors, sampled_errors
from ngsgpu.device.arena import persistent
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import mapped_zeros
from ngsgpu.device.spread import seen_from_here
from ngsgpu.minhash.gpu import DeviceTables
from ngsgpu.minhash.gpu_memory import SLOT_BYTES
from ngsgpu.readset.gpu_kernels import ReadKernels

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

ANCHORS_PER_BATCH: Final = 1 << 20

COPIES: Final = 2
COPY_SHARE: Final = 16
"""Edits of ``COPIES`` batches may be on their way to the host; each uses this share of the memory
for a batch, otherwise its batch waits for it."""


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Memory for a batch of anchors; does not affect the result.

    Attributes:
        edit_bytes: for the edits of a batch, most of which is never written.
        workspace_blocks: blocks for anchors with too many candidates for shared memory.
    """

    edit_bytes: int = 1 << 30
    workspace_blocks: int = 528

    def smaller(self) -> BatchSizes:
        """Half of it."""
        return BatchSizes(self.edit_bytes // 2, max(1, self.workspace_blocks // 2))

    def anchors(self, max_length: int, mates: int) -> int:
        """Anchors per batch, at least 1."""
        room = self.edit_bytes // (8 * max(1, max_length) * mates)
        return max(1, min(ANCHORS_PER_BATCH, room))


def batch_bytes(sizes: BatchSizes, anchors: int, max_length: int, mates: int, hashes: int) -> int:
    """Bytes of the edits, slots and lists of a batch, for ``anchors`` in total.

    Args:
        sizes: memory for a batch of anchors.
        anchors: number of anchors of the run.
        max_length: bases of the longest read.
        mates: 2 for pairs, otherwise 1.
        hashes: number of tables.
    """
    batch = max(1, min(anchors, sizes.anchors(max_length, mates)))
    edits = batch * mates * 2 * max_length * 4
    slots = batch * mates * hashes * SLOT_BYTES
    return edits + COPIES * (edits // COPY_SHARE) + slots + batch * 2 * 4


class EditFetcher:
    """Copies the edits of a batch to the host while the next batch is corrected; a context manager.

    The written part of the buffer is first copied on the GPU, if there is room.

    Args:
        buffer: uint32 array on the current GPU, for the edits of a batch.

    Attributes:
        total: edits so far.
        fetched: the edits of all batches, after the block has ended.
    """

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.total = 0
        self.fetched: list[NDArray[np.uint32]] = []
        self._copies: list[Future[NDArray[np.uint32]]] = []

    def __enter__(self) -> None:
        import cupy

        self._device = cupy.cuda.Device()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-edits")

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=True)
        if error[0] is None:
            self.fetched += [copy.result() for copy in self._copies]
        self._copies.clear()

    def fetch(self, total: int) -> None:
        """Begin to copy the edits of the batch that ended, with which there are ``total``."""
        import cupy

        written = self.buffer[: total - self.total]
        self.total = total
        if len(self._copies) >= COPIES:
            self._copies[-COPIES].result()
        try:
            aside = written.copy()
        except MemoryError:
            self._copies.append(self._thread.submit(self._get, written))
            self._copies[-1].result()
            return
        # The copy is in the buffer's stream, what fetches it in another.
        cupy.cuda.get_current_stream().synchronize()
        self._copies.append(self._thread.submit(self._get, aside))

    def _get(self, edits: Any) -> NDArray[np.uint32]:
        with self._device:
            fetched: NDArray[np.uint32] = edits.get(stream=self._stream)
        return fetched


KERNELS = ReadKernels("ngsgpu.correct")

RESULTS: Final = {
    "classes": np.uint8,
    "edit_start": np.int64,
    "edit_count": np.uint16,
    "complete_start": np.int64,
    "complete_count": np.uint16,
    "edit_hash": np.uint64,
    "complete_hash": np.uint64,
    "vote_hash": np.uint64,
    "vote_state": np.uint32,
}
"""Memory kept per read."""

BY_ANCHOR: Final = tuple(name for name in RESULTS if not name.startswith("vote"))
"""Results that are written once, by the GPU that corrects the anchor; they may be on the host."""

ANCHOR_RESULT_BYTES = sum(np.dtype(RESULTS[name]).itemsize for name in BY_ANCHOR)
VOTE_BYTES = sum(np.dtype(kind).itemsize for kind in RESULTS.values()) - ANCHOR_RESULT_BYTES

EDITS_OF_A_GPU: Final = 1 << 40
"""Of several GPUs that write the starts of edits into the same arrays, each counts from its number
times this on."""

RESULT_ARRAYS: Final = Struct(__name__, "Results", {
    **{name: f"{np.dtype(kind).name}_t*" for name, kind in RESULTS.items()},
    "edits": "uint32_t*",
    "edit_total": "uint64_t*",
    "counters": "uint64_t*",
    "crowded": "uint32_t*",
    "crowded_count": "int32_t*",
})  # fmt: skip
"""Results of a run, indexed by read except for ``edits``; ``crowded`` lists the anchors whose
candidates did not fit, ``crowded_count`` their number and that of the anchors started."""

SIZES: Final = Struct(
    __name__, "Sizes", dict.fromkeys(("cells", "limit", "max_length", "margin"), "int32_t")
)
"""``Sizes`` of a launch, the same for every block."""


ORDERED_AT_A_TIME: Final = 1 << 22
ORDERING_BYTES: Final = 40
"""Bytes per read of these for ordering the anchors, in addition to them and a byte per read."""


def anchors_in_bucket_order(reads: DeviceReadSet, tables: DeviceTables) -> Any:
    """As ``ngsgpu.correct.cpu_run.anchors_in_bucket_order``: uint32, on the device."""
    import cupy

    mates, count = 2 if reads.paired else 1, reads.reads
    with persistent():
        anchors = cupy.empty(count // mates, dtype=cupy.uint32)
    listed = cupy.zeros(count, dtype=bool)
    done = 0

    def add(found: Any) -> Any:
        nonlocal done
        if reads.paired:
            found = found[(found & cupy.uint32(1)) == 0]
        anchors[done : done + len(found)] = found
        done += len(found)
        return found

    first = tables.tables[0]
    for begin in range(0, first.entries, ORDERED_AT_A_TIME):
        ids = first.ids[begin : min(begin + ORDERED_AT_A_TIME, first.entries)]
        listed[add(ids & cupy.uint32(0x7FFFFFFF))] = True
    for begin in range(0, count, ORDERED_AT_A_TIME):
        rest = cupy.flatnonzero(~listed[begin : begin + ORDERED_AT_A_TIME])
        add((rest + begin).astype(cupy.uint32))
    return anchors


def results_on_host(reads: int) -> dict[str, Any]:
    """The results of ``BY_ANCHOR`` in pinned host memory, for all GPUs.

    Raises:
        DeviceError: could not allocate pinned memory.
    """
    return {name: mapped_zeros(reads, RESULTS[name]) for name in BY_ANCHOR}


class AnchorCorrector:
    """Everything needed on a GPU for correcting anchors, and the results.

    All memory is allocated here, so that no batch fails halfway. Then ``observe``, ``clear`` and
    ``run`` follow.

    Args:
        reads: the read set.
        tables: its minhash tables.
        parameters: correction parameters.
        coverage: reads per genome position.
        sizes: memory of a batch.
        on_host: the results of ``BY_ANCHOR`` if they are on the host, of all GPUs.
        member: number of the GPU among those.

    Attributes:
        anchors: uint32, first mates if paired, in processing order.
        batch: anchors per batch.
        results: the arrays of ``RESULTS``, by name.
        counters: uint64[COUNTERS].

    Raises:
        UnsuitableError: a read is too long for the GPU's shared memory.
    """

    def __init__(
        self,
        reads: DeviceReadSet,
        tables: DeviceTables,
        parameters: CorrectionParameters,
        coverage: float,
        sizes: BatchSizes | None = None,
        on_host: Mapping[str, Any] | None = None,
        member: int = 0,
    ) -> None:
        import cupy

        sizes = sizes or BatchSizes()
        self._first_edit = 0 if on_host is None else member * EDITS_OF_A_GPU
        self.shares_results = on_host is not None
        self.reads = reads
        self.tables = tables
        self.mates = 2 if reads.paired else 1
        self._kernels = KERNELS.of(reads)
        self.threads = block_threads(reads.max_length, parameters.margin)
        tiers = tiers_for(reads.max_length, parameters.margin, self.mates)
        shared = [tier.bytes for tier in tiers if tier.bytes <= SHARED_BYTES]
        self.tiers = useful_tiers(tiers, [self._resident(size) for size in shared])
        self.anchors = anchors_in_bucket_order(reads, tables)
        with persistent():
            self.results = {
                name: seen_from_here(on_host[name])
                if on_host is not None and name in on_host
                else cupy.empty(reads.reads, dtype=kind)
                for name, kind in RESULTS.items()
            }
            self._parameters, self._coverage = parameters, coverage
            rules = parameters.rules(coverage, paired=reads.paired)
            self.rules = RULES.on_device(**rules._asdict())
            self.forests = DeviceForests(
                parameters.forests(coverage, with_qualities=reads.quality_bits > 0)
            )
            self.weights = cupy.asarray(quality_weights(reads.quality_bits, reads.levels))
            self.counters = cupy.zeros(COUNTERS, dtype=cupy.uint64)
            self._tier_numbers = [
                SIZES.on_device(**{name: getattr(tier, name) for name in SIZES.fields})
                for tier in self.tiers
            ]
            self._ambiguous = reads.ambiguous_struct()
            self._take_batch_memory(sizes)
        self.clear()

    def _take_batch_memory(self, sizes: BatchSizes) -> None:
        import cupy

        self.batch = sizes.anchors(self.reads.max_length, self.mates)
        most = max(1, min(len(self.anchors), self.batch))
        edits = max(1, most * self.mates * 2 * self.reads.max_length)
        self._edits = EditFetcher(cupy.empty(edits, dtype=cupy.uint32))
        self._edit_total = cupy.zeros(1, dtype=cupy.uint64)
        self._edit_total[:] = self._first_edit
        self._slots = cupy.empty((most * self.mates, len(self.tables.tables)), dtype=cupy.uint32)
        self._crowded = cupy.empty(most, dtype=cupy.uint32)
        self._left = cupy.empty(most, dtype=cupy.uint32)
        self._crowded_count = cupy.zeros(2, dtype=cupy.int32)
        self._workspace_blocks = min(sizes.workspace_blocks, most)
        size = self._workspace_blocks * workspace_block_bytes(self.tiers)
        self._workspace = cupy.empty(size, dtype=cupy.uint8)

    def run(
        self, batches: Iterable[slice], advance: Callable[[int], None] = lambda reads: None
    ) -> None:
        """Correct the anchors of batches.

        Args:
            batches: hands them out.
            advance: called with the number of reads corrected since the last call.
        """
        with self._edits:
            for places in batches:
                anchors = self.anchors[places]
                self._correct(anchors)
                advance(len(anchors) * self.mates)

    def observe(self) -> None:
        """Take the rules from the errors of a sample, as ``cpu_run.observed_rules`` does.

        To be called before any GPU corrects, and ``clear`` in between.
        """
        import cupy

        paired = self.reads.paired
        if not self._parameters.rules(self._coverage, paired=paired).variant_reads:
            return
        sample = sampled_anchors(self.reads.reads, self.mates)
        for first in range(0, len(sample), self.batch):
            self._edit_total[:] = self._first_edit
            self._launch_tiers(cupy.asarray(sample[first : first + self.batch]))
        rules = self._parameters.observed_rules(
            self._coverage, paired=paired, **sampled_errors(self.counters.get())
        )
        self.rules[:] = RULES.on_device(**rules._asdict())

    def clear(self) -> None:
        """Begin without results."""
        import cupy

        sample = cupy.asarray(sampled_anchors(self.reads.reads, self.mates))
        for name, array in self.results.items():
            if name in BY_ANCHOR and self.shares_results:
                # There are only those of the sample, on the host.
                for mate in range(self.mates):
                    array[sample + cupy.uint32(mate)] = 0
            else:
                array[:] = 0
        self.counters[:] = 0
        self._edit_total[:] = self._first_edit

    def release(self) -> None:
        """Release the memory that only batches need."""
        self._edits.buffer = None
        del self._workspace, self._crowded, self._left, self._slots

    @property
    def edits(self) -> list[NDArray[np.uint32]]:
        """The edits of all batches, in the order in which the results count them."""
        return self._edits.fetched

    def _struct(self) -> Any:
        """The struct ``RESULT_ARRAYS``; edits are counted over all batches."""
        return RESULT_ARRAYS.on_device(
            **self.results,
            edits=(self._edits.buffer.data.ptr - 4 * (self._first_edit + self._edits.total))
            % (1 << 64),
            edit_total=self._edit_total,
            counters=self.counters,
            crowded=self._crowded,
            crowded_count=self._crowded_count,
        )

    def _correct(self, anchors: Any) -> None:
        """Correct a batch of anchors (first mates where paired)."""
        self._launch_tiers(anchors)
        self._edits.fetch(int(self._edit_total[0]) - self._first_edit)

    def _launch_tiers(self, anchors: Any) -> None:
        self.tables.find_slots(self.reads, anchors, self.mates, self._slots)
        struct, places = self._struct(), None
        for tier in range(len(self.tiers)):
            self._crowded_count[:] = 0
            self._launch(tier, struct, anchors, places)
            left = int(self._crowded_count[0])
            if not left:
                break
            # The next launch overwrites the list while it reads it, were it not copied.
            places = self._left[:left]
            places[:] = self._crowded[:left]

    def _resident(self, shared_bytes: int) -> int:
        return self._kernels.resident_blocks("correct_anchors", self.threads, shared_bytes)

    def _launch(self, tier: int, struct: Any, anchors: Any, places: Any) -> None:
        """Correct anchors at some places of a batch, at all of them for None."""
        count = len(anchors if places is None else places)
        sizes = self.tiers[tier]
        in_shared = sizes.bytes <= SHARED_BYTES
        shared_bytes = sizes.bytes if in_shared else 0
        blocks = self._resident(shared_bytes)
        if not in_shared:
            blocks = min(blocks, self._workspace_blocks)
        self._kernels.launch(
            "correct_anchors",
            (max(1, min(blocks, count)),),
            (self.threads,),
            (
                self.reads.struct,
                self._ambiguous,
                self.tables.struct,
                self.weights,
                self.rules,
                self.forests.struct,
                struct,
                self._tier_numbers[tier],
                anchors,
                self._slots,
                np.int64(0) if places is None else places,
                np.int64(count),
                np.int64(0) if in_shared else self._workspace,
                np.int64(sizes.bytes),
            ),
            shared_bytes=shared_bytes,
        )
