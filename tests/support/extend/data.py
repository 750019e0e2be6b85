"""Simulated pairs in files, with their truth, and the command line called from Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tests.support.io.records import Record, fastq, write
from tests.support.readset.simulation import COMPLEMENT, LETTERS, random_genome, with_errors

LENGTH = 80
INSERT = 300


@dataclass(frozen=True)
class Pairs:
    """Pairs of a random genome with a repeat.

    Attributes:
        genome: its letters.
        first: records of first mates.
        second: records of second mates.
        fragments: the true fragments, in the direction of the first mate.
        starts: where they begin in the genome.
        reverse: whether they are its reverse complement.
    """

    genome: str
    first: tuple[Record, ...]
    second: tuple[Record, ...]
    fragments: tuple[str, ...]
    starts: tuple[int, ...]
    reverse: tuple[bool, ...]

    def truth(self) -> str:
        """SAM of the error-free reads."""
        lines = [f"@SQ\tSN:g\tLN:{len(self.genome)}"]
        for i, (fragment, start) in enumerate(zip(self.fragments, self.starts, strict=True)):
            end = start + len(fragment)
            for mate in (0, 1):
                reverse = self.reverse[i] != (mate == 1)
                begin = end - LENGTH if reverse else start
                flag = 1 | 2 | (0x10 if reverse else 0x20) | (0x40 << mate)
                bases = self.genome[begin : begin + LENGTH]
                lines.append(
                    f"p{i}\t{flag}\tg\t{begin + 1}\t60\t{LENGTH}=\t=\t1\t0\t{bases}\t{'I' * LENGTH}"
                )
        return "\n".join(lines) + "\n"


@cache
def simulated_pairs(
    seed: int = 1, size: int = 2500, coverage: int = 25, error: float = 0.005, sd: int = 8
) -> Pairs:
    generator = np.random.default_rng(seed)
    genome = random_genome(generator, size, repeats=1, repeat_length=200)
    letters = LETTERS[genome].tobytes().decode()
    first: list[Record] = []
    second: list[Record] = []
    fragments, starts, reverse = [], [], []
    for i in range(coverage * size // (2 * LENGTH)):
        length = max(LENGTH, round(generator.normal(INSERT, sd)))
        start = int(generator.integers(0, size - length + 1))
        codes = genome[start : start + length]
        reverse_complemented = bool(generator.random() < 0.5)
        if reverse_complemented:
            codes = COMPLEMENT[codes[::-1]]
        fragments.append(LETTERS[codes].tobytes().decode())
        starts.append(start)
        reverse.append(reverse_complemented)
        for mate, records in ((codes, first), (COMPLEMENT[codes[::-1]], second)):
            wrong = with_errors(generator, mate[:LENGTH].copy(), error)
            bases = bytearray(LETTERS[wrong].tobytes())
            quality = np.where(wrong == mate[:LENGTH], 38, 8) + 33
            if generator.random() < 0.05:
                place = int(generator.integers(0, LENGTH))
                bases[place] = ord("N")
                quality[place] = 35
            name = b"p%d/%d comment" % (i, 1 if records is first else 2)
            records.append(Record(name, bytes(bases), quality.astype(np.uint8).tobytes()))
    return Pairs(
        letters, tuple(first), tuple(second), tuple(fragments), tuple(starts), tuple(reverse)
    )


def write_pairs(folder: Path, pairs: Pairs) -> tuple[Path, Path]:
    """Two files of mates."""
    return (
        write(folder / "1.fq", fastq(list(pairs.first))),
        write(folder / "2.fq", fastq(list(pairs.second))),
    )
