"""The programs that are measured, stage by stage, and their command lines.

A stage is a table of programs. To measure another program, add it to its stage's table; to
measure another stage, add a table to ``STAGES``. All of a stage's programs read ``r1.fq`` and
``r2.fq`` in the directory they are started in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import OUTPUT, BenchmarkError, answer, find_program, version_in

NGSGPU_STATISTICS = "ngsgpu.json"
CARE_STAGES = {
    "build_readstorage": "read",
    "build_minhasher": "tables",
    "STEP2": "correct",
    "STEP3": "write",
}
"""What CARE calls its stages, and what ngsgpu does."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a program is told about its task.

    Attributes:
        genome_bases: bases of all genomes.
        coverage: reads per position.
        threads: how many threads work.
        backend: ``cpu`` or ``cuda``, for ngsgpu.
    """

    genome_bases: int
    coverage: int
    threads: int
    backend: str


@dataclass(frozen=True, slots=True)
class Job:
    """What a program is asked to do.

    Attributes:
        command: what is run; no name in it has blanks.
        outputs: its output, first and second mates where it has both.
        output: file for standard output; its second half are the second mates.
        joined: whether it reads both mates from ``both.fq``.
    """

    command: str
    outputs: tuple[str, ...]
    output: str | None = None
    joined: bool = False


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


def ngsgpu_correct(work: Work) -> Job:
    """Our own correction, with the name of its backend in the outputs' names."""
    outputs = (f"{work.backend}_1.fq", f"{work.backend}_2.fq")
    command = (
        f"ngsgpu correct -q --backend {work.backend} -t {work.threads} -i r1.fq -I r2.fq "
        f"-o {outputs[0]} -O {outputs[1]} --stats {NGSGPU_STATISTICS}"
    )
    return Job(command, outputs)


def ngsgpu_report(directory: Path) -> dict[str, Any]:
    """What ``--stats`` wrote: seconds, memory, and what was decided."""
    stats = json.loads((directory / NGSGPU_STATISTICS).read_text())
    parts = {part: seconds for part, seconds in stats["time_s"].items() if part != "total"}
    kept = ("backend", "device", "coverage", "corrected", "pairs", "memory", "gpu_memory")
    return {"parts": parts, "statistics": {key: stats[key] for key in kept if key in stats}}


def lighter(work: Work) -> Job:
    """Lighter is told the genome's size and finds its sampling rate itself."""
    command = f"lighter -r r1.fq -r r2.fq -K 23 {work.genome_bases} -od lighter -t {work.threads}"
    return Job(command, ("lighter/r1.cor.fq", "lighter/r2.cor.fq"))


def bfc(work: Work) -> Job:
    """BFC counts the k-mers of one file, so it gets both mates in one."""
    command = f"bfc -s {work.genome_bases} -t {work.threads} both.fq"
    return Job(command, ("bfc_1.fq", "bfc_2.fq"), "bfc.fq", joined=True)


def care(program: str, options: str = "") -> Callable[[Work], Job]:
    """CARE on the CPU or the GPU."""

    def job(work: Work) -> Job:
        command = (
            f"{program} -i r1.fq -i r2.fq -d {program} -o r1.fq -o r2.fq --pairmode PE "
            f"-c {work.coverage} -t {work.threads} -k 20 -h 48 "
            f"--useQualityScores --excludeAmbiguous --candidateCorrection {options}"
        )
        return Job(command.rstrip(), (f"{program}/r1.fq", f"{program}/r2.fq"))

    return job


def care_report(directory: Path) -> dict[str, Any]:
    """The times that CARE prints."""
    said = (directory / OUTPUT).read_text(errors="replace")
    times = dict(re.findall(r"# elapsed time \((\w+)\): ([\d.e+-]+)", said))
    parts = {
        ours: round(float(times[name]), 3) for name, ours in CARE_STAGES.items() if name in times
    }
    return {"parts": parts}


def ngsgpu_merge(work: Work) -> Job:
    """Our own merging, by FLASH's rules, to the files that FLASH writes."""
    prefix = f"{work.backend}_merged"
    command = (
        f"ngsgpu merge -q --backend {work.backend} -t {work.threads} -i r1.fq -I r2.fq "
        f"--quality flash --flash-prefix {prefix} --stats {NGSGPU_STATISTICS}"
    )
    names = ("extendedFrags", "notCombined_1", "notCombined_2")
    return Job(command, tuple(f"{prefix}.{name}.fastq" for name in names))


def flash(work: Work) -> Job:
    """FLASH with an overlap of up to 65 bases."""
    command = f"flash -m 10 -M 65 -x 0.25 -t {work.threads} -q -d flash -o reads r1.fq r2.fq"
    names = ("extendedFrags", "notCombined_1", "notCombined_2")
    return Job(command, tuple(f"flash/reads.{name}.fastq" for name in names))


NGSGPU = "ngsgpu"
STAGES: dict[str, dict[str, Program]] = {
    "correct": {
        NGSGPU: Program("ngsgpu --version", ngsgpu_correct, ngsgpu_report),
        "care-gpu": Program(
            "care-gpu --version",
            care("care-gpu", "--useGpuTables --gpuCorrectorThreadConfig 4:0 --batchsize 8192"),
            care_report,
        ),
        "care-cpu": Program("care-cpu --version", care("care-cpu"), care_report),
        "lighter": Program("lighter -v", lighter),
        "bfc": Program("bfc -v", bfc),
    },
    "merge": {
        NGSGPU: Program("ngsgpu --version", ngsgpu_merge, ngsgpu_report),
        "flash": Program("flash --version", flash, orders=False),
    },
}
NAMES = sorted({name for table in STAGES.values() for name in table})


def programs_of(stage: str, wanted: Sequence[str] | None) -> dict[str, Program]:
    """Those of a stage that are wanted; without a wish those that are here, ngsgpu first.

    Raises:
        BenchmarkError: one that is wanted is not here.
    """
    table = STAGES[stage]
    if wanted is None:
        return {name: program for name, program in table.items() if program.is_here}
    for name in wanted:
        if name in table and not table[name].is_here:
            raise BenchmarkError(f"{name} was not found on the PATH")
    return {name: table[name] for name in wanted if name in table}
