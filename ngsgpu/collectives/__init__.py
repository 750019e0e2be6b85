"""Scatter, gather and all-to-all between the GPUs of a host, planned for its links.

Kobus 2023, chapter 4 (Gossip). Read ``topology``, ``plan``, ``planner`` for plans; ``transfers``,
``execute`` and ``peers`` for how they are carried out; ``rows`` for tables divided by their keys.
"""

from ngsgpu.collectives.execute import WAYS, Exchange, Way
from ngsgpu.collectives.plan import (
    KINDS,
    Kind,
    Plan,
    PlanError,
    check_plan,
    gossip_text,
    plan_text,
    read_plan,
)
from ngsgpu.collectives.planner import METHODS, Method, Planned, make_plan, planned
from ngsgpu.collectives.rows import (
    Owner,
    Table,
    by_ranges,
    exchange_rows,
    partition,
    shuffle,
    sort_rows,
    sorted_shuffle,
)
from ngsgpu.collectives.topology import (
    Topology,
    example_names,
    parse_topology,
    read_topology,
    topology_of_host,
)

__all__ = [
    "KINDS",
    "METHODS",
    "WAYS",
    "Exchange",
    "Kind",
    "Method",
    "Owner",
    "Plan",
    "PlanError",
    "Planned",
    "Table",
    "Topology",
    "Way",
    "by_ranges",
    "check_plan",
    "example_names",
    "exchange_rows",
    "gossip_text",
    "make_plan",
    "parse_topology",
    "partition",
    "plan_text",
    "planned",
    "read_plan",
    "read_topology",
    "shuffle",
    "sort_rows",
    "sorted_shuffle",
    "topology_of_host",
]
