"""Scatter, gather and all-to-all between the GPUs of a host, planned for its links.

Kobus 2022, chapter 4 (Gossip).
"""

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
    "Kind",
    "Method",
    "Plan",
    "PlanError",
    "Planned",
    "Topology",
    "check_plan",
    "example_names",
    "gossip_text",
    "make_plan",
    "parse_topology",
    "plan_text",
    "planned",
    "read_plan",
    "read_topology",
    "topology_of_host",
]
