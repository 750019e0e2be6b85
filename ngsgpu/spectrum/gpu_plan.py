"""The GPU memory of a spectrum correction, and what is done where it is short.

How many k-mers occur twice is not known before they are counted; the plan takes a genome sequenced
to ``USUAL_COVERAGE``. With less memory k-mers are counted in more parts, those to keep go to the
host, and batches of reads become smaller; then the qualities move to pinned host memory, where
kernels read them over the bus (once, of reads with weak k-mers), and the bases last (twice for each
part). None of this affects the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.device.memory import format_size
from ngsgpu.device.plan import ADVICE, ROUNDING_BYTES, MemoryPlan, gpu_memory
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.kmers.gpu import row_bytes
from ngsgpu.kmers.kept import kept_bytes
from ngsgpu.readset.gpu import ReadMemory, reading_bytes
from ngsgpu.spectrum.gpu import (
    MOST_ROWS,
    RESULT_BYTES,
    batches_within,
    filter_words,
    most_blocks,
    table_bytes,
)
from ngsgpu.spectrum.params import SpectrumParameters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import Movable
    from ngsgpu.run.options import RunOptions
    from ngsgpu.spectrum.cpu_run import SpectrumPlan

USUAL_COVERAGE: Final = 12

BATCH_BYTES: Final = 2 << 30
"""GPU memory of a batch of reads, at most."""

SPARE_BYTES: Final = 4 << 20
"""For small arrays."""

_KEPT_SHARE: Final = 4
"""K-mers that are kept stay on the GPU if they take 1 / this of the memory at most."""

_MOST_PARTS: Final = 256
_LEAST_ROWS: Final = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumGpuPlan(MemoryPlan):
    """The GPU memory of a spectrum correction.

    Attributes:
        kept: for k-mers that occur at least twice, beside counting.
        rows: k-mers that are counted at a time.
        kmers: how many there are, at most.
        moved_reads: arrays of the reads on the host.
    """

    WORK = "correcting"

    kept: int
    rows: int
    kmers: int
    moved_reads: tuple[Movable, ...] = ()

    @property
    def arena(self) -> int:
        """GPU memory except for the reads."""
        steps = (self.kept + self.building, self.kept + self.tables, self.tables + self.working)
        return max(steps) + self.spare

    @property
    def moved(self) -> list[str]:
        """Data on the host for lack of GPU memory."""
        return [*([] if self.kept else ["counted k-mers"]), *self.moved_reads]

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            # Without arguments, super() does not work in a dataclass with slots.
            **MemoryPlan.document(self),
            "kept_bytes": self.kept,
            "kmers_at_a_time": self.rows,
            "reads_on_host": list(self.moved_reads),
        }


def plan_gpu(
    reads: ReadMemory,
    bases: int,
    parameters: SpectrumParameters,
    *,
    budget: int,
    host_budget: int,
    blocks: int,
) -> SpectrumGpuPlan:
    """Plan the memory of a GPU.

    Args:
        reads: memory of the reads.
        bases: of the reads.
        parameters: of the correction.
        budget: GPU memory budget in bytes, including the reads.
        host_budget: pinned host memory budget in bytes.
        blocks: that the GPU runs at a time.

    Raises:
        DeviceMemoryError: neither suffices; the message states how much is needed and available.
    """
    least = 0
    for moved, there in _placements(reads):
        plan = _plan(reads, bases, parameters, moved, there, budget, host_budget, blocks)
        if plan.fits:
            return plan
        least = plan.total
    raise DeviceMemoryError(
        f"correcting {reads.reads:,} reads by their k-mers takes at least {format_size(least)} of "
        f"GPU memory, and {format_size(budget)} may be used; {ADVICE}"
    )


def plan_for_this_gpu(
    run: SpectrumPlan, parameters: SpectrumParameters, options: RunOptions
) -> SpectrumGpuPlan:
    """Plan a run on the current GPU from its free memory.

    Args:
        run: what is known about the run.
        parameters: of the correction.
        options: memory budgets.

    Raises:
        DeviceError: it does not suffice, or CUDA does not respond.
    """
    found = run.contents
    reads = ReadMemory.expected(
        found.reads,
        found.bases,
        found.longest,
        paired=found.paired,
        quality_bits=parameters.quality_bits,
    )
    budget = gpu_memory(options.gpu_memory).budget
    plan = plan_gpu(
        reads,
        found.bases,
        parameters,
        budget=budget,
        host_budget=options.budget,
        blocks=most_blocks(),
    )
    return replace(plan, reading=reading_bytes(found.paired, options.gpu_memory, budget))


def _placements(reads: ReadMemory) -> Iterator[tuple[tuple[Movable, ...], int]]:
    """Arrays of the reads on the host, fewest first, and the bytes that stay on the GPU."""
    yield (), reads.total
    if reads.qualities:
        yield ("qualities",), reads.planes + reads.other
    yield ("qualities", "planes"), reads.other


def _plan(
    reads: ReadMemory,
    bases: int,
    parameters: SpectrumParameters,
    moved: tuple[Movable, ...],
    there: int,
    budget: int,
    host_budget: int,
    blocks: int,
) -> SpectrumGpuPlan:
    """The plan for a placement of the reads; it may be too large."""
    keys = bases // USUAL_COVERAGE
    bloom = parameters.filter == "bloom"
    tables = 8 * filter_words(keys) if bloom else table_bytes(keys)
    rest = max(0, budget - there - ROUNDING_BYTES - SPARE_BYTES)
    kept = kept_bytes(1) * keys if kept_bytes(1) * keys <= rest // _KEPT_SHARE else 0
    row = row_bytes(1)
    most = min(max(bases, _LEAST_ROWS), MOST_ROWS)
    rows = min(most, max((rest - kept) // row, _LEAST_ROWS, bases // _MOST_PARTS))
    results = RESULT_BYTES * reads.reads
    room = min(BATCH_BYTES, rest - tables - results)
    batches = batches_within(room, reads.reads, reads.max_length, blocks)
    while batches is None:
        room = 2 * max(room, _LEAST_ROWS)
        batches = batches_within(room, reads.reads, reads.max_length, blocks)
    return SpectrumGpuPlan(
        reads=there,
        tables=tables,
        building=row * rows,
        working=results + batches.bytes,
        kept=kept,
        rows=rows,
        kmers=bases,
        moved_reads=moved,
        host=reads.total - there,
        spare=SPARE_BYTES,
        budget=budget,
        host_budget=host_budget,
    )
