"""The GPU memory of a run that is only planned (``--dry-run``), from what is free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ngsgpu.device.plan import MemoryPlan, gpu_memory
from ngsgpu.device.team import Team
from ngsgpu.readset.gpu import ReadMemory, reading_bytes
from ngsgpu.readset.gpu_divided import are_linked
from ngsgpu.run.options import HostPlan, RunOptions

M = TypeVar("M", bound=MemoryPlan)


class Available(NamedTuple):
    """What a run has to do with.

    Attributes:
        reads: memory of the reads, about.
        budget: GPU memory in bytes.
        reading: GPU memory for reading, in addition to the reads.
        linked: whether the GPUs can have data in common.
    """

    reads: ReadMemory
    budget: int
    reading: int
    linked: bool


def plan_free_memory(
    run: HostPlan, quality_bits: int, options: RunOptions, plan: Callable[[Available], M]
) -> M:
    """Plan a run on the current GPU, and those after it, from its free memory.

    Args:
        run: what is known about the run.
        quality_bits: bits stored per quality.
        options: memory budgets, and the number of GPUs.
        plan: plans the stage's memory.

    Raises:
        DeviceError: it does not suffice, or CUDA does not respond.
    """
    found, limit = run.contents, options.gpu_memory
    reads = ReadMemory.expected(
        found.reads, found.bases, found.longest, paired=found.paired, quality_bits=quality_bits
    )
    budget = gpu_memory(limit).budget
    reading = reading_bytes(found.paired, limit, budget)
    planned = plan(Available(reads, budget, reading, are_linked(Team(options.gpus))))
    return replace(planned, reading=reading)
