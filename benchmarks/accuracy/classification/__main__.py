"""The command: one experiment, one table, one JSON file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.accuracy.classification import abundance, communities, food, plasmids, pure
from benchmarks.accuracy.classification.reads import KINDS
from benchmarks.accuracy.classification.settings import Settings
from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.classification"
EXPERIMENTS: Final = {
    "pure": pure.run,
    "plasmids": plasmids.run,
    "communities": communities.run,
    "abundance": abundance.run,
    "food": food.run,
}


def table(summary: dict[str, dict[str, Any]]) -> str:
    """A line for each row of a summary."""
    columns = list(next(iter(summary.values())))
    rows = [[name, *(str(own[column]) for column in columns)] for name, own in summary.items()]
    return markdown([["", *columns], *rows], names=1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="classification", description=__doc__)
    add = parser.add_argument
    add("experiment", choices=EXPERIMENTS)
    for name in ("references", "taxonomy", "map", "work"):
        add(f"--{name}", type=Path, required=True)
    add("-o", "--out", type=Path, required=True)
    add("--check", action="store_true", help="the sets that nothing is chosen on")
    add("--seeds", type=int, nargs="+", help="others than those of the set")
    add("--strains", type=Path, help="unpacked Debian packages of strains, for --check")
    add("--version", action="append", metavar="NAME=COMMAND", help="a version of ngsgpu; repeat")
    add("--alone", action="store_true", help="without Kraken 2 and Bracken")
    add("--confidence", type=float, nargs="+", default=[0.0, 0.05, 0.1, 0.2], help="Kraken 2's")
    add("--coverage", type=float, nargs="+", help="pure: 1.2; abundance: 0.1 1")
    add("--reads", nargs="+", choices=KINDS, help="communities: kinds of reads")
    add("--only", nargs="+", metavar="NAME", help="pure: genomes whose files begin so")
    add("--step", type=int, help="plasmids: bases between phases")
    add("--genome-bases", type=int, default=1_000_000, help="food: of a genome")
    given = parser.parse_args()
    found = EXPERIMENTS[given.experiment](Settings(given))
    sets = "check" if given.check else "choose"
    document = {**head(SCHEMA), "experiment": given.experiment, "set": sets, **found}
    write_document(document, given.out, compact=True)
    print(table(found["summary"]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
