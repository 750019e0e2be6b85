"""Tables 2, 5 and 6 of CUDA-EC (Shi 2010) and 4.3, 4.4 of GPU-Euler (Mahmood 2012) made anew.

    python -m benchmarks.accuracy.spectrum --shi A=yeast.fa.gz:V D=ecoli.fna.gz -o out.json
    python -m benchmarks.accuracy.spectrum --euler NM=genome.fna.gz -o out.json

Reads of both strands at random places with substitutions at a uniform rate, which all qualities
state; ``--bases`` takes the first ones of each genome only. Sets of Shi: 70-fold, 35 and 70 bases,
1 to 3 % errors, ``--rule voting`` with tuples of 20 bases that occur 6 times in a Bloom filter,
with one and two mutations, beside our default rule, and the programs that are on the PATH:
``lighter``, ``bfc``, ``sga`` and BBTools' ``tadpole.sh``. Sets of Mahmood: 20-fold, 36 and 50
bases, ``--rule exhaustive`` with one mutation and tuples of several lengths; the errors leave about
as many reads without one as in the source, 65 and 25 %.

A read is identified if it was changed, trimmed or left out. ``accuracy`` is the share, of the reads
with errors that were corrected or trimmed, of those that have none now.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.depletion import Bases, complement, substituted
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import measure
from benchmarks.peers.commands import HIDDEN
from scripts.simulation_chunks import read_fasta

SHI = (70, tuple(product((35, 70), (0.01, 0.02, 0.03))))
EULER = (20, ((36, 0.0119), (50, 0.0274)))
EULER_TUPLES = (11, 16, 22, 28, 31)
ERROR_FREE, FIXED, TRIMMED, LEFT_OUT = range(4)
CLASSES = ("error_free", "fixed", "trimmed")

VOTING = "--kmer 20 --min-count 6 --filter bloom --rule voting --mutations"
SHI_RULES = {
    "ngsgpu, voting, 1 mutation": f"{VOTING} 1",
    "ngsgpu, voting, 2 mutations": f"{VOTING} 2",
    "ngsgpu": "",
}
EULER_RULES = {
    f"tuples of {k}": f"--kmer {k} --rule exhaustive --mutations 1" for k in EULER_TUPLES
}
NGSGPU = "ngsgpu correct --method spectrum -q -t {threads} -i reads.fq -o out.fq --trim "
NGSGPU += "--split split --stats stats.json "
PEERS = {
    "lighter": ("lighter -r reads.fq -K 17 {size} -t {threads} -od .", "reads.cor.fq"),
    "bfc": ("bfc -s {size} -k 21 -t {threads} reads.fq", "output.txt"),
    "sga": (
        "sga index -a ropebwt -t {threads} --no-reverse reads.fq && "
        "sga correct -k 21 --learn -t {threads} -o sga.fq reads.fq",
        "sga.fq",
    ),
    "tadpole.sh": (
        "tadpole.sh -Xmx3g in=reads.fq out=tadpole.fq mode=correct k=20 threads={threads} "
        "overwrite=t ordered=t",
        "tadpole.fq",
    ),
}


def genome_of(text: str, bases: int | None) -> Bases:
    """The longest sequence of FILE, or that named behind a colon."""
    path, _, name = text.partition(":")
    found = dict(read_fasta(Path(path)))
    letters = found[name] if name else max(found.values(), key=len)
    return np.frombuffer(letters.encode(), dtype=np.uint8)[:bases]


def simulate(
    genome: Bases, length: int, coverage: int, rate: float, path: Path
) -> tuple[Bases, Bases]:
    """Write reads as FASTQ; the reads without and with their errors, uint8[n, length]."""
    rng = np.random.default_rng([length, round(1e4 * rate)])
    number = round(len(genome) * coverage / length)
    starts = rng.integers(0, len(genome) - length + 1, number)
    truth = genome[starts[:, None] + np.arange(length)]
    turned = rng.random(number) < 0.5
    truth[turned] = complement(truth[turned])
    reads = substituted(truth, rate, rng)
    with path.open("wb") as file:
        quality = bytes([33 + round(-10 * np.log10(rate))]) * length
        for i, read in enumerate(reads):
            file.write(b"@%d\n%s\n+\n%s\n" % (i, read.tobytes(), quality))
    return truth, reads


def sequences_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbers and bases of the reads of a FASTQ file."""
    with path.open("rb") as file:
        for line in file:
            yield int(line[1:].split()[0]), next(file).strip().upper()
            next(file)
            next(file)


def fates(
    truth: Bases, reads: Bases, files: list[tuple[Path, int | None]]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Class of each read, and whether what is left of it is right.

    A file has the class of its reads, or None: whether they changed then tells it.
    """
    classes = np.full(len(reads), LEFT_OUT)
    right = np.zeros(len(reads), dtype=bool)
    for path, of_file in files:
        for number, bases in sequences_of(path):
            own = of_file
            if own is None:
                same = bases == reads[number].tobytes()
                own = ERROR_FREE if same else FIXED if len(bases) == reads.shape[1] else TRIMMED
            classes[number] = own
            right[number] = bases in truth[number].tobytes()
    return classes, right


def share(part: int, whole: int) -> float | None:
    """A share in per cent."""
    return round(100 * part / whole, 4) if whole else None


def judged(
    errors: NDArray[np.int64], classes: NDArray[np.int64], right: NDArray[np.bool_]
) -> dict[str, Any]:
    """Tables 5 and 6 of Shi, and 4.3 of Mahmood, whose modified reads are the corrected ones."""
    wrong = errors > 0
    found = classes != ERROR_FREE
    tp, fp = int((wrong & found).sum()), int((~wrong & found).sum())
    fn, tn = int((wrong & ~found).sum()), int((~wrong & ~found).sum())
    corrected, trimmed = (wrong & (classes == kind) for kind in (FIXED, TRIMMED))
    decided = {
        "unmodified": (classes == ERROR_FREE, errors == 0),
        "modified": (classes == FIXED, right & wrong),
        "discarded": (classes >= TRIMMED, errors > 1),
    }
    kept = classes <= FIXED
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "sensitivity": share(tp, tp + fn),
        "specificity": share(tn, tn + fp),
        "corrected": share(int(corrected.sum()), tp),
        "trimmed": share(int(trimmed.sum()), tp),
        "accuracy": share(
            int((right & (corrected | trimmed)).sum()), int((corrected | trimmed).sum())
        ),
        "made_right": share(int((right & corrected).sum()), int(wrong.sum())),
        "decisions": {name: share(int(own.sum()), len(own)) for name, (own, _) in decided.items()},
        "correct_decisions": share(
            sum(int((own & due).sum()) for own, due in decided.values()), len(errors)
        ),
        "error_free_kept": share(int((kept & right).sum()), int(kept.sum())),
    }


def run(command: str, work: Path) -> dict[str, Any]:
    """Measure a shell command in a folder, with programs that Debian hides."""
    path = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent), *HIDDEN])
    return asdict(measure(["bash", "-c", command], work, environment={"PATH": path}))


def programs(rules: dict[str, str], peers: bool) -> Iterator[tuple[str, str, list[Any]]]:
    """Names, commands, and files of the outputs with their classes."""
    split = [(f"split.{name}.fastq", kind) for kind, name in enumerate(CLASSES)]
    for name, options in rules.items():
        yield name, NGSGPU + options, split
    for name, (command, output) in PEERS.items() if peers else ():
        path = os.pathsep.join([os.environ["PATH"], *HIDDEN])
        if shutil.which(name, path=path):
            yield name.removesuffix(".sh"), command, [(output, None)]


def measured(
    genome: Bases, length: int, coverage: int, rate: float, rules: dict[str, str], given: Any
) -> dict[str, Any]:
    """Simulate a set, correct it by all programs, and judge them."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        truth, reads = simulate(genome, length, coverage, rate, work / "reads.fq")
        errors = (truth != reads).sum(axis=1)
        for name, command, files in programs(rules, peers=rules is SHI_RULES):
            command = command.format(size=len(genome), threads=given.threads)
            row: dict[str, Any] = {"program": name, "command": command, **run(command, work)}
            if name in rules:
                row["time_s"] = json.loads((work / "stats.json").read_text())["time_s"]
            outputs = [(work / file, kind) for file, kind in files if (work / file).exists()]
            row |= judged(errors, *fates(truth, reads, outputs))
            print(
                length, rate, name, row["wall_s"], row["sensitivity"], row["made_right"], flush=True
            )
            rows.append(row)
    error_free = share(int((errors == 0).sum()), len(errors))
    return {
        "read": length,
        "rate": rate,
        "reads": len(reads),
        "error_free": error_free,
        "programs": rows,
    }


def main() -> None:
    """Simulate, correct, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shi", nargs="+", default=[], metavar="NAME=FILE[:SEQUENCE]")
    parser.add_argument("--euler", nargs="+", default=[], metavar="NAME=FILE[:SEQUENCE]")
    parser.add_argument("--bases", type=int, help="of each genome; all by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    sets = []
    for of, entries, (coverage, kinds), rules in (
        ("shi", given.shi, SHI, SHI_RULES),
        ("euler", given.euler, EULER, EULER_RULES),
    ):
        for entry, (length, rate) in product(entries, kinds):
            name, _, file = entry.partition("=")
            genome = genome_of(file, given.bases)
            own = measured(genome, length, coverage, rate, rules, given)
            sets.append(
                {"of": of, "name": name, "file": Path(file).name, "bases": len(genome), **own}
            )
            document = head("ngsgpu.benchmark.spectrum") | {"threads": given.threads, "sets": sets}
            write_document(document, given.out)


if __name__ == "__main__":
    main()
