"""Simulated reads whose truth is known: ART, HiSeq 2000 profile, pairs of 2 x 100 bases."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from benchmarks.measuring import BenchmarkError, measure

READ_LENGTH = 100
INSERT_DEVIATION = 10
# Everything but the four bases becomes N, where ART draws no reads.
TO_BASES = dict.fromkeys(range(128), "N") | {ord(letter): letter.upper() for letter in "ACGTacgt"}


def open_text(path: Path) -> TextIO:
    """Open a plain or gzip-compressed text file."""
    with path.open("rb") as probe:
        compressed = probe.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rt") if compressed else path.open("rt")


def plain_fasta(lines: Iterable[str], target: TextIO) -> int:
    """Copy a FASTA with nothing but A, C, G, T and N in it; return its number of bases.

    Raises:
        BenchmarkError: there are no bases.
    """
    bases = 0
    for line in lines:
        if not line.startswith(">"):
            line = line.strip().translate(TO_BASES) + "\n"
            bases += len(line) - 1
        target.write(line)
    if not bases:
        raise BenchmarkError("the genome has no bases; give a FASTA file, plain or gzip-compressed")
    return bases


def simulate(
    genome: Path, directory: Path, *, coverage: int, insert: int, seed: int
) -> dict[str, Any]:
    """Draw pairs into ``r1.fq`` and ``r2.fq``, the truth into ``r_errFree.sam``.

    Args:
        genome: FASTA, plain or gzip-compressed.
        directory: where the files go.
        coverage: reads per position.
        insert: mean length of the fragments, in bases.
        seed: of the simulation.

    Returns:
        Name and bases of the genome, number of reads, command line.

    Raises:
        BenchmarkError: the genome cannot be used, or ART fails.
    """
    with open_text(genome) as lines, (directory / "genome.fa").open("w") as target:
        bases = plain_fasta(lines, target)
    art = (
        f"art_illumina -ss HS20 -p -l {READ_LENGTH} -f {coverage} -m {insert} "
        f"-s {INSERT_DEVIATION} -rs {seed} -ef -na -q -i genome.fa -o r"
    )
    measure(art.split(), directory)
    (directory / "r.sam").unlink(missing_ok=True)
    with (directory / "r1.fq").open("rb") as reads:
        pairs = sum(1 for _ in reads) // 4
    name = genome.name.removesuffix(".gz").rpartition(".")[0] or genome.name
    return {"name": name, "genome_bases": bases, "reads": 2 * pairs, "simulation": art}


def join_mates(directory: Path) -> None:
    """Write ``r1.fq`` and ``r2.fq`` one after the other into ``both.fq``."""
    with (directory / "both.fq").open("wb") as both:
        for mate in ("r1.fq", "r2.fq"):
            with (directory / mate).open("rb") as reads:
                shutil.copyfileobj(reads, both, 1 << 20)


def split_mates(path: Path, pairs: int, outputs: Sequence[Path]) -> None:
    """Write the first half of a FASTQ file to one file and the second half to another."""
    with path.open("rb") as reads:
        for output in outputs:
            with output.open("wb") as target:
                target.writelines(islice(reads, 4 * pairs))
