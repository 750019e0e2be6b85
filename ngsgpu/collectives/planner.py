"""The best plan that is found, with the proof and the bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from ngsgpu.collectives.flow import best_chunks, buffered_plan, flow_plan, least_time
from ngsgpu.collectives.plan import Kind, Plan, check_plan, check_ways, fitted, largest_buffer
from ngsgpu.collectives.schedule import direct_plan, one_step_plan, ring_plan
from ngsgpu.collectives.topology import Topology
from ngsgpu.errors import UsageError

Method = Literal["optimal", "buffered", "rings", "direct"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)

_SECONDS: Final = 60.0
_LONGEST: Final = 4
"""Steps of a buffered plan, at most."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that was played through.

    Attributes:
        plan: the plan.
        topology: of the GPUs.
        least: time below which no plan is, in multiples of what one GPU has for another.
    """

    plan: Plan
    topology: Topology
    least: Fraction

    @property
    def efficiency(self) -> float:
        """The least time, divided by that of the plan."""
        return float(self.least * self.plan.chunks / self.plan.time)

    def summary(self) -> list[str]:
        """Lines for people."""
        plan = self.plan
        chunks = "1 chunk" if plan.chunks == 1 else f"{plan.chunks} chunks"
        moved = sum(sum(plan.transfers(step).values()) for step in range(len(plan.durations)))
        bound = self.least * plan.chunks
        return [
            f"{plan.kind} on {self.topology.name}: {plan.gpus} GPUs, data for each GPU in {chunks}",
            f"{len(plan.durations)} steps, time {float(plan.time):g}, at least {float(bound):g}: "
            f"{100 * self.efficiency:.0f} % of what the links can",
            f"{moved} transfers of a chunk; a GPU gets at most {largest_buffer(plan)} in a step",
        ]


def make_plan(
    kind: Kind,
    topology: Topology,
    method: Method = "optimal",
    *,
    main: int = 0,
    chunks: int | None = None,
    seconds: float = _SECONDS,
) -> Planned:
    """Plan an operation, and play the plan through.

    Args:
        kind: the operation.
        topology: of the GPUs.
        method: ``optimal``: the fewest steps of a chunk on a lane each, by an integer program;
            ``buffered``: the least time in few steps of any length, between two buffers;
            ``rings``; ``direct``.
        main: where scatter begins and gather ends.
        chunks: of what one GPU has for another; None: the fewest that can reach the bound. Rings
            have their own number.
        seconds: for each search of an integer program; after it, a step more is tried.

    Raises:
        UsageError: there is no such GPU, the links have no rings, or SciPy is missing.
    """
    if not 0 <= main < topology.gpus:
        raise UsageError(f"`main` must be from 0 to {topology.gpus - 1}, not {main}")
    if chunks is not None and not 1 <= chunks <= 64:
        raise UsageError(f"`chunks` must be from 1 to 64, not {chunks}")
    main = 0 if kind == "all2all" else main
    least = least_time(kind, topology, main)
    if kind == "gather":
        # Links are alike in both directions.
        plan = make_plan(
            "scatter", topology, method, main=main, chunks=chunks, seconds=seconds
        ).plan.reversed()
    elif method == "rings":
        plan = ring_plan(kind, topology, main)
    else:
        at_once = one_step_plan(kind, topology, main)
        whole = at_once is not None and at_once.time == least
        own = chunks or (1 if whole or method == "direct" else best_chunks(least))
        plan = _planned(kind, topology, method, main, own, least, seconds)
    check_plan(plan, topology)
    return Planned(plan, topology, least)


def planned(plan: Plan, topology: Topology) -> Planned:
    """A plan from elsewhere, played through in the shortest steps that the links allow.

    Raises:
        PlanError: it does not do what it should.
    """
    check_ways(plan, topology)
    plan = fitted(plan, topology)
    check_plan(plan, topology)
    return Planned(plan, topology, least_time(plan.kind, topology, plan.main))


def _planned(
    kind: Kind,
    topology: Topology,
    method: Method,
    main: int,
    chunks: int,
    least: Fraction,
    seconds: float,
) -> Plan:
    at_once = one_step_plan(kind, topology, main, chunks)
    if at_once is not None and (method == "direct" or at_once.time == least * chunks):
        return at_once
    simple = direct_plan(kind, topology, main, chunks)
    if method == "direct":
        return simple
    if method == "buffered":
        return _buffered(kind, topology, main, chunks, seconds)
    for steps in range(math.ceil(least * chunks), int(simple.time)):
        if (plan := flow_plan(kind, topology, steps, main, chunks, seconds)) is not None:
            return plan
    return simple


def _buffered(kind: Kind, topology: Topology, main: int, chunks: int, seconds: float) -> Plan:
    """The shortest plan of up to ``_LONGEST`` steps; of equal ones that of fewest steps."""
    best: Plan | None = None
    for steps in range(1, _LONGEST + 1):
        plan = buffered_plan(kind, topology, steps, main, chunks, seconds)
        if plan is not None:
            plan = fitted(plan, topology)
            if best is None or plan.time < best.time:
                best = plan
    if best is None:
        raise UsageError(
            f"no plan of {_LONGEST} steps reaches all GPUs of {topology.name}; use "
            "`method='optimal'`"
        )
    return best
