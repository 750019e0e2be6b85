"""The extension of pairs on a GPU: kernel memory, launches, results.

A single kernel (``kernels.cu``) does all the work: its warps take pairs until none are left. The
appended bases are packed, so that only they are copied over the bus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import ReusedMemory
from ngsgpu.errors import DeviceError
from ngsgpu.extend.cpu import COUNTERS, Extensions, max_bases
from ngsgpu.extend.rules import RULES, Rules
from ngsgpu.extend.tasks.task import MAX_CANDIDATES
from ngsgpu.readset.gpu_kernels import ReadKernels
from ngsgpu.sequence.codec import words_for

if TYPE_CHECKING:
    from ngsgpu.minhash.ends_gpu import DeviceEndTables
    from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory

KERNELS: Final = ReadKernels("ngsgpu.extend")
WARPS: Final = 4  # of a block, as in kernels.cu
THREADS: Final = 32 * WARPS
TASKS: Final = 4

BYTES_PER_CANDIDATE: Final = 32
SET_CELLS: Final = (2 << 13) - (1 << 8)
"""Cells of a task's set of ends, in tables of all sizes (``ends.cuh``)."""

BYTES_PER_WORD: Final = 16 + 16 + 64
"""Bytes per 64 bases of a sequence: planes, stream, qualities."""

ROW_BYTES: Final = 1 + 3 * 4 + 8
"""Of a pair's result, without its bases."""

MAX_READS: Final = (1 << 30) - 1

BATCH: Final = Struct(__name__, "Batch", {
    "pairs": "const int64_t*",
    "first_pair": "int64_t",
    "count": "int64_t",
    "kind": "uint8_t*",
    "total": "int32_t*",
    "left": "int32_t*",
    "right": "int32_t*",
    "start": "int64_t*",
    "codes": "uint8_t*",
    "qualities": "uint8_t*",
    "progress": "uint64_t*",
    "counters": "uint64_t*",
    "workspace": "char*",
    "words": "int64_t",
})  # fmt: skip
"""A launch's pairs (null: consecutive ones), where their results go, and where warps work; of
``progress`` see ``_TAKEN`` and so on; ``words`` are those of a plane of a sequence."""

_TAKEN, _WRITTEN, _BUSY, _LONGEST = range(4)
_PROGRESS: Final = 4


def sequence_words(rules: Rules, longest_read: int) -> int:
    """Words per plane of a task's sequence, including room for writes of a step beyond its end."""
    longest = longest_read + rules.max_length + rules.pair_slack + rules.step
    return words_for(longest) + 2


def slab_bytes(rules: Rules, longest_read: int) -> int:
    """Global memory that a warp works in."""
    slots = TASKS if rules.outward else TASKS // 2
    candidates = BYTES_PER_CANDIDATE * MAX_CANDIDATES + 4 * SET_CELLS
    return TASKS * BYTES_PER_WORD * sequence_words(rules, longest_read) + slots * candidates


def resident_blocks(reads: DeviceReadSet | ReadMemory, pairs: int) -> int:
    """Blocks that work concurrently on this many pairs of the reads on the current GPU."""
    resident = KERNELS.of(reads).resident_blocks("extend_pairs", THREADS)
    return max(1, min(resident, -(-pairs // WARPS)))


def result_bytes(rules: Rules, pairs: int) -> int:
    """Maximum device memory for the results of this many pairs."""
    return pairs * (ROW_BYTES + 2 * max_bases(rules))


def workspace_bytes(rules: Rules, reads: ReadMemory, pairs: int) -> int:
    """Device memory of an extender for batches of up to this many pairs of the reads.

    Args:
        rules: the parameters as integers.
        reads: memory and lengths of the reads.
        pairs: maximum number of pairs in a batch.
    """
    slabs = WARPS * resident_blocks(reads, pairs) * slab_bytes(rules, reads.max_length)
    # With the list of the pairs, and what CuPy rounds up.
    return slabs + result_bytes(rules, pairs) + 8 * pairs + 8192


class DeviceExtender:
    """Extends pairs of a read set on the current GPU, on the current stream, one batch at a time.

    The results equal those of ``ngsgpu.extend.cpu.extend_pairs``.

    Args:
        reads: the read set.
        tables: the tables of its reads' ends.
        rules: the parameters as integers.
        memory: for the bases of results, on the host.

    Raises:
        DeviceError: there are too many reads.
    """

    def __init__(
        self,
        reads: DeviceReadSet,
        tables: DeviceEndTables,
        rules: Rules,
        memory: ReusedMemory | None = None,
    ) -> None:
        import cupy

        if reads.reads > MAX_READS:
            raise DeviceError(
                f"{reads.reads:,} reads are more than the {MAX_READS:,} that can be extended on "
                "a GPU; use `backend='cpu'`"
            )
        self.reads = reads
        self.tables = tables
        self.rules = rules
        self._memory = memory or ReusedMemory()
        self._tables = tables.struct()
        self._rules = RULES.on_device(**rules._asdict())
        self._weights = cupy.array(
            quality_weights(reads.quality_bits, reads.levels).astype(np.uint16)
        )
        self._counters = cupy.zeros(COUNTERS, dtype=cupy.uint64)
        self._workspace: Any = None
        self._busy = 0
        self._lasted = 0
        # The data on the device are used on other streams, too.
        _ = reads.struct
        cupy.cuda.get_current_stream().synchronize()

    @property
    def counters(self) -> NDArray[np.int64]:
        """int64[COUNTERS], what the tasks of all batches did."""
        counters: NDArray[np.int64] = self._counters.get().astype(np.int64)
        return counters

    @property
    def utilisation(self) -> float:
        """Fraction of the time in which resident warps had a pair, over all batches."""
        return self._busy / max(1, self._lasted)

    def extend(self, pairs: NDArray[np.int64]) -> Extensions:
        """Extend the pairs with the given numbers; returns when that is done.

        Raises:
            DeviceError: CUDA fails, or the system gives no pinned memory.
        """
        import cupy

        count = len(pairs)
        if count == 0:
            return Extensions.allocate(0, self.rules)
        blocks = resident_blocks(self.reads, count)
        size = WARPS * blocks * slab_bytes(self.rules, self.reads.max_length)
        if self._workspace is None or self._workspace.nbytes < size:
            self._workspace = None
            self._workspace = cupy.empty(size, dtype=cupy.uint8)
        kind = cupy.empty(count, dtype=cupy.uint8)
        numbers = cupy.empty((3, count), dtype=cupy.int32)
        start = cupy.empty(count, dtype=cupy.int64)
        bases = cupy.empty((2, count * max_bases(self.rules)), dtype=cupy.uint8)
        progress = cupy.zeros(_PROGRESS, dtype=cupy.uint64)
        listed = None
        if pairs[-1] - pairs[0] + 1 != count or np.any(np.diff(pairs) != 1):
            listed = cupy.array(pairs)
        batch = BATCH.on_device(
            pairs=listed,
            first_pair=pairs[0],
            count=count,
            kind=kind,
            total=numbers[0],
            left=numbers[1],
            right=numbers[2],
            start=start,
            codes=bases[0],
            qualities=bases[1],
            progress=progress,
            counters=self._counters,
            workspace=self._workspace,
            words=sequence_words(self.rules, self.reads.max_length),
        )
        arguments = (
            self.reads.struct,
            self._tables,
            self._rules,
            self._weights,
            np.int32(len(self._weights)),
            batch,
        )
        KERNELS.of(self.reads).launch("extend_pairs", (blocks,), (THREADS,), arguments)
        counted = progress.get()
        self._busy += int(counted[_BUSY])
        self._lasted += int(counted[_LONGEST]) * WARPS * blocks
        written = int(counted[_WRITTEN])
        total, left, right = numbers.get()
        return Extensions(
            kind=kind.get(),
            total=total,
            left=left,
            right=right,
            start=start.get(),
            codes=self._on_host(bases[0, :written]),
            qualities=self._on_host(bases[1, :written]),
        )

    def _on_host(self, array: Any) -> NDArray[np.uint8]:
        """A copy of bytes in pinned memory."""
        host = self._memory.empty(array.size)
        if array.size:
            array.get(out=host)
        return host
