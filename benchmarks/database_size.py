"""Size of databases by the fraction of features kept, and what it makes of a collection.

    python -m benchmarks.database_size --references GENOMES/*.fna.gz -t 2 -o out.json

Databases of the references and of as many random bases are built with each fraction, as whole
processes. ``table`` puts beside them what follows for a collection that was not built, from these
and two other results: ``SCALE`` (time on a GPU) and ``DENSITY`` (accuracy by fraction).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import LETTERS
from benchmarks.harness.measuring import ROOT, answer, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.database_size"
SCHEMA_VERSION: Final = 1
FRACTIONS: Final = (1.0, 0.5, 0.25, 0.125, 0.0625)
SCALE: Final = "2026-11-26_database_scale_h100"
DENSITY: Final = "2026-11-26_classification_density"

COLLECTION: Final = 113_104 * 3_000_000
"""Bases: GTDB r220's species representatives, if they have 3 Mb each."""
GIGABYTES: Final = (512, 256, 128, 64, 32)
MOST_LOCATIONS: Final = 2**32 - 1
"""Of a partition."""
READ_PER_SECOND: Final = 5e9


def built(references: Sequence[Path], fraction: float, threads: int, work: Path) -> dict[str, Any]:
    """Build a database; what it took and what it holds."""
    command = ["ngsgpu", "db", "build", *map(str, references), "-d", "db", "--fraction"]
    taken = measure([*command, str(fraction), "-t", str(threads), "--backend", "cpu", "-q"], work)
    stats = json.loads(answer("ngsgpu", "db", "stats", "-d", str(work / "db"), "--json"))
    counted = {
        name: sum(own[name] for own in stats["partitions"]) for name in ("features", "locations")
    }
    size = sum(path.stat().st_size for path in (work / "db").rglob("*") if path.is_file())
    return {"fraction": fraction, "bytes": size, "bases": stats["bases"], **counted,
            **asdict(taken)}  # fmt: skip


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    references = [path.resolve() for path in settings.references]
    how = (settings.threads, work)
    document: dict[str, Any] = {**head(SCHEMA, SCHEMA_VERSION), "differences": []}
    document["genomes"] = [built(references, fraction, *how) for fraction in FRACTIONS]
    bases = document["genomes"][0]["bases"]
    letters = LETTERS[np.random.default_rng(1).integers(0, 4, bases)]
    pieces = [letters[at : at + 5_000_000].tobytes() for at in range(0, bases, 5_000_000)]
    (work / "random.fa").write_bytes(b"".join(b">%d\n%b\n" % own for own in enumerate(pieces)))
    document["random"] = [built([work / "random.fa"], fraction, *how) for fraction in (1.0, 0.125)]
    return document


def result(name: str) -> dict[str, Any]:
    """A file of results."""
    document: dict[str, Any] = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
    return document


def table(document: dict[str, Any]) -> str:
    """What was measured, then what follows for the collection."""
    rows = [["features kept", "on disk, MB", "bytes per base", "locations per base",
             "building: CPU, s per Gb", "peak memory, bytes per location"]]  # fmt: skip
    for own in document["genomes"]:
        rows.append([
            f"{own['fraction']:g}", f"{own['bytes'] / 1e6:.1f}",
            f"{own['bytes'] / own['bases']:.3f}", f"{own['locations'] / own['bases']:.4f}",
            f"{(own['user_s'] + own['system_s']) / own['bases'] * 1e9:.0f}",
            f"{own['peak_rss_bytes'] / own['locations']:.0f}",
        ])  # fmt: skip
    return markdown(rows, names=1) + "\n" + markdown(list(computed(document)), names=1)


def computed(document: dict[str, Any]) -> Iterator[list[str]]:
    """Rows of the collection in several sizes; nothing in them was measured with it."""
    yield ["on disk, GB", "features kept", "partitions at least", "building: CPU, hours",
           "on an H100, min", "read once, s", "locations of a feature by chance",
           "accuracy measured at", "species: precision", "sensitivity", "Kraken 2: precision",
           "sensitivity"]  # fmt: skip
    whole = document["genomes"][0]
    per_base, seconds = (
        sum(whole[name] for name in names) / whole["bases"]
        for names in (("bytes",), ("user_s", "system_s"))
    )
    scale = result(SCALE)
    on_gpu = scale["builds"]["cuda"]["wall_s"] / scale["fasta_bytes"]
    for gigabytes in GIGABYTES:
        fraction = min(1.0, gigabytes * 1e9 / (per_base * COLLECTION))
        locations = whole["locations"] / whole["bases"] * COLLECTION
        partitions = math.ceil(locations * fraction / MOST_LOCATIONS)
        at, own, kraken = accuracy(fraction)
        yield [
            str(gigabytes), f"{fraction:.3f}", str(partitions),
            f"{seconds * COLLECTION / 3600:.0f}", f"{on_gpu * COLLECTION / 60:.0f}",
            f"{gigabytes * 1e9 / READ_PER_SECOND:.0f}", f"{locations / possible(document):.0f}",
            at, *own, *kraken,
        ]  # fmt: skip


def possible(document: dict[str, Any]) -> float:
    """Features that random windows choose among, by how many of them are different.

    Of ``n`` choices among ``m``, ``m (1 - exp(-n / m))`` are different.
    """
    own = document["random"][0]
    chosen, different = own["locations"], own["features"]
    least, most = float(different), 1e12
    for _ in range(200):
        middle = math.sqrt(least * most)
        if middle * -math.expm1(-chosen / middle) < different:
            least = middle
        else:
            most = middle
    return least


def accuracy(fraction: float) -> tuple[str, list[str], list[str]]:
    """Of the set that was checked on: the largest fraction measured that is not above this one."""
    databases = result(DENSITY)["sets"]["check"]["databases"]
    measured = [name for name in databases if name.startswith("fraction ")]
    known = max(float(own.split()[1]) for own in measured if float(own.split()[1]) <= fraction)
    found = [databases[f"fraction {known:g}"], databases.get(f"kraken2 {known:g}")]
    cells = [
        ["", ""] if own is None else [f"{own['species'][what]:.3f}" for what in
                                      ("precision", "sensitivity")]
        for own in found
    ]  # fmt: skip
    return f"{known:g}", cells[0], cells[1]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="database_size",
        description="Measure databases by the fraction of features kept.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--references", type=Path, nargs="+", required=True, help="FASTA files of the database")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the tables."""
    return run_in(parse(arguments), "database_size", run, table)


if __name__ == "__main__":
    sys.exit(main())
