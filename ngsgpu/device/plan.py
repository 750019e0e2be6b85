"""GPU memory of a run: planned before allocation, placed, and reported.

The plan is compared with a budget, ``gpu_memory`` or the free memory. A stage provides the bytes
of its reads, tables and work; their sum, whether they fit, and how that is reported to users and
in the statistics is the same for all stages (``MemoryPlan``).
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

ADVICE: Final = "use a GPU with more memory, raise `gpu_memory`, or use `backend='cpu'`"

ROUNDING_BYTES: Final = 1 << 20
"""Overhead of CuPy's pool for the arrays of the reads."""

_RESERVE: Final = 512 << 20
"""Reserve for CUDA's own use when kernels are loaded and launched, and for fragmentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of a run over a read set on each of its GPUs, in bytes.

    Attributes:
        reads: reads on the GPU.
        tables: tables on the GPU, at most.
        building: additionally for building the tables.
        working: additionally for working with them.
        spare: for small arrays.
        host: pinned host memory.
        budget: GPU memory budget.
        host_budget: pinned host memory budget.
        reading: for reading, in addition to the reads, before everything else; 0 if that is done.
        divided_over: GPUs that have a share of the reads and the tables each, which ``reads`` and
            ``tables`` are; 1 where every GPU has all of them.
        divided_tables: bytes of the tables that are divided.
        before_division: bytes of the reads on the first GPU before they are divided.
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
    divided_over: int = 1
    divided_tables: int = 0
    before_division: int = 0

    @property
    def work(self) -> int:
        """GPU memory besides reads and tables."""
        return max(self.building, self.working) + self.spare

    @property
    def arena(self) -> int:
        """GPU memory except for the reads, and for what is divided."""
        return self.work if self.divided_over > 1 else self.tables + self.work

    @property
    def total(self) -> int:
        """The most that is in use on the GPU at a time."""
        rest = self.tables + self.work if self.divided_over > 1 else self.arena
        return self.reads + ROUNDING_BYTES + max(rest, self.before_division)

    @property
    def fits(self) -> bool:
        """Whether it may be taken."""
        return self.total <= self.budget and self.host <= self.host_budget

    @property
    def moved(self) -> list[str]:
        """Data on the host for lack of GPU memory, as shown to users."""
        return []

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
            line += f"; reads and tables are divided over {self.divided_over} GPUs"
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
        }


@dataclass(frozen=True)
class GpuMemory:
    """Memory of a GPU in bytes.

    Attributes:
        total: total memory.
        free: available to this process, including CuPy's cached blocks.
        budget: available to this run.
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
    """Query the memory of the current GPU.

    Args:
        limit: memory limit of the run in bytes (``gpu_memory``); None: free memory minus a
            reserve
            for CUDA itself.

    Raises:
        DeviceError: CUDA does not respond.
    """
    with cuda_errors("asking the GPU for its memory"):
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        # CuPy caches freed arrays and reuses their memory.
        free += cupy.get_default_memory_pool().free_bytes()
    usable = max(0, free - _RESERVE)
    return GpuMemory(total, free, usable if limit is None else min(limit, usable))


def largest_array_bytes(limit: int | None, there: int = 0) -> int:
    """Bytes of the current GPU's memory available for one or a few arrays.

    Args:
        limit: memory limit of the run in bytes; None: no limit.
        there: bytes of the run's existing arrays, which count.
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
    """Run something that needs GPU memory; if that runs out, retry once with less.

    Args:
        attempt: called with False, and if memory ran out once more with True, when it must use
            less. A failed attempt leaves nothing behind.
        doing: the operation, a phrase for messages.
        needed: bytes that the last attempt wanted in total.

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
    """The error for memory that ran out although the second attempt used less.

    Args:
        doing: the operation, a phrase.
        needed: bytes needed in total.
        error: CuPy's error.
    """
    there = ""
    with contextlib.suppress(DeviceError):
        now = gpu_memory()
        there = f" and {format_size(now.free)} of {format_size(now.total)} are free"
    return DeviceMemoryError(
        f"{doing}: not enough GPU memory, although less was taken the second time: "
        f"{format_size(needed)} are needed{there} ({error}); use a GPU that is free, give "
        "`gpu_memory` a smaller size, or use `backend='cpu'`"
    )
