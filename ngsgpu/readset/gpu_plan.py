"""GPU memory of a run that has reads, and tables of them, which several GPUs may divide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

from ngsgpu.device.arena import ALIGNMENT
from ngsgpu.device.memory import format_size
from ngsgpu.device.plan import Allocation, MemoryPlan, peak_bytes
from ngsgpu.device.spread import share_bytes
from ngsgpu.io.gpu.parse import SLOTS, slot_bytes
from ngsgpu.io.gpu.records import CHUNK_BYTES, MIN_CHUNK

STEPS: Final = ("building", "working")
"""Steps of a stage that builds tables, and works with them."""

ARRIVED: Final = "reads before they are in their places"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPlan(MemoryPlan):
    """Memory of a run with reads and tables on each GPU of a team.

    Attributes:
        reading: bytes for reading, in addition to the reads, before everything else; 0 if that is
            done.
        divided_over: GPUs that have a share of the tables each, which that allocation is; 1 where
            every GPU has all of them.
        reads_divided: whether they have a share of the reads each, too.
        divided_tables: bytes of the tables that are divided.
    """

    WORK: ClassVar[str] = "working"
    """What the work is called in the statistics."""

    reading: int = 0
    divided_over: int = 1
    reads_divided: bool = False
    divided_tables: int = 0

    @property
    def over_bus(self) -> bool:
        """Whether kernels read data on the host again and again."""
        return bool(self.moved)

    @property
    def reads(self) -> int:
        """Reads on the GPU."""
        return self.bytes_of("reads")

    @property
    def tables(self) -> int:
        """Tables on the GPU, at most."""
        return self.bytes_of("tables")

    @property
    def building(self) -> int:
        """GPU memory for building the tables, in addition to them."""
        return self.bytes_of("building")

    @property
    def working(self) -> int:
        """GPU memory for working with the tables, in addition to them."""
        return self.bytes_of("working")

    @property
    def work(self) -> int:
        """GPU memory besides reads and tables."""
        return max(self.building, self.working) + self.bytes_of("spare")

    @property
    def arena(self) -> int:
        """GPU memory except for the reads, and for what is divided."""
        beside = {"reads", "rounding", ARRIVED} | ({"tables"} if self.divided_over > 1 else set())
        return peak_bytes(
            own for own in self.allocations if own.name not in beside and not own.on_host
        )

    def divided(self, gpus: int, *, reads: bool = True, arrived: int = 0) -> Self:
        """The plan of one of several GPUs over which the tables, and the reads, are divided.

        Args:
            gpus: how many; with 1 nothing is.
            reads: whether the reads are divided, too.
            arrived: bytes that the reads take before they are in their places, in addition.
        """
        before = (Allocation(ARRIVED, arrived, ("placing",)),) if arrived else ()
        if gpus == 1:
            return replace(self, allocations=(*self.allocations, *before))
        sizes = {own.name: own.bytes + ALIGNMENT * own.arrays for own in self.allocations}
        shares = tuple(
            replace(own, bytes=share_bytes(sizes[own.name], gpus))
            if own.arrays and (reads or own.name == "tables")
            else own
            for own in self.allocations
        )
        return replace(
            self,
            allocations=(*shares, *before),
            divided_over=gpus,
            reads_divided=reads,
            divided_tables=sizes["tables"],
        )

    def line(self) -> str:
        """The plan for people."""
        parts = [
            f"reads {format_size(self.reads)}",
            f"tables {format_size(self.tables)}",
            f"work {format_size(self.work)}",
        ]
        if self.reading:
            parts.append(f"before that {format_size(self.reading)} to read")
        where = f"; on the host {format_size(self.host)}: " if self.moved else ""
        line = (
            f"{format_size(self.total)} of {format_size(self.budget)}: "
            f"{', '.join(parts)}{where}{', '.join(self.moved)}"
        )
        if self.divided_over > 1:
            what = "reads and tables" if self.reads_divided else "tables"
            line += f"; {what} are divided over {self.divided_over} GPUs"
        return line

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            "planned_bytes": self.total,
            "budget_bytes": self.budget,
            "read_bytes": self.reads,
            "table_bytes": self.tables,
            "building_bytes": self.building,
            f"{self.WORK}_bytes": self.working,
            "host_bytes": self.host,
            "divided_over": self.divided_over,
            "reads_divided": self.reads_divided,
        }


def reading_bytes(paired: bool, limit: int | None, budget: int) -> int:
    """GPU memory for reading, in addition to the read set.

    Args:
        paired: whether there are two files, of first and second mates.
        limit: memory limit of the run in bytes; None: no limit.
        budget: bytes the run may use under that limit.
    """
    chunk = chunk_bytes_within(limit or budget, CHUNK_BYTES)
    return (2 if paired else 1) * SLOTS * slot_bytes(chunk)


def chunk_bytes_within(memory: int, chunk_bytes: int) -> int:
    """Chunk size at which the slots use at most about an eighth of the memory."""
    return min(chunk_bytes, max(MIN_CHUNK, memory // 96))
