"""The GPU memory of a correction, and what moves to the host if it is too small.

Data that are read least often per byte freed move to pinned host memory first, where kernels read
them over the bus: the slots (once per run); then tables, one by one (by every read of a bucket,
some half of the coverage); then qualities (by every anchor that keeps the read, more than the
coverage); the bases last (several times for every candidate). Before that, batches become smaller,
which costs next to nothing. None of this affects the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.correct.forests.gpu import forest_bytes
from ngsgpu.correct.gpu import RESULT_BYTES, BatchSizes, batch_bytes
from ngsgpu.correct.gpu_tiers import tiers_for, workspace_block_bytes
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.cuda.sort import ARGSORT_BYTES
from ngsgpu.device.plan import Allocation, first_fitting
from ngsgpu.minhash.gpu_memory import SLOT_BYTES, SMALL_BYTES, pass_bytes, table_bytes
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.readset.gpu_divided import whole_or_divided
from ngsgpu.readset.gpu_plan import STEPS, TeamPlan
from ngsgpu.run.gpu_run import plan_free_memory

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import Movable

ANCHOR_BYTES: Final = 4
ORDERING_BYTES: Final = 40
"""Bytes per read for ordering the anchors, before there are results."""

SPARE_BYTES: Final = 15 << 20
"""For small arrays."""

_MAX_FUNCTIONS: Final = 8
_MIN_FUNCTIONS: Final = 2
"""Functions per pass; more passes take longer, fewer need no more memory than the correction."""

_LEVELS: Final = 5
"""How often the memory of batches is halved before anything moves to the host."""

_MIN_BLOCKS: Final = 8


@dataclass(frozen=True, slots=True)
class Placement:
    """Data in GPU memory; the rest is in pinned host memory.

    Attributes:
        tables: number of minhash tables, the first ones.
        slots: the slots of the reads in the tables.
        qualities: the reads' qualities.
        planes: the reads' bases.
    """

    tables: int
    slots: bool = True
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

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            **TeamPlan.document(self),
            "tables_on_host": self.hashes - self.placement.tables,
            "slots_on_host": not self.placement.slots,
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
) -> GpuPlan:
    """Plan the placement of the data and the size of batches.

    Args:
        reads: memory of the reads.
        parameters: correction parameters.
        budget: GPU memory budget in bytes, including the reads.
        host_budget: pinned host memory budget in bytes.
        batches: the largest batches.
        divided_over: GPUs over which the reads and the tables are divided.

    Raises:
        DeviceMemoryError: neither suffices; the message states how much is needed and available.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    levels = list(_levels(batches or BatchSizes()))
    # Once: reading a model takes longer than hundreds of plans.
    forests = forest_bytes(parameters.forests(1))

    def plan(placement: Placement, level: int) -> GpuPlan:
        functions, sizes = levels[level]
        made = _plan(reads, parameters, forests, placement, functions, sizes, budget, host_budget)
        return made.divided(divided_over)

    def plans() -> Iterator[GpuPlan]:
        hashes = parameters.minhash.hashes
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
    are_divided: bool = False,
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
        are_divided: whether the reads already are.

    Raises:
        DeviceMemoryError: neither suffices; the message states how much is needed and available.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """

    def plan(owners: int, divided_over: int) -> GpuPlan:
        return plan_gpu(
            reads, parameters, budget=budget, host_budget=host_budget // owners,
            batches=batches, divided_over=divided_over,
        )  # fmt: skip

    return whole_or_divided(
        lambda: plan(gpus, 1), lambda: plan(1, gpus), linked=linked, are_divided=are_divided
    )


plan_for_this_gpu = partial(plan_free_memory, plan_team)
"""Plan a run on the current GPU from its free memory; see ``plan_free_memory``."""


def _placements(hashes: int, qualities: int) -> Iterator[Placement]:
    """Possible placements, best first; of those with fewer tables only the minimum."""
    yield Placement(hashes)
    yield Placement(0, slots=False)
    if qualities:
        yield Placement(0, slots=False, qualities=False)
    yield Placement(0, slots=False, qualities=not qualities, planes=False)


def _levels(largest: BatchSizes) -> Iterator[tuple[int, BatchSizes]]:
    """Functions per pass and memory of a batch, from the largest to the smallest."""
    for level in range(_LEVELS):
        blocks = max(_MIN_BLOCKS, largest.workspace_blocks >> level)
        yield (
            max(_MIN_FUNCTIONS, _MAX_FUNCTIONS >> level),
            BatchSizes(largest.edit_bytes >> level, min(largest.workspace_blocks, blocks)),
        )


def _plan(
    reads: ReadMemory,
    parameters: CorrectionParameters,
    forests: int,
    placement: Placement,
    functions: int,
    batches: BatchSizes,
    budget: int,
    host_budget: int,
) -> GpuPlan:
    count, hashes = reads.reads, parameters.minhash.hashes
    mates = 2 if reads.paired else 1
    anchors = count // mates
    a_table = table_bytes(count)
    slots = SLOT_BYTES * count * hashes
    signatures = min(functions, hashes) * pass_bytes(placement.slots) * count
    # Reads too short for a k-mer are skipped by listing the others.
    listed = 0 if reads.uniform else 8 * count
    tiers = tiers_for(reads.max_length, parameters.margin, mates)
    blocks = min(batches.workspace_blocks, max(1, anchors))
    work = batch_bytes(batches, anchors, reads.max_length, mates)
    work += blocks * workspace_block_bytes(tiers) + forests
    working = max(
        (RESULT_BYTES + ANCHOR_BYTES) * count + work, (ORDERING_BYTES + ANCHOR_BYTES) * count
    )
    tables = placement.tables * a_table + (slots if placement.slots else 0)
    building = signatures + ARGSORT_BYTES * count + listed + SMALL_BYTES
    allocations = [
        Allocation("tables", tables, STEPS, hashes + 1),
        Allocation("building", building, STEPS[:1]),
        Allocation("working", working, STEPS[1:]),
        Allocation("spare", SPARE_BYTES, STEPS),
    ]
    if not placement.slots:
        allocations.append(Allocation("slots", slots, on_host=True))
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
