"""The GPU memory of an extension, planned before allocation.

Reads, tables, and the memory of active tasks must fit. If they do not, batches become smaller, and
tables are sorted in parts. Then data move to pinned host memory, where kernels read them over the
bus: first qualities, which are read only in columns where candidates differ, then tables, one by
one, and the bases last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.device.memory import available_memory
from ngsgpu.device.plan import Allocation, first_fitting, gpu_memory
from ngsgpu.device.team import Team, free_unused
from ngsgpu.extend.insert import sampling_parameters
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.extend.rules import Rules
from ngsgpu.minhash.ends_gpu import (
    PARTS,
    TABLE_ARRAYS,
    all_cells_bytes,
    building_bytes,
    table_bytes,
)
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, Movable, ReadMemory
from ngsgpu.readset.gpu_divided import (
    Arrived,
    are_linked,
    bytes_there,
    place_reads,
    plan_for_team,
    where,
)
from ngsgpu.readset.gpu_plan import STEPS, TeamPlan
from ngsgpu.run.gpu_run import plan_free_memory

if TYPE_CHECKING:
    from ngsgpu.run.options import RunOptions

BATCHES_PER_GPU: Final = 2
BATCH_BYTES: Final = 192 << 20
"""Result bytes per batch: large enough that the few long tasks at its end do not matter."""

MAX_PAIRS: Final = 1 << 18
MIN_PAIRS: Final = 1 << 10
SMALLER_BATCHES: Final = 5
"""How often the size of a batch may be halved."""

SPARE_BYTES: Final = 32 << 20
"""For small arrays, and what the pool rounds up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionGpuPlan(TeamPlan):
    """The GPU memory of an extension.

    Attributes:
        parameters: extension parameters.
        batch_bytes: maximum bytes for the results of a batch.
        parts: in which a table is sorted.
        on_device: tables on the GPU, the first ones.
        moved_reads: arrays of the reads that are on the host.
    """

    WORK = "extending"

    parameters: ExtensionParameters
    batch_bytes: int
    parts: int
    on_device: int
    moved_reads: tuple[Movable, ...]

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            **TeamPlan.document(self),
            "tables_on_host": self.parameters.ends.hashes - self.on_device,
            "reads_on_host": list(self.moved_reads),
        }

    def advice(self) -> list[str]:
        """With what it may fit, as shown to users."""
        advice, hashes = [], self.parameters.ends.hashes
        if hashes > 2 and self.tables // hashes * (hashes - 2) >= self.total - self.budget:
            advice.append("try `hashes=2`")
        if self.host > self.host_budget and self.parameters.quality_bits == 8:
            advice.append("try `quality_bits=2`")
        # Without arguments, super() does not work in a dataclass with slots.
        return [*advice, *TeamPlan.advice(self)]


def pairs_per_batch(rules: Rules, batch_bytes: int = BATCH_BYTES) -> int:
    """Pairs per batch; does not affect the result.

    Args:
        rules: determine the maximum result size of a pair.
        batch_bytes: maximum bytes for the results of a batch.
    """
    row = 2 * rules.max_length * (3 if rules.outward else 1)
    pairs = max(MIN_PAIRS, min(MAX_PAIRS, batch_bytes // row))
    return 1 << (pairs.bit_length() - 1)


def plan_gpu(
    reads: ReadMemory,
    parameters: ExtensionParameters,
    *,
    budget: int,
    host_budget: int,
    divided_over: int = 1,
    reads_divided: bool = True,
    arrived: int = 0,
) -> ExtensionGpuPlan:
    """Plan the batch size, and whether qualities must stay on the host.

    Args:
        reads: memory of the reads.
        parameters: extension parameters.
        budget: GPU memory budget in bytes, including the reads.
        host_budget: pinned host memory budget in bytes.
        divided_over: GPUs over which the tables are divided.
        reads_divided: whether the reads are, too.
        arrived: bytes that the reads take before they are in their places, in addition.

    Raises:
        DeviceError: they do not suffice.
    """
    hashes, a_table = parameters.ends.hashes, table_bytes(reads.reads)
    cells = all_cells_bytes(reads.reads, parameters.ends)

    def planned(
        moved: tuple[Movable, ...], on_device: int, batch_bytes: int, parts: int
    ) -> ExtensionGpuPlan:
        on_host = hashes - on_device
        tables = on_device * a_table + cells
        building = building_bytes(reads.reads, parts, uniform=reads.uniform)
        name = f"{on_host} of {hashes} tables"
        return ExtensionGpuPlan(
            doing=f"extending {reads.reads // 2:,} pairs",
            allocations=(
                *reads.allocations(moved),
                *([Allocation(name, on_host * a_table, on_host=True)] if on_host else []),
                Allocation("tables", tables, STEPS, TABLE_ARRAYS),
                Allocation("building", building, STEPS[:1]),
                Allocation("working", working[batch_bytes], STEPS[1:]),
                Allocation("spare", SPARE_BYTES, STEPS),
            ),
            budget=budget,
            host_budget=host_budget,
            parameters=parameters,
            batch_bytes=batch_bytes,
            parts=parts,
            on_device=on_device,
            moved_reads=moved,
        ).divided(divided_over, reads=reads_divided, arrived=arrived)

    sizes = [BATCH_BYTES >> halvings for halvings in range(SMALLER_BATCHES + 1)]
    working = {size: _extending_bytes(reads, parameters, size) for size in sizes}
    places: list[tuple[tuple[Movable, ...], int]] = [((), hashes)]
    if reads.qualities:
        places.append((("qualities",), hashes))
    moved = places[-1][0]
    places += [(moved, tables) for tables in range(hashes - 1, -1, -1)]
    places.append(((*moved, "planes"), 0))
    return first_fitting(
        planned(*place, size, parts) for place in places for size in sizes for parts in PARTS
    )


def plan_team(
    reads: ReadMemory,
    parameters: ExtensionParameters,
    gpus: int,
    *,
    linked: bool,
    budget: int,
    host_budget: int,
    arrived: Arrived = "host",
) -> ExtensionGpuPlan:
    """Plan a run on several GPUs, whose data are divided where they do not fit on each.

    Args:
        reads: memory of the reads.
        parameters: extension parameters.
        gpus: how many.
        linked: whether they can have data in common.
        budget: memory budget of each GPU in bytes, including the reads.
        host_budget: pinned host memory budget in bytes.
        arrived: where the reads are.

    Raises:
        DeviceError: neither suffices.
    """

    def plan(divided_over: int, reads_divided: bool, taken: int) -> ExtensionGpuPlan:
        return plan_gpu(
            reads, parameters, budget=budget, host_budget=host_budget,
            divided_over=divided_over, reads_divided=reads_divided, arrived=taken,
        )  # fmt: skip

    return plan_for_team(plan, reads, gpus, linked=linked, arrived=arrived)


def plan_and_place(
    reads: ReadSet | DeviceReadSet, parameters: ExtensionParameters, options: RunOptions
) -> tuple[list[DeviceReadSet], ExtensionGpuPlan]:
    """Plan for the GPUs of a run, and copy or move the reads to where the plan has them.

    Returns:
        The reads as each GPU has them, and the plan.

    Raises:
        DeviceError: the memory does not suffice.
    """
    team = Team(options.gpus)

    def free(member: int) -> int:
        free_unused()
        return gpu_memory().budget + bytes_there(reads, member, len(team))

    budget = min(team.each(free))
    plan = plan_team(
        ReadMemory.of(reads),
        parameters,
        len(team),
        linked=are_linked(team),
        budget=budget if options.gpu_memory is None else min(budget, options.gpu_memory),
        host_budget=available_memory() if options.memory is None else options.memory,
        arrived=where(reads),
    )
    return place_reads(reads, team, plan, plan.moved_reads), plan


plan_for_this_gpu = partial(plan_free_memory, plan_team)
"""Plan a run on the current GPU from its free memory; see ``plan_free_memory``."""


def _extending_bytes(reads: ReadMemory, parameters: ExtensionParameters, batch_bytes: int) -> int:
    """Bytes of the active batches."""
    from ngsgpu.extend.gpu import result_bytes, workspace_bytes

    pairs = max(1, reads.reads // 2)
    # Of fragments whose length is not known yet the longest ones that are looked for count.
    known = parameters.insert_mean, parameters.insert_sd
    if known[0] is None or known[1] is None:
        sampling = sampling_parameters(parameters)
        rules = replace(sampling, outward=parameters.outward).rules(0.0, 0.0)
    else:
        rules = parameters.rules(known[0], known[1])
    batch = min(pairs_per_batch(rules, batch_bytes), pairs)
    taken = workspace_bytes(rules, reads, batch)
    if known[0] is None:
        # Batches have more pairs where fragments turn out to be shorter.
        most = min(batch_bytes, result_bytes(rules, pairs))
        taken += max(0, most - result_bytes(rules, batch))
    return BATCHES_PER_GPU * taken
