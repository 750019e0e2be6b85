"""What the files of classified and unclassified reads add to ``ngsgpu classify``.

    python -m benchmarks.sorted_reads --references genomes/*.fna.gz --pairs 500000 -t 2 -o out.json
    python -m benchmarks.sorted_reads --references genomes/*.fna.gz --reads R1.fq.gz R2.fq.gz \
        --backend cuda -t 16 -o out.json

Whole processes are measured in turn, inputs in the page cache. Without ``--reads``, pairs of 2 x
150 bases are drawn from the references, one in five of random bases. Reads in both files together
must be all of them, otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.copies import records_of
from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import LETTERS, fastq, mates
from benchmarks.harness.measuring import ROOT, apart, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.sorted_reads"
SCHEMA_VERSION: Final = 1
LENGTH: Final = 150
FRAGMENT: Final = 350

_UNCLASSIFIED: Final = ("--unclassified-out", "u1.fq", "--unclassified-out2", "u2.fq")
_CLASSIFIED: Final = ("--classified-out", "c1.fq", "--classified-out2", "c2.fq")
OUTPUTS: Final[dict[str, tuple[str, ...]]] = {
    "calls": (),
    "unclassified, plain": _UNCLASSIFIED,
    "unclassified, gz": tuple(word.replace(".fq", ".fq.gz") for word in _UNCLASSIFIED),
    "both, plain": (*_UNCLASSIFIED, *_CLASSIFIED),
    "both, gz": tuple(word.replace(".fq", ".fq.gz") for word in (*_UNCLASSIFIED, *_CLASSIFIED)),
}
"""What is written besides the calls."""


def draw(references: Sequence[Path], pairs: int, folder: Path) -> list[Path]:
    """Write pairs in two .gz files, with the qualities of an instrument of few values."""
    rng = np.random.default_rng(1)
    genomes = np.concatenate([text for path in references for _, text in records_of(path)])
    paths = [folder / f"{mate}.fq.gz" for mate in (1, 2)]
    packers = []
    for path in paths:
        with path.open("wb") as file:
            packers.append(subprocess.Popen(["gzip"], stdin=subprocess.PIPE, stdout=file))
    for begin in range(0, pairs, 50_000):
        count = min(50_000, pairs - begin)
        starts = rng.integers(0, len(genomes) - FRAGMENT, count)
        fragments = genomes[starts[:, None] + np.arange(FRAGMENT)]
        other = np.arange(count) % 5 == 0
        fragments[other] = rng.choice(LETTERS, (int(other.sum()), FRAGMENT))
        for packer, bases in zip(packers, mates(fragments, LENGTH), strict=True):
            assert packer.stdin is not None
            packer.stdin.write(fastq(b"A00:1:HXX:1:%d", begin, bases, rng))
    for packer in packers:
        packer.communicate()
    return paths


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    references = [path.resolve() for path in settings.references]
    reads = [path.resolve() for path in settings.reads]
    if not reads:
        reads = apart(draw, references, settings.pairs, work)
    options = ["--backend", settings.backend, "--threads", str(settings.threads), "--quiet"]
    measure(["ngsgpu", "db", "build", *map(str, references), "-d", "db", *options], work)
    command = ["ngsgpu", "classify", "-d", "db", "-i", str(reads[0]), "-I", str(reads[1])]
    command += ["-o", "calls.tsv", "--stats", "stats.json", *options]
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {name: getattr(settings, name) for name in ("backend", "threads", "pairs")},
        "bytes": sum(path.stat().st_size for path in reads),
        "runs": {name: [] for name in OUTPUTS},
        "differences": [],
    }
    measure([*command, *OUTPUTS["both, gz"]], work)  # compiles the kernels
    for number in range(settings.repeats):
        names = list(OUTPUTS)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            os.sync()
            taken = measure([*command, *OUTPUTS[name]], work)
            seconds = json.loads((work / "stats.json").read_text())["time_s"]
            document["runs"][name].append({**asdict(taken), "time_s": seconds})
            print(f"{name}: {taken.wall_s:.2f} s", file=sys.stderr, flush=True)
    document["differences"] += _missing(work)
    return document


def _missing(work: Path) -> list[str]:
    """Mates of which the plain files do not hold all reads together."""
    reads = (work / "calls.tsv").read_bytes().count(b"\n") - 1
    return [
        f"mates {mate}"
        for mate in (1, 2)
        if sum((work / f"{kind}{mate}.fq").read_bytes().count(b"\n") for kind in "cu") != 4 * reads
    ]


def table(document: dict[str, Any]) -> str:
    """Rows are outputs: wall and CPU time, beside those of the calls alone, and memory.

    And what is left of the wall time without the first pass: start, calls, writing.
    """
    rows = [["written", "wall, s", "without first pass, s", "CPU, s", "host, GB"]]
    first: tuple[float, float] | None = None
    for name, runs in document["runs"].items():
        wall = statistics.median(own["wall_s"] for own in runs)
        cpu = statistics.median(own["user_s"] + own["system_s"] for own in runs)
        first = first or (wall, cpu)
        memory = max(own["peak_rss_bytes"] for own in runs)
        rest = statistics.median(own["wall_s"] - own["time_s"]["first_pass"] for own in runs)
        cells = [f"{wall:.2f} ({wall / first[0]:.2f} x)", f"{rest:.2f}",
                 f"{cpu:.1f} ({cpu / first[1]:.2f} x)"]  # fmt: skip
        rows.append([name, *cells, f"{memory / 1e9:.2f}"])
    return markdown(rows, names=1)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="sorted_reads",
        description="Measure the files of classified and unclassified reads.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--references", type=Path, nargs="+", required=True, help="FASTA files of the database")
    add("--reads", type=Path, nargs=2, default=[], help="files of mates; without it drawn")
    add("--pairs", type=int, default=500_000, help="that are drawn")
    add("--backend", choices=("cpu", "cuda"), default="cpu")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--repeats", type=int, default=3)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; the status is 1 if reads are missing."""
    return run_in(parse(arguments), "sorted_reads", run, table)


if __name__ == "__main__":
    sys.exit(main())
