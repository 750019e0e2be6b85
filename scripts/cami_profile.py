#!/usr/bin/env python3
"""Write the CAMI profile of a community's truth, or of a classifier's calls, for OPAL.

Percentages are of all reads, as in the profiles of ``ngsgpu classify --cami``.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.outputs.cami import cami_profile
from ngsgpu.classify.outputs.tree import count_tree
from ngsgpu.errors import NgsgpuError
from ngsgpu.evaluate.classification.files import read_references
from ngsgpu.evaluate.classification.tally import read_tally
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.tree import Taxonomy

Counts = tuple[NDArray[np.int64], int]
"""Reads by node, and those without a call."""


def counts_of_truth(path: Path, taxonomy: Taxonomy) -> Counts:
    """Reads drawn from each taxon."""
    direct = np.zeros(len(taxonomy), dtype=np.int64)
    with path.open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            direct[taxonomy.index_of(int(row["taxid"]))] += int(row["pairs"])
    return direct, 0


def counts_of_calls(path: Path, taxonomy: Taxonomy, references: dict[str, int]) -> Counts:
    """Reads called as each taxon; calls of taxa that the taxonomy lacks count as none."""
    _, node, _, reads = read_tally(path, taxonomy, None, references).rows.T
    direct = np.zeros(len(taxonomy), dtype=np.int64)
    np.add.at(direct, node[node >= 0], reads[node >= 0])
    return direct, int(reads[node < 0].sum())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--truth", type=Path, help="table of label, taxid and pairs")
    source.add_argument("--calls", type=Path, help="a classifier's lines of reads")
    add("--references", type=Path, help="with --calls: sequence names and taxids")
    add("--taxonomy", type=Path, required=True)
    add("--name", required=True, help="of the sample")
    add("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        taxonomy = load_taxonomy(options.taxonomy)
        if options.truth:
            direct, unclassified = counts_of_truth(options.truth, taxonomy)
        else:
            references = read_references(options.references) if options.references else {}
            direct, unclassified = counts_of_calls(options.calls, taxonomy, references)
    except NgsgpuError as error:
        print(f"cami_profile.py: {error}", file=sys.stderr)
        return error.exit_status
    tree = count_tree(taxonomy, direct, unclassified)
    options.output.write_text(cami_profile(tree, options.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
