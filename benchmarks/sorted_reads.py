"""What the files of classified and unclassified reads add to ``ngsgpu classify``.

    python -m benchmarks.sorted_reads --references genomes/*.fna.gz --pairs 500000 -t 2 -o out.json
    python -m benchmarks.sorted_reads --pairs 600000 --times 8 --backend cuda --beside OTHER \
        -o out.json

Whole processes are measured in turn, inputs in the page cache. Without ``--reads``, pairs of 2 x
150 bases are drawn from the references, one in five of random bases, and without ``--references``
these are random, too. ``--beside FOLDER`` measures other versions, checkouts, in turn with this
one. Reads in both files together must be all of them, and files of all versions the same,
otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.copies import records_of
from benchmarks.harness.document import describe_commit, head, run_in
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

_SETTINGS: Final = ("backend", "threads", "pairs", "times")

_GENOMES: Final = 6
_GENOME_LENGTH: Final = 5_000_000


def write_genomes(folder: Path) -> list[Path]:
    """Random genomes, as FASTA."""
    rng = np.random.default_rng(2)
    paths = [folder / f"genome{number}.fna" for number in range(_GENOMES)]
    for path in paths:
        letters = rng.choice(LETTERS, _GENOME_LENGTH).tobytes()
        path.write_bytes(b">%s\n%s\n" % (path.stem.encode(), letters))
    return paths


def draw(references: Sequence[Path], pairs: int, folder: Path, times: int = 1) -> list[Path]:
    """Write pairs in two .gz files, with the qualities of an instrument of few values.

    What was drawn follows on itself, as members of the files, so that they stand there ``times``
    times.
    """
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
    for packer, path in zip(packers, paths, strict=True):
        packer.communicate()
        path.write_bytes(path.read_bytes() * times)
    return paths


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    references = [path.resolve() for path in settings.references] or apart(write_genomes, work)
    reads = [path.resolve() for path in settings.reads]
    if not reads:
        reads = apart(draw, references, settings.pairs, work, settings.times)
    options = ["--backend", settings.backend, "--threads", str(settings.threads), "--quiet"]
    measure(["ngsgpu", "db", "build", *map(str, references), "-d", "db", *options], work)
    command = ["ngsgpu", "classify", "-d", str(work / "db"), "-i", str(reads[0])]
    command += ["-I", str(reads[1]), "-o", "calls.tsv", "--stats", "stats.json", *options]
    versions = {"": ROOT}
    for folder in settings.beside:
        versions[folder.name] = folder.resolve()
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {name: getattr(settings, name) for name in _SETTINGS},
        "bytes": sum(path.stat().st_size for path in reads),
        "runs": {_name(version, wanted): [] for wanted in settings.outputs for version in versions},
        "differences": [],
    }
    document["others"] = [describe_commit(folder.resolve()) for folder in settings.beside]
    folders = {version: work / f"of-{version}" for version in versions}

    def classify(version: str, wanted: str) -> dict[str, Any]:
        os.sync()
        paths = [str(versions[version]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(paths)}
        taken = measure([*command, *OUTPUTS[wanted]], folders[version], environment=environment)
        seconds = json.loads((folders[version] / "stats.json").read_text())["time_s"]
        return {**asdict(taken), "time_s": seconds}

    for version, folder in folders.items():
        folder.mkdir()
        for wanted in settings.outputs[-1:] * 2:
            classify(version, wanted)  # compiles the kernels
    turns = [(version, wanted) for wanted in settings.outputs for version in versions]
    for number in range(settings.repeats):
        for version, wanted in turns[number % len(turns) :] + turns[: number % len(turns)]:
            own = classify(version, wanted)
            document["runs"][_name(version, wanted)].append(own)
            print(f"{_name(version, wanted)}: {own['wall_s']:.2f} s", file=sys.stderr, flush=True)
    document["differences"] += _missing(folders[""])
    for folder in settings.beside:
        document["differences"] += _different(folders[""], folders[folder.name])
    return document


def _name(version: str, wanted: str) -> str:
    return f"{version}: {wanted}" if version else wanted


def _missing(work: Path) -> list[str]:
    """Mates of which the plain files, if all were written, do not hold all reads together."""
    reads = (work / "calls.tsv").read_bytes().count(b"\n") - 1
    files = {mate: [work / f"{kind}{mate}.fq" for kind in "cu"] for mate in (1, 2)}
    return [
        f"mates {mate}"
        for mate, own in files.items()
        if all(path.exists() for path in own)
        and sum(path.read_bytes().count(b"\n") for path in own) != 4 * reads
    ]


def _different(one: Path, other: Path) -> list[str]:
    """Files of two versions that are not the same."""
    names = sorted(path.name for path in one.iterdir() if path.name[0] in "cu")
    return [name for name in names if not filecmp.cmp(one / name, other / name, shallow=False)]


def table(document: dict[str, Any]) -> str:
    """Rows are outputs: wall and CPU time, beside those of the calls alone, and memory.

    Of the wall time also what is before the reads (start, database), the first pass, and the rest
    (calls, writing).
    """
    rows = [["written", "wall, s", "start, s", "first pass, s", "rest, s", "CPU, s", "host, GB"]]
    first: dict[str, tuple[float, float]] = {}
    for name, runs in document["runs"].items():
        version = name.rpartition(": ")[0]

        def median(of: Callable[[dict[str, Any]], float], runs: Any = runs) -> float:
            return statistics.median(map(of, runs))

        wall = median(lambda own: own["wall_s"])
        cpu = median(lambda own: own["user_s"] + own["system_s"])
        alone = first.setdefault(version, (wall, cpu))
        memory = max(own["peak_rss_bytes"] for own in runs)
        start = median(lambda own: own["wall_s"] - own["time_s"]["total"])
        looking = median(lambda own: own["time_s"]["first_pass"])
        rest = median(lambda own: own["time_s"]["total"] - own["time_s"]["first_pass"])
        cells = [f"{wall:.2f} ({wall / alone[0]:.2f} x)", f"{start:.2f}", f"{looking:.2f}",
                 f"{rest:.2f}", f"{cpu:.1f} ({cpu / alone[1]:.2f} x)"]  # fmt: skip
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
    add("--references", type=Path, nargs="+", default=[], help="FASTA files; without it random")
    add("--reads", type=Path, nargs=2, default=[], help="files of mates; without it drawn")
    add("--pairs", type=int, default=500_000, help="that are drawn")
    add("--times", type=int, default=1, help="that these follow on each other in the files")
    add("--beside", type=Path, nargs="+", default=[], metavar="FOLDER",
        help="checkouts of other versions")  # fmt: skip
    add("--outputs", nargs="+", choices=list(OUTPUTS), default=list(OUTPUTS), help="measured")
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
