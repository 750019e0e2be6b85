"""Memory that a correction needs, known before it is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.minhash import tables
from ngsgpu.run.options import INTERPRETER_BYTES, HostPlan, expected_read_bytes

RESULT_BYTES_PER_READ = 1 + 8 + 1 + 8 + 2 + 4 * 2
"""Class, votes (9 bytes), place of the edits, two edits."""

WORKSPACE_BYTES = 8 << 20
"""Bytes per thread for anchors with very many candidates."""

ANCHORS_PER_BATCH = 4096
_MIN_TABLES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionPlan(HostPlan):
    """Memory that a correction needs; see ``HostPlan``.

    Attributes:
        reads: number of reads.
        paired: whether reads have mates.
        batches: number of batches of anchors.
        result_bytes: corrections and votes.
    """

    DOING = "correcting"
    reads: int
    paired: bool
    batches: int
    result_bytes: int

    def parts(self) -> dict[str, int]:
        """Bytes of each part, by its name."""
        return {
            "reads": self.read_bytes,
            "tables": self.table_bytes,
            "results": self.result_bytes,
            "other": self.other_bytes,
        }

    def units(self) -> str:
        """The reads, with their number."""
        return f"{self.reads:,} reads"

    def inputs(self) -> list[str]:
        """Lines for people about reads and tables."""
        kind = "pairs" if self.paired else "reads"
        return [
            f"reads    {self.reads:,} with {self.bases:,} bases, the longest {self.max_length:,}",
            f"tables   {self.tables}",
            f"batches  {self.batches:,} of {ANCHORS_PER_BATCH:,} {kind}",
        ]

    def fewer_tables(self, surplus: int) -> int | None:
        """Number of tables that saves ``surplus`` bytes; None if none does."""
        fitting = self.tables - math.ceil(surplus / (max(1, self.reads) * tables.ENTRY_BYTES))
        return fitting if fitting >= _MIN_TABLES else None


def plan_correction(
    parameters: CorrectionParameters,
    *,
    reads: int,
    bases: int,
    max_length: int,
    paired: bool,
    threads: int,
    budget_bytes: int,
    read_bytes: int | None = None,
    estimated: bool = False,
) -> CorrectionPlan:
    """Plan the memory of a correction.

    Args:
        parameters: correction parameters.
        reads: number of reads.
        bases: number of bases.
        max_length: longest read, in bases.
        paired: whether reads have mates.
        threads: number of threads.
        budget_bytes: memory budget.
        read_bytes: size of the read set, if already known.
        estimated: whether the numbers of reads and bases are estimates.
    """
    if read_bytes is None:
        read_bytes = expected_read_bytes(reads, bases, max_length, parameters.quality_bits)
    anchors = reads // 2 if paired else reads
    return CorrectionPlan(
        reads=reads,
        bases=bases,
        max_length=max_length,
        paired=paired,
        tables=parameters.minhash.hashes,
        batches=-(-anchors // ANCHORS_PER_BATCH),
        read_bytes=read_bytes,
        table_bytes=tables.planned_bytes(reads, parameters.minhash, threads),
        result_bytes=reads * RESULT_BYTES_PER_READ,
        other_bytes=INTERPRETER_BYTES + threads * WORKSPACE_BYTES + (256 << 20),
        budget_bytes=budget_bytes,
        estimated=estimated,
    )
