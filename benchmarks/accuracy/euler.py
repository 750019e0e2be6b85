"""Tables 3.5 to 3.8 of GPU-Euler (Mahmood 2012) made anew: ``--method euler`` beside Velvet.

    python -m benchmarks.accuracy.euler --genome NAME=genome.fa.gz [--genome ...] -o out.json
    python -m benchmarks.accuracy.euler --steps --genome NAME=genome.fa.gz -o steps.json

Error-free reads of both strands, 20-fold, at random places, 36, 50 and 256 bases long. Each set is
assembled with tuples of several lengths; the one with the best N50 is compared with its genome by
NUCMER, as in the source. ``velveth``, ``velvetg``, ``nucmer`` and ``show-coords`` have to be on the
PATH; without Velvet, ngsgpu is measured alone.

Metrics count contigs of 100 bases and more. ``n50`` is the longest length such that contigs of at
least this length have half of the bases that there should be: the genome's, or for the Euler tour,
which has both strands, twice as many. ``n50_source`` takes half of the genome's in any case, as the
source says. Weighted accuracy is the share of the contigs' bases that are identical in the longest
alignment of each contig.

``--steps`` measures the CPU seconds of each step on one thread, which other work on the machine
changes little, for every second tuple of table 3.5.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.accuracy.depletion import Bases, complement, sequences
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import measure
from ngsgpu.assemble.euler import (
    assign_successors,
    circuit_graph,
    euler_graph,
    find_components,
    find_contigs,
    spanning_tree,
    swipe,
    write_contigs,
)
from ngsgpu.kmers import CountParameters, count_files, open_database
from ngsgpu.run.options import RunOptions

T = TypeVar("T")

COVERAGE, SHORTEST, SEED = 20, 100, 1
READS = (36, 50, 256)
TUPLES = (16, 18, 22, 24, 26, 28, 30, 32)
"""Tuple lengths of table 3.5, for the first genome."""
FEWER = {36: (18, 20, 22, 24), 50: (22, 24, 26, 28), 256: (28, 30, 32)}
"""For the others, by the reads' lengths: those near the best ones in tables 3.6 to 3.8."""
VELVET = {36: (19, 21, 23), 50: (25, 29), 256: (31,)}
EULER = ("ngsgpu", "assemble", "--method", "euler")


def simulate(genome: list[Bases], length: int, path: Path) -> int:
    """Write error-free reads of both strands, FASTA; their number."""
    rng = np.random.default_rng(SEED)
    made = 0
    with path.open("wb") as file:
        for own in genome:
            number = round(len(own) * COVERAGE / length)
            starts = rng.integers(0, len(own) - length + 1, number)
            reads = own[starts[:, None] + np.arange(length)]
            turned = rng.random(number) < 0.5
            reads[turned] = complement(reads[turned])
            for read in reads:
                file.write(b">r%d\n%s\n" % (made, read.tobytes()))
                made += 1
    return made


def metrics(contigs: Path, genome: int, strands: int) -> dict[str, Any]:
    """Lengths of contigs; see the module."""
    lengths = np.array([len(own) for own in sequences(contigs) if len(own) >= SHORTEST])
    lengths = np.sort(lengths.astype(np.int64))[::-1]

    def n50(half: float) -> int:
        reached = np.flatnonzero(np.cumsum(lengths) >= half)
        return int(lengths[reached[0]]) if len(reached) else 0

    return {
        "n50": n50(strands * genome / 2),
        "n50_source": n50(genome / 2),
        "contigs": len(lengths),
        "mean": round(float(lengths.mean()), 3) if len(lengths) else 0.0,
        "longest": int(lengths[0]) if len(lengths) else 0,
        "bases": int(lengths.sum()),
    }


def weighted_accuracy(genome: Path, contigs: Path, work: Path) -> float:
    """Per cent of the contigs' bases that are identical in each one's longest alignment."""
    total = sum(len(own) for own in sequences(contigs) if len(own) >= SHORTEST)
    measure(["nucmer", "-p", "aligned", str(genome), str(contigs)], work)
    measure(["show-coords", "-THr", "aligned.delta"], work, output=work / "coords.tsv")
    best: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for line in (work / "coords.tsv").read_text().splitlines():
        _, _, _, _, _, length, identity, _, name = line.split("\t")
        found = (int(length), int(length) * float(identity) / 100)
        best[name] = max(best[name], found)
    return round(100 * sum(identical for _, identical in best.values()) / max(1, total), 2)


def euler(reads: Path, length: int, threads: int, work: Path) -> tuple[Path, dict[str, Any]]:
    """Assemble along an Euler tour; the contigs, and what was measured."""
    contigs, stats = work / "euler.fa", work / "euler.json"
    options = ["-k", str(length), "--min-contig", str(SHORTEST), "--threads", str(threads), "-q"]
    files = ["-i", str(reads), "-o", str(contigs), "--stats", str(stats)]
    measured = asdict(measure([*EULER, *files, *options], work))
    document = json.loads(stats.read_text())
    return contigs, measured | {"time_s": document["time_s"], "graph": document["graph"]}


def velvet(reads: Path, length: int, threads: int, work: Path) -> tuple[Path, dict[str, Any]]:
    """Assemble by Velvet with its defaults."""
    folder = work / "velvet"
    shutil.rmtree(folder, ignore_errors=True)
    environment = {"OMP_NUM_THREADS": str(threads)}
    parts = [
        asdict(measure(command, work, environment=environment))
        for command in (
            ["velveth", str(folder), str(length), "-fasta", "-short", str(reads)],
            ["velvetg", str(folder), "-min_contig_lgth", str(SHORTEST)],
        )
    ]
    first, second = parts
    summed = {key: first[key] + second[key] for key in ("wall_s", "user_s", "system_s")}
    most = max(part["peak_rss_bytes"] for part in parts)
    return folder / "contigs.fa", summed | {"peak_rss_bytes": most}


def assemblies(
    program: str,
    tuples: Sequence[int],
    reads: Path,
    genome: tuple[Path, int],
    threads: int,
    work: Path,
) -> list[dict[str, Any]]:
    """Measurements of a program for tuples of each length, the best one with its accuracy."""
    run, strands = {"ngsgpu": (euler, 2), "velvet": (velvet, 1)}[program]
    kept = work / f"{program}.best.fa"
    found: list[dict[str, Any]] = []
    for length in tuples:
        contigs, measured = run(reads, length, threads, work)
        own = {"program": program, "tuple": length, **measured}
        own |= metrics(contigs, genome[1], strands)
        if all(own["n50"] > other["n50"] for other in found):
            shutil.copy(contigs, kept)
        found.append(own)
        print(program, length, own["n50"], f"{own['wall_s']:.1f} s", flush=True)
    best = max(found, key=lambda own: own["n50"])
    best["weighted_accuracy"] = weighted_accuracy(genome[0], kept, work)
    return found


def step_times(reads: Path, length: int, work: Path) -> dict[str, Any]:
    """CPU seconds of each step of the Euler tour, on one thread, and the size of the graph."""
    options, seconds = RunOptions(threads=1, progress=False), {}

    def timed(name: str, function: Callable[..., T], *arguments: Any) -> T:
        begin = time.process_time()
        result = function(*arguments)
        seconds[name] = round(time.process_time() - begin, 4)
        return result

    place = work / f"{length}.kmers"
    counted = CountParameters(length)
    timed("counting", lambda: count_files([reads], place, counted, options=options))
    database = open_database(place)
    graph = timed("graph", euler_graph, database.kmers, database.counts, length)
    successors = timed("successors", assign_successors, graph)
    labels = timed("components", find_components, successors)
    circuits = timed("circuits", circuit_graph, graph, labels)
    tree = timed("tree", spanning_tree, circuits, len(graph.edges))
    timed("swipe", swipe, graph, tree, successors)
    contigs = timed("contigs", find_contigs, graph, successors, SHORTEST)
    with (work / "contigs.fa").open("wb") as file:
        timed("writing", write_contigs, graph, successors, contigs, file.write)
    return {"tuple": length, "edges": len(graph.edges), "cpu_s": seconds}


def measure_steps(name: str, genome: list[Bases]) -> list[dict[str, Any]]:
    """Steps by reads and tuples; each read length begins with a run that is not kept."""
    sets = []
    for length in READS:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            reads = work / "reads.fa"
            number = simulate(genome, length, reads)
            step_times(reads, 20, work)
            runs = [step_times(reads, own, work) for own in TUPLES[1::2]]
        print(name, length, flush=True)
        sets.append({"genome": name, "read": length, "reads": number, "runs": runs})
    return sets


def main() -> None:
    """Simulate, assemble, write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--genome", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--steps", action="store_true", help="CPU time of each step only")
    given = parser.parse_args()
    if given.steps:
        name, _, file = given.genome[0].partition("=")
        steps = measure_steps(name, sequences(Path(file)))
        write_document(head("ngsgpu.benchmark.euler_steps") | {"sets": steps}, given.out)
        return
    sets = []
    for place, entry in enumerate(given.genome):
        name, _, file = entry.partition("=")
        genome = sequences(Path(file))
        size = sum(map(len, genome))
        for length in READS:
            programs: dict[str, Sequence[int]] = {"ngsgpu": FEWER[length] if place else TUPLES}
            if shutil.which("velveth"):
                programs["velvet"] = VELVET[length]
            with tempfile.TemporaryDirectory() as folder:
                work = Path(folder)
                plain, reads = work / "genome.fa", work / "reads.fa"
                texts = (b">%d\n%s\n" % (i, own.tobytes()) for i, own in enumerate(genome))
                plain.write_bytes(b"".join(texts))
                number = simulate(genome, length, reads)
                print(name, length, number, flush=True)
                runs = [
                    own
                    for program, tuples in programs.items()
                    for own in assemblies(
                        program,
                        [own for own in tuples if own < length],
                        reads,
                        (plain, size),
                        given.threads,
                        work,
                    )
                ]
            sets.append(
                {"genome": name, "bases": size, "read": length, "reads": number, "runs": runs}
            )
            document = head("ngsgpu.benchmark.euler") | {"threads": given.threads, "sets": sets}
            write_document(document, given.out)


if __name__ == "__main__":
    main()
