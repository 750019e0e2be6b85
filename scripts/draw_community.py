#!/usr/bin/env python3
"""Draw the reads of a community with ART: each genome as often as the composition says.

The composition is a table with the columns ``genome`` (a file in the folder of genomes), ``taxid``
and ``abundance``, the genome's share of the reads. Read names begin with the name of their
sequence; the truth lists these names, their taxids, and the pairs drawn. The same table, seed and
ART give the same reads.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

MATES = (1, 2)


def read_composition(path: Path) -> list[dict[str, str]]:
    """Rows of the table; lines with # are comments."""
    with path.open() as file:
        rows = list(
            csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        )
    if not rows or {"genome", "taxid", "abundance"} - set(rows[0]):
        raise ValueError(f"{path} lacks one of the columns genome, taxid, abundance")
    return rows


def unpack(source: Path, target: Path) -> tuple[list[str], int]:
    """Write a genome as a plain file; returns the names of its sequences and their bases."""
    names, bases = [], 0
    with (
        gzip.open(source) if source.suffix == ".gz" else source.open("rb") as lines,
        target.open("wb") as out,
    ):
        for line in lines:
            out.write(line)
            if line.startswith(b">"):
                names.append(line[1:].split()[0].decode())
            else:
                bases += len(line.strip())
    return names, bases


def draw(
    number: int, genome: Path, pairs: float, options: argparse.Namespace, folder: Path
) -> dict[str, int]:
    """Draw pairs from a genome to ``1.fq`` and ``2.fq`` in a folder; the pairs by sequence."""
    names, bases = unpack(genome, folder / "genome.fa")
    coverage = pairs * 2 * options.length / bases
    # ART names reads SEQUENCE-TAGnumber/mate, and starts anew with each run.
    tag = f"g{number:03d}_"
    command = ["art_illumina", "-q", "-na", "-p", "-ss", options.profile, "-l", options.length]
    command += ["-f", f"{coverage:.6f}", "-m", options.insert, "-s", options.deviation]
    command += ["-rs", options.seed + number, "-d", tag]
    command += ["-i", folder / "genome.fa", "-o", f"{folder}/"]
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr)
    drawn = dict.fromkeys(names, 0)
    with (folder / "1.fq").open() as file:
        for header in islice(file, 0, None, 4):
            drawn[header[1:].rpartition(f"-{tag}")[0]] += 1
    return drawn


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("composition", type=Path)
    add("folder", type=Path, help="gets R1.fastq.gz, R2.fastq.gz and truth.tsv")
    add("--genomes", type=Path, required=True, help="folder of the genomes")
    add("--pairs", type=int, required=True)
    add("--profile", default="HS25")
    add("--length", type=int, default=150)
    add("--insert", type=int, default=270)
    add("--deviation", type=float, default=27)
    add("--seed", type=int, default=1, help="of the first genome; each has its own")
    options = parser.parse_args(arguments)
    try:
        rows = read_composition(options.composition)
    except ValueError as error:
        print(f"draw_community.py: {error}", file=sys.stderr)
        return 2
    whole = sum(float(row["abundance"]) for row in rows)
    options.folder.mkdir(parents=True, exist_ok=True)
    truth = ["label\ttaxid\tpairs\n"]
    targets = [
        gzip.GzipFile(options.folder / f"R{mate}.fastq.gz", "wb", compresslevel=1, mtime=0)
        for mate in MATES
    ]
    for number, row in enumerate(rows):
        pairs = options.pairs * float(row["abundance"]) / whole
        with tempfile.TemporaryDirectory() as place:
            work = Path(place)
            genome = options.genomes / row["genome"]
            drawn = draw(number, genome, pairs, options, work)
            for mate, target in zip(MATES, targets, strict=True):
                target.write((work / f"{mate}.fq").read_bytes())
        truth += [f"{name}\t{row['taxid']}\t{count}\n" for name, count in drawn.items()]
    for target in targets:
        target.close()
    (options.folder / "truth.tsv").write_text("".join(truth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
