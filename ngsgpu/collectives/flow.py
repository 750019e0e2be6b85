"""Plans from integer programs: flows of chunks over a graph of GPUs and steps [Kobus 2023, 4.5].

A flow has, for every GPU that data goes to, how many chunks take each transfer in each step, and
how many stay; chunks are kept, and links carry no more than they can. As chunks for the same GPU
are alike, it does not matter whose a chunk is: paths are read from the flow in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from ngsgpu.collectives.plan import ONE, Kind, Plan, demands
from ngsgpu.collectives.topology import Link, Topology
from ngsgpu.errors import UsageError, install_extra

MOST_CHUNKS: Final = 16
"""Into which data is cut unless more are asked for: each is a transfer."""

_LARGEST_DENOMINATOR: Final = 64
_GAP: Final = 0.5
"""Transfers more than needed, of 1, in a plan whose steps are given."""

_FINE_GAP: Final = 0.01


@dataclass
class _Program:
    """A linear program that grows: variables, and rows of their sums."""

    costs: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    terms: list[tuple[int, int, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def variable(self, most: float, cost: float = 0) -> int:
        self.costs.append(cost)
        self.most.append(most)
        return len(self.costs) - 1

    def row(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        self.terms += [(len(self.low), variable, factor) for variable, factor in terms]
        self.low.append(low)
        self.high.append(high)

    def solve(self, integral: bool, seconds: float, gap: float = 0.0) -> Any | None:
        """Values of the variables, or None if there are none, or none were found in time.

        A solution of costs up to ``gap`` above the least will do.
        """
        try:
            from scipy.optimize import Bounds, LinearConstraint, milp
            from scipy.sparse import coo_array
        except ImportError as error:
            raise UsageError(f"plans need SciPy; {install_extra('plan')}") from error
        rows, columns, factors = zip(*self.terms, strict=True)
        matrix = coo_array((factors, (rows, columns)), shape=(len(self.low), len(self.costs)))
        found = milp(
            np.array(self.costs),
            integrality=np.full(len(self.costs), int(integral)),
            bounds=Bounds(0, np.array(self.most)),
            constraints=LinearConstraint(matrix.tocsr(), self.low, self.high),
            options={"time_limit": seconds, "mip_rel_gap": gap},
        )
        return found.x


def least_time(kind: Kind, topology: Topology, main: int = 0) -> Fraction:
    """Time below which no plan is, in multiples of what one GPU has for another on one lane.

    The fullest link of the flow that loads links least, without steps and chunks: by the duality
    of linear programs this is what the narrowest cut allows, and more than the bisection tells.

    Args:
        kind: scatter, gather or all-to-all.
        topology: GPUs and links.
        main: GPU that scatters or gathers.
    """
    pairs = demands(kind, topology.gpus, main)
    program = _Program()
    time = program.variable(math.inf, 1.0)
    flows = {
        (way, to): program.variable(math.inf)
        for way in topology.routes
        for to in sorted({pair[1] for pair in pairs})
    }
    for to in sorted({pair[1] for pair in pairs}):
        starts = {pair[0] for pair in pairs if pair[1] == to}
        for gpu in range(topology.gpus):
            out = [(flows[way, to], 1.0) for way in topology.routes if way[0] == gpu]
            into = [(flows[way, to], -1.0) for way in topology.routes if way[1] == gpu]
            supply = -len(starts) if gpu == to else float(gpu in starts)
            program.row(out + into, supply, supply)
    for link, lanes in topology.lanes.items():
        own = [(flow, 1.0) for (way, _), flow in flows.items() if link in topology.routes[way]]
        program.row([*own, (time, -float(lanes))], -math.inf, 0)
    values = program.solve(False, math.inf)
    assert values is not None
    return Fraction(float(values[time])).limit_denominator(_LARGEST_DENOMINATOR)


def best_chunks(least: Fraction) -> int:
    """The fewest chunks of which the least time is a whole number of steps."""
    return least.denominator if least.denominator <= MOST_CHUNKS else 1


def flow_plan(
    kind: Kind, topology: Topology, steps: int, main: int, chunks: int, seconds: float
) -> Plan | None:
    """A plan with a given number of steps; None if there is none, or none was found.

    Args:
        kind: ``all2all`` or ``scatter``.
        topology: of the GPUs.
        steps: of duration 1.
        main: where scatter begins.
        chunks: of what one GPU has for another.
        seconds: for the search.
    """
    program = _Program()
    moves, stays = _flows(program, kind, topology, steps, main, chunks)
    for step in range(steps):
        for link, lanes in topology.lanes.items():
            program.row(_load(moves, topology, link, step), -math.inf, lanes)
    values = program.solve(True, seconds, _GAP)
    if values is None:
        return None
    paths = _paths(kind, topology, steps, main, chunks, moves, stays, values)
    return Plan(kind, topology.gpus, main, chunks, ONE * steps, paths)


def buffered_plan(
    kind: Kind, topology: Topology, steps: int, main: int, chunks: int, seconds: float
) -> Plan | None:
    """The shortest plan of few long steps, between which everything is in one of two buffers.

    In a step no GPU sends more than it has for all [Kobus 2023, section 4.5.3]. Arguments as of
    ``flow_plan``.

    Args:
        kind: scatter, gather or all-to-all.
        topology: GPUs and links.
        steps: number of steps.
        main: GPU that scatters or gathers.
        chunks: chunks of each pair of GPUs.
        seconds: time limit of the solver.
    """
    program = _Program()
    moves, stays = _flows(program, kind, topology, steps, main, chunks)
    # A transfer costs little, so that of plans of one duration that of fewest is taken.
    for variable in moves.values():
        program.costs[variable] = 1e-4
    for step in range(steps):
        duration = program.variable(math.inf, 1.0)
        for link, lanes in topology.lanes.items():
            own = _load(moves, topology, link, step)
            program.row([*own, (duration, -float(lanes))], -math.inf, 0)
        for gpu in range(topology.gpus):
            sent = [
                (own, 1.0) for (way, _, at), own in moves.items() if (way[0], at) == (gpu, step)
            ]
            program.row(sent, -math.inf, chunks * topology.gpus)
    values = program.solve(True, seconds, _FINE_GAP)
    if values is None:
        return None
    paths = _paths(kind, topology, steps, main, chunks, moves, stays, values)
    return Plan(kind, topology.gpus, main, chunks, ONE * steps, paths)


_Moves = dict[tuple[Link, int, int], int]
_Stays = dict[tuple[int, int, int], int]


def _flows(
    program: _Program, kind: Kind, topology: Topology, steps: int, main: int, chunks: int
) -> tuple[_Moves, _Stays]:
    """Variables of the flow, and the rows that keep chunks: by transfer or GPU, target, step."""
    pairs = demands(kind, topology.gpus, main)
    targets = sorted({to for _, to in pairs})
    moves = {
        (way, to, step): program.variable(chunks * topology.gpus, 1.0)
        for step in range(steps)
        for to in targets
        for way in topology.routes
    }
    stays = {
        (gpu, to, step): program.variable(chunks * topology.gpus)
        for step in range(steps)
        for to in targets
        for gpu in range(topology.gpus)
    }
    for to in targets:
        starts = {start for start, end in pairs if end == to}
        for gpu in range(topology.gpus):
            out = [[way for way in topology.routes if way[side] == gpu] for side in (0, 1)]
            for step in range(steps + 1):
                terms = []
                if step < steps:
                    terms += [(moves[way, to, step], 1.0) for way in out[0]]
                    terms.append((stays[gpu, to, step], 1.0))
                if step > 0:
                    terms += [(moves[way, to, step - 1], -1.0) for way in out[1]]
                    terms.append((stays[gpu, to, step - 1], -1.0))
                supply = chunks if step == 0 and gpu in starts else 0
                if step == steps and gpu == to:
                    supply -= chunks * len(starts)
                program.row(terms, supply, supply)
    return moves, stays


def _load(moves: _Moves, topology: Topology, link: Link, step: int) -> list[tuple[int, float]]:
    return [
        (own, 1.0) for (way, _, at), own in moves.items() if at == step
        and link in topology.routes[way]
    ]  # fmt: skip


def _paths(
    kind: Kind,
    topology: Topology,
    steps: int,
    main: int,
    chunks: int,
    moves: _Moves,
    stays: _Stays,
    values: Any,
) -> tuple[tuple[int, ...], ...]:
    """Ways of single chunks through a flow."""
    left = {key: round(float(values[own])) for key, own in moves.items()}
    kept = {key: round(float(values[own])) for key, own in stays.items()}
    paths = []
    for start, to in demands(kind, topology.gpus, main):
        for _ in range(chunks):
            path = [start]
            for step in range(steps):
                gpu = path[-1]
                if kept[gpu, to, step] > 0:
                    kept[gpu, to, step] -= 1
                    path.append(gpu)
                    continue
                way = next(
                    way for way in topology.routes if way[0] == gpu and left[way, to, step] > 0
                )
                left[way, to, step] -= 1
                path.append(way[1])
            paths.append(tuple(path))
    return tuple(sorted(paths))
