"""The GPU memory of a spectrum correction, and what is done where it is short.

How many k-mers occur twice is not known before they are counted; the plan takes a genome sequenced
to ``USUAL_COVERAGE``. With less memory k-mers are counted in more parts, those to keep go to the
host, and batches of reads become smaller. What then does not fit on each of several GPUs that are
linked is divided over them. Otherwise the qualities move to pinned host memory, where kernels read
them over the bus (once, of reads with weak k-mers), and the bases last (twice for each part). None
of this affects the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.device.arena import ALIGNMENT
from ngsgpu.device.plan import ROUNDING_BYTES, Allocation, first_fitting
from ngsgpu.device.spread import share_bytes
from ngsgpu.kmers.gpu import row_bytes
from ngsgpu.kmers.kept import kept_bytes
from ngsgpu.readset.gpu import ReadMemory, divided_bytes
from ngsgpu.readset.gpu_divided import Arrived, plan_for_team
from ngsgpu.readset.gpu_plan import ARRIVED, TeamPlan
from ngsgpu.run.gpu_run import plan_free_memory
from ngsgpu.spectrum.gpu import MOST_ROWS, filter_words, table_bytes
from ngsgpu.spectrum.gpu_correct import (
    BATCH_BYTES,
    RESULT_BYTES,
    batches_within,
    most_blocks,
    range_of,
)
from ngsgpu.spectrum.params import SpectrumParameters

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import Movable
    from ngsgpu.run.options import RunOptions
    from ngsgpu.spectrum.cpu_run import SpectrumPlan

USUAL_COVERAGE: Final = 12

SPARE_BYTES: Final = 4 << 20
"""For small arrays."""

_KEPT_SHARE: Final = 4
"""K-mers that are kept stay on the GPU if they take 1 / this of the memory at most, or no others
wait for them."""

_STEPS: Final = ("counting", "filling the table", "correcting")
_MOST_PARTS: Final = 256
_LEAST_ROWS: Final = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumGpuPlan(TeamPlan):
    """The memory of a spectrum correction on each of its GPUs.

    Attributes:
        rows: k-mers that are counted at a time.
        kmers: how many there are on all GPUs, at most.
        moved_reads: arrays of the reads on the host.
    """

    WORK = "correcting"

    rows: int
    kmers: int
    moved_reads: tuple[Movable, ...] = ()

    @property
    def kept(self) -> int:
        """For k-mers that occur at least twice, beside counting."""
        return self.bytes_of("kept")

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            # Without arguments, super() does not work in a dataclass with slots.
            **TeamPlan.document(self),
            "kept_bytes": self.kept,
            "kmers_at_a_time": self.rows,
            "reads_on_host": list(self.moved_reads),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is to be planned for each of some GPUs.

    Attributes:
        reads: memory of the reads.
        bases: of the reads.
        parameters: of the correction.
        budget: memory budget of a GPU in bytes, including the reads.
        host_budget: pinned host memory budget in bytes.
        blocks: that a GPU runs at a time.
        gpus: how many.
        arrived: where the reads are.
    """

    reads: ReadMemory
    bases: int
    parameters: SpectrumParameters
    budget: int
    host_budget: int
    blocks: int
    gpus: int = 1
    arrived: Arrived = "first"


def plan_gpu(
    demand: Demand, divided_over: int = 1, reads_divided: bool = True, arrived: int = 0
) -> SpectrumGpuPlan:
    """Plan the memory of a GPU.

    Args:
        demand: what for.
        divided_over: GPUs over which the table is divided.
        reads_divided: whether the reads are, too.
        arrived: bytes that the reads take before they are in their places, in addition.

    Raises:
        DeviceMemoryError: neither suffices; the message states how much is needed and available.
    """
    return first_fitting(
        _plan(demand, moved, divided_over, reads_divided, arrived)
        for moved in _placements(demand.reads)
    )


def plan_team(demand: Demand, *, linked: bool) -> SpectrumGpuPlan:
    """Plan a run on several GPUs, whose data are divided where they do not fit on each.

    Args:
        demand: what for.
        linked: whether they can have data in common.

    Raises:
        DeviceMemoryError: the memory does not suffice.
    """
    return plan_for_team(
        partial(plan_gpu, demand), demand.reads, demand.gpus, linked=linked, arrived=demand.arrived
    )


def plan_for_this_gpu(
    run: SpectrumPlan, parameters: SpectrumParameters, options: RunOptions
) -> SpectrumGpuPlan:
    """Plan a run on the current GPU from its free memory; see ``plan_free_memory``."""
    found = run.contents

    def plan(
        reads: ReadMemory,
        parameters: SpectrumParameters,
        gpus: int,
        *,
        linked: bool,
        budget: int,
        host_budget: int,
    ) -> SpectrumGpuPlan:
        demand = Demand(
            reads=reads,
            bases=found.bases,
            parameters=parameters,
            budget=budget,
            host_budget=host_budget,
            blocks=most_blocks(),
            gpus=gpus,
            arrived="host",
        )
        return plan_team(demand, linked=linked)

    return plan_free_memory(plan, run, parameters, options)


def _placements(reads: ReadMemory) -> Iterator[tuple[Movable, ...]]:
    """Arrays of the reads on the host, fewest first."""
    yield ()
    if reads.qualities:
        yield ("qualities",)
    yield ("qualities", "planes")


def _plan(
    demand: Demand,
    moved: tuple[Movable, ...],
    divided_over: int,
    reads_divided: bool,
    arrived: int,
) -> SpectrumGpuPlan:
    """The plan for a placement of the reads; it may be too large."""
    reads, gpus = demand.reads, demand.gpus
    on_host = reads.on_host(moved)
    own = reads.total - on_host
    keys = demand.bases // USUAL_COVERAGE
    bloom = demand.parameters.filter == "bloom"
    whole = tables = 8 * filter_words(keys) if bloom else table_bytes(keys)
    if divided_over > 1:
        whole += ALIGNMENT
        tables = share_bytes(whole, gpus)
        if reads_divided:
            own = share_bytes(divided_bytes(own), gpus)
    rest = max(0, demand.budget - own - ROUNDING_BYTES - SPARE_BYTES)
    beside = max(0, rest - tables)
    kept, rows = _counting(demand, keys, beside if divided_over > 1 else rest, beside)
    results = RESULT_BYTES * range_of(reads.reads, gpus, beside)
    room = min(BATCH_BYTES, beside - results)
    batches = batches_within(room, reads.reads, reads.max_length, demand.blocks)
    while batches is None:
        room = 2 * max(room, _LEAST_ROWS)
        batches = batches_within(room, reads.reads, reads.max_length, demand.blocks)
    first, *others = reads.allocations(moved)
    allocations = [
        replace(first, bytes=own),
        # There is no table while k-mers are counted, but where it is in memory of all GPUs.
        Allocation("tables", tables, _STEPS if divided_over > 1 else _STEPS[1:]),
        Allocation("kept", kept, _STEPS[:2]),
        Allocation("building", row_bytes(1) * rows, _STEPS[:1]),
        Allocation("working", results + batches.bytes, _STEPS[2:]),
        Allocation("spare", SPARE_BYTES, _STEPS),
    ]
    if not kept:
        allocations.append(Allocation("counted k-mers", 0, on_host=True))
    if arrived:
        allocations.append(Allocation(ARRIVED, arrived, ("placing",)))
    allocations += others
    return SpectrumGpuPlan(
        doing=f"correcting {reads.reads:,} reads by their k-mers",
        allocations=tuple(allocations),
        rows=rows,
        kmers=demand.bases,
        moved_reads=moved,
        budget=demand.budget,
        host_budget=demand.host_budget,
        divided_over=divided_over,
        reads_divided=divided_over > 1 and reads_divided,
        divided_tables=whole if divided_over > 1 else 0,
    )


def _counting(demand: Demand, keys: int, room: int, beside: int) -> tuple[int, int]:
    """Bytes for k-mers that are kept, and how many are counted at a time, for each GPU.

    Args:
        demand: what is planned.
        keys: k-mers that are kept by all.
        room: bytes that there are while k-mers are counted.
        beside: and beside the table.
    """
    gpus, bases = demand.gpus, demand.bases
    most = min(max(bases, _LEAST_ROWS), MOST_ROWS)
    # Some have more of them than others.
    kept = kept_bytes(1) * (keys if gpus == 1 else keys // gpus * 5 // 4)
    share = max(room // _KEPT_SHARE, room - row_bytes(1) * most)
    if kept > min(share, beside):
        kept = 0
    fewest = max(_LEAST_ROWS, bases // (_MOST_PARTS * gpus))
    return kept, min(most, max((room - kept) // row_bytes(1), fewest))
