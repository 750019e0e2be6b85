"""Two workflows of two users share eight GPUs that are not there, and everything gets killed.

Each Snakemake believes it has all eight (``--resources gpu=8``); its jobs take one or two, and
the last one all, by ``ngsgpu gpu run`` and hold a witness for each, a lock that no other job may
hold. Jobs and their
launchers are killed at random, and each Snakemake once, with its jobs left behind, and started
anew::

    python -m tests.support.workflow_soak --jobs 200 --seed 1

As root, the second workflow runs as another user. Checked are the witnesses, the times in the
statistics of all jobs that ended well, and that all GPUs are free in the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.study.timeline import judge
from ngsgpu.device.leases import lease_gpus
from ngsgpu.report.model import Study
from ngsgpu.report.sections.devices import read_spans

ROOT: Final = Path(__file__).parents[2]
GPUS: Final = 8
PATIENCE: Final = 120.0
NOBODY: Final = 65534
TWICE: Final = 66

# The other user reads, as the tests' Python may lie where only root may go, but writes nothing.
OTHER_USER: Final = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
]  # fmt: skip

SNAKEFILE: Final = """
rule all:
    input:
        expand("done/{{job}}", job=range({jobs})),


rule hold:
    output:
        "done/{{job}}",
    retries: 100
    resources:
        gpu=lambda wildcards: {gpus} if wildcards.job == "{last}" else 1 + int(wildcards.job) % 2,
    shell:
        "ngsgpu gpu run -n {{resources.gpu}} --stats stats/{{wildcards.job}}.json"
        " -- sh job.sh {{wildcards.job}} 2>> log && touch {{output}}"
"""

# The witnesses end with the last process that holds the lease, as the lease does.
JOB: Final = """\
command="sleep $(($1 * 7 % 3)).7"
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
    command="flock -n -E {twice} ../witness/$gpu $command"
done
$command
status=$?
if [ $status = {twice} ]; then echo "job $1 on $CUDA_VISIBLE_DEVICES" >> twice; fi
exit $status
"""


@dataclass
class Counts:
    """What came of it.

    Attributes:
        jobs: how many ended well.
        users: of the workflows.
        killed: jobs and launchers, by what was killed.
        restarted: how often a Snakemake was killed.
        gpus: jobs by GPU.
        twice: what was held twice, a line each; empty if all is well.
        failed: what else went wrong.
        seconds: how long it took.
    """

    jobs: int = 0
    users: list[int] = field(default_factory=list)
    killed: dict[str, int] = field(default_factory=dict)
    restarted: int = 0
    gpus: dict[str, int] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Workflow:
    """A Snakemake with jobs of its own, in a folder of its own.

    Args:
        folder: to be made.
        jobs: how many.
        prefix: command that changes the user.
        environment: variables of its processes.
    """

    def __init__(
        self, folder: Path, jobs: int, prefix: list[str], environment: dict[str, str]
    ) -> None:
        self.folder, self.jobs = folder, jobs
        (folder / "stats").mkdir(parents=True)
        (folder / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs, last=jobs - 1, gpus=GPUS))
        (folder / "job.sh").write_text(JOB.format(twice=TWICE))
        self.user = NOBODY if prefix else os.getuid()
        if prefix:
            for path in (folder, *folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        self._command = [*prefix, sys.executable, "-m", "snakemake", "--cores", str(2 * GPUS)]
        self._environment = environment | {"HOME": str(folder)}
        self.was_killed = False

    def start(self) -> None:
        """Run what is not done yet, in a session that its jobs stay in."""
        with (self.folder / "snakemake.log").open("a") as log:
            options: dict[str, Any] = {
                "cwd": self.folder, "env": self._environment, "stdout": log, "stderr": log,
                "stdin": subprocess.DEVNULL, "start_new_session": True,
            }  # fmt: skip
            if self.was_killed:
                subprocess.run([*self._command, "--unlock"], check=True, **options)
            run = ["--resources", f"gpu={GPUS}", "--rerun-incomplete", "--quiet"]
            self.process = subprocess.Popen([*self._command, *run], **options)
        self.sessions = [*getattr(self, "sessions", []), self.process.pid]

    @property
    def done(self) -> int:
        """Number of jobs that have ended well."""
        return len(list((self.folder / "done").glob("*")))

    def kill(self) -> None:
        """Kill Snakemake; its jobs go on."""
        self.process.kill()
        self.process.wait()
        self.was_killed = True

    def targets(self) -> list[tuple[int, str]]:
        """Jobs and launchers of this workflow: process and what it is."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                session = int((path / "stat").read_text().rpartition(")")[2].split()[3])
                words = (path / "cmdline").read_bytes().split(b"\0")
                if session not in self.sessions:
                    continue
                if words[1:5] == [b"-m", b"ngsgpu", b"gpu", b"run"]:
                    found.append((int(path.name), "launcher"))
                elif words[:2] == [b"sh", b"job.sh"]:
                    found.append((int(path.name), "job"))
                elif words[0] in (b"flock", b"sleep"):
                    found.append((int(path.name), words[0].decode()))
        return found


def may_be_another() -> bool:
    """Whether the second workflow can run as another user."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    command = [*OTHER_USER, sys.executable, "-c", "import snakemake"]
    return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


def machine(folder: Path) -> dict[str, str]:
    """An environment with eight GPUs, their witnesses, and ``ngsgpu`` on the PATH."""
    programs, witness = folder / "bin", folder / "witness"
    programs.mkdir()
    witness.mkdir()
    rows = []
    for number in range(GPUS):
        uuid = f"GPU-{number:08x}-0000"
        rows.append(f"{number}, {uuid}, NVIDIA H200, 143771, 143167, 9.0, 580.82.07, 0:{number}:0")
        (witness / uuid).touch()
        (witness / uuid).chmod(0o666)
    texts = {
        "nvidia-smi": "cat <<END\n" + "\n".join(rows) + "\nEND\n",
        "ngsgpu": f'exec "{sys.executable}" -m ngsgpu "$@"\n',
    }
    for name, text in texts.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}")
        (programs / name).chmod(0o755)
    kept = {
        # Each user has a home, and what is kept lies there.
        k: v
        for k, v in os.environ.items()
        if k not in ("CUDA_VISIBLE_DEVICES", "NGSGPU_LEASE", "XDG_CACHE_HOME")
    }
    return kept | {
        "PATH": f"{programs}:{kept['PATH']}",
        "PYTHONPATH": str(ROOT),
        "NGSGPU_LOCK_DIR": str(folder / "locks"),
    }


def soak(jobs: int, seed: int) -> Counts:
    """Run two workflows of so many jobs each.

    Changes the environment of the process: run it in one of its own.
    """
    began, dice, counts = time.monotonic(), random.Random(seed), Counts()
    with tempfile.TemporaryDirectory(prefix="ngsgpu-soak-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = machine(folder)
        prefixes = [[], OTHER_USER if may_be_another() else []]
        workflows = [
            Workflow(folder / f"workflow{number}", jobs, prefix, environment)
            for number, prefix in enumerate(prefixes)
        ]
        counts.users = [workflow.user for workflow in workflows]
        for workflow in workflows:
            workflow.start()
        _attack(workflows, dice, counts)
        os.environ.clear()
        os.environ.update(environment)
        # Jobs that were left behind may still hold some.
        lease_gpus(GPUS, wait=PATIENCE).release()
        _judge(workflows, counts)
        if counts.failed:
            logs = (workflow.folder / "snakemake.log" for workflow in workflows)
            counts.failed += [path.read_text()[-2000:] for path in logs]
    counts.seconds = round(time.monotonic() - began, 1)
    return counts


def _attack(workflows: list[Workflow], dice: random.Random, counts: Counts) -> None:
    """Kill until both are done: as often as a third of their jobs, and each Snakemake once."""
    end = time.monotonic() + PATIENCE + 5 * sum(workflow.jobs for workflow in workflows)
    kills = sum(workflow.jobs for workflow in workflows) // 3
    try:
        while any(workflow.process.poll() is None for workflow in workflows):
            if time.monotonic() > end:
                counts.failed.append("not done in time")
                return
            time.sleep(dice.expovariate(4))
            for workflow in workflows:
                if not workflow.was_killed and workflow.done > workflow.jobs // 3:
                    workflow.kill()
                    workflow.start()
                    counts.restarted += 1
            targets = dice.choice(workflows).targets()
            if targets and sum(counts.killed.values()) < kills:
                # Launchers live longest, since Python starts slowly.
                kind = dice.choice(sorted({kind for _, kind in targets}))
                process = dice.choice([process for process, own in targets if own == kind])
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    counts.killed[kind] = counts.killed.get(kind, 0) + 1
    finally:
        for workflow in workflows:
            if workflow.process.poll() is None:
                workflow.process.kill()
                workflow.process.wait()
                counts.failed.append(f"{workflow.folder.name} had to be ended")
            elif workflow.process.returncode != 0:
                counts.failed.append(f"{workflow.folder.name} failed")


def _judge(workflows: list[Workflow], counts: Counts) -> None:
    """Count jobs, and what witnesses and statistics say."""
    paths: dict[str, Path] = {}
    for workflow in workflows:
        counts.jobs += workflow.done
        paths |= {str(path): path for path in (workflow.folder / "stats").glob("*.json")}
        with contextlib.suppress(FileNotFoundError):
            counts.twice += (workflow.folder / "twice").read_text().splitlines()
    spans = read_spans(Study("", (), jobs={"hold": paths}))
    verdict = judge([], spans, GPUS, 0)
    counts.twice += map(str, verdict["held_twice"])
    counts.gpus = {gpu: used["jobs"] for gpu, used in verdict["devices"].items()}
    if not verdict["all_used"]:
        counts.failed.append("not all GPUs were used")


def main() -> int:
    """Run a soak and print what came of it as JSON; 1 if anything was held twice or failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200, help="of each workflow")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts = soak(arguments.jobs, arguments.seed)
    print(json.dumps(vars(counts), indent=1))
    return 1 if counts.twice or counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
