"""Depletion of short single reads, by the default threshold and by one for all lengths.

    python -m benchmarks.accuracy.depletion_short HOST.fa.gz MICROBE.fa.gz... -o out.json

Both halves of the host are indexed. The default was chosen on the first half and
every second microbe, and is checked on the others. Reads of the host are 20,000 of each length with
0.3 % substitutions, those of microbes one every 150 bases, without errors.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.document import head, write_document
from scripts.simulation_chunks import read_fasta

SCHEMA: Final = "ngsgpu.benchmark.depletion_short"
SCHEMA_VERSION: Final = 1
LENGTHS: Final = (36, 50, 60, 75, 100)
THRESHOLDS: Final = ("auto", "36")
READS: Final = 20_000
STEP: Final = 150
ERRORS: Final = 0.003


def host_reads(bases: str, length: int, rng: random.Random) -> Iterator[str]:
    """Reads of a host with substitutions."""
    left = READS
    while left:
        start = rng.randrange(len(bases) - length)
        read = bases[start : start + length]
        if "N" not in read:
            left -= 1
            yield "".join(rng.choice("ACGT") if rng.random() < ERRORS else own for own in read)


def microbial_reads(paths: Sequence[Path], length: int, rng: random.Random) -> Iterator[str]:
    """Reads of genomes, evenly."""
    for path in paths:
        for _, bases in read_fasta(path):
            for start in range(rng.randrange(STEP), len(bases) - length, STEP):
                yield bases[start : start + length]


def write_reads(path: Path, reads: Iterator[str]) -> None:
    """Write reads as FASTQ."""
    with path.open("w") as file:
        for number, read in enumerate(reads):
            file.write(f"@read{number}\n{read}\n+\n{'I' * len(read)}\n")


def taken_out(index: Path, reads: Path, threshold: str) -> dict[str, int]:
    """How many of some reads are the host's."""
    stats = reads.with_suffix(".json")
    command = ["ngsgpu", "deplete", "-d", index, "-i", reads, "-o", "/dev/null", "-q"]
    options = ["--min-bases", threshold, "--backend", "cpu", "--stats", stats]
    subprocess.run([str(word) for word in (*command, *options)], check=True)
    found = json.loads(stats.read_text())["reads"]
    return {"total": found["total"], "host": found["host"]}


def measure(host: str, microbes: Sequence[Path], work: Path, seed: int) -> list[dict[str, Any]]:
    """Counts by length and threshold."""
    rng = random.Random(seed)
    genome, index = work / "host.fa", work / "host.idx"
    genome.write_text(f">host\n{host}\n")
    subprocess.run(["ngsgpu", "deplete-index", str(genome), "-o", str(index), "-q"], check=True)
    rows = []
    for length in LENGTHS:
        own, other = work / "own.fq", work / "other.fq"
        write_reads(own, host_reads(host, length, rng))
        write_reads(other, microbial_reads(microbes, length, rng))
        rows += [
            {
                "length": length,
                "min_bases": threshold,
                "host": taken_out(index, own, threshold),
                "microbes": taken_out(index, other, threshold),
            }
            for threshold in THRESHOLDS
        ]
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description="Depletion of short single reads.")
    parser.add_argument("host", type=Path)
    parser.add_argument("microbes", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    settings = parser.parse_args(arguments)
    ((_, bases),) = read_fasta(settings.host)
    half = len(bases) // 2
    microbes = sorted(settings.microbes)
    document = head(SCHEMA, SCHEMA_VERSION)
    for name, host, own in (
        ("chosen", bases[:half], microbes[::2]),
        ("checked", bases[half:], microbes[1::2]),
    ):
        with tempfile.TemporaryDirectory() as work:
            document[name] = measure(host, own, Path(work), seed=len(own))
        document[f"{name}_microbes"] = [path.name for path in own]
    write_document(document, settings.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
