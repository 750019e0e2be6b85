"""GPU memory that a run takes: planned before it is taken, placed, and said.

What is planned is compared with a budget: what ``--gpu-memory`` says, or what is free. A stage
gives the bytes of its reads, tables and work; what they sum up to, whether they fit, and how that
is written for people and for the statistics is the same for all (``MemoryPlan``).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import format_size
from ngsgpu.device.team import free_unused
from ngsgpu.errors import DeviceError, DeviceMemoryError

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")

ADVICE: Final = "use a GPU with more memory, raise --gpu-memory, or use --backend cpu"

ROUNDING_BYTES: Final = 1 << 20
"""What CuPy's pool takes for the arrays of the reads beyond their size."""

_RESERVE: Final = 512 << 20
"""For what CUDA takes by itself when kernels are loaded and launched, and for fragmentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What a run over a read set takes on each of its GPUs, in bytes.

    Attributes:
        reads: reads on the GPU.
        tables: tables on the GPU, at most.
        building: what building the tables takes besides.
        working: what working with them takes besides.
        spare: for small arrays.
        host: pinned host memory.
        budget: that may be taken on the GPU.
        host_budget: that may be taken on the host.
        reading: what reading takes beside the reads, before all else; 0 where that is over.
    """

    WORK: ClassVar[str]
    """What the work is called in the statistics."""

    reads: int
    tables: int
    building: int
    working: int
    spare: int
    host: int
    budget: int
    host_budget: int
    reading: int = 0

    @property
    def arena(self) -> int:
        """What is taken on the GPU for all but the reads."""
        return self.tables + max(self.building, self.working) + self.spare

    @property
    def total(self) -> int:
        """The most that is in use on the GPU at a time."""
        return self.reads + ROUNDING_BYTES + self.arena

    @property
    def fits(self) -> bool:
        """Whether it may be taken."""
        return self.total <= self.budget and self.host <= self.host_budget

    @property
    def moved(self) -> list[str]:
        """What lies on the host for want of GPU memory, as people call it."""
        return []

    def line(self) -> str:
        """The plan for people."""
        parts = [
            f"reads {format_size(self.reads)}",
            f"tables {format_size(self.tables)}",
            f"work {format_size(self.arena - self.tables)}",
        ]
        if self.reading:
            parts.append(f"before that {format_size(self.reading)} to read")
        where = f"; on the host {format_size(self.host)}: " if self.moved else ""
        return (
            f"{format_size(self.total)} of {format_size(self.budget)}: "
            f"{', '.join(parts)}{where}{', '.join(self.moved)}"
        )

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
        }


@dataclass(frozen=True)
class GpuMemory:
    """Memory of a GPU in bytes.

    Attributes:
        total: in all.
        free: that this process can still have, what CuPy keeps for it included.
        budget: that this run may take.
    """

    total: int
    free: int
    budget: int

    def require(self, needed: int, what: str) -> None:
        """Refuse what does not fit.

        Args:
            needed: bytes.
            what: that need them, as ``the minhash tables``.

        Raises:
            DeviceError: the budget is smaller; the message names both.
        """
        if needed > self.budget:
            raise DeviceMemoryError(
                f"{what} need {format_size(needed)} of GPU memory and {format_size(self.budget)} "
                f"may be used ({format_size(self.free)} of {format_size(self.total)} are free); "
                f"{ADVICE}"
            )


def gpu_memory(limit: int | None = None) -> GpuMemory:
    """Ask the current GPU for its memory.

    Args:
        limit: the most that the run may take, in bytes (``--gpu-memory``); None takes what is free
            less a reserve for CUDA itself.

    Raises:
        DeviceError: CUDA does not answer.
    """
    with cuda_errors("asking the GPU for its memory"):
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        # Freed arrays stay with CuPy, from where new ones are made.
        free += cupy.get_default_memory_pool().free_bytes()
    usable = max(0, free - _RESERVE)
    return GpuMemory(total, free, usable if limit is None else min(limit, usable))


def largest_array_bytes(limit: int | None, there: int = 0) -> int:
    """Bytes of the current GPU's memory that one array can have, or a few.

    Args:
        limit: the most that the run may take, in bytes; None for no limit.
        there: bytes of arrays that the run has already, which count.
    """
    import cupy

    pool = cupy.get_default_memory_pool()
    # What the pool keeps between other arrays is of no use for a large one.
    budget = gpu_memory().budget - int(pool.free_bytes())
    if limit is not None:
        others = max(0, int(pool.total_bytes()) - there)
        budget = min(budget, limit - there - others)
    return max(0, budget)


def retry_with_less(
    attempt: Callable[[bool], _Result],
    doing: str,
    *,
    needed: Callable[[], int],
) -> _Result:
    """Do what takes GPU memory; where that runs out, once more with less.

    Args:
        attempt: does it; called with False, and where the memory ran out once more with True,
            when it has to take less. A failed attempt leaves nothing behind.
        doing: what is being done, a phrase for messages.
        needed: bytes that the last attempt wanted in all.

    Raises:
        DeviceError: the memory did not suffice the second time either.
    """
    try:
        return attempt(False)
    except MemoryError as error:
        # As text, for the error refers to the arrays of the failed attempt.
        _LOG.warning("%s: GPU memory ran out (%s); going on with less", doing, str(error))
    # Only now are the frames of the failed attempt gone, and its arrays with them.
    free_unused()
    try:
        return attempt(True)
    except MemoryError as error:
        raise out_of_memory(doing, needed(), error) from error


def out_of_memory(doing: str, needed: int, error: MemoryError) -> DeviceError:
    """The error of memory that ran out although less was taken the second time.

    Args:
        doing: what was being done, a phrase.
        needed: bytes that it takes in all.
        error: what CuPy said.
    """
    there = ""
    with contextlib.suppress(DeviceError):
        now = gpu_memory()
        there = f" and {format_size(now.free)} of {format_size(now.total)} are free"
    return DeviceMemoryError(
        f"{doing}: not enough GPU memory, although less was taken the second time: "
        f"{format_size(needed)} are needed{there} ({error}); use a GPU that is free, give "
        "--gpu-memory a smaller size, or use --backend cpu"
    )
