#!/usr/bin/env python3
"""Compare OPAL's figures with those of ``ngsgpu evaluate classification``, rank by rank.

Writes a table of both, and exits with status 1 if any two differ: they are computed from the same
calls, by OPAL from CAMI profiles, by ngsgpu from the reads.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

METRICS = {
    "True positives": "tp",
    "False positives": "fp",
    "False negatives": "fn",
    "Completeness": "completeness",
    "Purity": "purity",
    "F1 score": "f1",
    "L1 norm error": "l1_norm",
    "Bray-Curtis distance": "bray_curtis",
}
"""OPAL's names, and ours."""
TOLERANCE = 1e-6
"""Profiles hold ten decimals of a percentage."""

Row = tuple[str, str, str, float, float]
"""Program, rank, metric, OPAL's figure, ours."""


def opal_figures(path: Path) -> dict[tuple[str, str, str], float]:
    """OPAL's figures by program, rank and metric."""
    found = {}
    with path.open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["metric"] in METRICS and row["value"] not in ("", "na", "nan"):
                rank = "domain" if row["rank"] == "superkingdom" else row["rank"]
                found[row["tool"], rank, METRICS[row["metric"]]] = float(row["value"])
    return found


def compared(opal: dict[tuple[str, str, str], float], documents: list[Path]) -> Iterator[Row]:
    """Figures that both have."""
    for path in documents:
        for run in json.loads(path.read_text())["runs"]:
            for rank, figures in run["profile"].items():
                for metric in METRICS.values():
                    theirs = opal.get((run["name"], rank, metric))
                    ours = figures[metric]
                    if theirs is not None and ours is not None:
                        yield run["name"], rank, metric, theirs, float(ours)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--opal", type=Path, required=True, help="results.tsv of OPAL")
    add("-o", "--output", type=Path, required=True)
    add("evaluations", type=Path, nargs="+", help="JSON of ngsgpu evaluate classification")
    options = parser.parse_args(arguments)
    rows = list(compared(opal_figures(options.opal), options.evaluations))
    lines = ["program\trank\tmetric\topal\tngsgpu\n"]
    lines += [f"{a}\t{b}\t{c}\t{theirs:.10g}\t{ours:.10g}\n" for a, b, c, theirs, ours in rows]
    differ = [row for row in rows if abs(row[3] - row[4]) > TOLERANCE]
    for row in differ:
        print("compare_with_opal.py: {} {} {}: OPAL {}, ngsgpu {}".format(*row), file=sys.stderr)
    if not rows:
        print("compare_with_opal.py: there is nothing to compare", file=sys.stderr)
    if differ or not rows:
        return 1
    options.output.write_text("".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
