"""Whole runs at the size of the human genome, from .gz to .gz, step by step.

    python -m benchmarks.human --steps "correct 10 1" "correct 10 2" "histogram 30 1" \
        "correct 30 2 --hashes 16" --limit 240 --budget 560 --work /dev/shm/human -t 32 -o out.json
    python -m benchmarks.human --scale 0.001 --steps "correct 10 0" "spectrum 10 0" -o out.json

A step is a job, the coverage of its reads, a number of GPUs (0: CPUs), and further options of
ngsgpu. The genome (3.1 Gb times ``--scale``) and its pairs (30 is 914.7 M reads of 100 bases) are
drawn here: reads of 100 bases for all jobs but extend, which gets 150. Steps run in the order of
their reads, since the files grow from one coverage to the next. A step that fails or takes longer
than ``--limit`` is recorded as such, and after ``--budget`` seconds none begins. The file is
written after every step, and a line printed. Steps that differ in GPUs alone must write the same
bytes.

The first ``--checked`` pairs of outputs are compared with the truth. Each second of a run the file
says how many cores and GPUs are busy, and the memory in use.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import genome_reads, genome_truth
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import BenchmarkError, measure
from benchmarks.harness.tables import markdown
from benchmarks.harness.timeline import Timeline

SCHEMA: Final = "ngsgpu.benchmark.human"
SCHEMA_VERSION: Final = 1

GENOME_BASES: Final = 3.1e9
BASES_PER_COVERAGE: Final = 91.47e9 / 30
"""Of all reads: 914.7 M of 100 bases are "30"."""

SEQUENCES: Final = 24
FASTA: Final = "genome.fa"

BOTH: Final = "-o out1.fq.gz -O out2.fq.gz"
REST: Final = "-o out1.fq.gz --remaining1 out2.fq.gz --remaining2 out3.fq.gz"
UNMERGED: Final = "-o out1.fq.gz --unmerged1 out2.fq.gz --unmerged2 out3.fq.gz"
CHAIN: Final = "--steps trim,correct,merge -o chain"


@dataclass(frozen=True, slots=True)
class Job:
    """What a step runs.

    Attributes:
        command: of ngsgpu, with its outputs; ``READS`` stands for the inputs.
        check: compares outputs with the truth.
        before: a command that makes what it needs, of the genome as FASTA; measured once.
        length: bases of a read.
    """

    command: str
    check: Callable[[genome_truth.Given, Path], dict[str, Any]] | None = None
    before: str = ""
    length: int = 100


JOBS: Final = {
    "correct": Job(f"correct READS {BOTH}", genome_truth.check_corrected),
    "spectrum": Job(f"correct --method spectrum READS {BOTH}", genome_truth.check_corrected),
    "extend": Job(f"extend READS {REST}", genome_truth.check_fragments, length=150),
    "merge": Job(f"merge READS {UNMERGED}", genome_truth.check_fragments),
    "histogram": Job("kmers count READS -k 31 --histo out.tsv", genome_truth.check_histogram),
    "database": Job("kmers count READS -k 31 -o out.kmers"),
    "unitigs": Job("unitigs READS -k 31 -o out.fa"),
    "trim": Job(f"trim READS {BOTH}"),
    "deplete": Job(f"deplete -d host.idx READS {BOTH}", None, f"deplete-index {FASTA} -o host.idx"),
    "classify": Job("classify -d db READS -o out.tsv", None, f"db build {FASTA} -d db"),
    "chain": Job(f"run READS {CHAIN}"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A run: a job, the coverage of its reads, GPUs, further options."""

    job: str
    coverage: float
    gpus: int
    options: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Step:
        """Of words on the command line.

        Raises:
            argparse.ArgumentTypeError: the job is unknown, or a number is none.
        """
        job, *words = shlex.split(text)
        if job not in JOBS or len(words) < 2:
            raise argparse.ArgumentTypeError(f"{text}: not JOB COVERAGE GPUS; {', '.join(JOBS)}")
        try:
            return cls(job, float(words[0]), int(words[1]), tuple(words[2:]))
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error}") from error

    @property
    def length(self) -> int:
        """Bases of a read."""
        return JOBS[self.job].length

    def pairs(self, scale: float) -> int:
        """Pairs of its reads."""
        return round(self.coverage * BASES_PER_COVERAGE * scale / (2 * self.length))

    @property
    def kind(self) -> str:
        """Name of all that must write the same bytes."""
        return " ".join([self.job, f"{self.coverage:g}", *self.options])

    @property
    def name(self) -> str:
        """Name of the run in tables."""
        return f"{self.kind}, {f'GPUs {self.gpus}' if self.gpus else 'CPU'}"


class Bench:
    """All steps, in a folder."""

    def __init__(self, settings: argparse.Namespace, work: Path) -> None:
        self._settings = settings
        self._work = work
        self._begin = time.perf_counter()
        self._sums: dict[str, list[int]] = {}
        self._prepared: set[str] = set()
        self._reads: genome_reads.DrawnReads | None = None
        names = ("scale", "threads", "limit", "budget")
        self.document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "settings": {name: getattr(settings, name) for name in names},
            "made": [],
            "runs": [],
            "differences": [],
        }

    def run(self) -> None:
        """All steps that the budget allows."""
        settings = self._settings
        if settings.compile:
            self._measured(
                "compile", ["ngsgpu", "compile", "--quiet", "-t", str(settings.threads)], {}
            )
        self._genome = self._made(
            "genome",
            lambda: genome_reads.make_genome(
                round(GENOME_BASES * settings.scale), self._work / "genome", settings.threads
            ),
        )
        for step in sorted(settings.steps, key=lambda one: (one.length, one.coverage)):
            if self._elapsed() > settings.budget:
                self._record({"name": step.name, "error": "not begun: no time was left"})
                continue
            self._grow(step)
            self._step(step)

    def _elapsed(self) -> float:
        return time.perf_counter() - self._begin

    def _made(self, name: str, make: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        made = make()
        took = round(time.perf_counter() - begin, 1)
        self.document["made"].append({"name": name, "wall_s": took})
        print(f"{self._elapsed():4.0f}  {name}: {took:.1f} s", flush=True)
        return made

    def _grow(self, step: Step) -> None:
        """Draw the reads of a step, behind those that are there."""
        paths = self._work / "r1.fq.gz", self._work / "r2.fq.gz"
        if self._reads is None or self._reads.length != step.length:
            threads = self._settings.threads
            self._reads = genome_reads.DrawnReads(self._genome, step.length, paths, threads)
        reads, pairs = self._reads, step.pairs(self._settings.scale)
        if reads.pairs != pairs:
            self._made(f"{2 * pairs / 1e6:.3g} M reads of {step.length}", lambda: reads.grow(pairs))

    def _step(self, step: Step) -> None:
        job = JOBS[step.job]
        own = ["-t", str(self._settings.threads), "--quiet"]
        if job.before and job.before not in self._prepared:
            self._prepared.add(job.before)
            if not (self._work / FASTA).exists():
                self._made(
                    FASTA,
                    lambda: genome_reads.write_fasta(
                        self._genome, self._work / FASTA, SEQUENCES, self._settings.threads
                    ),
                )
            command = ["ngsgpu", *job.before.split(), *own]
            if not self._measured(job.before, command, {}):
                return
        command = ["ngsgpu", *job.command.replace("READS", "-i r1.fq.gz -I r2.fq.gz").split()]
        backend = ["--backend", "cuda", "--gpus", str(step.gpus)] if step.gpus else []
        command += [*(backend or ["--backend", "cpu"]), *own, *step.options]
        if step.job != "chain":
            command += ["--stats", "stats.json"]
        about = {
            "job": step.job,
            "coverage": step.coverage,
            "gpus": step.gpus,
            "reads": 2 * step.pairs(self._settings.scale),
        }
        if self._measured(step.name, command, about) and "--dry-run" not in step.options:
            self._look(step)
        self._remove_outputs()

    def _measured(self, name: str, command: Sequence[str], about: dict[str, Any]) -> bool:
        """Run a command and record it; whether it succeeded."""
        left = max(1.0, self._settings.budget - self._elapsed())
        limit = min(self._settings.limit, left)
        entry = {"name": name, "command": " ".join(command), **about}
        statistics = self._work / "stats.json"
        statistics.unlink(missing_ok=True)
        begin = time.perf_counter()
        with Timeline() as timeline:
            try:
                entry |= asdict(measure(command, self._work, limit_s=limit))
            except BenchmarkError as error:
                entry["wall_s"] = round(time.perf_counter() - begin, 3)
                entry["error"] = str(error).removeprefix(" ".join(command)).strip(": ")
        if statistics.exists():
            told = json.loads(statistics.read_text())
            entry["steps_s"] = told.get("time_s", {})
            entry["memory"] = told.get("memory", {})
            entry["gpu_memory"] = told.get("gpu_memory", {})
            entry["plan"] = told.get("plan")
        entry["timeline"] = timeline.compact()
        self._record(entry)
        return "error" not in entry

    def _look(self, step: Step) -> None:
        """Compare the outputs of the last run with the truth, and with those of others."""
        entry = self.document["runs"][-1]
        outputs = self._outputs()
        entry["written_bytes"] = sum(path.stat().st_size for path in outputs)
        with ThreadPoolExecutor() as pool:
            sums = list(pool.map(genome_truth.checksum, outputs))
        if self._sums.setdefault(step.kind, sums) != sums:
            self.document["differences"].append(step.name)
        check = JOBS[step.job].check
        if check is not None:
            pairs = step.pairs(self._settings.scale)
            given = genome_truth.Given(
                self._genome, step.length, pairs, min(pairs, self._settings.checked)
            )
            try:
                entry["found"] = check(given, self._work)
            except (OSError, ValueError) as error:
                entry["found"] = {"error": str(error)}
        print("      ", entry.get("found", ""), flush=True)
        write_document(self.document, self._settings.output)

    def _outputs(self) -> list[Path]:
        found = [path for path in self._work.iterdir() if path.name.startswith(("out", "chain"))]
        found.remove(self._work / "output.txt")
        nested = (path.rglob("*") if path.is_dir() else [path] for path in found)
        return sorted(file for files in nested for file in files if file.is_file())

    def _remove_outputs(self) -> None:
        # A run that had to be killed leaves temporary files, with names that begin with a dot.
        for path in [*self._outputs(), *self._work.glob(".*")]:
            if path.is_file():
                path.unlink()
        for folder in (self._work / "out.kmers", self._work / "chain"):
            shutil.rmtree(folder, ignore_errors=True)

    def _record(self, entry: dict[str, Any]) -> None:
        self.document["runs"].append(entry)
        write_document(self.document, self._settings.output)
        steps = ", ".join(f"{name} {took:.1f}" for name, took in entry.get("steps_s", {}).items())
        said = entry.get("error", "")
        print(f"{self._elapsed():4.0f}  {entry['name']}: {entry.get('wall_s', 0):.1f} s "
              f"({steps}) {said}", flush=True)  # fmt: skip


def table(document: dict[str, Any]) -> str:
    """A line for each run: seconds, memory, what was found."""
    rows = [["run", "wall, s", "steps, s", "CPU, s", "host, GB", "GPU, GB", "found"]]
    for run in document["runs"]:
        steps = ", ".join(f"{name} {took:.0f}" for name, took in run.get("steps_s", {}).items())
        wall = f"{run['wall_s']:.1f}" if "wall_s" in run else ""
        cpu, host = run.get("user_s", 0) + run.get("system_s", 0), run.get("peak_rss_bytes", 0)
        found = run.get("error") or ", ".join(
            f"{name} {value}" for name, value in run.get("found", {}).items()
        )
        device = f"{(run.get('peak_device_bytes') or 0) / 1e9:.1f}"
        rows.append([run["name"], wall, steps, f"{cpu:.0f}", f"{host / 1e9:.1f}", device,
                     found.replace("\n", " ")])  # fmt: skip
    return markdown(rows, names=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; 1 if outputs differ or a run failed."""
    parser = argparse.ArgumentParser(prog="human", description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--steps", type=Step.parse, nargs="+", required=True, metavar="'JOB COVERAGE GPUS ...'",
        help=f"jobs: {', '.join(JOBS)}")  # fmt: skip
    add("--scale", type=float, default=1.0, help="of the genome and the number of reads")
    add("--limit", type=float, default=1200, metavar="S", help="seconds of a step")
    add("--budget", type=float, default=1e6, metavar="S", help="seconds of all")
    add("--checked", type=int, default=500_000, metavar="PAIRS", help="compared with the truth")
    add("--compile", action="store_true", help="compile kernels before")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--work", type=Path, default=Path("benchmarks/work"), help="folder for all files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    settings.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.work) as work:
        bench = Bench(settings, Path(work))
        bench.run()
    print(table(bench.document))
    for difference in bench.document["differences"]:
        print(f"human: other bytes than with another number of GPUs: {difference}", file=sys.stderr)
    failed = any("error" in run for run in bench.document["runs"])
    return 1 if failed or bench.document["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
