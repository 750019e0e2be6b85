"""The GPU memory of a run that is only planned (``--dry-run``), from what is free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ngsgpu.device.plan import MemoryPlan, gpu_memory
from ngsgpu.device.team import Team
from ngsgpu.readset.gpu import ReadMemory, reading_bytes
from ngsgpu.readset.gpu_divided import are_linked
from ngsgpu.run.options import ReadSetPlan, RunOptions
from ngsgpu.run.staged import Parameters

M = TypeVar("M", bound=MemoryPlan)


def plan_free_memory(
    plan_team: Callable[..., M], run: ReadSetPlan, parameters: Parameters, options: RunOptions
) -> M:
    """Plan a run on the current GPU, and those after it, from its free memory.

    Args:
        plan_team: plans the stage's memory, of reads, parameters, the number of GPUs, whether
            they are ``linked``, ``budget`` and ``host_budget``.
        run: what is known about the run.
        parameters: of the stage.
        options: memory budgets, and the number of GPUs.

    Raises:
        DeviceError: it does not suffice, or CUDA does not respond.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    found = run.contents
    reads = ReadMemory.expected(
        found.reads,
        found.bases,
        found.longest,
        paired=found.paired,
        quality_bits=parameters.quality_bits,
    )
    budget = gpu_memory(options.gpu_memory).budget
    plan = plan_team(
        reads,
        parameters,
        options.gpus,
        linked=are_linked(Team(options.gpus)),
        budget=budget,
        host_budget=options.budget,
    )
    return replace(plan, reading=reading_bytes(found.paired, options.gpu_memory, budget))
