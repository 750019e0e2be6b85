"""What a run would take, for ``--dry-run``: printed, and written as JSON where a file is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from ngsgpu._version import __version__
from ngsgpu.device.plan import HostPlan, MemoryPlan, Plan
from ngsgpu.io.output.atomic import write_text_atomically
from ngsgpu.run.options import RunOptions


@dataclass(slots=True, kw_only=True)
class RunPlan:
    """The memory that a run would take; written by ``--stats`` with ``--dry-run``.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        device: name of the device.
        command: the command line.
        memory: on the host: ``planned_bytes``, ``budget_bytes``, ``allocations``, and what is known
            of inputs and outputs.
        gpu_memory: the same on each GPU; empty on the CPU.
    """

    SCHEMA: ClassVar[str] = "ngsgpu.plan"
    SCHEMA_VERSION: ClassVar[int] = 1
    backend: str
    device: str
    command: list[str]
    memory: dict[str, Any]
    gpu_memory: dict[str, Any]

    def to_json(self) -> str:
        """The plan as JSON text."""
        head = {"schema": self.SCHEMA, "schema_version": self.SCHEMA_VERSION}
        return json.dumps(head | {"version": __version__} | asdict(self), indent=1) + "\n"


def show_plan(
    plan: HostPlan,
    options: RunOptions,
    stats: str | Path | None,
    gpu: Callable[[], MemoryPlan] | None = None,
) -> None:
    """Print the plan of a run, and write it as JSON.

    Args:
        plan: memory on the host.
        options: of the run.
        stats: JSON file; None: there is none.
        gpu: plans the memory on each GPU; called if the run would use one.

    Raises:
        OutputError: the file cannot be written.
        HostMemoryError: the memory does not suffice.
        DeviceMemoryError: that of a GPU does not.
    """
    on_gpu = gpu() if gpu is not None and options.backend == "cuda" else None
    note = f" ({options.backend_note})" if options.backend_note else ""
    checked: list[Plan] = [plan] if on_gpu is None or plan.HOLDS_ON_GPU else []
    lines = [f"backend  {options.backend}{note}", *plan.notes]
    lines += [f"memory   {own.line()}" for own in checked]
    if on_gpu is not None:
        checked.append(on_gpu)
        lines.append(f"GPU      {on_gpu.line()}")
    print("\n".join(lines))
    if stats is not None:
        document = RunPlan(
            backend=options.backend,
            device=options.device(options.backend),
            command=list(options.command),
            memory=_with_allocations(plan),
            gpu_memory={} if on_gpu is None else _with_allocations(on_gpu),
        )
        write_text_atomically(stats, document.to_json())
    for own in checked:
        own.check()


def _with_allocations(plan: Plan) -> dict[str, Any]:
    return plan.document() | {"allocations": [asdict(own) for own in plan.allocations]}
