#!/usr/bin/env python3
"""Simulate read pairs with known truth for training: a part of a genome, or two copies of it.

Usage: training_reads.py --genome FILE --out PREFIX [options]

Writes PREFIX_1.fq, PREFIX_2.fq and PREFIX.sam, the error-free reads in the same order. With
--second-share the genome has a second copy with --snv-rate differences a base, from which that
share of the reads comes: 0.5 is a diploid, less a rarer strain. With --bins qualities are
NovaSeq's 2, 12, 23 and 37.
"""

from __future__ import annotations

import argparse
import gzip
import random
import subprocess
import tempfile
from pathlib import Path

BINS = ((8, 2), (18, 12), (30, 23), (100, 37))
"""Qualities below the first number of each become the second."""

BINNED = bytes(
    33 + next(value for bound, value in BINS if max(0, code - 33) < bound) if code < 126 else code
    for code in range(256)
)


def genome_part(path: Path, start: int, length: int) -> str:
    """Bases of a FASTA file from ``start`` on, all sequences in a row, without ambiguous ones."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        bases = "".join(line.strip() for line in file if not line.startswith(">"))
    part = bases[start : start + length].upper()
    return "".join(base for base in part if base in "ACGT")


def mutated(bases: str, rate: float, seed: int) -> str:
    """A copy with substitutions."""
    chance = random.Random(seed)
    changed = list(bases)
    for place in range(len(changed)):
        if chance.random() < rate:
            changed[place] = chance.choice([base for base in "ACGT" if base != changed[place]])
    return "".join(changed)


def simulate(
    bases: str, name: str, coverage: float, options: argparse.Namespace, out: Path
) -> None:
    """Append the reads of a sequence to the outputs."""
    with tempfile.TemporaryDirectory() as folder:
        fasta, prefix = Path(folder, "genome.fa"), Path(folder, "reads")
        fasta.write_text(f">{name}\n{bases}\n")
        command = ["art_illumina", "-q", "-na", "-ef", "-p", "-ss", options.profile]
        command += ["-l", options.read_length, "-f", coverage, "-m", options.fragment, "-s", 30]
        command += ["-rs", options.seed, "-i", fasta, "-o", prefix]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        for mate in (1, 2):
            lines = Path(f"{prefix}{mate}.fq").read_bytes().splitlines(keepends=True)
            if options.bins:
                lines[3::4] = [line.rstrip().translate(BINNED) + b"\n" for line in lines[3::4]]
            with Path(f"{out}_{mate}.fq").open("ab") as file:
                file.writelines(lines)
        text = Path(f"{prefix}_errFree.sam").read_bytes().splitlines(keepends=True)
        with Path(f"{out}.sam").open("ab") as file:
            file.writelines(line for line in text if not line.startswith(b"@"))


def main() -> None:
    """Parse the arguments and write the reads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--genome", type=Path, required=True, help="FASTA, may be gzipped")
    parser.add_argument("--out", type=Path, required=True, help="prefix of the outputs")
    parser.add_argument("--start", type=int, default=0, help="first base that is used")
    parser.add_argument("--length", type=int, default=1_000_000, help="bases that are used")
    parser.add_argument("--profile", default="HS20", help="of art_illumina")
    parser.add_argument("--read-length", type=int, default=100)
    parser.add_argument("--fragment", type=int, default=400, help="mean fragment length")
    parser.add_argument("--coverage", type=float, default=30, help="of all copies together")
    parser.add_argument("--snv-rate", type=float, default=0, help="of the second copy")
    parser.add_argument("--second-share", type=float, default=0, help="of the reads")
    parser.add_argument("--bins", action="store_true", help="bin the qualities as NovaSeq does")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for ending in ("_1.fq", "_2.fq", ".sam"):
        Path(f"{options.out}{ending}").unlink(missing_ok=True)
    bases = genome_part(options.genome, options.start, options.length)
    share = options.second_share
    simulate(bases, "first", options.coverage * (1 - share), options, options.out)
    if share:
        second = mutated(bases, options.snv_rate, options.seed)
        options.seed += 1
        simulate(second, "second", options.coverage * share, options, options.out)


if __name__ == "__main__":
    main()
