"""Size of databases by the fraction of features kept, and what it makes of a collection.

    python -m benchmarks.database_size --references GENOMES/*.fna.gz -t 2 -o out.json

Databases of the references and of random bases are built with several fractions, as whole
processes. ``table`` puts beside them what follows for a collection that was not built, from these
and two other results: ``SCALE`` (time on a GPU) and ``DENSITY`` (accuracy by fraction).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import LETTERS
from benchmarks.harness.measuring import ROOT, answer, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.database_size"
SCHEMA_VERSION: Final = 1
FRACTIONS: Final = (1.0, 0.5, 0.25, 0.125, 0.0625)
RANDOM: Final = ((1, 1.0), (5, 1.0), (5, 0.125))
"""Times the bases of the references, and fractions."""
PIECE: Final = 4_000_000
LOCATION_BYTES: Final = 4
SCALE: Final = "2026-11-26_database_scale_h100"
DENSITY: Final = "2026-11-26_classification_lengths"

COLLECTION: Final = 113_104 * 3_000_000
"""Bases: GTDB r220's species representatives, if they have 3 Mb each."""
GIGABYTES: Final = (256, 128, 64, 32)
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
    document["random"] = []
    for times, fraction in RANDOM:
        with (work / "random.fa").open("wb") as file:
            for number in range(times * bases // PIECE):
                rng = np.random.default_rng((number, 1))
                file.write(b">%d\n%b\n" % (number, LETTERS[rng.integers(0, 4, PIECE)].tobytes()))
        document["random"].append(built([work / "random.fa"], fraction, *how))
    return document


def result(name: str) -> dict[str, Any]:
    """A file of results."""
    document: dict[str, Any] = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
    return document


def table(document: dict[str, Any]) -> str:
    """What was measured, then what follows for the collection."""
    rows = [["bases", "features kept", "on disk, MB", "calculated", "features, million",
             "calculated", "locations per base", "building: CPU, s per Gb",
             "peak memory, GB"]]  # fmt: skip
    model = Model(document)
    for kind in ("genomes", "random"):
        for own in document[kind]:
            found = model.partition(own["locations"], own["fraction"])
            rows.append([
                f"{own['bases'] / 1e6:,.0f} Mb{', random' * (kind == 'random')}",
                f"{own['fraction']:g}", f"{own['bytes'] / 1e6:.1f}", f"{found.bytes / 1e6:.1f}",
                f"{own['features'] / 1e6:.1f}", f"{found.features / 1e6:.1f}",
                f"{own['locations'] / own['bases']:.4f}",
                f"{(own['user_s'] + own['system_s']) / own['bases'] * 1e9:.0f}",
                f"{own['peak_rss_bytes'] / 1e9:.2f}",
            ])  # fmt: skip
    return markdown(rows, names=1) + "\n" + markdown(list(computed(model)), names=1)


class Partition(NamedTuple):
    """A partition of unrelated sequences.

    Attributes:
        features: that it has.
        bytes: of its index.
    """

    features: float
    bytes: float


class Model:
    """What databases of unrelated sequences take.

    Windows choose features at random: of ``n`` choices among ``m`` that are possible,
    ``m (1 - exp(-n / m))`` are different. ``m`` follows from the first database of random bases, as
    do the bytes of a feature, beside ``LOCATION_BYTES`` for each location; memory of building from
    the second.

    Args:
        document: what was measured.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        whole, random = document["genomes"][0], document["random"][0]
        self.per_base: float = whole["locations"] / whole["bases"]
        self.bytes_per_base: float = whole["bytes"] / whole["bases"]
        self.cpu_s = (whole["user_s"] + whole["system_s"]) / whole["bases"]
        beside = random["bytes"] - LOCATION_BYTES * random["locations"]
        self._feature_bytes = beside / random["features"]
        larger = document["random"][1]
        self.build_bytes: float = larger["peak_rss_bytes"] / larger["locations"]
        self.possible = middle_of(
            lambda most: _different(random["locations"], most) < random["features"],
            random["features"], 1e12,
        )  # fmt: skip

    def partition(self, locations: float, fraction: float) -> Partition:
        """A partition with a number of locations of a fraction of all features."""
        features = _different(locations, self.possible * fraction)
        return Partition(features, LOCATION_BYTES * locations + self._feature_bytes * features)

    def size(self, bases: float, fraction: float) -> float:
        """Bytes of a database in as few partitions as hold its locations."""
        own = self.partition(self.locations(bases, fraction), fraction)
        return self.partitions(bases, fraction) * own.bytes

    def locations(self, bases: float, fraction: float) -> float:
        """Of a partition, if there are as few as possible."""
        return self.per_base * bases * fraction / self.partitions(bases, fraction)

    def partitions(self, bases: float, fraction: float) -> int:
        """The fewest partitions."""
        return math.ceil(self.per_base * bases * fraction / MOST_LOCATIONS)


def _different(choices: float, possible: float) -> float:
    return possible * -math.expm1(-choices / possible)


def middle_of(is_less: Callable[[float], bool], least: float, most: float) -> float:
    """The largest value between two for which something still holds."""
    for _ in range(200):
        middle = math.sqrt(least * most)
        least, most = (middle, most) if is_less(middle) else (least, middle)
    return least


def computed(model: Model) -> Iterator[list[str]]:
    """Rows of the collection in several sizes; nothing in them was measured with it."""
    yield ["on disk, GB", "features kept", "partitions at least", "building: CPU, hours",
           "GB of memory", "on an H100, min", "read once, s", "locations of a feature by chance",
           "accuracy measured at", "species: precision", "sensitivity", "Kraken 2: precision",
           "sensitivity"]  # fmt: skip
    scale = result(SCALE)
    on_gpu = scale["builds"]["cuda"]["wall_s"] / scale["fasta_bytes"]
    by_chance = model.per_base * COLLECTION / model.possible
    whole = model.size(COLLECTION, 1.0)
    for limit in (whole, *(own * 1e9 for own in GIGABYTES if own * 1e9 < whole)):
        fraction = 1.0
        if limit < whole:
            fits = partial(_fits, model, limit)
            fraction = middle_of(fits, 1e-4, 1.0)
        at, *own = accuracy("fraction", fraction)
        _, *kraken = accuracy("kraken2", limit / (model.bytes_per_base * COLLECTION))
        yield [
            f"{limit / 1e9:.0f}", f"{fraction:.3f}",
            str(model.partitions(COLLECTION, fraction)),
            f"{model.cpu_s * COLLECTION / 3600:.0f}",
            f"{model.build_bytes * model.locations(COLLECTION, fraction) / 1e9:.0f}",
            f"{on_gpu * COLLECTION / 60:.0f}",
            f"{limit / READ_PER_SECOND:.0f}", f"{by_chance:.0f}", at, *own, *kraken,
        ]  # fmt: skip


def _fits(model: Model, limit: float, fraction: float) -> bool:
    return model.size(COLLECTION, fraction) <= limit


def accuracy(kind: str, fraction: float) -> list[str]:
    """Of the set that was checked on: the fraction measured that is nearest, and the rates."""
    databases = result(DENSITY)["sets"]["check"]["databases"]
    measured = {
        float(name.partition(" ")[2] or 1): name for name in databases if name.startswith(kind)
    }
    nearest = min(measured, key=lambda own: abs(math.log(own / fraction)))
    own = databases[measured[nearest]]["species"]
    return [f"{nearest:g}", *(f"{own[what]:.3f}" for what in ("precision", "sensitivity"))]


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
