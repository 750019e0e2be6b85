"""Memory of a run: planned before allocation, placed, and reported.

A stage lists what it takes (``Allocation``) by each of its plans, from the best one to the one that
takes least. What is in use at a time, the shares of several GPUs, the choice of a plan that fits
the budget (``memory``, ``gpu_memory`` or what is free), and the messages are the same for all
stages (``HostPlan``, ``MemoryPlan``, ``first_fitting``).
"""

from __future__ import annotations

import contextlib
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.memory import format_size
from ngsgpu.device.team import free_unused
from ngsgpu.errors import DeviceError, DeviceMemoryError, HostMemoryError, NgsgpuError

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_Plan = TypeVar("_Plan", bound="Plan")

_ADVICE: Final = ("use a GPU with more memory", "raise `gpu_memory`")
_LAST_ADVICE: Final = "or use `backend='cpu'`"
ADVICE: Final = ", ".join([*_ADVICE, _LAST_ADVICE])

ROUNDING_BYTES: Final = 1 << 20
"""Overhead of CuPy's pool for the arrays of the reads."""

_RESERVE: Final = 512 << 20
"""Reserve for CUDA's own use when kernels are loaded and launched, and for fragmentation."""


ABOUT: Final = "about "
UP_TO: Final = "up to "
AT_LEAST: Final = "at least "
"""What the size of a plan is, as shown to users."""

_ESTIMATE_MARGIN: Final = 1.05
"""Safety factor on estimates in advice."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that a run takes.

    Attributes:
        name: what it is for.
        bytes: how much.
        steps: of the run in which it is taken; empty: in all of them.
        arrays: of which it consists, if it may be divided over GPUs; 0 if not.
        on_host: whether it has moved to pinned host memory.
    """

    name: str
    bytes: int
    steps: tuple[str, ...] = ()
    arrays: int = 0
    on_host: bool = False


def peak_bytes(allocations: Iterable[Allocation]) -> int:
    """The most that allocations take at a time."""
    listed = list(allocations)
    steps = {step for own in listed for step in own.steps} or {""}
    return max(sum(own.bytes for own in listed if step in (own.steps or steps)) for step in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(ABC):
    """Memory of a run, in one place.

    Attributes:
        doing: the work, as ``correcting 1,000 reads``.
        allocations: the memory that it takes.
        budget: memory budget in bytes.
        remedies: options with which it may fit, as shown to users, besides those for all stages.
    """

    doing: str
    allocations: tuple[Allocation, ...]
    budget: int
    remedies: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The most that is in use at a time."""
        return peak_bytes(own for own in self.allocations if not own.on_host)

    @property
    def fits(self) -> bool:
        """Whether it may be taken."""
        return self.total <= self.budget

    def bytes_of(self, name: str) -> int:
        """Bytes of an allocation, if it is not moved; 0 without."""
        return sum(own.bytes for own in self.allocations if own.name == name and not own.on_host)

    @abstractmethod
    def refusal(self) -> NgsgpuError:
        """The error that says what does not fit."""

    def check(self) -> None:
        """Refuse a plan that does not fit.

        Raises:
            HostMemoryError: names the memory needed and the budget, and what would help.
            DeviceMemoryError: likewise, of a GPU.
        """
        if not self.fits:
            raise self.refusal()

    def line(self) -> str:
        """The plan for people."""
        parts = ", ".join(
            f"{own.name} {format_size(own.bytes)}" for own in self.allocations if own.bytes
        )
        return f"{format_size(self.total)} of {format_size(self.budget)}: {parts}"

    def document(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {"planned_bytes": self.total, "budget_bytes": self.budget}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan(Plan):
    """Memory of a run on the host.

    Attributes:
        about: ``ABOUT``, ``UP_TO`` or ``AT_LEAST``; empty: the size is exact.
        sizes: of the inputs and outputs, by their keys in the statistics.
        notes: lines for people about the inputs and outputs.
        holds_on_gpu: whether a run on GPUs takes this memory as well.
        on_gpu: plans the memory of each GPU, from what is free; None: none is used.
    """

    about: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    holds_on_gpu: bool = True
    on_gpu: Callable[[], MemoryPlan] | None = None

    def line(self) -> str:
        """See ``Plan``."""
        return Plan.line(self) if self.about == AT_LEAST else f"{self.about}{Plan.line(self)}"

    def document(self) -> dict[str, Any]:
        """See ``Plan``."""
        return {**self.sizes, **Plan.document(self)}

    def refusal(self) -> HostMemoryError:
        """See ``Plan``."""
        wanted = self.total * (_ESTIMATE_MARGIN if self.about == ABOUT else 1)
        memory = f"`memory='{math.ceil(wanted / (1 << 20))}M'` on a machine that has it"
        return HostMemoryError(
            f"{self.doing} takes {self.about}{format_size(self.total)} of memory and "
            f"{format_size(self.budget)} may be used; try {', or '.join([*self.remedies, memory])}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan(Plan):
    """Memory of a run on each of its GPUs.

    Attributes:
        host_budget: pinned host memory budget in bytes.
        beyond: the most that the kernels take, as ``2,147,483,647 letters``, if this is more.
    """

    host_budget: int = 0
    beyond: str = ""

    @property
    def host(self) -> int:
        """Pinned host memory."""
        return sum(own.bytes for own in self.allocations if own.on_host)

    @property
    def fits(self) -> bool:
        """Whether it may be taken."""
        within = self.total <= self.budget and self.host <= self.host_budget
        return within and not self.beyond

    @property
    def moved(self) -> list[str]:
        """Data on the host for lack of GPU memory, as shown to users."""
        return [own.name for own in self.allocations if own.on_host]

    def advice(self) -> list[str]:
        """With what it may fit, as shown to users."""
        return [*self.remedies, *_ADVICE]

    def refusal(self) -> DeviceMemoryError:
        """The error that says what does not fit."""
        if self.beyond:
            return DeviceMemoryError(
                f"{self.doing} is too large for a GPU, which takes {self.beyond}; "
                f"{', '.join([*self.remedies, _LAST_ADVICE]).removeprefix('or ')}"
            )
        advice = ", ".join([*self.advice(), _LAST_ADVICE])
        host, budget = format_size(self.host), format_size(self.budget)
        if self.total <= self.budget:
            return DeviceMemoryError(
                f"{self.doing} with {budget} of GPU memory needs {host} of pinned host memory and "
                f"{format_size(self.host_budget)} may be used; {advice}"
            )
        moved = f", with {host} on the host," if self.host else ""
        return DeviceMemoryError(
            f"{self.doing} takes at least {format_size(self.total)} of GPU memory{moved} and "
            f"{budget} may be used; {advice}"
        )


def first_fitting(plans: Iterable[_Plan]) -> _Plan:
    """The first of some plans that fits.

    Args:
        plans: at least one, the best first.

    Raises:
        DeviceMemoryError: none does. The message is about the first one for which only the host
            has too little memory, or else about the last one.
    """
    refused = None
    for plan in plans:
        if plan.fits:
            return plan
        if refused is None or refused.total > refused.budget:
            refused = plan
    assert refused is not None
    raise refused.refusal()


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


def gpu_memory(limit: int | None = None) -> GpuMemory:
    """Query the memory of the current GPU.

    Args:
        limit: memory limit of the run in bytes (``gpu_memory``); None: free memory minus a
            reserve for CUDA itself.

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


def plan_on_gpu(
    doing: str, limit: int | None, *allocations: Allocation, beyond: str = ""
) -> MemoryPlan:
    """Plan memory of the current GPU.

    Args:
        doing: the work, as ``the minhash tables``.
        limit: memory limit of the run in bytes; None: free memory.
        allocations: the memory that it takes.
        beyond: see ``MemoryPlan``.
    """
    budget = gpu_memory(limit).budget
    return MemoryPlan(doing=doing, allocations=allocations, budget=budget, beyond=beyond)


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
