"""How well a study used its GPUs, from the times of its jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ngsgpu.report.sections.devices import Span

GPU_RULES: Final = (
    "correct_reads", "merge_pairs", "extend_pairs", "build_partition", "classify_partition",
)  # fmt: skip
"""Rules whose jobs ask for a GPU, by the folders of their benchmark files."""

SLACK: Final = 1.15
"""The wall time may exceed what perfect scheduling would take by this factor."""


@dataclass(frozen=True)
class Job:
    """A job of the workflow; times in seconds since the epoch."""

    rule: str
    begin: float
    end: float


def read_jobs(benchmarks: Path) -> list[Job]:
    """All jobs with a benchmark file, which Snakemake writes when a job ends."""
    jobs = []
    for path in sorted(benchmarks.rglob("*.tsv")):
        lines = path.read_text().splitlines()
        seconds = float(dict(zip(*(line.split("\t") for line in lines[:2]), strict=True))["s"])
        end = path.stat().st_mtime
        jobs.append(
            Job(path.relative_to(benchmarks).parts[0].removesuffix(".tsv"), end - seconds, end)
        )
    return jobs


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Seconds in at least one interval."""
    seconds, last = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        seconds += max(0.0, end - max(begin, last))
        last = max(last, end)
    return seconds


def judge(jobs: Sequence[Job], spans: Sequence[Span], gpus: int, wall: float) -> dict[str, Any]:
    """What the study took beside what it may take, and whether the GPUs were shared properly.

    Args:
        jobs: all jobs of the workflow.
        spans: jobs on devices, from their statistics.
        gpus: how many GPUs the study had; with 0, the jobs that would take one ran on CPUs.
        wall: seconds of the whole study.
    """
    on_gpus = [(job.begin, job.end) for job in jobs if job.rule in GPU_RULES]
    every = [(job.begin, job.end) for job in jobs]
    gpu_seconds = sum(end - begin for begin, end in on_gpus)
    cpu_alone = covered(every) - covered(on_gpus)
    bound = SLACK * (gpu_seconds / max(1, gpus) + cpu_alone)
    held: dict[str, list[tuple[float, float]]] = {}
    for span in spans:
        if span.gpu is not None:
            held.setdefault(span.lane, []).append((span.begin, span.end))
    twice = [
        {"gpu": gpu, "overlap_s": round(one[1] - other[0], 3)}
        for gpu, own in held.items()
        for one, other in pairwise(sorted(own))
        if other[0] < one[1]
    ]
    return {
        "gpus": gpus,
        "wall_s": round(wall, 2),
        "gpu_jobs": len(on_gpus),
        "gpu_jobs_s": round(gpu_seconds, 2),
        "cpu_alone_s": round(cpu_alone, 2),
        "idle_s": round(wall - covered(every), 2),
        "bound_s": round(bound, 2),
        "within_bound": wall <= bound,
        "devices": {
            gpu: {"jobs": len(own), "held_s": round(sum(end - begin for begin, end in own), 2)}
            for gpu, own in sorted(held.items())
        },
        "all_used": len(held) == gpus,
        "held_twice": twice,
    }
