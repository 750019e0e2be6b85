"""The programs that the suite measures, and what each reports of a run.

Their command lines are in ``commands``. To measure another program of these, add its name to its
stage in ``STAGES``; its output has to hold all reads, in the order of the input. ``LABEL=OPTIONS``
is ngsgpu with options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import OUTPUT, BenchmarkError, answer, find_program, version_in
from benchmarks.peers.commands import COMMANDS, NGSGPU, NGSGPU_STATISTICS, Job, Work

__all__ = ["NAMES", "NGSGPU", "STAGES", "Job", "Program", "Work", "programs_of"]

CARE_STAGES = {
    "build_readstorage": "read",
    "build_minhasher": "tables",
    "STEP2": "correct",
    "STEP3": "write",
}
"""What CARE calls its stages, and what ngsgpu does."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a stage.

    Attributes:
        version: command whose answer holds the version.
        job: the command for a task, with what the program's authors advise.
        report: what a finished run, in its directory, says of itself: seconds by stage in
            ``parts`` and more.
        orders: whether the output is in the order of the input with several threads, too.
    """

    version: str
    job: Callable[[Work], Job]
    report: Callable[[Path], dict[str, Any]] = lambda directory: {}
    orders: bool = True

    @property
    def is_here(self) -> bool:
        """Whether it can be found."""
        try:
            find_program(self.version.split()[0])
        except BenchmarkError:
            return False
        return True

    def found_version(self) -> str:
        """The version of the one that is here."""
        return version_in(answer(*self.version.split()))


def ngsgpu_report(directory: Path) -> dict[str, Any]:
    """What ``--stats`` wrote: seconds, memory, and what was decided."""
    stats = json.loads((directory / NGSGPU_STATISTICS).read_text())
    parts = {part: seconds for part, seconds in stats["time_s"].items() if part != "total"}
    kept = ("backend", "device", "coverage", "corrected", "pairs", "memory", "gpu_memory")
    return {"parts": parts, "statistics": {key: stats[key] for key in kept if key in stats}}


def care_report(directory: Path) -> dict[str, Any]:
    """The times that CARE prints."""
    said = (directory / OUTPUT).read_text(errors="replace")
    times = dict(re.findall(r"# elapsed time \((\w+)\): ([\d.e+-]+)", said))
    parts = {
        ours: round(float(times[name]), 3) for name, ours in CARE_STAGES.items() if name in times
    }
    return {"parts": parts}


REPORTS = {NGSGPU: ngsgpu_report, "care-gpu": care_report, "care-cpu": care_report}


def program(stage: str, name: str) -> Program:
    """A program, with what it says of its run if that is known."""
    command = COMMANDS[stage][name]
    if name not in REPORTS:
        return Program(command.version, command.job, orders=command.orders)
    return Program(command.version, command.job, REPORTS[name], command.orders)


STAGES: dict[str, dict[str, Program]] = {
    stage: {name: program(stage, name) for name in names}
    for stage, names in {
        "correct": (NGSGPU, "care-gpu", "care-cpu", "lighter", "bfc"),
        "merge": (NGSGPU, "flash"),
    }.items()
}
NAMES = sorted({name for table in STAGES.values() for name in table})


def with_options(stage: str, label: str, options: str) -> Program:
    """Ngsgpu with options; its outputs do not replace those of another label."""
    own = STAGES[stage][NGSGPU]
    mark = re.sub(r"\W+", "_", label)

    def job(work: Work) -> Job:
        plain = own.job(work)
        command, outputs = plain.command, tuple(f"{mark}_{name}" for name in plain.outputs)
        for name, new in zip(plain.outputs, outputs, strict=True):
            command = command.replace(f" {name}", f" {new}")
        return replace(plain, command=f"{command} {options}", outputs=outputs)

    return replace(own, job=job)


def programs_of(stage: str, wanted: Sequence[str] | None) -> dict[str, Program]:
    """The programs of a stage that are wanted, or all that are installed; ngsgpu first.

    Raises:
        BenchmarkError: one that is wanted is not here.
    """
    table = dict(STAGES[stage])
    for wish in wanted or ():
        label, is_ours, options = wish.partition("=")
        if is_ours:
            table[label] = with_options(stage, label, options)
        elif wish not in NAMES:
            raise BenchmarkError(f"{wish}: the programs are {', '.join(NAMES)}")
    wanted = None if wanted is None else [wish.partition("=")[0] for wish in wanted]
    if wanted is None:
        return {name: program for name, program in table.items() if program.is_here}
    for name in wanted:
        if name in table and not table[name].is_here:
            raise BenchmarkError(f"{name} was not found on the PATH")
    return {name: table[name] for name in wanted if name in table}
