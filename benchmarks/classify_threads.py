"""How ``ngsgpu classify`` scales with threads on the CPU, and what limits it.

    python -m benchmarks.classify_threads --references genomes/*.fna.gz --taxonomy taxonomy/ \
        --map seqid2taxid.tsv --threads 1 2 4 8 16 -o out.json

In one process, the same pairs are classified with each number of threads, after a run that loads
kernels, database and files; outputs must be the same. Without ``--reads``, pairs of 2 x 150 bases
are drawn from the references. Of each run: seconds in all and in the first pass; CPU time; how busy
the main thread is, which hands out the work (near 1: it is the limit). Two loops do with as many
threads what needs nothing but a core, and what needs nothing but memory (look-ups at random places
of as many bytes as the index has): if their CPU time grows as that of classification does, cores
share what they need.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.document import head, run_in
from benchmarks.harness.measuring import ROOT
from benchmarks.harness.tables import markdown
from benchmarks.sorted_reads import draw
from ngsgpu.jit import njit
from ngsgpu.pool import map_all

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database

SCHEMA: Final = "ngsgpu.benchmark.classify_threads"
SCHEMA_VERSION: Final = 1
STEPS: Final = 3 << 28
"""Of the loop without memory, all threads together."""
LOOK_UPS: Final = 3 << 25


@njit(nogil=True, cache=True)
def _compute(steps: int, seed: int) -> int:
    """Random numbers, one after the other."""
    value = np.uint64(seed)
    for _ in range(steps):
        value ^= value << np.uint64(13)
        value ^= value >> np.uint64(7)
        value ^= value << np.uint64(17)
    return int(value & np.uint64(1))


@njit(nogil=True, cache=True)
def _look_up(steps: int, seed: int, array: NDArray[np.uint64]) -> int:
    """Values at random places, which do not wait for each other."""
    value, found, size = np.uint64(seed), np.uint64(0), np.uint64(array.size)
    for _ in range(steps):
        value = value * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        found ^= array[(value >> np.uint64(20)) % size]
    return int(found & np.uint64(1))


def measured(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds on the clock, of CPUs, and of the CPU in this thread."""
    clocks = (time.monotonic, time.process_time, time.thread_time)
    before = [clock() for clock in clocks]
    work()
    taken = [clock() - own for clock, own in zip(clocks, before, strict=True)]
    return dict(zip(("wall_s", "cpu_s", "main_s"), taken, strict=True))


def loops(threads: int, array: NDArray[np.uint64]) -> dict[str, dict[str, float]]:
    """The loops, divided among threads."""
    seeds = [2 * thread + 1 for thread in range(threads)]

    def on_all(work: Callable[[int], int]) -> dict[str, float]:
        return measured(lambda: map_all(threads, work, seeds))

    return {
        "cores": on_all(lambda seed: _compute(STEPS // threads, seed)),
        "memory": on_all(lambda seed: _look_up(LOOK_UPS // threads, seed, array)),
    }


def classified(
    database: Database, reads: Sequence[Path], threads: int, work: Path
) -> tuple[dict[str, float], bytes]:
    """A run, and its calls."""
    from ngsgpu.classify.params import CALLS_BY_EVIDENCE, EvidenceParameters, OutputRules
    from ngsgpu.classify.run.pipeline import Classifier
    from ngsgpu.classify.run.samples import SampleOutputs, one_sample
    from ngsgpu.run.options import RunOptions

    sample = one_sample([str(reads[0])], [str(reads[1])], interleaved=False, name="own")
    rules = OutputRules(evidence=EvidenceParameters())
    classifier = Classifier(
        database, CALLS_BY_EVIDENCE, rules=rules, options=RunOptions(threads=threads)
    )
    outputs = SampleOutputs(reads=str(work / "calls.tsv"), report=str(work / "report.txt"))
    statistics: list[Any] = []
    taken = measured(lambda: statistics.extend(classifier.classify([sample], outputs)))
    taken["first_pass_s"] = statistics[0].time_s["first_pass"]
    return taken, (work / "calls.tsv").read_bytes()


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    from ngsgpu.classify.database.build import build_database
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.run.options import RunOptions

    reads = settings.reads or draw(settings.references, settings.pairs, work)
    build_database(
        settings.references, work / "db", taxonomy=settings.taxonomy,
        maps=[] if settings.map is None else [settings.map],
        options=RunOptions(threads=max(settings.threads)),
    )  # fmt: skip
    database = open_database(work / "db")
    size = sum(path.stat().st_size for path in (work / "db").rglob("*.npy"))
    array = np.arange(size // 8, dtype=np.uint64)
    _compute(1, 1), _look_up(1, 1, array)
    _, expected = classified(database, reads, max(settings.threads), work)
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "pairs": expected.count(b"\n") - 1,
        "database_bytes": size,
        "runs": [],
        "differences": [],
    }
    for number in range(settings.repeats):
        for threads in settings.threads:
            taken, calls = classified(database, reads, threads, work)
            document["runs"].append({"threads": threads, "classify": taken})
            document["runs"][-1] |= loops(threads, array)
            print(document["runs"][-1], file=sys.stderr, flush=True)
            if calls != expected:
                document["differences"].append(f"{threads} threads, run {number}")
    return document


def table(document: dict[str, Any]) -> str:
    """A row a number of threads: the fastest run of each."""
    rows = [["threads", "wall, s", "x", "first pass, s", "CPU, s", "cores busy", "main thread busy",
             "CPU time of the loops, x: cores", "memory"]]  # fmt: skip
    best: dict[int, dict[str, dict[str, float]]] = {}
    for own in document["runs"]:
        known = best.setdefault(own["threads"], own)
        if own["classify"]["wall_s"] < known["classify"]["wall_s"]:
            best[own["threads"]] = own
    least = best[min(best)]
    for threads, own in sorted(best.items()):
        taken = own["classify"]
        rows.append([
            str(threads), f"{taken['wall_s']:.2f}",
            f"{least['classify']['wall_s'] / taken['wall_s']:.1f}",
            f"{taken['first_pass_s']:.2f}", f"{taken['cpu_s']:.1f}",
            f"{taken['cpu_s'] / taken['wall_s']:.1f}", f"{taken['main_s'] / taken['wall_s']:.2f}",
            *(f"{own[loop]['cpu_s'] / least[loop]['cpu_s']:.2f}" for loop in ("cores", "memory")),
        ])  # fmt: skip
    return markdown(rows, names=1)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="classify_threads",
        description="Measure classification on the CPU with several numbers of threads.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--references", type=Path, nargs="+", required=True, help="FASTA files of the database")
    add("--taxonomy", type=Path, help="its taxonomy")
    add("--map", type=Path, help="taxa of its sequences")
    add("--reads", type=Path, nargs=2, default=[], help="files of mates; without it drawn")
    add("--pairs", type=int, default=1_000_000, help="that are drawn")
    add("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    add("--repeats", type=int, default=1)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; the status is 1 if calls differ."""
    return run_in(parse(arguments), "classify_threads", run, table)


if __name__ == "__main__":
    sys.exit(main())
