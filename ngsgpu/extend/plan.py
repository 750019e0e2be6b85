"""Memory that an extension needs, known before it is taken."""

from __future__ import annotations

from dataclasses import dataclass

from ngsgpu.extend.params import MAX_FRAGMENT, ExtensionParameters
from ngsgpu.minhash import ends
from ngsgpu.run.options import INTERPRETER_BYTES, HostPlan, expected_read_bytes

PAIRS_PER_TASK = 512

TASK_BYTES_PER_BASE = 16
"""Of a task's workspace, with the hashes of its k-mers counted apart."""

_MIN_TABLES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionPlan(HostPlan):
    """Memory that an extension needs; see ``HostPlan``.

    Attributes:
        pairs: number of pairs.
    """

    DOING = "extending"
    pairs: int

    def units(self) -> str:
        """The pairs, with their number."""
        return f"{self.pairs:,} pairs"

    def inputs(self) -> list[str]:
        """Lines for people about reads and tables."""
        return [
            f"pairs    {self.pairs:,} with {self.bases:,} bases, the longest read "
            f"{self.max_length:,}",
            f"tables   {self.tables}, of both ends of each read",
        ]

    def fewer_tables(self, surplus: int) -> int | None:
        """Number of tables that saves ``surplus`` bytes; None if none does."""
        spare = self.tables - _MIN_TABLES
        saves = spare > 0 and self.table_bytes // self.tables * spare >= surplus
        return _MIN_TABLES if saves else None


def plan_extension(
    parameters: ExtensionParameters,
    *,
    pairs: int,
    bases: int,
    max_length: int,
    threads: int,
    budget_bytes: int,
    read_bytes: int | None = None,
    estimated: bool = False,
) -> ExtensionPlan:
    """Plan the memory of an extension.

    Args:
        parameters: extension parameters.
        pairs: number of pairs.
        bases: number of bases.
        max_length: longest read, in bases.
        threads: number of threads.
        budget_bytes: memory budget.
        read_bytes: size of the read set, if already known.
        estimated: whether the numbers of pairs and bases are estimates.
    """
    if read_bytes is None:
        read_bytes = expected_read_bytes(2 * pairs, bases, max_length, parameters.quality_bits)
    hashes = parameters.ends.hashes
    longest = min(MAX_FRAGMENT, parameters.max_length or 2000) + max_length
    task_bytes = 4 * longest * (TASK_BYTES_PER_BASE + 8 * hashes)
    results = 4 * PAIRS_PER_TASK * longest * (6 if parameters.outward else 4)
    return ExtensionPlan(
        pairs=pairs,
        bases=bases,
        max_length=max_length,
        tables=hashes,
        read_bytes=read_bytes,
        table_bytes=ends.planned_bytes(2 * pairs, parameters.ends, threads),
        other_bytes=INTERPRETER_BYTES + threads * (task_bytes + results + (1 << 20)) + (192 << 20),
        budget_bytes=budget_bytes,
        estimated=estimated,
    )
