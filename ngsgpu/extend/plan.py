"""The memory an extension will take, known before it is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ngsgpu.correct.plan import ESTIMATE_MARGIN, INTERPRETER_BYTES
from ngsgpu.device.memory import format_size
from ngsgpu.errors import UsageError
from ngsgpu.extend.host import PAIRS_PER_TASK
from ngsgpu.extend.params import MAX_FRAGMENT, ExtensionParameters
from ngsgpu.minhash import ends
from ngsgpu.sequence.codec import words_for

TASK_BYTES_PER_BASE = 16
"""Of a task's workspace, with the hashes of its k-mers counted apart."""


@dataclass(frozen=True, slots=True)
class ExtensionPlan:
    """What an extension will take.

    Attributes:
        pairs: number of pairs.
        bases: number of bases.
        max_length: longest read, in bases.
        tables: number of tables.
        read_bytes: bases, qualities and lengths.
        table_bytes: tables, with what building them needs.
        other_bytes: workspaces, buffers of files, and the interpreter.
        budget_bytes: what may be taken.
        estimated: whether the numbers of pairs and bases are estimates.
    """

    pairs: int
    bases: int
    max_length: int
    tables: int
    read_bytes: int
    table_bytes: int
    other_bytes: int
    budget_bytes: int
    estimated: bool = False

    @property
    def total_bytes(self) -> int:
        """Most memory that is in use at a time."""
        return self.read_bytes + self.table_bytes + self.other_bytes

    def lines(self) -> list[str]:
        """The plan for people."""
        return [
            f"pairs    {self.pairs:,} with {self.bases:,} bases, the longest read "
            f"{self.max_length:,}",
            f"tables   {self.tables}, of both ends of each read",
            f"memory   {format_size(self.total_bytes)} of {format_size(self.budget_bytes)}: "
            f"reads {format_size(self.read_bytes)}, tables {format_size(self.table_bytes)}, "
            f"other {format_size(self.other_bytes)}",
        ]

    def check(self, parameters: ExtensionParameters) -> None:
        """Refuse a plan that does not fit.

        Raises:
            UsageError: says what is needed, what there is, and which options would fit.
        """
        if self.total_bytes <= self.budget_bytes:
            return
        about = "about " if self.estimated else ""
        surplus = self.total_bytes - self.budget_bytes
        advice = []
        if self.tables > 2 and self.table_bytes // self.tables * (self.tables - 2) >= surplus:
            advice.append("--hashes 2")
        if parameters.quality_bits == 8 and self.bases * 3 // 4 >= surplus:
            advice.append("--quality-bits 2")
        wanted = self.total_bytes * (ESTIMATE_MARGIN if self.estimated else 1)
        advice.append(f"--memory {math.ceil(wanted / (1 << 20))}M on a machine that has it")
        raise UsageError(
            f"extending {about}{self.pairs:,} pairs takes {format_size(self.total_bytes)} of "
            f"memory and {format_size(self.budget_bytes)} may be used; try {', or '.join(advice)}"
        )


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
    """Work out what an extension takes.

    Args:
        parameters: how pairs are extended.
        pairs: number of pairs.
        bases: number of bases.
        max_length: longest read, in bases.
        threads: how many threads work.
        budget_bytes: what may be taken.
        read_bytes: what the read set takes, where that is known already.
        estimated: whether the numbers of pairs and bases are estimates.
    """
    if read_bytes is None:
        words = 2 * words_for(max_length)
        read_bytes = 2 * pairs * words * 8 + -(-bases * parameters.quality_bits // 8)
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
