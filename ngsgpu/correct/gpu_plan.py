"""The GPU memory of a correction, and what moves to the host if it is too small.

What moves to pinned host memory first is written there once per read: the results of anchors. Then
follow data that kernels read over the bus, those read least often per byte freed first: tables, one
by one (by every read of a bucket, some half of the coverage); then qualities (by every anchor that
keeps the read, more than the coverage); the bases last (several times for every candidate). Before
that, batches become smaller, and tables are sorted in parts, which costs next to nothing. All GPUs
have the same memory of the host. None of this affects the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.correct.forests.gpu import forest_bytes
from ngsgpu.correct.gpu import (
    ANCHOR_RESULT_BYTES,
    ORDERED_AT_A_TIME,
    ORDERING_BYTES,
    VOTE_BYTES,
    BatchSizes,
    batch_bytes,
)
from ngsgpu.correct.gpu_tiers import tiers_for, workspace_block_bytes
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.plan import Allocation, first_fitting
from ngsgpu.minhash.gpu_memory import PASSES, all_cells_bytes, building_bytes, table_bytes
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.readset.gpu_divided import Arrived, plan_for_team
from ngsgpu.readset.gpu_plan import STEPS, TeamPlan
from ngsgpu.run.gpu_run import plan_free_memory

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import Movable

ANCHOR_BYTES: Final = 4
ARRAYS_OF_A_TABLE: Final = 3
SPARE_BYTES: Final = 15 << 20
"""For small arrays."""

_LEVELS: Final = (*zip(PASSES[1:4], range(3), strict=True), (PASSES[5], 2), (PASSES[6], 2),
                  (PASSES[6], 3), (PASSES[6], 4))  # fmt: skip
"""What a pass over the reads makes, and how often the size of batches is halved, level by level,
before anything moves to the host."""

_MIN_BLOCKS: Final = 8


@dataclass(frozen=True, slots=True)
class Placement:
    """Data in GPU memory; the rest is in pinned host memory.

    Attributes:
        tables: number of minhash tables, the first ones.
        results: what is decided on each anchor.
        qualities: the reads' qualities.
        planes: the reads' bases.
    """

    tables: int
    results: bool = True
    qualities: bool = True
    planes: bool = True

    @property
    def moved(self) -> tuple[Movable, ...]:
        """The arrays of the read set that are on the host."""
        names: list[Movable] = []
        if not self.qualities:
            names.append("qualities")
        if not self.planes:
            names.append("planes")
        return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan(TeamPlan):
    """The GPU memory of a correction.

    Attributes:
        hashes: number of tables.
        placement: which data are on the GPU.
        batches: memory of a batch of anchors.
    """

    WORK = "correcting"

    hashes: int
    placement: Placement
    batches: BatchSizes

    @property
    def over_bus(self) -> bool:
        """See ``TeamPlan``; results are only written there."""
        return bool(self.placement.moved) or self.placement.tables < self.hashes

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            **TeamPlan.document(self),
            "tables_on_host": self.hashes - self.placement.tables,
            "results_on_host": not self.placement.results,
            "reads_on_host": list(self.placement.moved),
            **asdict(self.batches),
        }


def plan_gpu(
    reads: ReadMemory,
    parameters: CorrectionParameters,
    *,
    budget: int,
    host_budget: int,
    batches: BatchSizes | None = None,
    divided_over: int = 1,
    reads_divided: bool = True,
    arrived: int = 0,
) -> GpuPlan:
    """Plan the placement of the data and the size of batches.

    Args:
        reads: memory of the reads.
        parameters: correction parameters.
        budget: GPU memory budget in bytes, including the reads.
        host_budget: pinned host memory budget in bytes.
        batches: the largest batches.
        divided_over: GPUs over which the tables are divided.
        reads_divided: whether the reads are, too.
        arrived: bytes that the reads take before they are in their places, in addition.

    Raises:
        DeviceMemoryError: neither suffices; the message states how much is needed and available.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    parameters = parameters.for_number(reads.reads)
    levels = list(_levels(batches or BatchSizes()))
    # Once: reading a model takes longer than hundreds of plans.
    forests = forest_bytes(parameters.forests(1))

    def plan(placement: Placement, level: int) -> GpuPlan:
        made = _plan(reads, parameters, forests, placement, *levels[level], budget, host_budget)
        return made.divided(divided_over, reads=reads_divided, arrived=arrived)

    def plans() -> Iterator[GpuPlan]:
        hashes = parameters.minhash.tables
        for placement in _placements(hashes, reads.qualities):
            smallest = plan(placement, -1)
            if smallest.total > budget:
                yield smallest
                continue
            own = replace(placement, tables=hashes)
            while plan(own, -1).total > budget:
                own = replace(own, tables=own.tables - 1)
            yield from (plan(own, level) for level in range(len(levels)))

    return first_fitting(plans())


def plan_team(
    reads: ReadMemory,
    parameters: CorrectionParameters,
    gpus: int,
    *,
    linked: bool,
    budget: int,
    host_budget: int,
    batches: BatchSizes | None = None,
    arrived: Arrived = "host",
) -> GpuPlan:
    """Plan a run on several GPUs, whose data are divided where they do not fit on each.

    Args:
        reads: memory of the reads.
        parameters: correction parameters.
        gpus: how many.
        linked: whether they can have data in common.
        budget: memory budget of each GPU in bytes, including the reads.
        host_budget: pinned host memory budget of all in bytes.
        batches: the largest batches.
        arrived: where the reads are.

    Raises:
        DeviceMemoryError: neither suffices; the message states how much is needed and available.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """

    def plan(divided_over: int, reads_divided: bool, taken: int) -> GpuPlan:
        return plan_gpu(
            reads, parameters, budget=budget, host_budget=host_budget, batches=batches,
            divided_over=divided_over, reads_divided=reads_divided, arrived=taken,
        )  # fmt: skip

    return plan_for_team(plan, reads, gpus, linked=linked, arrived=arrived)


plan_for_this_gpu = partial(plan_free_memory, plan_team)
"""Plan a run on the current GPU from its free memory; see ``plan_free_memory``."""


def _placements(hashes: int, qualities: int) -> Iterator[Placement]:
    """Possible placements, best first; of those with fewer tables only the minimum."""
    yield Placement(hashes)
    yield Placement(0, results=False)
    if qualities:
        yield Placement(0, results=False, qualities=False)
    yield Placement(0, results=False, qualities=not qualities, planes=False)


def _levels(largest: BatchSizes) -> Iterator[tuple[tuple[int, int], BatchSizes]]:
    """One of ``PASSES`` and memory of a batch, from the largest to the smallest."""
    for made, level in _LEVELS:
        blocks = max(_MIN_BLOCKS, largest.workspace_blocks >> level)
        yield (
            made,
            BatchSizes(largest.edit_bytes >> level, min(largest.workspace_blocks, blocks)),
        )


def _plan(
    reads: ReadMemory,
    parameters: CorrectionParameters,
    forests: int,
    placement: Placement,
    one_pass: tuple[int, int],
    batches: BatchSizes,
    budget: int,
    host_budget: int,
) -> GpuPlan:
    count, hashes, k = reads.reads, parameters.minhash.tables, parameters.minhash.k
    mates = 2 if reads.paired else 1
    anchors = count // mates
    a_table = table_bytes(count, reads.max_length, k)
    functions, parts = one_pass
    building = building_bytes(
        count, reads.max_length, k, min(functions, hashes), parts, uniform=reads.uniform
    )
    tiers = tiers_for(reads.max_length, parameters.margin, mates)
    blocks = min(batches.workspace_blocks, max(1, anchors))
    work = batch_bytes(batches, anchors, reads.max_length, mates, hashes)
    work += blocks * workspace_block_bytes(tiers) + forests
    results = ANCHOR_RESULT_BYTES * count
    own_results = VOTE_BYTES * count + (results if placement.results else 0)
    ordering = count + ORDERING_BYTES * min(count, ORDERED_AT_A_TIME)
    working = ANCHOR_BYTES * anchors + max(own_results + work, ordering)
    tables = placement.tables * a_table + all_cells_bytes(count, hashes, k)
    allocations = [
        Allocation("tables", tables, STEPS, ARRAYS_OF_A_TABLE * hashes),
        Allocation("building", building, STEPS[:1]),
        Allocation("working", working, STEPS[1:]),
        Allocation("spare", SPARE_BYTES, STEPS),
    ]
    if not placement.results:
        allocations.append(Allocation("results", results, on_host=True))
    if on_host := hashes - placement.tables:
        name = f"{on_host} of {hashes} tables"
        allocations.append(Allocation(name, on_host * a_table, on_host=True))
    return GpuPlan(
        doing=f"correcting {count:,} reads",
        allocations=(*allocations, *reads.allocations(placement.moved)),
        hashes=hashes,
        placement=placement,
        batches=batches,
        budget=budget,
        host_budget=host_budget,
    )
