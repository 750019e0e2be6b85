#!/usr/bin/env python3
"""Count the true k-mers that a correction removed, by their coverage before it.

A k-mer is true if the reference has it, on either strand; it is lost if the reads had it before
correction and no read has it afterwards (Kallenborn 2024, section 5.6.1). K-mers with N are none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HIGHEST_COVERAGE = 10
BATCH_READS = 100_000
NO_BASE = 4
CODES = np.full(256, NO_BASE, dtype=np.uint8)
CODES[np.frombuffer(b"ACGTacgt", dtype=np.uint8)] = [0, 1, 2, 3, 0, 1, 2, 3]

Kmers = NDArray[np.uint64]


def canonical_kmers(letters: bytes, k: int) -> Kmers:
    """The smaller of each k-mer and its reverse complement; letters but ACGT separate."""
    codes = CODES[np.frombuffer(letters, dtype=np.uint8)]
    windows = len(codes) - k + 1
    if windows <= 0:
        return np.zeros(0, dtype=np.uint64)
    forward = np.zeros(windows, dtype=np.uint64)
    reverse = np.zeros(windows, dtype=np.uint64)
    for place in range(k):
        base = codes[place : place + windows].astype(np.uint64) & np.uint64(3)
        forward = forward << np.uint64(2) | base
        reverse |= (np.uint64(3) - base) << np.uint64(2 * place)
    breaks = np.concatenate([[0], np.cumsum(codes == NO_BASE)])
    is_whole = breaks[k:] == breaks[:-k]
    smaller: Kmers = np.minimum(forward, reverse)[is_whole]
    return smaller


def opened(path: Path) -> Iterator[bytes]:
    """Lines of a plain or gzip-compressed file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield from file


def kmers_of_reference(path: Path, k: int) -> Kmers:
    """All k-mers of a FASTA file, each once, in order."""
    # A header becomes a break between sequences.
    parts = (b"N" if line.startswith(b">") else line.strip() for line in opened(path))
    return np.unique(canonical_kmers(b"".join(parts), k))


def coverage(paths: list[Path], true: Kmers, k: int) -> NDArray[np.int64]:
    """How often the reads of FASTQ files have each of these k-mers, int64[n]."""
    counts = np.zeros(len(true), dtype=np.int64)
    for path in paths:
        sequences = islice(opened(path), 1, None, 4)
        while batch := [line.strip() for line in islice(sequences, BATCH_READS)]:
            kmers = canonical_kmers(b"N".join(batch), k)
            places = np.minimum(np.searchsorted(true, kmers), len(true) - 1)
            found = places[true[places] == kmers]
            counts += np.bincount(found, minlength=len(true))
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--reference", type=Path, required=True, help="FASTA, plain or gzip")
    add("--raw", type=Path, nargs="+", required=True, help="reads before correction")
    add("--corrected", type=Path, nargs="+", required=True, help="reads after correction")
    add("-k", type=int, default=21)
    add("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    true = kmers_of_reference(options.reference, options.k)
    if len(true) == 0:
        print(f"lost_kmers.py: {options.reference} has no k-mers", file=sys.stderr)
        return 2
    before = coverage(options.raw, true, options.k)
    lost = (before > 0) & (coverage(options.corrected, true, options.k) == 0)
    by_coverage = np.bincount(before[lost], minlength=HIGHEST_COVERAGE + 1)[: HIGHEST_COVERAGE + 1]
    document = {
        "k": options.k,
        "true": int((before > 0).sum()),
        "lost_by_coverage": by_coverage[1:].tolist(),
        "lost": int(by_coverage[1:].sum()),
    }
    options.output.write_text(json.dumps(document) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
