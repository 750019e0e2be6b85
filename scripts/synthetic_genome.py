#!/usr/bin/env python3
"""Write a random genome with repeats, the same for the same arguments, as FASTA.

Repeats are what makes correction and assembly hard, so the genome is built around them: each
family has one random ancestor; each of its copies is the ancestor with a share of its bases
substituted, lies on a random strand, and stands at a random place where it overlaps no other
copy. Between the copies the sequence is random with the given GC content.

A table of the copies (0-based half-open intervals) can be written beside the FASTA, in BED format:
chromosome, start, end, family and number of the copy, divergence in thousandths, strand.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint8]

LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)
LINE_LENGTH = 80


@dataclass(frozen=True)
class Family:
    """One family of repeats.

    Attributes:
        length: bases of the ancestor and so of each copy.
        copies: how many copies the genome holds.
        divergence: share of a copy's bases that differ from the ancestor, 0 to 1.
    """

    length: int
    copies: int
    divergence: float

    @classmethod
    def parse(cls, text: str) -> Family:
        """Read ``LENGTH,COPIES,DIVERGENCE``; raises ArgumentTypeError on anything else."""
        try:
            length, copies, divergence = text.split(",")
            family = cls(int(length), int(copies), float(divergence))
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not LENGTH,COPIES,DIVERGENCE such as 1000,5,0.02"
            ) from error
        if family.length < 1 or family.copies < 1 or not 0 <= family.divergence <= 1:
            raise argparse.ArgumentTypeError(
                f"'{text}': length and copies must be at least 1, divergence between 0 and 1"
            )
        return family


@dataclass(frozen=True)
class Copy:
    """Where one copy of a repeat lies: ``start`` is 0-based, ``reverse`` is its strand."""

    start: int
    family: int
    number: int
    reverse: bool


def random_codes(rng: np.random.Generator, length: int, gc: float) -> Codes:
    """Draw 2-bit codes (A 0, C 1, G 2, T 3); ``gc`` is the share of G and C together."""
    shares = np.array([1 - gc, gc, gc, 1 - gc]) / 2
    return rng.choice(4, size=length, p=shares).astype(np.uint8)


def diverge(rng: np.random.Generator, ancestor: Codes, divergence: float) -> Codes:
    """Copy ``ancestor`` with exactly ``round(divergence * length)`` bases substituted."""
    copy = ancestor.copy()
    count = round(divergence * ancestor.size)
    places = rng.choice(ancestor.size, size=count, replace=False)
    # Adding 1, 2 or 3 modulo 4 always gives another base.
    copy[places] = (copy[places] + rng.integers(1, 4, size=count)) % 4
    return copy


def place_copies(rng: np.random.Generator, length: int, families: list[Family]) -> list[Copy]:
    """Choose places for all copies, none overlapping another, in order along the genome.

    The free bases are dealt out at random between the copies, which are shuffled first: every
    arrangement is possible and no draw has to be thrown away.

    Raises:
        ValueError: the copies together are longer than the genome.
    """
    order = [(f, number) for f, family in enumerate(families) for number in range(family.copies)]
    free = length - sum(families[f].length for f, _ in order)
    if free < 0:
        raise ValueError(f"the repeats take {length - free} bases, the genome has only {length}")
    rng.shuffle(order)
    gaps = np.sort(rng.integers(0, free + 1, size=len(order)))
    copies = []
    taken = 0
    for (f, number), gap in zip(order, gaps, strict=True):
        copies.append(Copy(int(gap) + taken, f, number, bool(rng.integers(2))))
        taken += families[f].length
    return copies


def build_genome(
    length: int, seed: int, gc: float, families: list[Family]
) -> tuple[Codes, list[Copy]]:
    """Build the genome's codes and the list of its repeat copies."""
    rng = np.random.default_rng(seed)
    genome = random_codes(rng, length, gc)
    ancestors = [random_codes(rng, family.length, gc) for family in families]
    copies = place_copies(rng, length, families)
    for copy in copies:
        family = families[copy.family]
        bases = diverge(rng, ancestors[copy.family], family.divergence)
        if copy.reverse:
            bases = (3 - bases[::-1]).astype(np.uint8)
        genome[copy.start : copy.start + family.length] = bases
    return genome, copies


def write_fasta(path: Path, name: str, genome: Codes) -> None:
    """Write one sequence in lines of 80 bases."""
    text = LETTERS[genome].tobytes().decode("ascii")
    lines = (text[i : i + LINE_LENGTH] for i in range(0, len(text), LINE_LENGTH))
    path.write_text(f">{name}\n" + "\n".join(lines) + "\n", encoding="ascii")


def write_bed(path: Path, name: str, copies: list[Copy], families: list[Family]) -> None:
    """Write the copies as BED."""
    rows = [
        f"{name}\t{copy.start}\t{copy.start + families[copy.family].length}"
        f"\trepeat{copy.family + 1}.{copy.number + 1}"
        f"\t{round(1000 * families[copy.family].divergence)}\t{'-' if copy.reverse else '+'}\n"
        for copy in copies
    ]
    path.write_text("".join(rows), encoding="ascii")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--length", type=int, required=True, help="bases in all")
    parser.add_argument("--seed", type=int, required=True, help="seed of the random generator")
    parser.add_argument("--gc", type=float, default=0.5, help="share of G and C [0.5]")
    parser.add_argument(
        "--repeat",
        type=Family.parse,
        action="append",
        default=[],
        metavar="LENGTH,COPIES,DIVERGENCE",
        help="a family of repeats; give it once a family",
    )
    parser.add_argument("--name", default="synthetic", help="name of the sequence")
    parser.add_argument("--bed", type=Path, help="also write where the copies lie")
    parser.add_argument("fasta", type=Path, help="FASTA file to write")
    options = parser.parse_args(arguments)
    if options.length < 1 or not 0 <= options.gc <= 1:
        parser.error("--length must be at least 1 and --gc between 0 and 1")
    try:
        genome, copies = build_genome(options.length, options.seed, options.gc, options.repeat)
    except ValueError as error:
        parser.error(str(error))
    write_fasta(options.fasta, options.name, genome)
    if options.bed is not None:
        write_bed(options.bed, options.name, copies, options.repeat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
