"""What a run would take, for ``--dry-run``: printed, and written as JSON where a file is named.

Of stages that decide record by record it is planned here, too: what they read ahead, and their
tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from ngsgpu._version import __version__
from ngsgpu.device.plan import UP_TO, Allocation, HostPlan, MemoryPlan, Plan
from ngsgpu.errors import InputError
from ngsgpu.io.compress.formats import PACKED_ENDINGS
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.atomic import write_text_atomically
from ngsgpu.io.paths import is_stream
from ngsgpu.io.text.reader import BATCH_BYTES
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions


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


def show_plan(plan: HostPlan, options: RunOptions, stats: str | Path | None) -> None:
    """Print the plan of a run, and write it as JSON.

    Args:
        plan: memory on the host, and on GPUs if the run would use them.
        options: of the run.
        stats: JSON file; None: there is none.

    Raises:
        OutputError: the file cannot be written.
        HostMemoryError: the memory does not suffice.
        DeviceMemoryError: that of a GPU does not.
    """
    on_gpu = plan.on_gpu() if plan.on_gpu and options.backend == "cuda" else None
    note = f" ({options.backend_note})" if options.backend_note else ""
    checked: list[Plan] = [plan] if on_gpu is None or plan.holds_on_gpu else []
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


_IN_FLIGHT: Final = 3
"""Bytes for a byte of text that is being worked on: itself, its records, and what is written."""

_PACKED: Final = 16
"""Bytes of text that a byte of a compressed file may stand for."""


def in_turn(doing: str, **steps: HostPlan) -> HostPlan:
    """The plan of steps that follow on each other.

    One that takes up to a size gets no more than the budget.

    Args:
        doing: the work, as ``assembling``.
        steps: their plans, in order, by their names.
    """
    first = next(iter(steps.values()))
    program = Allocation("program", INTERPRETER_BYTES)
    allocations = [program]
    for name, plan in steps.items():
        left = max(0, plan.budget - program.bytes)
        for own in plan.allocations:
            if own.name != program.name:
                size = min(own.bytes, left) if plan.about == UP_TO else own.bytes
                allocations.append(replace(own, bytes=size, steps=(name,)))
                left -= size
    return replace(first, doing=doing, about=UP_TO, allocations=tuple(allocations))


def text_bytes(lanes: Iterable[ReadFiles]) -> int | None:
    """The most bytes of text that files of reads may hold; None if one is a stream.

    Raises:
        InputError: there is no such file.
    """
    sizes = [_text_of(path) for lane in lanes for path in lane.inputs]
    return None if None in sizes else sum(filter(None, sizes))


def reading_bytes(paths: Iterable[str | Path], options: RunOptions) -> int:
    """The most that files take that are read at the same time, with what is made of them.

    Args:
        paths: both files of pairs, or a file.
        options: threads, and bytes per chunk.

    Raises:
        InputError: there is no such file.
    """
    chunks = 3 * options.threads + 4  # those that are split, and those that tasks work on
    most = chunks * min(options.chunk_bytes, BATCH_BYTES)
    texts = (_text_of(path) for path in paths)
    return _IN_FLIGHT * sum(most if text is None else min(most, text) for text in texts)


def _text_of(path: str | Path) -> int | None:
    if is_stream(path):
        return None
    try:
        size = Path(path).stat().st_size
    except OSError as error:
        raise InputError(path, "there is no such file", "check the path") from error
    return size * _PACKED if Path(path).suffix in PACKED_ENDINGS else size


def plan_records(
    doing: str,
    lanes: Sequence[ReadFiles],
    options: RunOptions,
    *own: Allocation,
    on_gpu: Sequence[Allocation] = (),
) -> HostPlan:
    """Plan the memory of a stage that decides record by record.

    Args:
        doing: the work, as ``trimming``.
        lanes: the inputs.
        options: threads, and memory budget.
        own: what the stage takes beside the records.
        on_gpu: likewise, on each GPU.
    """
    reading = max((reading_bytes(lane.inputs, options) for lane in lanes), default=0)

    def plan_there() -> MemoryPlan:
        from ngsgpu.run.record_gpu import plan_records_on_gpu

        return plan_records_on_gpu(doing, on_gpu, options)

    return HostPlan(
        doing=doing,
        about=UP_TO,
        allocations=(
            Allocation("program", INTERPRETER_BYTES),
            Allocation("records", reading),
            *own,
        ),
        budget=options.budget,
        remedies=("fewer threads",),
        holds_on_gpu=False,
        on_gpu=plan_there,
    )


def _with_allocations(plan: Plan) -> dict[str, Any]:
    return plan.document() | {"allocations": [asdict(own) for own in plan.allocations]}
