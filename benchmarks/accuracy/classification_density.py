"""Accuracy of classification against the size of the database, beside Kraken 2 in the same bytes.

    python -m benchmarks.accuracy.classification_density --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER --choose 0 1 2 --check 100 101 \
        --reads kraken_HiSeq_accuracy.fa.gz --labels kraken_labels.tsv -o out.json

The draws are those of ``classification_sets``, the reads those of ``classification_curves``, with
all genomes as references. A database with all features is thinned; smaller sketches and longer
windows take about the same bytes. They cannot be thinned further with the result of building so,
and are called with the thresholds of hits that a fraction has. Kraken 2, if it is on the PATH,
gets ``--max-db-size``. ``scripts/draw_charts.py`` draws the result.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.accuracy.classification_curves import RANKS
from benchmarks.accuracy.classification_holdout import Genome, rates_of, read_genomes
from benchmarks.accuracy.classification_sets import (
    KINDS,
    WINDOWS,
    Kraken,
    build,
    classify,
    files_of,
    make_reads,
)
from benchmarks.harness.document import describe_commit, write_document

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database

FRACTIONS: Final = (0.75, 0.5, 0.35, 0.25, 0.125, 0.0625)
SKETCHES: Final = (10, 5, 3)
FOR_KRAKEN: Final = (1.0, 0.5, 0.25, 0.125)
"""Fractions in whose bytes Kraken 2 is measured."""
LONGER: Final = (2, 4, 8)
"""Times the stride."""
FULL: Final = "fraction 1"
KRAKEN: Final = "kraken2"


@dataclass(frozen=True)
class Sample:
    """Reads to classify: all mates of each kind, what they are, and the genomes of the database."""

    name: str
    reads: list[list[Path]]
    truth: dict[str, dict[str, str]]
    there: Sequence[Genome]
    folder: Path


def labels_of(path: Path) -> dict[str, dict[str, str]]:
    """What the labels of reads stand for."""
    with path.open(newline="") as file:
        return {row["label"]: row for row in csv.DictReader(file, delimiter="\t")}


def samples(wanted: argparse.Namespace, part: str) -> Iterator[Sample]:
    """The samples of a part."""
    genomes = read_genomes(wanted)
    for seed in getattr(wanted, part):
        folder = wanted.work / f"draw{seed}"
        there = make_reads(genomes, seed, folder)
        reads = [files_of(folder, kind) for kind in KINDS]
        yield Sample(f"draw {seed}", reads, labels_of(folder / "labels.tsv"), there, folder)


def real(wanted: argparse.Namespace) -> Iterator[Sample]:
    """The real reads, if they are given."""
    if wanted.reads is not None:
        folder = wanted.work / "real"
        folder.mkdir(parents=True, exist_ok=True)
        yield Sample(
            wanted.reads.name, [[wanted.reads]], labels_of(wanted.labels), read_genomes(wanted),
            folder,
        )  # fmt: skip


def databases(sample: Sample, wanted: argparse.Namespace) -> Iterator[tuple[str, float, Database]]:
    """Databases of the genomes: thinned, with smaller sketches, with longer windows.

    Yields:
        The name, the share of features that the database does not know of, and the database.
    """
    from ngsgpu.classify.database.fit import with_kept
    from ngsgpu.classify.index.thin import thinned
    from ngsgpu.classify.params import ALL_KEYS

    window, stride, sketch = WINDOWS[0]
    full = build(sample.there, WINDOWS[0], wanted)
    yield FULL, 1.0, full
    whole = full.load_partition(0)
    for fraction in FRACTIONS:
        kept = round(fraction * ALL_KEYS)
        part = replace(whole, index=thinned(whole.index, kept, 2))
        yield (
            f"fraction {fraction:g}",
            1.0,
            replace(full, parameters=with_kept(full.parameters, kept), loaded={0: part}),
        )
    for size in SKETCHES:
        smaller = (window, stride, size)
        yield f"sketch {size}", size / sketch, build(sample.there, smaller, wanted)
    for times in LONGER:
        longer = (window + (times - 1) * stride, times * stride, sketch)
        yield f"window {longer[0]}", 1 / times, build(sample.there, longer, wanted)


def bytes_of(database: Database) -> int:
    """Bytes of the index of a database in memory."""
    index = database.load_partition(0).index
    return sum(array.nbytes for array in (index.directory, index.entries, index.locations))


def measure(sample: Sample, wanted: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Bytes and right calls, calls and reads to be found, by database."""
    from ngsgpu.classify.params import (
        ALL_KEYS,
        CALLS_BY_EVIDENCE,
        EvidenceParameters,
        SketchParameters,
    )

    found: dict[str, dict[str, Any]] = {}
    for name, share, database in databases(sample, wanted):
        calls, thin = CALLS_BY_EVIDENCE, SketchParameters(fraction=share)
        calls = replace(
            calls, min_hits=calls.hits_needed(thin), near_hits=calls.hits_near(thin),
            few_hits=calls.few_hits * thin.kept // ALL_KEYS, many_hits=calls.hits_many(thin),
        )  # fmt: skip
        tally = sum(
            classify(database, files, sample.truth, calls, EvidenceParameters())
            for files in sample.reads
        )
        found[name] = {"bytes": bytes_of(database), "tally": tally.tolist()}
    if which(KRAKEN):
        for name in [f"fraction {fraction:g}" for fraction in FOR_KRAKEN]:
            size = found[name]["bytes"]
            kraken = Kraken(sample.there, sample.folder, wanted, size)
            tally = sum(kraken.classify(files, sample.truth, 0.0) for files in sample.reads)
            row = {"bytes": kraken.bytes, "allowed": size, "tally": tally.tolist()}
            found[name.replace("fraction", KRAKEN)] = row
    return found


def summary(measured: Sequence[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Mean bytes, and rates of all samples together, by database."""
    rates = {}
    for name in measured[0]:
        tally = np.sum([own[name]["tally"] for own in measured], axis=0)
        size = round(sum(own[name]["bytes"] for own in measured) / len(measured))
        rates[name] = {
            "bytes": size, **rates_of(dict(zip(RANKS, tally.tolist(), strict=True)))
        }  # fmt: skip
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("reads", "labels"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--choose", type=int, nargs="+", default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--check", type=int, nargs="+", default=[100, 101], metavar="SEED")
    wanted = parser.parse_args()
    document: dict[str, Any] = {**describe_commit(), "sets": {}}
    parts = {
        "choose": list(samples(wanted, "choose")),
        "check": list(samples(wanted, "check")),
        "real": list(real(wanted)),
    }
    for part, own in parts.items():
        if not own:
            continue
        rates = summary([measure(sample, wanted) for sample in own])
        document["sets"][part] = {
            "samples": [sample.name for sample in own],
            "databases": rates,
        }
        for name, row in rates.items():
            shown = [f"{row[rank][what]:.3f}"
                     for rank in RANKS for what in ("precision", "sensitivity")]  # fmt: skip
            print(
                f"| {part} | {name} | {row['bytes'] / 1e6:.1f} | {' | '.join(shown)} |", flush=True
            )
    write_document(document, wanted.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
