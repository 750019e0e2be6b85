"""Transfer plans: the way of every chunk, step by step; their proof, and their files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ngsgpu.collectives.topology import Link, Topology
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import parse_json

Kind = Literal["all2all", "scatter", "gather"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
ONE: Final = (Fraction(1),)
"""Duration of a step in which each lane carries a chunk."""

FORMAT: Final = "ngsgpu transfer plan"
_MOST_PATHS: Final = 1 << 20
_MOST_STEPS: Final = 1 << 16
_REMEDY: Final = "make it again with ngsgpu gpu plan"


class PlanError(ValueError):
    """Invalid plan; the message names the step, and the chunk or the link."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan for data that is cut into chunks.

    Attributes:
        kind: the operation.
        gpus: number of GPUs.
        main: where scatter begins and gather ends; 0 for all2all.
        chunks: of what one GPU has for another.
        durations: of each step: in a step of duration d each lane carries d chunks; transfers
            over the same link share it.
        paths: for each chunk that moves its GPU before the first step and after each step, sorted.
    """

    kind: Kind
    gpus: int
    main: int
    chunks: int
    durations: tuple[Fraction, ...]
    paths: tuple[tuple[int, ...], ...]

    @property
    def time(self) -> Fraction:
        """Duration of all steps, in chunks a lane."""
        return sum(self.durations, Fraction(0))

    def transfers(self, step: int) -> Counter[Link]:
        """Chunks that each GPU sends to each other one in a step."""
        moved = ((path[step], path[step + 1]) for path in self.paths)
        return Counter(way for way in moved if way[0] != way[1])

    def reversed(self) -> Plan:
        """The plan backwards: gather of scatter, and scatter of gather."""
        kinds: dict[Kind, Kind] = {"scatter": "gather", "gather": "scatter", "all2all": "all2all"}
        return Plan(
            kinds[self.kind],
            self.gpus,
            self.main,
            self.chunks,
            self.durations[::-1],
            tuple(sorted(path[::-1] for path in self.paths)),
        )


def demands(kind: Kind, gpus: int, main: int = 0) -> list[Link]:
    """Who has data for whom.

    Args:
        kind: scatter, gather or all-to-all.
        gpus: number of GPUs.
        main: GPU that scatters or gathers.
    """
    pairs = [(a, b) for a in range(gpus) for b in range(gpus) if a != b]
    if kind == "scatter":
        return [pair for pair in pairs if pair[0] == main]
    if kind == "gather":
        return [pair for pair in pairs if pair[1] == main]
    return pairs


def check_plan(plan: Plan, topology: Topology) -> None:
    """Play a plan through: all chunks arrive, and no link carries more than it can.

    Raises:
        PlanError: names the chunk, or the step and the link.
    """
    check_ways(plan, topology)
    for step, duration in enumerate(plan.durations):
        for link, load in loads(plan, topology, step).items():
            if load > duration * topology.lanes[link]:
                raise PlanError(
                    f"step {step + 1}: {load} chunks go from {link[0]} to {link[1]} and "
                    f"{float(duration * topology.lanes[link]):g} can"
                )


def check_ways(plan: Plan, topology: Topology) -> None:
    """See that all chunks arrive, whatever the links can carry.

    Raises:
        PlanError: names the chunk.
    """
    if plan.gpus != topology.gpus:
        raise PlanError(f"the plan is for {plan.gpus} GPUs and the topology has {topology.gpus}")
    steps = len(plan.durations)
    for path in plan.paths:
        if len(path) != steps + 1:
            raise PlanError(f"a chunk of GPU {path[0]} has {len(path) - 1} of {steps} steps")
    arrived = Counter((path[0], path[-1]) for path in plan.paths)
    for pair in demands(plan.kind, plan.gpus, plan.main):
        found = arrived.pop(pair, 0)
        if found != plan.chunks:
            raise PlanError(
                f"{found} of {plan.chunks} chunks of GPU {pair[0]} get to GPU {pair[1]}"
            )
    if arrived:
        pair = min(arrived)
        raise PlanError(f"GPU {pair[0]} has nothing for GPU {pair[1]}")


def loads(plan: Plan, topology: Topology, step: int) -> Counter[Link]:
    """Chunks that each link carries in a step.

    Args:
        plan: the plan.
        topology: GPUs and links.
        step: number of the step, from 0.

    Raises:
        PlanError: two GPUs are not linked.
    """
    found: Counter[Link] = Counter()
    for way, count in plan.transfers(step).items():
        if way not in topology.routes:
            raise PlanError(f"step {step + 1}: no link goes from GPU {way[0]} to GPU {way[1]}")
        for link in topology.routes[way]:
            found[link] += count
    return found


def largest_buffer(plan: Plan) -> int:
    """Most chunks that any GPU gets in a step."""
    return max(
        (
            sum(count for way, count in plan.transfers(step).items() if way[1] == gpu)
            for step in range(len(plan.durations))
            for gpu in range(plan.gpus)
        ),
        default=0,
    )


def plan_text(plan: Plan) -> str:
    """A plan as JSON."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "kind": plan.kind,
        "gpus": plan.gpus,
        "main": plan.main,
        "chunks": plan.chunks,
        "durations": list(map(str, plan.durations)),
    }
    head = json.dumps(values, indent=1)[:-2]
    paths = ",\n  ".join(json.dumps(path) for path in plan.paths)
    return f'{head},\n "paths": [\n  {paths}\n ]\n}}\n'


def gossip_text(plan: Plan) -> str:
    """A plan as Gossip's JSON: chunks on the same path are one line, and what stays is there."""
    sizes = Counter(plan.paths)
    stays = range(plan.gpus) if plan.kind == "all2all" else [plan.main]
    for gpu in stays:
        sizes[(gpu,) * (len(plan.durations) + 1)] = plan.chunks
    values: dict[str, Any] = {
        "type": plan.kind,
        "num_gpus": plan.gpus,
        "num_steps": len(plan.durations),
        "num_chunks": plan.chunks,
        "chunks": [sizes[path] for path in sorted(sizes)],
    }
    if plan.kind != "all2all":
        values["main_gpu"] = plan.main
    head = json.dumps(values, indent=1)[:-2]
    paths = ",\n  ".join(json.dumps(path) for path in sorted(sizes))
    return f'{head},\n "plan": [\n  {paths}\n ]\n}}\n'


def read_plan(path: str | Path) -> Plan:
    """Read a plan of ours or of Gossip's, whose steps have duration 1; see ``fitted``.

    Raises:
        InputError: it cannot be read, or is none.
    """
    try:
        values = parse_json(Path(path).read_text())
        return _of_gossip(values) if "num_gpus" in values else _of_ours(values)
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", _REMEDY) from error
    except (ValueError, KeyError, TypeError, IndexError, ArithmeticError) as error:
        raise InputError(path, "is no transfer plan", _REMEDY) from error


def _of_ours(values: dict[str, Any]) -> Plan:
    if values["format"] != FORMAT or values["kind"] not in KINDS:
        raise ValueError
    return Plan(
        values["kind"], int(values["gpus"]), int(values["main"]), int(values["chunks"]),
        tuple(map(_duration, values["durations"])), _sorted(values["paths"]),
    )  # fmt: skip


def _of_gossip(values: dict[str, Any]) -> Plan:
    if values["type"] not in KINDS:
        raise ValueError
    sizes, steps = [int(size) for size in values["chunks"]], int(values["num_steps"])
    if sum(map(abs, sizes)) > _MOST_PATHS or steps > _MOST_STEPS:
        raise ValueError
    rows = zip(values["plan"], sizes, strict=True)
    paths = [row for row, size in rows for _ in range(size) if row[0] != row[-1]]
    return Plan(
        values["type"], int(values["num_gpus"]), int(values.get("main_gpu", 0)),
        int(values["num_chunks"]), ONE * steps, _sorted(paths),
    )  # fmt: skip


def _duration(value: Any) -> Fraction:
    """The duration of a step; text is an integer or a fraction, as 1e999999999 is too long."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,20}(/[0-9]{1,20})?", value):
        raise ValueError
    return Fraction(value)


def _sorted(paths: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(tuple(map(int, path)) for path in paths))


def fitted(plan: Plan, topology: Topology) -> Plan:
    """The plan with the shortest steps that its links allow.

    Raises:
        PlanError: two GPUs are not linked.
    """
    durations = []
    for step in range(len(plan.durations)):
        own = loads(plan, topology, step)
        times = [Fraction(own[link], topology.lanes[link]) for link in own]
        durations.append(max(times, default=Fraction(0)))
    return Plan(plan.kind, plan.gpus, plan.main, plan.chunks, tuple(durations), plan.paths)
