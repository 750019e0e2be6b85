#!/usr/bin/env python3
"""Running all commands over and over under load: the same input has to give the same bytes.

Threads, memory limits and sizes of chunks change from run to run, two other threads fill memory
with rubbish and give it back, so that what is used before it was written shows. Every output whose
hash differs from that of the first run is kept::

    scripts/attack_soak.py --runs 2000 --seed 1 --folder soak

With the hashes of another process (``--expected FILE``, written where it is not there) runs can be
compared whose memory is filled with rubbish by the C library whenever it is allocated::

    MALLOC_PERTURB_=90 MALLOC_MMAP_MAX_=0 scripts/attack_soak.py --runs 0 --expected FILE
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import random
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)
_RUBBISH = (0xA5, 0x5A, 0xFF, 0x01)

Pair = tuple[bytes, bytes]


@dataclass(slots=True)
class Soak:
    """What came out.

    Attributes:
        runs: how many runs each case had.
        failed: lines about runs that ended with another status than 0.
        different: lines about outputs whose bytes were not those of the first run.
        seconds: what all took.
    """

    runs: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A command whose outputs do not depend on how it is run.

    Attributes:
        name: for the report.
        command: its words; ``OUT`` is replaced by the folder of the outputs.
        threads: whether it has ``-t``.
        memory: whether it has ``--memory``.
        weight: how often it is run, compared with the others.
    """

    name: str
    command: tuple[str, ...]
    threads: bool = True
    memory: bool = False
    weight: int = 1


def soak(
    seed: int,
    runs: int,
    folder: Path,
    *,
    seconds: float | None = None,
    expected: dict[str, dict[str, str]] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Soak:
    """Run commands at random and compare their outputs with those of the first run.

    Args:
        seed: chooses inputs and the order of runs.
        runs: how many runs there are after the first of each case.
        folder: for inputs and outputs; outputs that differ stay there, in ``different``.
        seconds: begin no more runs after this time.
        expected: hashes of the outputs of each case; those of the first run are added.
        say: called with a line now and then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    begin = time.monotonic()
    done = Soak()
    with rubbish(seed):
        cases = make_cases(folder / "in", seed)
        weights = [case.weight for case in cases]
        expected = {} if expected is None else expected
        for number in range(-len(cases), runs):
            if seconds is not None and time.monotonic() - begin > seconds:
                break
            case = cases[number] if number < 0 else chance.choices(cases, weights)[0]
            options = how_to_run(case, chance)
            out = folder / "out"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            problem = run(case, options, out)
            done.runs[case.name] += 1
            found = hashes(out)
            if problem is not None:
                done.failed.append(f"{case.name} {' '.join(options)}: {problem}")
            elif expected.setdefault(case.name, found) != found:
                kept = folder / "different" / f"{number}-{case.name}"
                shutil.copytree(out, kept, dirs_exist_ok=True)
                done.different.append(f"{case.name} {' '.join(options)}: kept in {kept}")
            if number % 100 == 99:
                say(
                    f"{number + 1} runs, {len(done.different)} different, {len(done.failed)} failed"
                )
    done.seconds = time.monotonic() - begin
    return done


def how_to_run(case: Case, chance: random.Random) -> list[str]:
    """Options that must not change a byte."""
    options = []
    if case.threads:
        options += ["-t", str(chance.choice((1, 1, 2, 3, 5)))]
    if case.memory and chance.random() < 0.5:
        options += ["--memory", chance.choice(("3G", "4G", "20G", "1T"))]
    return options


def run(case: Case, options: Sequence[str], out: Path) -> str | None:
    """Run a command in this process; say what went wrong, if anything did."""
    from ngsgpu.cli import main
    from ngsgpu.io.reader import CHUNK_BYTES

    words = [word.replace("OUT", str(out)) for word in case.command]
    said = io.StringIO()
    pieces = random.Random(repr(options)).choice((1 << 14, 1 << 17, CHUNK_BYTES))
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said), chunks(pieces):
        status = main([*words, *options])
    return None if status == 0 else f"status {status}: {said.getvalue()[-300:]!r}"


@contextlib.contextmanager
def chunks(size: int) -> Iterator[None]:
    """Let correction and extension read chunks of another size."""
    from ngsgpu.correct.run import RunOptions

    defaults = RunOptions.__init__.__kwdefaults__ or {}
    values = list(RunOptions.__init__.__defaults__ or ())
    names = RunOptions.__init__.__code__.co_varnames[1 : 1 + len(values)]
    assert not defaults and "chunk_bytes" in names
    before = RunOptions.__init__.__defaults__
    values[names.index("chunk_bytes")] = size
    RunOptions.__init__.__defaults__ = tuple(values)
    try:
        yield
    finally:
        RunOptions.__init__.__defaults__ = before


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextlib.contextmanager
def rubbish(seed: int, threads: int = 2) -> Iterator[None]:
    """Fill memory with rubbish and give it back, all the time, in threads."""
    stopped = threading.Event()

    def litter(number: int) -> None:
        chance = random.Random(seed * 1000 + number)
        held: list[NDArray[np.uint8]] = []
        while not stopped.wait(0.002):
            size = int(2 ** chance.uniform(5, 24))
            held.append(np.full(size, chance.choice(_RUBBISH), dtype=np.uint8))
            del held[: max(0, len(held) - chance.randrange(12))]

    workers = [threading.Thread(target=litter, args=(i,), daemon=True) for i in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stopped.set()
        for worker in workers:
            worker.join()


def make_cases(folder: Path, seed: int) -> list[Case]:
    """Write the inputs of all cases."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    genomes = [_genome(generator, 12_000) for _ in range(4)]
    paths: dict[str, str] = {}

    def save(name: str, data: bytes) -> None:
        (folder / name).write_bytes(data)
        paths[name] = str(folder / name)

    for i, genome in enumerate(genomes):
        save(f"g{i}.fa", b">g%d\n%s\n" % (i, genome.tobytes()))
    pairs = _pairs(generator, genomes[0], 2_000, 300, 20, (100, 100))
    rad = _rad_pairs(generator, genomes[1], 5_000)
    short = _pairs(generator, genomes[2], 2_000, 150, 15, (60, 100))
    for name, some in (("pairs", pairs), ("rad", rad), ("short", short)):
        for mate in (0, 1):
            save(f"{name}{mate + 1}.fq", _fastq(generator, [pair[mate] for pair in some], mate))
    genome_files = [paths[f"g{i}.fa"] for i in range(4)]
    in_pairs = ("-i", paths["pairs1.fq"], "-I", paths["pairs2.fq"])
    in_rad = ("-i", paths["rad1.fq"], "-I", paths["rad2.fq"])
    in_short = ("-i", paths["short1.fq"], "-I", paths["short2.fq"])
    cpu = ("--backend", "cpu", "-q")
    both = ("-o", "OUT/1.fq", "-O", "OUT/2.fq.gz")
    left = ("-o", "OUT/e.fq", "--remaining1", "OUT/1.fq", "--remaining2", "OUT/2.fq")
    insert = ("--insert-size", "400", "--insert-sd", "60")
    database = str(folder / "db")
    _make_database(genome_files, database)
    references = tuple(genome_files)
    return [
        Case("correct-single", ("correct", *in_short[:2], "-o", "OUT/1.fq", *cpu), memory=True),
        Case("correct-pairs", ("correct", *in_pairs, *both, *cpu), memory=True),
        Case("correct-rad", ("correct", *in_rad, *both, *cpu), memory=True),
        Case("merge", ("merge", *in_short, "-o", "OUT/m.fq", "--unmerged1", "OUT/u1.fq",
                       "--unmerged2", "OUT/u2.fq.gz", *cpu)),
        Case("extend-pairs", ("extend", *in_pairs, *left, *cpu), memory=True),
        Case("extend-rad", ("extend", *in_rad, *insert, *left, *cpu), memory=True, weight=4),
        Case("extend-rad-2", ("extend", *in_rad, *insert, "--outward", "--strict", "0", *left,
                              *cpu), memory=True, weight=2),
        Case("kmers", ("kmers", *in_pairs, "-o", "OUT/k.tsv")),
        Case("db-build", ("db", "build", *references, "-d", "OUT/db", *cpu), memory=True),
        Case("classify", ("classify", "-d", database, *in_pairs, "-o", "OUT/calls.tsv", "--report",
                          "OUT/r.txt", "--coverage", "OUT/c.tsv", "--abundance", "OUT/a.tsv",
                          *cpu)),
    ]  # fmt: skip


def _make_database(references: Sequence[str], database: str) -> None:
    from ngsgpu.cli import main

    shutil.rmtree(database, ignore_errors=True)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = main(["db", "build", *references, "-d", database, "--backend", "cpu", "-q"])
    if status != 0:
        raise RuntimeError(said.getvalue())


def _genome(generator: np.random.Generator, size: int) -> NDArray[np.uint8]:
    """Random letters with a repeat."""
    letters = _LETTERS[generator.integers(0, 4, size)]
    letters[size // 2 : size // 2 + 500] = letters[:500]
    return letters


def _turned(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    table = np.zeros(256, dtype=np.uint8)
    table[np.frombuffer(b"ACGT", dtype=np.uint8)] = np.frombuffer(b"TGCA", dtype=np.uint8)
    return table[letters[::-1]]


def _read(generator: np.random.Generator, letters: NDArray[np.uint8], length: int) -> bytes:
    """The first bases of a fragment, with errors and now and then an N."""
    read = letters[:length].copy()
    wrong = np.flatnonzero(generator.random(len(read)) < 0.008)
    read[wrong] = _LETTERS[generator.integers(0, 4, len(wrong))]
    if generator.random() < 0.03 and len(read):
        read[generator.integers(0, len(read))] = ord("N")
    return read.tobytes()


def _pairs(
    generator: np.random.Generator,
    genome: NDArray[np.uint8],
    count: int,
    mean: int,
    deviation: int,
    lengths: tuple[int, int],
) -> list[Pair]:
    """Pairs of random fragments, each read of a random length."""
    pairs = []
    for _ in range(count):
        size = max(lengths[1], round(generator.normal(mean, deviation)))
        start = int(generator.integers(0, len(genome) - size))
        fragment = genome[start : start + size]
        if generator.random() < 0.5:
            fragment = _turned(fragment)
        one, two = (int(value) for value in generator.integers(lengths[0], lengths[1] + 1, 2))
        pairs.append((_read(generator, fragment, one), _read(generator, _turned(fragment), two)))
    return pairs


def _rad_pairs(generator: np.random.Generator, genome: NDArray[np.uint8], count: int) -> list[Pair]:
    """Pairs whose first mates begin at few places, and whose lengths are not equal."""
    sites = generator.integers(0, len(genome) - 700, 30)
    pairs = []
    for _ in range(count):
        start = int(generator.choice(sites))
        size = round(float(np.clip(generator.normal(400, 60), 150, 650)))
        fragment = genome[start : start + size]
        second = int(generator.integers(40, 126))
        pairs.append((_read(generator, fragment, 94), _read(generator, _turned(fragment), second)))
    return pairs


def _fastq(generator: np.random.Generator, reads: Sequence[bytes], mate: int) -> bytes:
    records = []
    for number, bases in enumerate(reads):
        scores = generator.integers(2, 41, len(bases)).astype(np.uint8) + 33
        records.append(b"@r%d/%d\n%s\n+\n%s\n" % (number, mate + 1, bases, scores.tobytes()))
    return b"".join(records)


def main() -> int:
    """Run it from the command line; 0 where nothing differed and nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="begin no more runs after this time")
    parser.add_argument("--expected", type=Path, help="hashes to compare with, or to write")
    parser.add_argument("--folder", type=Path, default=Path("soak"))
    chosen = parser.parse_args()

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    known: Path | None = chosen.expected
    expected = json.loads(known.read_text()) if known and known.exists() else {}
    done = soak(
        chosen.seed,
        chosen.runs,
        chosen.folder,
        seconds=chosen.seconds,
        expected=expected,
        say=say,
    )
    if known is not None and not done.different:
        known.write_text(json.dumps(expected))
    print(json.dumps({
        "runs": dict(done.runs), "total": done.runs.total(), "different": done.different,
        "failed": done.failed, "seconds": round(done.seconds, 1),
    }, indent=1))  # fmt: skip
    return 1 if done.failed or done.different else 0


if __name__ == "__main__":
    sys.exit(main())
