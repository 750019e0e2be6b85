"""Index and depletion of a host of the size of the human genome: time, memory, what is found.

    python -m benchmarks.whole_host --bases 3.1e9 --pairs 4e6 -t 16 --backends cpu cuda -o out.json

The host is random but for families of repeats as long and as many as Alu and L1 elements; half of
the pairs (2 x 100 bases) are of it, with ``--wrong`` of the bases substituted, half are random.
Outputs have the form of the reads. The same reads are depleted of the first ``--part`` bases alone,
whose index stays in the caches of a CPU. deacon takes part if it is on the PATH, with its index and
with the same one frozen into a filter. Whole processes are measured, in turn, inputs in the page
cache; ``own_s`` is what a program says itself: ngsgpu without the start of Python, deacon without
loading its index.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import hashlib
import json
import os
import shutil
import statistics
import sys
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import LETTERS, fastq, mates, substitute
from benchmarks.harness.measuring import ROOT, apart, measure
from benchmarks.harness.tables import markdown
from benchmarks.peers import deacon

SCHEMA: Final = "ngsgpu.benchmark.whole_host"
SCHEMA_VERSION: Final = 2
CHROMOSOME: Final = 130_000_000
REPEATS: Final = ((300, 350, 0.12), (6_000, 16, 0.1))
"""Families: length, copies a million bases, share of substitutions, as of Alu and L1."""

LINE: Final = 80

LENGTH: Final = 100
FRAGMENT: Final = 350

WHOLE: Final = "whole"
INDEXES: Final = {WHOLE: [], "whole, one in 8": ["--one-in", "8"], "part": []}
"""Of which sequences, and with which options of ``ngsgpu deplete-index``."""

FORMS: Final = {"gz": ".fq.gz", "plain": ".fq"}


@dataclass(frozen=True, slots=True)
class Case:
    """A run that is measured.

    Attributes:
        name: of the index, the program or backend, and the form of the reads.
        command: with the names of ``outputs`` in it.
        outputs: of both mates.
        told: what the program writes about its run.
        like: name of the case that must write the same bytes; "" if none has to.
    """

    name: str
    command: list[str]
    outputs: list[Path]
    told: Path
    like: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether ngsgpu runs."""
        return self.command[0] != deacon.DEACON

    def own_seconds(self) -> float:
        """The run's time by the program's own clock."""
        if self.is_ours:
            return float(json.loads(self.told.read_text())["time_s"]["total"])
        return deacon.own_seconds(self.told)


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


def make(settings: argparse.Namespace, work: Path) -> list[Path]:
    """Write the reads, 1.fq.gz and 2.fq.gz, and plain; the files of the chromosomes."""
    count = -(-settings.bases // CHROMOSOME)
    sizes = [min(CHROMOSOME, settings.bases - i * CHROMOSOME) for i in range(count)]
    names = [work / f"chr{i + 1}.fa" for i in range(count)]
    with ProcessPoolExecutor(settings.threads, get_context("spawn")) as pool:
        chromosomes = list(pool.map(make_chromosome, names, sizes, range(count)))
        shares = [settings.pairs // count] * count
        prefixes = [work / f"reads{i}" for i in range(count)]
        wrong = [settings.wrong] * count
        drawn = list(pool.map(draw, chromosomes, shares, range(count), wrong, prefixes))
        for mate in (0, 1):
            join([files[mate] for files in drawn], work / f"{mate + 1}{FORMS['gz']}")
        if "plain" in settings.forms:
            packed = [work / f"{mate}{FORMS['gz']}" for mate in (1, 2)]
            list(pool.map(inflate, packed, [path.with_suffix("") for path in packed]))
    return chromosomes


def join(files: Sequence[Path], whole: Path) -> Path:
    """Write files one after the other; the file."""
    with whole.open("wb") as target:
        for path in files:
            with path.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 24)
    return whole


def inflate(packed: Path, plain: Path) -> None:
    """Write what a .gz file holds."""
    with gzip.open(packed) as source, plain.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 24)


def index_all(
    settings: argparse.Namespace, work: Path, chromosomes: list[Path], document: dict[str, Any]
) -> list[Case]:
    """Index the hosts by all programs; what is to be run with the indexes."""
    whole = join(chromosomes, work / "whole.fa")
    part = work / "part.fa"
    with whole.open("rb") as file:
        part.write_bytes(file.read(settings.part * 81 // 80))

    def measured(name: str, command: list[str], index: Path) -> None:
        taken = measure(command, work)
        document["indexes"][name] = {"bytes": index.stat().st_size, **asdict(taken)}
        print(f"index of {name}: {taken.wall_s:.1f} s", file=sys.stderr, flush=True)

    cases = []
    for name in settings.indexes:
        index = work / f"{name.replace(', ', '_').replace(' ', '_')}.idx"
        files = [part] if name == "part" else chromosomes
        measured(name, ngsgpu_index(files, index, settings.threads) + INDEXES[name], index)
        cases += ngsgpu_cases(settings, work, name, index)
        if INDEXES[name] or not deacon.is_here():
            continue
        theirs, frozen = index.with_suffix(".minimizers"), index.with_suffix(".frozen")
        files = [part] if name == "part" else [whole]
        command = deacon.index_command(files[0], theirs, settings.threads)
        measured(f"{name}, deacon", command, theirs)
        cases += deacon_cases(settings, work, f"{name}, deacon", theirs)
        if name == WHOLE:
            measured(f"{name}, deacon, frozen", deacon.freeze_command(theirs, frozen), frozen)
            cases += deacon_cases(settings, work, f"{name}, deacon, frozen", frozen)
    return cases


def ngsgpu_index(files: Sequence[Path], index: Path, threads: int) -> list[str]:
    """Write our index."""
    options = ["-o", str(index), "-t", str(threads), "--quiet"]
    return ["ngsgpu", "deplete-index", *map(str, files), *options]


def paths_of(
    settings: argparse.Namespace, work: Path, name: str
) -> Iterator[tuple[str, list[Path], list[Path]]]:
    """By form of the reads: the name of a case, its inputs and its outputs."""
    for form in settings.forms if name.startswith(WHOLE) else ("gz",):
        end = FORMS[form]
        inputs, outputs = ([work / f"{which}{mate}{end}" for mate in (1, 2)] for which in ("", "o"))
        yield name if form == "gz" else f"{name}, {form}", inputs, outputs


def ngsgpu_cases(settings: argparse.Namespace, work: Path, name: str, index: Path) -> list[Case]:
    """Our runs with an index, by all backends."""
    cases: list[Case] = []
    for backend in settings.backends:
        for case, inputs, outputs in paths_of(settings, work, f"{name}, {backend}"):
            told = work / "stats.json"
            command = ["ngsgpu", "deplete", "-d", str(index), "--backend", backend]
            for word, path in zip(("-i", "-I", "-o", "-O"), inputs + outputs, strict=True):
                command += [word, str(path)]
            command += ["--stats", str(told), "-t", str(settings.threads), "--quiet"]
            like = case.replace(f", {backend}", f", {settings.backends[0]}")
            cases.append(Case(case, command, outputs, told, like))
    return cases


def deacon_cases(settings: argparse.Namespace, work: Path, name: str, index: Path) -> list[Case]:
    """Runs of deacon with an index."""
    told = work / "summary.json"
    return [
        Case(
            case,
            deacon.deplete_command(index, inputs, outputs, told, settings.threads),
            outputs,
            told,
        )
        for case, inputs, outputs in paths_of(settings, work, name)
    ]


def look(paths: Sequence[Path]) -> tuple[int, int, list[str]]:
    """The host's reads in the first output, which have even numbers, the others; sums of files."""
    with gzip.open(paths[0]) if paths[0].suffix == ".gz" else paths[0].open("rb") as file:
        odd = [name.split(None, 1)[0][-1] & 1 for name in islice(file, 0, None, 4)]
    sums = []
    for path in paths:
        with path.open("rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    return len(odd) - sum(odd), sum(odd), sums


def run_all(
    settings: argparse.Namespace, work: Path, cases: list[Case], document: dict[str, Any]
) -> None:
    """Measure all cases in turn, each round from another one on, and look at the outputs once."""
    sums: dict[str, list[str]] = {}
    for number in range(settings.repeats):
        first = number % len(cases)
        for case in cases[first:] + cases[:first]:
            os.sync()
            taken = measure(case.command, work)
            print(f"{case.name}: {taken.wall_s:.2f} s", file=sys.stderr, flush=True)
            own = document["runs"].setdefault(case.name, {"runs": []})
            own["runs"].append({**asdict(taken), "own_s": case.own_seconds()})
            if number == 0:
                own["written_bytes"] = sum(path.stat().st_size for path in case.outputs)
                own["host_left"], own["others_kept"], sums[case.name] = apart(look, case.outputs)
            for path in case.outputs:
                path.unlink()
    for case in cases:
        if case.like and sums[case.name] != sums[case.like]:
            document["differences"].append(f"{case.name}, and {case.like}")


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    chromosomes = make(settings, work)
    names = ("bases", "part", "pairs", "wrong", "threads")
    share = settings.pairs // len(chromosomes)
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {name: getattr(settings, name) for name in names},
        "pairs": {
            "host": -(-share // 2) * len(chromosomes),
            "others": share // 2 * len(chromosomes),
        },
        "bytes": {
            form: sum((work / f"{mate}{FORMS[form]}").stat().st_size for mate in (1, 2))
            for form in settings.forms
        },
        "indexes": {},
        "runs": {},
        "differences": [],
    }
    if deacon.is_here():
        document["deacon"] = deacon.version()
    run_all(settings, work, index_all(settings, work, chromosomes, document), document)
    for memory in settings.memory:
        index, name = work / "little.idx", f"{WHOLE}, --memory {memory}"
        command = ngsgpu_index(chromosomes, index, settings.threads)
        taken = measure([*command, "--memory", memory], work)
        document["indexes"][name] = {"bytes": index.stat().st_size, **asdict(taken)}
        print(f"index of {name}: {taken.wall_s:.1f} s", file=sys.stderr, flush=True)
        if not filecmp.cmp(index, work / f"{WHOLE}.idx", shallow=False):
            document["differences"].append(f"index of {name}")
    return document


def table(document: dict[str, Any]) -> str:
    """Rows are indexes, then runs."""
    rows = [["index of", "GB", "wall, s", "CPU, s", "memory, GB"]]
    for name, own in document["indexes"].items():
        cpu = own["user_s"] + own["system_s"]
        cells = [own["bytes"] / 1e9, own["wall_s"], cpu, own["peak_rss_bytes"] / 1e9]
        rows.append([name, *(f"{cell:.2f}" for cell in cells)])
    runs = [["index, program", "wall, s", "its own clock, s", "Gbp/s", "CPU, s", "host, GB",
             "GPU, GB", "host's pairs left per million", "others lost per million"]]  # fmt: skip
    pairs = document["pairs"]
    gigabases = 2 * LENGTH * sum(pairs.values()) / 1e9
    for name, own in document["runs"].items():
        wall, clock = (
            statistics.median(one[key] for one in own["runs"]) for key in ("wall_s", "own_s")
        )
        cpu = statistics.median(one["user_s"] + one["system_s"] for one in own["runs"])
        memory = max(one["peak_rss_bytes"] for one in own["runs"]) / 1e9
        device = max(one["peak_device_bytes"] or 0 for one in own["runs"]) / 1e9
        left = 1e6 * own["host_left"] / pairs["host"] if name.startswith(WHOLE) else None
        lost = 1e6 * (1 - own["others_kept"] / pairs["others"])
        runs.append([name, f"{wall:.2f}", f"{clock:.2f}", f"{gigabases / wall:.3f}", f"{cpu:.1f}",
                     f"{memory:.2f}", f"{device:.2f}", "" if left is None else f"{left:,.0f}",
                     f"{lost:,.0f}"])  # fmt: skip
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
    add("--indexes", nargs="+", choices=list(INDEXES), default=list(INDEXES))
    add("--forms", nargs="+", choices=list(FORMS), default=["gz"], help="of the reads")
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
