"""Reads and tables that several GPUs have in common, each a share of them in its memory.

GPUs between all of which there are links have them in common where they do not fit on each: each
GPU's own memory is nearer than that of the others, and theirs is nearer than the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, TypeVar

from ngsgpu.device.arena import Arena
from ngsgpu.device.plan import largest_array_bytes
from ngsgpu.device.spread import can_spread, share_bytes, spread_arena
from ngsgpu.device.team import Team, free_unused
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.readset.gpu import DeviceReadSet, Movable, ReadMemory, divided_bytes
from ngsgpu.readset.gpu_plan import TeamPlan
from ngsgpu.readset.readset import ReadSet

_Plan = TypeVar("_Plan", bound=TeamPlan)


def are_linked(team: Team) -> bool:
    """Whether the GPUs can have data in common."""
    return can_spread([device.id for device in team.devices])


Arrived = Literal["host", "first", "divided"]
"""Where reads are before they are placed: on the host, on the first GPU, or divided."""


def where(reads: ReadSet | DeviceReadSet) -> Arrived:
    """Where reads are."""
    if not isinstance(reads, DeviceReadSet):
        return "host"
    return "divided" if reads.divided else "first"


def divisions(gpus: int, linked: bool) -> list[tuple[int, bool]]:
    """GPUs over which tables may be divided, and whether the reads are, too; best first."""
    return [(1, False), *([(gpus, False), (gpus, True)] if linked else [])]


def plan_for_team(
    plan: Callable[[int, bool, int], _Plan],
    reads: ReadMemory,
    gpus: int,
    *,
    linked: bool,
    arrived: Arrived = "host",
) -> _Plan:
    """Choose between plans in which every GPU has all data, and in which they are divided.

    What every GPU has in its own memory is read fastest, what others have more slowly, and what is
    on the host more slowly still. Of the reads more is read than of the tables.

    Args:
        plan: makes one, of the GPUs over which the tables are divided, whether the reads are, too,
            and the bytes on a GPU that they take beside, before they are in their places.
        reads: memory of the reads.
        gpus: number of GPUs.
        linked: whether the GPUs can have data in common.
        arrived: where the reads are.

    Raises:
        DeviceMemoryError: the memory does not suffice for any.
    """
    on_gpu = divided_bytes(reads.total)
    share = share_bytes(on_gpu, gpus) if arrived == "divided" else 0
    whole = on_gpu if arrived == "first" else 0
    fitting: list[_Plan] = []
    refusal: DeviceMemoryError | None = None
    for divided_over, reads_divided in divisions(gpus, linked):
        try:
            made = plan(divided_over, reads_divided, whole if reads_divided else share)
        except DeviceMemoryError as error:
            refusal = error
            continue
        if not made.over_bus:
            return made
        fitting.append(made)
    if not fitting:
        assert refusal is not None
        raise refusal
    return min(fitting, key=lambda made: made.host)


def budget_with_reads(
    reads: ReadSet | DeviceReadSet, member: int, gpus: int, limit: int | None
) -> int:
    """Memory of the current GPU for a run in bytes, including that of its reads there.

    Args:
        reads: the read set.
        member: number of the GPU in the team.
        gpus: how many there are.
        limit: memory budget of the run for each; None: free memory.
    """
    there = bytes_there(reads, member, gpus)
    free_unused()
    return largest_array_bytes(limit, there) + there


def bytes_there(reads: ReadSet | DeviceReadSet, member: int, gpus: int) -> int:
    """Bytes that reads already take on a GPU.

    Args:
        reads: on the host, on the first GPU, or divided.
        member: number of the GPU.
        gpus: how many there are.
    """
    if not isinstance(reads, DeviceReadSet):
        return 0
    if reads.divided:
        return share_bytes(divided_bytes(reads.device_nbytes), gpus)
    return reads.device_nbytes if member == 0 else 0


def place_reads(
    reads: ReadSet | DeviceReadSet, team: Team, plan: TeamPlan, moved: Collection[Movable]
) -> list[DeviceReadSet]:
    """Copy, move or divide reads to where a plan has them.

    Args:
        reads: on the host, on the first GPU, or divided.
        team: the GPUs; the first one is current.
        plan: of the memory.
        moved: arrays that are to be on the host.

    Returns:
        The reads as each GPU has them.

    Raises:
        MemoryError: a GPU does not have as much memory.
        DeviceError: CUDA fails.
    """
    if plan.reads_divided:
        first = divide_reads(reads, team, moved)
    elif not isinstance(reads, DeviceReadSet):
        first = DeviceReadSet.from_host(reads, on_host=moved)
    else:
        reads.keep_on_host(moved)
        free_unused()
        first = reads
    if first.divided and not plan.reads_divided:
        others = team.each(lambda member: first.gathered() if member else first)[1:]
        # In place, so that nobody refers to the shares any more.
        first.gather()
        placed = [first, *others]
    else:
        placed = team.each(lambda member: first.on_current_device() if member else first)

    def settle(member: int) -> None:
        _ = placed[member].struct
        team.devices[member].synchronize()  # other GPUs copy from this one
        free_unused()

    team.each(settle)
    return placed


def divide_reads(
    reads: ReadSet | DeviceReadSet, team: Team, moved: Collection[Movable]
) -> DeviceReadSet:
    """Divide reads over GPUs that are linked.

    Args:
        reads: on the host, on the first GPU, or divided already.
        team: the GPUs; the first one is current.
        moved: arrays that are to be on the host.

    Raises:
        MemoryError: a GPU does not have as much memory.
        DeviceError: CUDA fails.
    """
    devices = [device.id for device in team.devices]
    if isinstance(reads, DeviceReadSet):
        reads.keep_on_host(moved)
        # CuPy keeps the memory of what has moved, and only it could use it.
        free_unused()
        reads.divide(devices)
    else:
        reads = DeviceReadSet.from_host_divided(reads, devices, on_host=moved)
    team.devices[0].synchronize()
    free_unused()
    return reads


def common_arena(plan: TeamPlan, team: Team) -> Arena:
    """The memory for the tables of a plan in which they are divided.

    Raises:
        MemoryError: a GPU does not have as much.
        DeviceError: CUDA fails.
    """
    return spread_arena(plan.divided_tables, [device.id for device in team.devices])
