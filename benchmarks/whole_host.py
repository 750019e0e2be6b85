"""Index and depletion of a host of the size of the human genome: time, memory, what is found.

    python -m benchmarks.whole_host --bases 3.1e9 --pairs 4e6 -t 16 --backends cpu cuda -o out.json

The host is random but for families of repeats as long and as many as Alu and L1 elements; half of
the pairs (2 x 100 bases) are of it, with ``--wrong`` of the bases substituted, half are random.
Reads are .gz, outputs too. The same reads are depleted of the first ``--part`` bases alone, whose
index stays in the caches of a CPU. Whole processes are measured, inputs in the page cache.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import statistics
import sys
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import LETTERS, fastq, mates, substitute
from benchmarks.harness.measuring import ROOT, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.whole_host"
SCHEMA_VERSION: Final = 1
CHROMOSOME: Final = 130_000_000
REPEATS: Final = ((300, 350, 0.12), (6_000, 16, 0.1))
"""Families: length, copies a million bases, share of substitutions, as of Alu and L1."""

LINE: Final = 80

LENGTH: Final = 100
FRAGMENT: Final = 350


def make_chromosome(path: Path, bases: int, seed: int) -> Path:
    """Write a chromosome as FASTA; the families of repeats are those of all chromosomes."""
    rng = np.random.default_rng(seed)
    text = LETTERS[(rng.random(bases, dtype=np.float32) * 4).astype(np.uint8)]
    ancestors = np.random.default_rng(0)
    for length, copies, divergence in REPEATS:
        ancestor = LETTERS[ancestors.integers(0, 4, length)]
        starts = rng.integers(0, bases - length, copies * bases // 1_000_000)
        for begin in range(0, len(starts), 10_000):
            own = np.tile(ancestor, (len(starts[begin : begin + 10_000]), 1))
            changed = rng.random(own.shape, dtype=np.float32) < divergence
            own[changed] = LETTERS[rng.integers(0, 4, int(changed.sum()))]
            text[starts[begin : begin + 10_000, None] + np.arange(length)] = own
    lines = np.full((-(-bases // LINE), LINE + 1), ord("\n"), dtype=np.uint8)
    whole = bases // LINE
    lines[:whole, :LINE] = text[: whole * LINE].reshape(-1, LINE)
    lines[whole:, : bases - whole * LINE] = text[whole * LINE :]
    with path.open("wb") as file:
        file.write(f">{path.stem}\n".encode())
        file.write(lines.data)
    return path


def draw(chromosome: Path, pairs: int, seed: int, wrong: float, prefix: Path) -> list[Path]:
    """Write two .gz files of pairs, of which every other is of the chromosome; the files."""
    rng = np.random.default_rng((seed, 1))  # not the stream of the chromosome
    text = np.fromfile(chromosome, dtype=np.uint8)[len(f">{chromosome.stem}\n") :]
    text = text[text != ord("\n")]
    starts = rng.integers(0, len(text) - FRAGMENT, pairs)
    other = np.arange(pairs) % 2 == 1
    paths = []
    drawn = mates(text[starts[:, None] + np.arange(FRAGMENT)], LENGTH)
    for mate, bases in enumerate(drawn, 1):
        bases[other] = LETTERS[rng.integers(0, 4, (int(other.sum()), LENGTH))]
        substitute(bases, wrong, rng)
        path = prefix.with_suffix(f".{mate}.gz")
        packer = zlib.compressobj(4, wbits=31)
        text_of_mate = fastq(b"A00:1:HXX:%03d:%%08d" % seed, 0, bases, rng)
        path.write_bytes(packer.compress(text_of_mate) + packer.flush())
        paths.append(path)
    return paths


def make(settings: argparse.Namespace, work: Path) -> tuple[list[Path], list[Path]]:
    """Chromosomes, and the files of first and of second mates."""
    count = -(-settings.bases // CHROMOSOME)
    sizes = [min(CHROMOSOME, settings.bases - i * CHROMOSOME) for i in range(count)]
    names = [work / f"chr{i + 1}.fa" for i in range(count)]
    with ProcessPoolExecutor(settings.threads, get_context("spawn")) as pool:
        chromosomes = list(pool.map(make_chromosome, names, sizes, range(count)))
        shares = [settings.pairs // count] * count
        prefixes = [work / f"reads{i}" for i in range(count)]
        wrong = [settings.wrong] * count
        drawn = list(pool.map(draw, chromosomes, shares, range(count), wrong, prefixes))
    reads = [work / "1.fq.gz", work / "2.fq.gz"]
    for mate, path in enumerate(reads):
        with path.open("wb") as file:
            for files in drawn:
                file.write(files[mate].read_bytes())
    return chromosomes, reads


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    chromosomes, reads = make(settings, work)
    threads = ["-t", str(settings.threads), "--quiet"]
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {
            name: getattr(settings, name) for name in ("bases", "part", "pairs", "wrong", "threads")
        },
        "bytes": sum(path.stat().st_size for path in reads),
        "indexes": {},
        "runs": {},
        "differences": [],
    }
    part = work / "part.fa"
    with chromosomes[0].open("rb") as file:
        part.write_bytes(file.read(settings.part * 81 // 80))
    for name, files, options in (
        ("whole", chromosomes, []),
        ("whole, one in 8", chromosomes, ["--one-in", "8"]),
        ("part", [part], []),
    ):
        index = work / f"{name.replace(', ', '_').replace(' ', '_')}.idx"
        taken = measure(
            ["ngsgpu", "deplete-index", *map(str, files), "-o", str(index), *options, *threads],
            work,
        )
        document["indexes"][name] = {"bytes": index.stat().st_size, **asdict(taken)}
        print(f"index of {name}: {taken.wall_s:.1f} s", file=sys.stderr, flush=True)
        outputs: dict[str, list[bytes]] = {}
        for backend in settings.backends:
            command = ["ngsgpu", "deplete", "-d", str(index), "-i", "1.fq.gz", "-I", "2.fq.gz"]
            command += ["-o", "o1.fq.gz", "-O", "o2.fq.gz", "--stats", "stats.json", *threads]
            runs = []
            for _ in range(settings.repeats):
                os.sync()
                runs.append(asdict(measure([*command, "--backend", backend], work)))
            stats = json.loads((work / "stats.json").read_text())
            document["runs"][f"{name}, {backend}"] = {"runs": runs, "reads": stats["reads"]}
            outputs[backend] = [(work / f"o{mate}.fq.gz").read_bytes() for mate in (1, 2)]
            print(f"{name}, {backend}: {runs[-1]['wall_s']:.2f} s", file=sys.stderr, flush=True)
        if any(own != outputs[settings.backends[0]] for own in outputs.values()):
            document["differences"].append(f"backends, index of {name}")
    for memory in settings.memory:
        index, name = work / "little.idx", f"whole, --memory {memory}"
        command = ["ngsgpu", "deplete-index", *map(str, chromosomes), "-o", str(index), *threads]
        taken = measure([*command, "--memory", memory], work)
        document["indexes"][name] = {"bytes": index.stat().st_size, **asdict(taken)}
        print(f"index of {name}: {taken.wall_s:.1f} s", file=sys.stderr, flush=True)
        if not filecmp.cmp(index, work / "whole.idx", shallow=False):
            document["differences"].append(f"index of {name}")
    return document


def table(document: dict[str, Any]) -> str:
    """Rows are indexes, then runs."""
    rows = [["index of", "GB", "wall, s", "CPU, s", "memory, GB"]]
    for name, own in document["indexes"].items():
        cpu = own["user_s"] + own["system_s"]
        cells = [own["bytes"] / 1e9, own["wall_s"], cpu, own["peak_rss_bytes"] / 1e9]
        rows.append([name, *(f"{cell:.2f}" for cell in cells)])
    runs = [["index, backend", "wall, s", "CPU, s", "host, GB", "GPU, GB", "of the host found"]]
    for name, own in document["runs"].items():
        wall = statistics.median(one["wall_s"] for one in own["runs"])
        cpu = statistics.median(one["user_s"] + one["system_s"] for one in own["runs"])
        memory = max(one["peak_rss_bytes"] for one in own["runs"]) / 1e9
        device = max(one["peak_device_bytes"] or 0 for one in own["runs"]) / 1e9
        found = own["reads"]["host"] / (own["reads"]["total"] / 2)
        cells = [f"{wall:.2f}", f"{cpu:.1f}", f"{memory:.2f}", f"{device:.2f}", f"{found:.5f}"]
        runs.append([name, *cells])
    return markdown(rows, names=1) + "\n" + markdown(runs, names=1)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="whole_host",
        description="Measure the index of a large host, and depletion with it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--bases", type=lambda word: int(float(word)), default=3_100_000_000, help="of the host")
    add("--part", type=lambda word: int(float(word)), default=5_000_000, help="of a small host")
    add("--pairs", type=lambda word: int(float(word)), default=4_000_000)
    add("--wrong", type=float, default=0.013, help="share of wrong bases in the reads")
    add("--backends", nargs="+", choices=("cpu", "cuda"), default=["cpu"])
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--memory", nargs="*", default=[], help="budgets with which the whole is indexed again")
    add("--repeats", type=int, default=3)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the tables; the status is 1 if backends differ."""
    return run_in(parse(arguments), "whole_host", run, table)


if __name__ == "__main__":
    sys.exit(main())
