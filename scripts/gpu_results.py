#!/usr/bin/env python3
"""Write docs/gpu-results.md: what scripts/gpu-check found on each kind of GPU.

    scripts/gpu_results.py             write it
    scripts/gpu_results.py --check     only say whether it is up to date

The page shows benchmarks/results/DATE*gpu-check*.json: the gpu-check.json of each run, under a name
that begins with its date. A `note` added to one says why a step failed, or how the run differs from
others; without a note, the page names the tests that failed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.made import write_or_check  # noqa: E402

PAGE = ROOT / "docs/gpu-results.md"
STEPS = {
    "compile": "every kernel is compiled",
    "tests": "the tests of `tests/gpu`, and those of the stages on both backends",
    "parity": "files corrected on both backends, to the same bytes",
    "memcheck": "stages under compute-sanitizer: memory errors",
    "racecheck": "stages under compute-sanitizer: races",
}
"""Steps of scripts/gpu-check that pass or fail; the others measure."""

HEAD = """\
# Checks on GPUs

Output on a GPU must be that of the CPU, to the byte, which
[`scripts/gpu-check`](gpu.md#checking-a-machine) checks. `scripts/gpu_results.py` makes this page
from its results, `benchmarks/results/*gpu-check*.json`; a [workflow](gpu.md#every-week) makes new
ones every week where a machine with a GPU is attached. Its steps:
"""


@dataclass(frozen=True)
class Run:
    """A run of scripts/gpu-check, and the date it was made on."""

    date: str
    result: dict[str, Any]

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """What was found, by step."""
        return {step["name"]: step for step in self.result["steps"] if step["name"] in STEPS}

    @property
    def gpus(self) -> str:
        """The kind of GPU, and how many if there were several."""
        names = [gpu["name"].removeprefix("NVIDIA ") for gpu in self.result["machine"]["gpus"]]
        return names[0] if len(names) == 1 else f"{len(names)} x {names[0]}"

    @property
    def commit(self) -> str:
        """The short name of what was checked."""
        return f"`{self.result['commit'][:7]}`"

    @property
    def note(self) -> str:
        """What has to be known about it, or else the tests that failed."""
        failed = [f"`{name}`" for step in self.steps.values() for name in step.get("failed", [])]
        return str(self.result.get("note") or ", ".join(failed))


def runs() -> list[Run]:
    """All runs, the latest last."""
    found = []
    for path in ROOT.glob("benchmarks/results/*gpu-check*.json"):
        result = json.loads(path.read_text())
        # Those of November 2026 have no time; the commits that they checked keep their order.
        time = result.get("date") or result.get("commit_date", "")
        found.append((path.name[:10], time, Run(path.name[:10], result)))
    return [run for *_, run in sorted(found, key=lambda own: own[:2])]


def outcome(step: dict[str, Any] | None) -> str:
    """A cell: what became of a step."""
    if step is None:
        return ""
    counts = step.get("counts")
    if not counts:
        return str(step["result"])
    failed = counts["failures"] + counts["errors"]
    ran = counts["tests"] - counts["skipped"]
    return f"**{failed} of {ran:,} failed**" if failed else f"{ran:,} passed"


def table(lines: list[list[str]]) -> str:
    """A Markdown table; the first line is its head."""
    head, *body = ["| " + " | ".join(line) + " |\n" for line in lines]
    return head + "|---" * len(lines[0]) + "|\n" + "".join(body)


def latest(kind: str, found: list[Run]) -> str:
    """The latest result of every step on a kind of GPU."""
    own = [run for run in found if run.gpus == kind]
    lines = [["step", "result", "time, s", "date", "commit", "driver", "CuPy", "note"]]
    for name in STEPS:
        run = next((run for run in reversed(own) if name in run.steps), None)
        if run is None:
            continue
        step, driver = run.steps[name], run.result["machine"]["gpus"][0]["driver"]
        cupy = run.result["versions"]["CuPy"].removeprefix("cupy-")
        # Where something failed, the note is about that.
        failures = {own["result"] for own in run.steps.values()} - {"passed"}
        note = run.note if step["result"] != "passed" or not failures else ""
        time = f"{step['seconds']:,.0f}"
        lines.append([name, outcome(step), time, run.date, run.commit, driver, cupy, note])
    return table(lines)


def history(found: list[Run]) -> str:
    """All runs, the latest first."""
    lines = [["date", "GPU", "commit", *STEPS, "note"]]
    for run in reversed(found):
        cells = [outcome(run.steps.get(name)) for name in STEPS]
        lines.append([run.date, run.gpus, run.commit, *cells, run.note])
    return table(lines)


def page() -> dict[Path, str]:
    """The page's path and text."""
    found = runs()
    parts = [HEAD, *(f"- {name}: {about}" for name, about in STEPS.items()), ""]
    for kind in sorted({run.gpus for run in found}):
        parts += [f"## {kind}, the latest results", "", latest(kind, found)]
    return {PAGE: "\n".join([*parts, "## All runs", "", history(found)])}


if __name__ == "__main__":
    sys.exit(write_or_check("scripts/gpu_results.py", __doc__ or "", page))
