"""Reads and tables that several GPUs have in common, each a share of them in its memory.

GPUs between all of which there are links have them in common where they do not fit on each: each
GPU's own memory is nearer than that of the others, and theirs is nearer than the host's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import TypeVar

from ngsgpu.device.arena import Arena
from ngsgpu.device.plan import largest_array_bytes
from ngsgpu.device.spread import can_spread, share_bytes, spread_arena
from ngsgpu.device.team import Team, free_unused
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.readset.gpu import DeviceReadSet, Movable, divided_bytes
from ngsgpu.readset.gpu_plan import TeamPlan
from ngsgpu.readset.readset import ReadSet

_Plan = TypeVar("_Plan", bound=TeamPlan)


def are_linked(team: Team) -> bool:
    """Whether the GPUs can have data in common."""
    return can_spread([device.id for device in team.devices])


def whole_or_divided(
    whole: Callable[[], _Plan],
    divided: Callable[[], _Plan],
    *,
    linked: bool,
    are_divided: bool = False,
) -> _Plan:
    """Choose between plans in which every GPU has all data, and in which they are divided.

    Args:
        whole: makes the first one.
        divided: makes the other one.
        linked: whether the GPUs can have data in common.
        are_divided: whether the reads already are.

    Raises:
        DeviceMemoryError: the memory does not suffice for either.
    """
    if not linked:
        return whole()
    first = None
    if not are_divided:
        with contextlib.suppress(DeviceMemoryError):
            first = whole()
    if first is not None and not first.moved:
        return first
    try:
        return divided()
    except DeviceMemoryError:
        if first is None:
            raise
        return first


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
) -> DeviceReadSet:
    """Copy, move or divide reads to where a plan has them.

    Args:
        reads: on the host, on the first GPU, or divided.
        team: the GPUs; the first one is current.
        plan: of the memory.
        moved: arrays that are to be on the host.

    Returns:
        The reads as the first GPU has them.

    Raises:
        MemoryError: a GPU does not have as much memory.
        DeviceError: CUDA fails.
    """
    if plan.divided_over > 1:
        return divide_reads(reads, team, moved)
    if isinstance(reads, DeviceReadSet):
        reads.keep_on_host(moved)
        free_unused()
        return reads
    return DeviceReadSet.from_host(reads, on_host=moved)


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
