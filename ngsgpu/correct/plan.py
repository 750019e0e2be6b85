"""The memory a correction will take, known before it is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.memory import format_size
from ngsgpu.errors import UsageError
from ngsgpu.minhash import MinhashParameters, tables
from ngsgpu.sequence.codec import words_for

INTERPRETER_BYTES = 200 << 20
"""What Python and its libraries take."""

RESULT_BYTES_PER_READ = 1 + 8 + 1 + 8 + 2 + 4 * 2
"""Class, votes (9 bytes), place of the edits, two edits."""

WORKSPACE_BYTES = 8 << 20
"""What a thread's candidates take when there are very many of them."""

_MIN_CHUNK = 256 << 10
_CHUNK_SHARE = 32

ESTIMATE_MARGIN = 1.05
"""What is advised where numbers are estimates, as a multiple of them."""


def chunk_bytes_within(budget_bytes: int, chunk_bytes: int) -> int:
    """Bytes of a file to handle at a time, of which about a dozen are in memory at a time.

    Args:
        budget_bytes: what may be taken.
        chunk_bytes: what is handled where there is enough memory.
    """
    room = max(0, budget_bytes - INTERPRETER_BYTES)
    return min(chunk_bytes, max(_MIN_CHUNK, room // _CHUNK_SHARE))


ANCHORS_PER_BATCH = 4096


@dataclass(frozen=True, slots=True)
class CorrectionPlan:
    """What a correction will take.

    Attributes:
        reads: number of reads.
        bases: number of bases.
        max_length: longest read, in bases.
        paired: whether reads have mates.
        tables: number of minhash tables.
        batches: number of batches of anchors.
        read_bytes: bases, qualities and lengths.
        table_bytes: tables, with what building them needs.
        result_bytes: corrections and votes.
        other_bytes: workspaces, buffers of files, and the interpreter.
        budget_bytes: what may be taken.
        estimated: whether the numbers of reads and bases are estimates.
    """

    reads: int
    bases: int
    max_length: int
    paired: bool
    tables: int
    batches: int
    read_bytes: int
    table_bytes: int
    result_bytes: int
    other_bytes: int
    budget_bytes: int
    estimated: bool = False

    @property
    def total_bytes(self) -> int:
        """Most memory that is in use at a time."""
        return self.read_bytes + self.table_bytes + self.result_bytes + self.other_bytes

    def lines(self) -> list[str]:
        """The plan for people."""
        kind = "pairs" if self.paired else "reads"
        return [
            f"reads    {self.reads:,} with {self.bases:,} bases, the longest {self.max_length:,}",
            f"tables   {self.tables}",
            f"batches  {self.batches:,} of {ANCHORS_PER_BATCH:,} {kind}",
            f"memory   {format_size(self.total_bytes)} of {format_size(self.budget_bytes)}: "
            f"reads {format_size(self.read_bytes)}, tables {format_size(self.table_bytes)}, "
            f"results {format_size(self.result_bytes)}, other {format_size(self.other_bytes)}",
        ]

    def check(self, parameters: CorrectionParameters) -> None:
        """Refuse a plan that does not fit.

        Raises:
            UsageError: says what is needed, what there is, and which options would fit.
        """
        if self.total_bytes <= self.budget_bytes:
            return
        about = "about " if self.estimated else ""
        surplus = self.total_bytes - self.budget_bytes
        fitting = self.tables - math.ceil(surplus / (max(1, self.reads) * tables.ENTRY_BYTES))
        advice = []
        if fitting >= 16:
            advice.append(f"--hashes {fitting}")
        if parameters.quality_bits == 8 and self.bases * 3 // 4 >= surplus:
            advice.append("--quality-bits 2")
        wanted = self.total_bytes * (ESTIMATE_MARGIN if self.estimated else 1)
        advice.append(f"--memory {math.ceil(wanted / (1 << 20))}M on a machine that has it")
        raise UsageError(
            f"correcting {about}{self.reads:,} reads takes {format_size(self.total_bytes)} of "
            f"memory and {format_size(self.budget_bytes)} may be used; try {', or '.join(advice)}"
        )


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
    """Work out what a correction takes.

    Args:
        parameters: how reads are corrected.
        reads: number of reads.
        bases: number of bases.
        max_length: longest read, in bases.
        paired: whether reads have mates.
        threads: how many threads work.
        budget_bytes: what may be taken.
        read_bytes: what the read set takes, where that is known already.
        estimated: whether the numbers of reads and bases are estimates.
    """
    if read_bytes is None:
        words = 2 * words_for(max_length)
        read_bytes = reads * words * 8 + -(-bases * parameters.quality_bits // 8)
    anchors = reads // 2 if paired else reads
    minhash: MinhashParameters = parameters.minhash
    return CorrectionPlan(
        reads=reads,
        bases=bases,
        max_length=max_length,
        paired=paired,
        tables=minhash.hashes,
        batches=-(-anchors // ANCHORS_PER_BATCH),
        read_bytes=read_bytes,
        table_bytes=tables.planned_bytes(reads, minhash, threads),
        result_bytes=reads * RESULT_BYTES_PER_READ,
        other_bytes=INTERPRETER_BYTES + threads * WORKSPACE_BYTES + (256 << 20),
        budget_bytes=budget_bytes,
        estimated=estimated,
    )
