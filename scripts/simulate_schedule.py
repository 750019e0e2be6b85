#!/usr/bin/env python3
"""Simulate how Snakemake schedules a study of many samples on many GPUs.

Snakemake itself builds the jobs and chooses which to start; an executor of this script only keeps
time: a job takes the seconds that DURATIONS assumes for its rule, give or take a third, and leaves
empty outputs. The result, as JSON on standard output, is the time until the last job has ended
beside the bounds that no schedule can beat: the longest chain of jobs; the seconds on GPUs over
their number, with what has to come before and after; the core seconds over the cores. That the
calls of a sample wait until all samples of its batch were taken through all partitions is part of
the workflow, and so of the chains.

    python scripts/simulate_schedule.py --samples 200 --gpus 8 --cores 128
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import os
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any, ClassVar

from snakemake.cli import main as snakemake
from snakemake.io import is_flagged
from snakemake_interface_executor_plugins.executors.base import AbstractExecutor, SubmittedJobInfo
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_executor_plugins.settings import CommonSettings

ROOT = Path(__file__).resolve().parents[1]
# Assumed seconds of a job; all others take SHORT.
DURATIONS = {
    "find_adapters": 10,
    "trim_pairs": 30,
    "correct_pairs": 60,
    "merge_pairs": 20,
    "extend_pairs": 90,
    "plan_database": 120,
    "build_partition": 300,
    "merge_candidates": 20,
    "count_kmers": 30,
    "check_reads": 30,
    "assemble_reads": 600,
    "assemble_extended": 600,
    "evaluate_assemblies": 60,
    "evaluate_extended_assemblies": 60,
    "write_report": 60,
}
SHORT = 2
# A job that takes samples through a partition: to open it, and for each sample.
OPENING, CLASSIFYING = 30, 6
CONFIG = """\
samples: samples.tsv
databases: databases.tsv
merge: {reads: corrected}
extend: {reads: corrected, assemble: [single]}
"""

common_settings = CommonSettings(
    non_local_exec=False,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
)


def duration(job: Any) -> float:
    """Seconds that a job is assumed to take; the same in every run."""
    part = zlib.crc32(str(job.output).encode()) / 2**32
    seconds = DURATIONS.get(job.rule.name, SHORT)
    if job.rule.name == "classify_partition":
        seconds = OPENING + CLASSIFYING * len(job.output)
    return float(seconds * (2 / 3 + part * 2 / 3))


def gpus_of(job: Any) -> int:
    """GPUs that a job was granted."""
    return int(job.resources.get("gpu", 0))


class Waiting(threading.Semaphore):
    """What the scheduler waits at for a job to end: time jumps to when the next one does."""

    def __init__(self, executor: Executor) -> None:
        super().__init__(0)
        self.executor = executor

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Let the next job end if the scheduler has nothing to do until then."""
        if self._value == 0:
            self.executor.advance()
        return super().acquire(blocking, timeout)


class Executor(AbstractExecutor):  # type: ignore[misc]
    """Starts jobs by noting when they end."""

    seen: ClassVar[dict[str, Any]] = {}

    def __init__(self, workflow: Any, logger: Any) -> None:
        super().__init__(workflow, logger)
        self.now = 0.0
        self.running: list[tuple[float, int, SubmittedJobInfo]] = []
        self.started: list[Any] = []
        self.gpus = self.most_gpus = 0

    def run_job(self, job: Any) -> None:
        """Start a job."""
        if not self.started:
            self.workflow.scheduler._open_jobs = Waiting(self)
            # Jobs per second of whose time? And its clock would wake the scheduler in between.
            self.workflow.scheduler.job_rate_limiter = None
            self.workflow.scheduler.resources["_job_count"] = sys.maxsize
        self.started.append(job)
        self.gpus += gpus_of(job)
        self.most_gpus = max(self.most_gpus, self.gpus)
        ending = (self.now + duration(job), len(self.started), SubmittedJobInfo(job=job))
        heapq.heappush(self.running, ending)

    def advance(self) -> None:
        """Let the job end that ends first."""
        self.now, _, ended = heapq.heappop(self.running)
        self.gpus -= gpus_of(ended.job)
        for output in [*ended.job.output, *filter(None, [ended.job.benchmark])]:
            path = Path(output)
            folder = path if is_flagged(output, "directory") else path.parent
            folder.mkdir(parents=True, exist_ok=True)
            if folder != path:
                path.touch()
        self.report_job_success(ended)

    def chains(self) -> dict[Any, tuple[float, float]]:
        """Seconds of the longest chains of jobs that have to end before each job, and to follow."""
        before: dict[Any, float] = {}
        after: dict[Any, float] = {}
        # In the order of their starts, what a job needs stands before it.
        for job in self.started:
            needed = self.workflow.dag.dependencies[job]
            before[job] = max((before[one] + duration(one) for one in needed), default=0.0)
        for job in reversed(self.started):
            after.setdefault(job, 0.0)
            for one in self.workflow.dag.dependencies[job]:
                after[one] = max(after.get(one, 0.0), duration(job) + after[job])
        return {job: (before[job], after[job]) for job in self.started}

    def gpu_bound(self, chains: dict[Any, tuple[float, float]]) -> float:
        """Seconds that no schedule on this number of GPUs can beat.

        Of any jobs on GPUs, the first cannot start before what it needs, and something follows the
        last: here of all those that are followed by at least so much.
        """
        gpus = int(self.workflow.global_resources["gpu"].value)
        bound = seconds = 0.0
        soonest = float("inf")
        on_gpus = (job for job in self.started if gpus_of(job))
        for job in sorted(on_gpus, key=lambda job: -chains[job][1]):
            before, after = chains[job]
            soonest = min(soonest, before)
            seconds += duration(job) * gpus_of(job)
            bound = max(bound, soonest + seconds / gpus + after)
        return bound

    def shutdown(self) -> None:
        """Say what was seen."""
        chains = self.chains()
        longest = max(duration(job) + sum(chains[job]) for job in self.started)
        Executor.seen = {
            "jobs": len(self.started),
            "makespan_s": round(self.now, 1),
            "longest_chain_s": round(longest, 1),
            "gpu_s": round(sum(duration(job) * gpus_of(job) for job in self.started), 1),
            "gpu_bound_s": round(self.gpu_bound(chains), 1),
            "core_s": round(sum(duration(job) * job.threads for job in self.started), 1),
            "most_gpus_at_a_time": self.most_gpus,
        }

    def cancel(self) -> None:
        """Nothing runs."""

    def handle_job_success(self, job: Any) -> None:
        """There is nothing to tidy up."""

    def handle_job_error(self, job: Any) -> None:
        """No job fails."""

    def get_exec_mode(self) -> None:
        """No job is run by a separate Snakemake."""
        raise NotImplementedError


def write_study(folder: Path, samples: int, partitions: int) -> None:
    """Write the config, the sheets and empty reads of a study."""
    rows = ["sample\tfastq_1\tfastq_2"]
    (folder / "data").mkdir()
    for number in range(samples):
        mates = [f"data/s{number:04d}_R{mate}.fastq.gz" for mate in (1, 2)]
        rows.append("\t".join([f"s{number:04d}", *mates]))
        for path in [*mates, "data/ref.fasta"]:
            (folder / path).touch()
    sheets = {
        "samples.tsv": "\n".join(rows),
        "databases.tsv": f"database\treferences\tpartitions\nd\tdata/ref.fasta\t{partitions}",
        "config.yaml": CONFIG,
    }
    for name, text in sheets.items():
        (folder / name).write_text(text + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=4, help="of the database")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--cores", type=int, default=128)
    parser.add_argument("--scheduler", choices=["greedy", "ilp"], default="ilp")
    options = parser.parse_args(arguments)
    ExecutorPluginRegistry().register_plugin("virtual", sys.modules[__name__])
    # No job runs: they may ask for GPUs that are not here.
    os.environ["NGSGPU_BACKEND"] = "cuda"
    start, home = time.monotonic(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        write_study(Path(folder), options.samples, options.partitions)
        os.chdir(folder)
        sys.argv = [
            *("snakemake", "--snakefile", str(ROOT / "workflow" / "Snakefile")),
            *("--configfile", "config.yaml", "--executor", "virtual"),
            *("--quiet", "progress", "rules", "host"),
            *("--cores", str(options.cores), "--resources", f"gpu={options.gpus}"),
            *("--scheduler", options.scheduler),
        ]
        # What Snakemake says is for those who watch.
        with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
            snakemake()
        os.chdir(home)
    if not Executor.seen:
        sys.exit("error: Snakemake started no job")
    seen = vars(options) | Executor.seen
    bound = max(seen["longest_chain_s"], seen["gpu_bound_s"], seen["core_s"] / options.cores)
    seen["bound_s"] = round(bound, 1)
    seen["makespan_over_bound"] = round(seen["makespan_s"] / bound, 3)
    seen["seconds_of_snakemake"] = round(time.monotonic() - start, 1)
    print(json.dumps(seen, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
