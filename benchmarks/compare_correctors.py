"""Read correctors side by side: time, memory and accuracy on simulated reads of known truth.

ART draws pairs from each genome (HiSeq 2000 profile, 2 x 100 bases). ``ngsgpu correct`` and those
of Lighter, BFC and CARE that are on the PATH correct them with the same number of threads, in
turn, several times; each is measured as a whole process from plain files to plain files, the
inputs being in the page cache. ``ngsgpu evaluate correction`` compares what they wrote with the
truth. One JSON file holds everything, a Markdown table goes to standard output.

    python -m benchmarks.compare_correctors GENOME.fna.gz --threads 2 --repeats 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    ROOT,
    BenchmarkError,
    answer,
    describe_commit,
    describe_machine,
    find_program,
    measure,
    version_in,
)
from benchmarks.simulated import join_mates, simulate, split_mates

SCHEMA = "ngsgpu.benchmark.correctors"
SCHEMA_VERSION = 1
VERSION_OPTIONS = {"ngsgpu": "--version", "lighter": "-v", "bfc": "-v", "care-cpu": "--help"}


@dataclass(frozen=True, slots=True)
class Job:
    """How a program corrects ``r1.fq`` and ``r2.fq``.

    Attributes:
        command: what is run; no name in it has blanks.
        outputs: the corrected first and second mates.
        output: file for standard output; its second half are the second mates.
    """

    command: str
    outputs: tuple[str, str]
    output: str | None = None


def jobs(genome_bases: int, coverage: int, threads: int) -> dict[str, Job]:
    """The commands, with what their authors advise for such reads."""
    return {
        "ngsgpu": Job(
            "ngsgpu correct -q -i r1.fq -I r2.fq -o ngsgpu_1.fq -O ngsgpu_2.fq "
            f"--backend cpu -t {threads}",
            ("ngsgpu_1.fq", "ngsgpu_2.fq"),
        ),
        "lighter": Job(
            f"lighter -r r1.fq -r r2.fq -K 23 {genome_bases} -od lighter -t {threads}",
            ("lighter/r1.cor.fq", "lighter/r2.cor.fq"),
        ),
        # BFC counts the k-mers of one file, so it gets both mates in one.
        "bfc": Job(
            f"bfc -s {genome_bases} -t {threads} both.fq", ("bfc_1.fq", "bfc_2.fq"), "bfc.fq"
        ),
        "care-cpu": Job(
            "care-cpu -i r1.fq -i r2.fq -d care -o r1.fq -o r2.fq --pairmode PE "
            f"-c {coverage} -t {threads} -k 20 -h 48 "
            "--useQualityScores --excludeAmbiguous --candidateCorrection",
            ("care/r1.fq", "care/r2.fq"),
        ),
    }


def found_programs() -> list[str]:
    """Programs that are here, ngsgpu first."""
    found = []
    for name in VERSION_OPTIONS:
        try:
            find_program(name)
        except BenchmarkError:
            continue
        found.append(name)
    return found


def evaluate(directory: Path, job: Job, pairs: int) -> dict[str, Any]:
    """Accuracy of what a program wrote: all counts but those by position."""
    if job.output is not None:
        split_mates(directory / job.output, pairs, [directory / name for name in job.outputs])
    command = "ngsgpu evaluate correction --truth r_errFree.sam --json e.json -i r1.fq -I r2.fq"
    measure([*command.split(), "-o", job.outputs[0], "-O", job.outputs[1]], directory)
    document = json.loads((directory / "e.json").read_text())
    return {key: document[key] for key in ("totals", "rates", "reads", "indel_reads", "all_reads")}


def start_times(directory: Path, cache: Path) -> dict[str, Any]:
    """Seconds that ngsgpu takes for 100 pairs with an empty kernel cache, and with a full one."""
    for mate in (1, 2):
        with (directory / f"r{mate}.fq").open("rb") as reads:
            (directory / f"few{mate}.fq").write_bytes(b"".join(islice(reads, 400)))
    command = "ngsgpu correct -q -i few1.fq -I few2.fq -o few3.fq -O few4.fq --backend cpu -t 1"
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    runs = [asdict(measure(command.split(), directory, environment=environment)) for _ in range(4)]
    return {"pairs": 100, "command": command, "cold": runs[0], "warm": runs[1:]}


def compare(
    programs: Sequence[str], data: dict[str, Any], directory: Path, settings: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Run all programs in turn, evaluate them, and yield what is to be known of each."""
    known = jobs(data["genome_bases"], settings.coverage, settings.threads)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    if "bfc" in programs:
        join_mates(directory)
    for repeat in range(1 if settings.accuracy_only else settings.repeats):
        # Each begins once, so that none always follows the same other one.
        first = repeat % len(programs)
        for name in [*programs[first:], *programs[:first]]:
            job = known[name]
            for output in job.outputs:
                (directory / output).parent.mkdir(exist_ok=True)
                (directory / output).unlink(missing_ok=True)
            # What others wrote shall not go to the disk while this one is measured.
            os.sync()
            measured = measure(
                job.command.split(),
                directory,
                output=directory / job.output if job.output else None,
                environment={"NUMBA_CACHE_DIR": str(directory.parent / "kernels")},
            )
            print(f"{data['name']}: {name} {measured.wall_s:.1f} s", file=sys.stderr)
            runs[name].append(asdict(measured))
    for name in programs:
        entry: dict[str, Any] = {"program": name, "command": known[name].command}
        if not settings.accuracy_only:
            entry["runs"] = runs[name]
        yield entry | {"accuracy": evaluate(directory, known[name], data["reads"] // 2)}


def table(document: dict[str, Any]) -> str:
    """The results as a Markdown table, one line for each genome and program."""
    timed = not document["settings"]["accuracy_only"]
    header = ["genome", "program"]
    header += ["wall, s", "x Lighter", "CPU, s", "memory, GB"] if timed else []
    header += ["sensitivity", "FP per million", "errors left per million bases"]
    lines = [header, ["---", "---", *["---:"] * (len(header) - 2)]]
    for data in document["datasets"]:
        lighter = [entry for entry in data["programs"] if entry["program"] == "lighter"]
        for entry in data["programs"]:
            cells = [data["name"], entry["program"]]
            if timed:
                cells += time_cells(entry["runs"], lighter[0]["runs"] if lighter else [])
            totals, rates = entry["accuracy"]["totals"], entry["accuracy"]["rates"]
            false = rates["fp_per_million_corrections"]
            cells += ["-" if rates["sensitivity"] is None else f"{rates['sensitivity']:.4f}"]
            cells += ["-" if false is None else f"{false:,.1f}"]
            cells += [f"{1e6 * totals['errors_after'] / totals['bases']:,.1f}"]
            lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def time_cells(runs: list[dict[str, Any]], lighter: list[dict[str, Any]]) -> list[str]:
    """Median and range of the wall time, its ratio to Lighter's, CPU time, memory."""
    walls = [run["wall_s"] for run in runs]
    wall = statistics.median(walls)
    ratio = wall / statistics.median(run["wall_s"] for run in lighter) if lighter else None
    cpu = statistics.median(run["user_s"] + run["system_s"] for run in runs)
    return [
        f"{wall:.1f} ({min(walls):.1f}-{max(walls):.1f})",
        "-" if ratio is None else f"{ratio:.2f}",
        f"{cpu:.1f}",
        f"{max(run['peak_rss_bytes'] for run in runs) / 1e9:.2f}",
    ]


@contextmanager
def work_directory(parent: Path) -> Iterator[Path]:
    """A directory that is removed in the end, with room for one genome's files in ``data``."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="compare_correctors", description="Compare read correctors.", formatter_class=described
    )
    add = parser.add_argument
    add("genomes", nargs="+", type=Path, metavar="GENOME", help="FASTA, plain or gzip")
    add("-t", "--threads", type=int, default=2, help="of every program")
    add("--repeats", type=int, default=3, help="measurements of each program")
    add("--accuracy-only", action="store_true", help="run each program once and record no times")
    add("--coverage", type=int, default=30, help="reads per position")
    add("--insert", type=int, default=300, help="mean length of fragments")
    add("--seed", type=int, default=1, help="of the simulation")
    add("--programs", nargs="+", choices=VERSION_OPTIONS, help="instead of all that are found")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    settings = parse(arguments)
    programs = settings.programs or found_programs()
    drawn = {name: getattr(settings, name) for name in ("coverage", "insert", "seed")}
    counted = 1 if settings.accuracy_only else settings.repeats
    try:
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "machine": describe_machine(),
            "source": describe_commit(),
            "programs": {p: version_in(answer(p, VERSION_OPTIONS[p])) for p in programs}
            | {"art_illumina": version_in(answer("art_illumina"))},
            "settings": drawn
            | {
                "threads": settings.threads,
                "repeats": counted,
                "accuracy_only": settings.accuracy_only,
            },
            "start": None,
            "datasets": [],
        }
        with work_directory(settings.work) as work:
            for genome in settings.genomes:
                data_directory = work / "data"
                data_directory.mkdir()
                data = simulate(genome, data_directory, **drawn)
                if document["start"] is None and not settings.accuracy_only:
                    document["start"] = start_times(data_directory, work / "kernels")
                data["programs"] = list(compare(programs, data, data_directory, settings))
                document["datasets"].append(data)
                shutil.rmtree(data_directory)
    except (BenchmarkError, OSError) as error:
        print(f"compare_correctors: error: {error}", file=sys.stderr)
        return 1
    settings.output.parent.mkdir(parents=True, exist_ok=True)
    settings.output.write_text(json.dumps(document, indent=1) + "\n")
    print(table(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
