#!/usr/bin/env python3
"""Check the workflow on a Slurm with two GPUs, which scripts/slurm-check starts.

Every check runs the test study, or one of its samples, with workflow/profiles/slurm, edited as a
user would, and compares the results with those of a local run, byte by byte.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATS = "results/na12878_single/correct/stats.json"
KMERS = "results/na12878_single/kmers/raw.tsv"
# These hold times, paths or the machine.
VOLATILE = re.compile(
    r"benchmarks/|stats\.json$|study\.json$|report\.html$|/quast\w*/(report\.html|details/)"
    r"|^databases/\w+/jobs/|^tables/report/(costs|overview|stages)\.csv$"
    r"|/multiqc_report_data/multiqc(\.log|\.parquet|_data\.json|_sources\.txt)$"
)
# Seconds until a check has failed, also on a machine with much other work.
PATIENCE = 7200
QUICK = [
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
    *("--slurm-status-command", "squeue", "--slurm-keep-successful-logs", "--latency-wait", "5"),
    # Snakemake may wait for so long after its last job.
    *("--max-jobs-per-timespan", "1000/1s"),
]


class CheckError(Exception):
    """Something is not as it should be."""


def expect(holds: bool, said: str) -> None:
    """Fail the check unless the condition holds."""
    if not holds:
        raise CheckError(said)


def output_of(*command: str) -> str:
    """Run a command that succeeds; returns its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wait_until(holds: Callable[[], bool], what: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for a condition, as long as Snakemake runs.

    Raises:
        CheckError: it did not come in time.
    """
    end = time.monotonic() + PATIENCE
    while not holds():
        expect(process.poll() is None, f"Snakemake ended with {process.poll()} before {what}")
        expect(time.monotonic() < end, f"waited {PATIENCE} s in vain for {what}")
        time.sleep(0.2)


def press_ctrl_c(process: subprocess.Popen[bytes], log: Path) -> int:
    """Press Ctrl-C, again if Snakemake does not say that it ends; returns how many times.

    Its log handler drops one that comes while it writes a message (snakemake/logging.py), for
    instance that a job has been submitted.
    """
    for times in range(1, 6):
        os.killpg(process.pid, signal.SIGINT)
        for _ in range(50):
            if process.poll() is not None or "on user request" in log.read_text():
                return times
            time.sleep(0.2)
    raise CheckError("Snakemake goes on in spite of Ctrl-C")


def job_states() -> dict[str, str]:
    """State of every job that Slurm knows, by number."""
    lines = output_of("squeue", "--states=all", "--noheader", "--format=%A %T %r").splitlines()
    return {number: state for number, _, state in (line.partition(" ") for line in lines)}


def jobs_since(before: dict[str, str], state: str = "") -> list[str]:
    """Jobs that are new since, of states that begin so, oldest first."""
    now = job_states()
    return sorted((job for job in now if job not in before and now[job].startswith(state)), key=int)


# All Snakemakes that were started.
STARTED: list[subprocess.Popen[bytes]] = []


@dataclass
class Study:
    """A copy of the test study, and how Snakemake runs in it."""

    folder: Path
    profile: Path | None

    def __post_init__(self) -> None:
        for part in ("config", "data"):
            shutil.copytree(ROOT / ".test" / part, self.folder / part)
        # Single jobs are looked at: one is enough for each target.
        with (self.folder / "config" / "config.yaml").open("a") as config:
            config.write("\ntrim: {enabled: false}\n")

    def start(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start Snakemake; what it says goes to snakemake.log."""
        command = ["snakemake", "--snakefile", str(ROOT / "workflow" / "Snakefile")]
        if self.profile is not None:
            command += ["--workflow-profile", str(self.profile), *QUICK]
        with (self.folder / "snakemake.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=self.folder,
                # The GPUs are none: the jobs that get one compute on the CPU.
                env=os.environ | {"NGSGPU_BACKEND": "cpu"} | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the whole group on a terminal.
                start_new_session=True,
            )
        STARTED.append(process)
        return process

    def finish(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until Snakemake has ended well."""
        status = process.wait(PATIENCE)
        if status != 0:
            log = (self.folder / "snakemake.log").read_text()
            raise CheckError(f"Snakemake ended with {status}:\n{log[-6000:]}")

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        """Run Snakemake to its end."""
        self.finish(self.start(*arguments, env=env))

    def slurm_log(self, job: str) -> str:
        """What a job wrote."""
        (path,) = (self.folder / ".snakemake" / "slurm_logs").rglob(f"{job}.log")
        return path.read_text(errors="replace")

    def results(self) -> dict[str, bytes]:
        """The files that are the same in each run."""
        root = self.folder / "results"
        return {
            name: path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
            and not path.name.startswith(".snakemake")
            and not VOLATILE.search(name := str(path.relative_to(root)))
        }


@dataclass
class Checks:
    """The checks; each returns what it has seen, in a line."""

    work: Path
    profile: Path
    local: Study

    def study(self, name: str) -> Study:
        """A fresh copy of the test study, for Slurm."""
        return Study(self.work / name, self.profile)

    def same_as_local(self, study: Study) -> str:
        """Compare all results there are with those of the local run."""
        own, theirs = study.results(), self.local.results()
        expect(bool(own), "no results")
        differing = [name for name in own if own[name] != theirs.get(name)]
        expect(not differing, f"other bytes than in the local run: {', '.join(differing)}")
        return f"{len(own)} files as in a local run"

    def two_gpus(self) -> str:
        """A job with two GPUs gets both, and starts its program once."""
        before, study = job_states(), self.study("two_gpus")
        (study.folder / "more.yaml").write_text("correct: {gpu: 2}\n")
        programs, starts = study.folder / "bin", study.folder / "starts"
        programs.mkdir()
        wrapper = programs / "ngsgpu"
        wrapper.write_text(
            f'#!/bin/sh\necho "$1" >> "{starts}"\nexec {shutil.which("ngsgpu")} "$@"\n'
        )
        wrapper.chmod(0o755)
        configs = ["--configfile", "config/config.yaml", "more.yaml"]
        path = {"PATH": f"{programs}:{os.environ['PATH']}"}
        study.run("--resources", "gpu=2", *configs, "--", STATS, env=path)
        (job,) = jobs_since(before)
        asked = output_of("scontrol", "show", "job", job)
        (gpus,) = re.findall(r"TresPerJob=(\S+)", asked)
        expect(gpus == "gres:gpu:2", f"Slurm was asked for {gpus}")
        expect("Partition=gpu " in asked, "not in the partition with GPUs")
        started = starts.read_text().split()
        expect(started == ["correct"], f"started: {started}")
        return f"Slurm gave {gpus}, ngsgpu ran once, {self.same_as_local(study)}"

    def too_little_memory(self) -> str:
        """A job that Slurm kills for its memory gets more at the second attempt."""
        before, study = job_states(), self.study("memory")
        # Less than Python and Snakemake take, then enough.
        study.run("--set-resources", "count_kmers:mem_mb=100 * 20 ** (attempt - 1)", "--", KMERS)
        jobs = jobs_since(before)
        expect(len(jobs) == 2, f"{len(jobs)} jobs instead of two")
        memory = [
            re.findall(r"MinMemoryNode=(\S+)", output_of("scontrol", "show", "job", job))[0]
            for job in jobs
        ]
        states = [job_states()[job].split()[0] for job in jobs]
        expect(states[0] != "COMPLETED" == states[1], f"jobs ended as {states}")
        expect("memory limit" in study.slurm_log(jobs[0]), "the first did not lack memory")
        return f"{memory[0]}: {states[0]}; {memory[1]}: {states[1]}; {self.same_as_local(study)}"

    def drained_node(self) -> str:
        """Jobs wait while no node takes any, and run when one does."""
        before, study = job_states(), self.study("drained")
        node = output_of("scontrol", "show", "hostnames", output_of("sinfo", "-h", "-o", "%N"))
        node = node.split()[0]
        output_of("scontrol", "update", f"nodename={node}", "state=drain", "reason=check")
        process = study.start("--", KMERS)
        try:
            wait_until(lambda: bool(jobs_since(before)), "a job", process)
            time.sleep(10)
            (job,) = jobs_since(before)
            waiting = job_states()[job]
            expect(waiting.startswith("PENDING"), f"the job is {waiting}")
        finally:
            output_of("scontrol", "update", f"nodename={node}", "state=resume")
        study.finish(process)
        return f"first {waiting}, then {job_states()[job].split()[0]}; {self.same_as_local(study)}"

    def cancelled_job(self) -> str:
        """A job that scancel ends is submitted again, and gives the same."""
        before, study = job_states(), self.study("cancelled")
        process = study.start("--", STATS)
        wait_until(lambda: bool(jobs_since(before, "RUNNING")), "the job to run", process)
        (job,) = jobs_since(before)
        output_of("scancel", job)
        study.finish(process)
        states = [job_states()[job].split()[0] for job in jobs_since(before)]
        expect(states == ["CANCELLED", "COMPLETED"], f"jobs ended as {states}")
        return f"{', '.join(states)}; {self.same_as_local(study)}"

    def interrupted(self, kind: signal.Signals) -> str:
        """A study that was interrupted goes on when it is started again."""
        before, study = job_states(), self.study(kind.name)
        process = study.start("--", STATS)
        wait_until(lambda: bool(jobs_since(before, "RUNNING")), "the job to run", process)
        (job,) = jobs_since(before)
        said = ""
        if kind == signal.SIGINT:
            times = press_ctrl_c(process, study.folder / "snakemake.log")
            said = "" if times == 1 else f" after {times} Ctrl-C"
        else:
            os.killpg(process.pid, kind)
        status = process.wait(PATIENCE)
        expect(status != 0, "Snakemake should have failed")
        if kind == signal.SIGKILL:
            # It could neither cancel the job nor unlock the folder.
            expect(job_states()[job].startswith("RUNNING"), "the job should still run")
            output_of("scancel", job)
            study.run("--unlock")
            said = ", after scancel and --unlock"
        study.run("--", STATS)
        return f"resumed{said}; {self.same_as_local(study)}"

    def whole_study(self) -> str:
        """The whole test study through sbatch."""
        before, study = job_states(), self.study("whole")
        study.run("--resources", "gpu=2")
        jobs = jobs_since(before)
        completed = jobs_since(before, "COMPLETED")
        expect(jobs == completed, f"of {len(jobs)} jobs {len(completed)} completed")
        expect((study.folder / "results" / "complete").exists(), "no results/complete")
        missing = set(self.local.results()) - set(study.results())
        expect(not missing, f"missing: {', '.join(sorted(missing))}")
        asked = [output_of("scontrol", "show", "job", job) for job in jobs]
        gpus = sum("TresPerJob=gres:gpu:1" in text for text in asked)
        expect(gpus > 0, "no job asked for a GPU")
        return f"{len(jobs)} jobs, {gpus} of them with gres:gpu:1; {self.same_as_local(study)}"


def edited_profile(work: Path) -> Path:
    """The profile, edited for a Slurm with partitions cpu and gpu and without accounts."""
    profile = work / "profile"
    shutil.copytree(ROOT / "workflow" / "profiles" / "slurm", profile)
    file = profile / "profile.yaml"
    lines = [line for line in file.read_text().splitlines() if "slurm_account: " not in line]
    text = "\n".join(lines) + "\n"
    for placeholder, name in (("GPU_PARTITION", "gpu"), ("CPU_PARTITION", "cpu")):
        text = text.replace(f"slurm_partition: {placeholder}", f"slurm_partition: {name}")
    file.write_text(text)
    return profile


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell lets what it starts in the background ignore Ctrl-C, and so would the Snakemakes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="empty folder for the studies")
    parser.add_argument("--full", action="store_true", help="also the whole test study")
    options = parser.parse_args(arguments)
    work = options.work / "studies"
    work.mkdir()
    local = Study(work / "local", None)
    checks = Checks(work, edited_profile(work), local)
    steps: list[tuple[str, Callable[[], str]]] = [
        ("two GPUs for a job", checks.two_gpus),
        ("a job with too little memory", checks.too_little_memory),
        ("a drained node", checks.drained_node),
        ("scancel of a job", checks.cancelled_job),
        ("Ctrl-C", lambda: checks.interrupted(signal.SIGINT)),
    ]
    if options.full:
        steps += [
            ("Snakemake killed", lambda: checks.interrupted(signal.SIGKILL)),
            ("the whole test study", checks.whole_study),
        ]
    versions = [output_of("sinfo", "--version"), output_of("snakemake", "--version")]
    print(f"{versions[0].strip()}, snakemake {versions[1].strip()}, {os.cpu_count()} cores")
    local.run(*([] if options.full else ["--", STATS, KMERS]))
    failures = 0
    for name, check in steps:
        start = time.monotonic()
        try:
            seen = f"ok: {check()}"
        except (CheckError, subprocess.SubprocessError) as error:
            failures += 1
            seen = f"FAILED: {error}"
        print(f"{name} [{time.monotonic() - start:.0f} s] {seen}")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        for one in STARTED:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
