"""Calls of single reads and pairs of many lengths, with whole and thinned databases, and Kraken 2.

    python -m benchmarks.accuracy.classification_lengths --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER --choose 0 1 --check 300 301 --check-again 400 401 \
        --blind 2 3 4 5 --reads kraken_HiSeq_accuracy.fa.gz --labels kraken_labels.tsv -o out.json

The draws of genomes are those of ``classification_sets``. Kraken 2 has all of its database, and
databases of the bytes of a quarter and an eighth of the features; its calls stay in ``--work``. On
the draws of ``--blind``, only whole databases are measured.
Besides all reads, those are judged that are not of *E. coli* and *Shigella*, which are one species
by their genomes: how their reads are divided says little about other species, and much of the sum.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.accuracy.classification_curves import RANKS
from benchmarks.accuracy.classification_density import bytes_of, labels_of
from benchmarks.accuracy.classification_holdout import Genome, rates_of, read_genomes
from benchmarks.accuracy.classification_sets import (
    WINDOWS,
    Kinds,
    Kraken,
    build,
    calls_of,
    files_of,
    make_reads,
)
from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database

SCHEMA: Final = "ngsgpu.benchmark.classification_lengths"
SCHEMA_VERSION: Final = 1
LENGTHS: Final[Kinds] = {
    "50": (50, 0, 0.005),
    "75": (75, 0, 0.005),
    "100": (100, 0, 0.005),
    "150": (150, 0, 0.005),
    "250": (250, 0, 0.01),
    "100, 3 % errors": (100, 0, 0.03),
    "2 x 50": (50, 50, 0.005),
    "2 x 75": (75, 75, 0.005),
    "2 x 100": (100, 100, 0.005),
    "2 x 150": (150, 150, 0.003),
    "2 x 250": (250, 250, 0.01),
}
FRACTIONS: Final = (1.0, 0.5, 0.25, 0.125)
FOR_KRAKEN: Final = (None, 0.25, 0.125)
"""Fractions in whose bytes Kraken 2 is measured; None: no limit."""
TWINS: Final = frozenset((562, 621, 622, 623, 624))
"""*E. coli* and *Shigella*."""
Calls = list[tuple[str, int]]


@dataclass(frozen=True)
class Sample:
    """Reads by kind, what they are, and the genomes of the database."""

    name: str
    reads: dict[str, list[Path]]
    truth: dict[str, dict[str, str]]
    there: Sequence[Genome]
    folder: Path
    whole_only: bool = False


def samples(
    wanted: argparse.Namespace, seeds: Sequence[int], *, whole_only: bool = False
) -> Iterator[Sample]:
    """The draws."""
    genomes = read_genomes(wanted)
    for seed in seeds:
        folder = wanted.work / f"draw{seed}"
        there = make_reads(genomes, seed, folder, LENGTHS)
        reads = {kind: files_of(folder, kind, LENGTHS) for kind in LENGTHS}
        labels = labels_of(folder / "labels.tsv")
        yield Sample(f"draw {seed}", reads, labels, there, folder, whole_only)


def real(wanted: argparse.Namespace) -> Iterator[Sample]:
    """The real reads, if they are given."""
    if wanted.reads is not None:
        folder = wanted.work / "real"
        folder.mkdir(parents=True, exist_ok=True)
        reads, truth = {"real": [wanted.reads]}, labels_of(wanted.labels)
        yield Sample(wanted.reads.name, reads, truth, read_genomes(wanted), folder)


def thinned_to(database: Database, fraction: float) -> Database:
    """A database with a fraction of the features."""
    from ngsgpu.classify.database.fit import with_kept
    from ngsgpu.classify.index.thin import thinned
    from ngsgpu.classify.params import ALL_KEYS

    if fraction == 1:
        return database
    kept, whole = round(fraction * ALL_KEYS), database.load_partition(0)
    part = replace(whole, index=thinned(whole.index, kept, 2))
    return replace(
        database, parameters=with_kept(database.parameters, kept), loaded={0: part}
    )  # fmt: skip


def without_twins(calls: Calls, truth: dict[str, dict[str, str]]) -> Calls:
    """Calls of reads of other species than ``TWINS``."""
    return [own for own in calls if int(truth[own[0]]["taxid"]) not in TWINS]


def measure(sample: Sample, wanted: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Bytes, and the counts of ``judge`` by kind of reads, by database."""
    full = build(sample.there, WINDOWS[0], wanted)
    fractions, shares = (
        (FRACTIONS[:1], FOR_KRAKEN[:1]) if sample.whole_only else (FRACTIONS, FOR_KRAKEN)
    )
    sizes = {fraction: bytes_of(thinned_to(full, fraction)) for fraction in fractions}
    found: dict[str, dict[str, Any]] = {}
    krakens = {
        share: Kraken(
            sample.there, sample.folder, wanted, None if share is None else sizes[share],
            lazy=True,
        )
        for share in shares
    }  # fmt: skip
    judge_of = next(iter(krakens.values())).judge

    def add(name: str, size: int, calls: dict[str, Calls]) -> None:
        found[name] = {"bytes": size, "kinds": {}}
        for kind, own in calls.items():
            found[name]["kinds"][kind] = {
                "all": judge_of(own, sample.truth).tolist(),
                "without twins": judge_of(without_twins(own, sample.truth), sample.truth).tolist(),
            }

    for fraction in fractions:
        database = thinned_to(full, fraction)
        calls = {kind: calls_of(database, files) for kind, files in sample.reads.items()}
        add(f"fraction {fraction:g}", sizes[fraction], calls)
    for share, kraken in krakens.items():
        size, calls = kraken_calls(sample, kraken, share)
        add("kraken2" if share is None else f"kraken2 {share:g}", size, calls)
    return found


def kraken_calls(
    sample: Sample, kraken: Kraken, share: float | None
) -> tuple[int, dict[str, Calls]]:
    """Bytes of a database of Kraken 2, and its calls, which are kept for the next run."""
    path = sample.folder / f"calls-kraken2-{share}.json"
    if not path.exists():
        kraken.build()
        own = {kind: kraken.calls(files, 0.0) for kind, files in sample.reads.items()}
        path.write_text(json.dumps({"bytes": kraken.bytes, "calls": own}))
        kraken.remove()
    document = json.loads(path.read_text())
    return document["bytes"], document["calls"]


def summary(measured: Sequence[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Mean bytes, and rates of all samples together, by database; of all kinds and of each."""
    rates: dict[str, Any] = {}
    for name in measured[0]:
        own = [one[name] for one in measured]
        rates[name] = {"bytes": round(sum(one["bytes"] for one in own) / len(own)), "kinds": {}}
        sums = {
            which: {
                kind: np.sum([one["kinds"][kind][which] for one in own], axis=0)
                for kind in own[0]["kinds"]
            }
            for which in ("all", "without twins")
        }
        for which, of_kinds in sums.items():
            of_kinds["all"] = np.sum(list(of_kinds.values()), axis=0)
            for kind, tally in of_kinds.items():
                rates[name]["kinds"].setdefault(kind, {})[which] = rates_of(
                    dict(zip(RANKS, tally.tolist(), strict=True))
                )
        rates[name] |= rates[name]["kinds"]["all"]["all"]
    return rates


def shown(own: dict[str, Any] | None) -> list[str]:
    """Precision and sensitivity of both ranks; nothing of what was not measured."""
    if own is None:
        return ["", ""]
    return [f"{own[rank]['precision']:.3f}, {own[rank]['sensitivity']:.3f}" for rank in RANKS]


def named(name: str) -> str:
    """A database for people."""
    kind, _, share = name.partition(" ")
    if kind == "fraction":
        return "all features" if share == "1" else f"`--fraction {share}`"
    return "Kraken 2.1.2" + (f", the bytes of {share}" if share else "")


def table(document: dict[str, Any]) -> str:
    """Sets of reads by database, then kinds of reads: ngsgpu beside Kraken 2."""
    sets = document["sets"]
    rows = [["", "index, MB", *(f"{part}: {rank}" for part in sets for rank in RANKS)]]
    for which in ("all", "without twins"):
        for name in sets["check"]["databases"]:
            own = [part["databases"].get(name) for part in sets.values()]
            cells = [cell for one in own for cell in shown(one and one["kinds"]["all"][which])]
            label = named(name) + (", without twins" if which != "all" else "")
            sizes = ", ".join(f"{one['bytes'] / 1e6:.0f}" for one in own if one)
            rows.append([label, sizes, *cells])
    tables = [markdown(rows, names=2)]
    for name, peers in (
        ("fraction 1", ("kraken2",)), ("fraction 0.25", ("kraken2 0.25", "kraken2 0.125"))
    ):  # fmt: skip
        programs = (name, *peers)
        checked = [part for part in ("check", "check again", "blind")
                   if part in sets and name in sets[part]["databases"]]  # fmt: skip
        rows = [["reads", "database", *(f"{part}: {rank}" for part in checked for rank in RANKS),
                 *(f"without twins: {rank}" for rank in RANKS)]]  # fmt: skip
        for kind in LENGTHS:
            for program in programs:
                parts = [sets[part]["databases"][program]["kinds"][kind] for part in checked]
                cells = [cell for one in parts for cell in shown(one["all"])]
                rest = " and ".join
                apart = [rest(pair) for pair in zip(*(shown(one["without twins"]) for one in parts),
                                                    strict=True)]  # fmt: skip
                rows.append([kind, named(program), *cells, *apart])
        tables.append(markdown(rows, names=2))
    return "\n".join(tables)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("reads", "labels"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    for name, seeds in (
        ("choose", [0, 1]), ("check", [300, 301]), ("check-again", [400, 401]),
        ("blind", [2, 3, 4, 5]),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, nargs="*", default=seeds, metavar="SEED")
    wanted = parser.parse_args()
    document: dict[str, Any] = {**head(SCHEMA, SCHEMA_VERSION), "sets": {}}
    parts = {
        "choose": samples(wanted, wanted.choose),
        "check": samples(wanted, wanted.check),
        "check again": samples(wanted, wanted.check_again),
        "blind": samples(wanted, wanted.blind, whole_only=True),
        "real": real(wanted),
    }
    for part, own in parts.items():
        there = list(own)
        measured = []
        for sample in there:
            measured.append(measure(sample, wanted))
            print(part, sample.name, file=sys.stderr, flush=True)
        if measured:
            names = [sample.name for sample in there]
            document["sets"][part] = {"samples": names, "databases": summary(measured)}
    write_document(document, wanted.out)
    print(table(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
