"""A chain beside its commands one after the other, on the same compressed reads.

    python -m benchmarks.chains --genomes GENOMES --folder DATA --backend cuda -t 16 -o out.json
    python -m benchmarks.chains --data r1.fq,r2.fq --references ecoli.fna.gz -o out.json

All read and write .gz, each command what the one before wrote; the chain writes what the last of
them write. Whole processes are measured in turn, inputs in the page cache. Files of the same names
must be the same bytes; otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.forms.__main__ import find, prepare, read_through
from benchmarks.forms.jobs import Reads, Runner
from benchmarks.harness.document import head, run_in
from benchmarks.harness.forms import GZIP, PLAIN, make_forms, write_first
from benchmarks.harness.measuring import ROOT, apart, measure
from benchmarks.harness.tables import markdown
from ngsgpu.io.output.store import checksum

SCHEMA: Final = "ngsgpu.benchmark.chains"
SCHEMA_VERSION: Final = 1

SETTINGS: Final = {
    "deplete": ["deplete.index=../host.idx"],
    "classify": ["classify.database=../database"],
}
"""Options of steps, by their names."""

Words = list[str]


def commands(steps: Sequence[str], reads: Sequence[str]) -> dict[str, Words]:
    """The commands that a chain stands for, by their steps, each reading what was written last."""
    first, second = reads
    merged: list[str] = []
    found: dict[str, Words] = {}
    for step in steps:
        pairs = ["-i", first, "-I", second]
        stats = ["--stats", f"{step}.stats.json"]
        if step == "classify":
            if merged:
                pairs = ["--samples", "sheet.tsv"]
            calls = ["-d", "../database", "-o", "reads.reads.tsv.gz"]
            found[step] = [step, *pairs, *calls, "--report", "reads.kraken2.report.txt", *stats]
        elif step == "merge":
            first, second, merged = *_mates("unmerged"), ["merged.fastq.gz"]
            outputs = ["-o", *merged, "--unmerged1", first, "--unmerged2", second]
            found[step] = [step, *pairs, *outputs, *stats]
        else:
            word = {"trim": "trimmed", "deplete": "depleted", "correct": "corrected"}[step]
            first, second = _mates(word)
            own = {"deplete": ["-d", "../host.idx"], "trim": ["-j", "reads.fastp.json"]}
            found[step] = [step, *own.get(step, []), *pairs, "-o", first, "-O", second, *stats]
    return found


def _mates(word: str) -> tuple[str, str]:
    return f"{word}_1.fastq.gz", f"{word}_2.fastq.gz"


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    steps = settings.steps.split(",")
    options = ("--backend", settings.backend, "--threads", str(settings.threads), "--quiet")
    runner = Runner(options, work / "kernels")
    files, genomes, folder = find(settings.data, "reads", settings, work)
    reads = Reads(files, folder, work / "reads")
    few = Reads(
        apart(write_first, files, settings.check_pairs, work / "few"), work / "few-forms", work
    )
    both = [(own.files, own.forms) for own in (reads, few)]
    apart(make_forms, both, [PLAIN, GZIP], settings.threads)
    paths = [path.resolve() for path in reads.paths(GZIP)]
    read_through(paths)
    genomes = tuple(settings.references) or genomes
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {
            "data": "files" if "," in settings.data else settings.data,
            **{name: getattr(settings, name) for name in ("steps", "backend", "threads")},
        },
        "bytes": sum(path.stat().st_size for path in paths),
        "prepared": prepare(steps, genomes, settings, runner),
        "commands": {step: [] for step in steps},
        "chain": [],
        "differences": [],
    }
    # Compiles all kernels, also those that inflate what has several blocks.
    _measure_once(steps, list(map(str, few.paths(GZIP))), runner, work)
    for _ in range(settings.repeats):
        taken = _measure_once(steps, list(map(str, paths)), runner, work)
        for step in steps:
            document["commands"][step].append(taken.commands[step])
        document["chain"].append(taken.chain)
        document["differences"] += taken.differences
    return document


class Taken(NamedTuple):
    """What the commands and the chain took once, and files in which they differ."""

    commands: dict[str, dict[str, Any]]
    chain: dict[str, Any]
    differences: list[str]


def _measure_once(steps: Sequence[str], reads: Sequence[str], runner: Runner, work: Path) -> Taken:
    single, chain = work / "single", work / "chain"
    for place in (single, chain):
        place.mkdir()
    rows = ["\t".join(_mates("unmerged")), "merged.fastq.gz\t"]
    sheet = ["sample\tfastq_1\tfastq_2", *(f"reads\t{row}" for row in rows)]
    (single / "sheet.tsv").write_text("\n".join(sheet) + "\n")
    taken = {
        step: _measured(step, words, single, runner)
        for step, words in commands(steps, reads).items()
    }
    words = ["run", "--steps", ",".join(steps), "-i", reads[0], "-I", reads[1]]
    words += [word for step in steps for own in SETTINGS.get(step, []) for word in ("--set", own)]
    whole = _measured("chain", [*words, "--sample", "reads", "-o", "."], chain, runner)
    whole["steps"] = [
        {name: own[name] for name in ("name", "time_s")}
        for own in json.loads((chain / "chain.stats.json").read_text())["steps"]
    ]
    differences = [
        path.name
        for path in sorted(chain.iterdir())
        if path.name.endswith((".gz", "report.txt"))
        and apart(checksum, path) != apart(checksum, single / path.name)
    ]
    for place in (single, chain):
        shutil.rmtree(place)
    return Taken(taken, whole, differences)


def _measured(name: str, words: Words, place: Path, runner: Runner) -> dict[str, Any]:
    os.sync()
    taken = measure(["ngsgpu", *words, *runner.options], place, environment=runner.environment)
    print(f"{name}: {taken.wall_s:.2f} s", file=sys.stderr, flush=True)
    return asdict(taken)


def table(document: dict[str, Any]) -> str:
    """Rows are the commands, their sum, and the chain: wall and CPU time, memory."""
    rows = [["command", "wall, s", "CPU, s", "host, GB", "GPU, GB"]]
    sums = [0.0, 0.0]
    for name, runs in document["commands"].items():
        wall, cpu, *memory = _medians(runs)
        sums = [sums[0] + wall, sums[1] + cpu]
        rows.append([name, f"{wall:.2f}", f"{cpu:.1f}", *memory])
    rows.append(["all of them", f"{sums[0]:.2f}", f"{sums[1]:.1f}", "", ""])
    wall, cpu, *memory = _medians(document["chain"])
    ratios = wall / sums[0], cpu / sums[1]
    cells = [f"{wall:.2f} ({ratios[0]:.2f} x)", f"{cpu:.1f} ({ratios[1]:.2f} x)"]
    return markdown([*rows, ["chain", *cells, *memory]], names=1)


def _medians(runs: Sequence[dict[str, Any]]) -> tuple[float, float, str, str]:
    wall = statistics.median(own["wall_s"] for own in runs)
    cpu = statistics.median(own["user_s"] + own["system_s"] for own in runs)
    device = max(own["peak_device_bytes"] or 0 for own in runs)
    host = max(own["peak_rss_bytes"] for own in runs)
    return wall, cpu, f"{host / 1e9:.2f}", f"{device / 1e9:.2f}" if device else "-"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="chains",
        description="Measure a chain beside its commands.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--steps", default="deplete,correct,merge,classify", help="of trim, deplete and so on")
    add("--data", default="L", help="data set, or R1.fq,R2.fq")
    add("--genomes", type=Path, help="folder of genomes for data sets")
    add("--references", type=Path, nargs="+", default=[], help="in place of the data set's genomes")
    add("--folder", type=Path, help="where data sets and forms are kept; without it removed")
    add("--check-pairs", type=int, default=20_000, help="first pairs, for the kernels")
    add("--backend", choices=("cpu", "cuda"), default="cpu")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--repeats", type=int, default=1)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    parser.set_defaults(precompile=None, taxonomy=None, map=None)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; the status is 1 if files differ."""
    return run_in(parse(arguments), "chains", run, table)


if __name__ == "__main__":
    sys.exit(main())
