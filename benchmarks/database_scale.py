"""A database of many strains: time and memory of its build, and of classification with it.

    python -m benchmarks.database_scale --references genomes/*.fna.gz --copies 446 --partitions 8 \
        --pairs 15.3e6 -t 16 --backends cuda -o out.json

References are given genomes and mutated copies of them (``harness.copies``), each a separate
strain, or with a larger ``--changed`` as far apart as species; with ``--rounds N`` those of the
first round are built, and those of the others added, so that only the sequences of one round are on
the disk at a time. Reads are pairs of 2 x 100 bases of the given genomes, in plain files and .gz,
with ``--wrong`` of the bases substituted. Whole processes are measured, inputs in the page cache.
Backends must call all reads alike, otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.copies import CHANGED, records_of, write_copies
from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import fastq, mates, substitute
from benchmarks.harness.measuring import ROOT, apart, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.database_scale"
SCHEMA_VERSION: Final = 2
LENGTH: Final = 100
FRAGMENT: Final = 350
AT_ONCE: Final = 100_000
FORMS: Final = {"plain": "fq", "gz": "fq.gz"}


def draw(references: Sequence[Path], pairs: int, wrong: float, seed: int, prefix: Path) -> None:
    """Write pairs to the files ``<prefix>.1.fq`` and ``<prefix>.2.fq``."""
    rng = np.random.default_rng((seed, 2))
    text = np.concatenate([letters for path in references for _, letters in records_of(path)])
    name = b"A00:1:HXX:%03d:%%08d" % seed
    with ExitStack() as stack:
        paths = [Path(f"{prefix}.{mate}.fq") for mate in (1, 2)]
        files = [stack.enter_context(path.open("wb")) for path in paths]
        for begin in range(0, pairs, AT_ONCE):
            starts = rng.integers(0, len(text) - FRAGMENT, min(AT_ONCE, pairs - begin))
            drawn = mates(text[starts[:, None] + np.arange(FRAGMENT)], LENGTH)
            for file, bases in zip(files, drawn, strict=True):
                substitute(bases, wrong, rng)
                file.write(fastq(name, begin, bases, rng))


def make_reads(settings: argparse.Namespace, work: Path) -> None:
    """Write the pairs, plain and .gz, as pieces made by many processes."""
    count = settings.threads
    prefixes = [work / f"piece{number}" for number in range(count)]
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        tasks = [
            pool.submit(draw, settings.references, settings.pairs // count, settings.wrong, *place)
            for place in enumerate(prefixes)
        ]
        for task in tasks:
            task.result()
    for mate in (1, 2):
        pieces = [f"{prefix}.{mate}.fq" for prefix in prefixes]
        packers = [subprocess.Popen(["gzip", "-4", "-k", piece]) for piece in pieces]
        if any(packer.wait() for packer in packers):
            raise OSError("gzip failed")
        for ending in FORMS.values():
            with (work / f"{mate}.{ending}").open("wb") as file:
                for piece in pieces:
                    path = Path(piece.removesuffix("fq") + ending)
                    file.write(path.read_bytes())
                    path.unlink()


def build(settings: argparse.Namespace, work: Path, options: list[str]) -> dict[str, Any]:
    """Build the databases, round by round; what was measured, and the bytes of the references."""
    own: dict[str, Any] = {"fasta_bytes": 0, "builds": {name: [] for name in settings.backends}}
    partitions = ["--partitions", str(settings.partitions)]
    for number in range(settings.rounds):
        (work / "fa").mkdir()
        files = apart(
            write_copies, settings.references, settings.copies, work / "fa",
            changed=settings.changed, number=number,
        )  # fmt: skip
        own["fasta_bytes"] += sum(path.stat().st_size for path in files)
        for backend, builds in own["builds"].items():
            command = ["ngsgpu", "db", "add" if number else "build", "fa", "-d", f"{backend}.db"]
            command += [*partitions, *options, "--backend", backend]
            if not number:
                command += ["--fraction", str(settings.fraction)]
            taken = measure(command, work)
            paths = (work / f"{backend}.db").rglob("*")
            builds.append({"bytes": sum(path.stat().st_size for path in paths), **asdict(taken)})
            print(f"build, {backend}: {taken.wall_s:.1f} s", file=sys.stderr, flush=True)
        shutil.rmtree(work / "fa")
    return own


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    settings.references = [path.resolve() for path in settings.references]
    options = ["-q", "-t", str(settings.threads)]
    shown = "copies", "changed", "rounds", "fraction", "partitions", "pairs", "wrong", "threads"
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {name: getattr(settings, name) for name in shown},
        "references": len(settings.references),
        **build(settings, work, options),
        "runs": {},
        "differences": [],
    }
    apart(make_reads, settings, work)
    calls: dict[str, bytes] = {}
    for backend in settings.backends:
        for form, ending in FORMS.items():
            command = ["ngsgpu", "classify", "-d", f"{backend}.db", "-i", f"1.{ending}"]
            command += ["-I", f"2.{ending}", "-o", "calls.tsv", "--backend", backend, *options]
            runs = []
            for _ in range(settings.repeats):
                os.sync()
                runs.append(asdict(measure(command, work)))
                print(f"{form}, {backend}: {runs[-1]['wall_s']:.2f} s", file=sys.stderr, flush=True)
            document["runs"][f"{form}, {backend}"] = runs
            own = (work / "calls.tsv").read_bytes()
            if calls.setdefault("first", own) != own:
                document["differences"].append(f"calls of {form}, {backend}")
    return document


def table(document: dict[str, Any]) -> str:
    """Rows are builds, then runs."""
    rows = [["", "wall, s", "CPU, s", "host, GB", "GPU, GB"]]
    builds = {f"build, {name}": own[:1] for name, own in document["builds"].items()}
    builds |= {f"add, {name}": own[1:] for name, own in document["builds"].items() if own[1:]}
    for name, runs in (builds | document["runs"]).items():
        wall = statistics.median(one["wall_s"] for one in runs)
        cpu = statistics.median(one["user_s"] + one["system_s"] for one in runs)
        memory = max(one["peak_rss_bytes"] for one in runs) / 1e9
        device = max(one["peak_device_bytes"] or 0 for one in runs) / 1e9
        rows.append([name, f"{wall:.2f}", f"{cpu:.1f}", f"{memory:.2f}", f"{device:.2f}"])
    return markdown(rows, names=1)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="database_scale",
        description="Measure a database of many strains, and classification with it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--references", type=Path, nargs="+", required=True, help="genomes, FASTA or .gz")
    add("--copies", type=int, default=446, help="mutated ones of each genome, a round")
    add("--changed", type=float, default=CHANGED, help="share of a copy's bases drawn again")
    add("--rounds", type=int, default=1, help="each with as many copies and partitions")
    add("--fraction", type=float, default=1.0, help="of the features that are kept")
    add("--partitions", type=int, default=8, help="of each round")
    add("--pairs", type=lambda word: int(float(word)), default=15_300_000)
    add("--wrong", type=float, default=0.013, help="share of substituted bases in the reads")
    add("--backends", nargs="+", choices=("cpu", "cuda"), default=["cuda"])
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--repeats", type=int, default=2)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; the status is 1 if calls differ."""
    return run_in(parse(arguments), "database_scale", run, table)


if __name__ == "__main__":
    sys.exit(main())
