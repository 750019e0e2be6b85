"""Small files of simulated reads, and the command line called from Python."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.support.io.records import Record
from tests.support.readset.simulation import random_genome, simulate


@cache
def simulated_pairs(seed: int = 1, size: int = 3_000, coverage: int = 25) -> tuple[Record, ...]:
    """Mates in turn, of a small genome with a repeat: 1 % errors, some N, names with comments."""
    generator = np.random.default_rng(seed)
    genome = random_genome(generator, size, repeats=1, repeat_length=400)
    reads = simulate(generator, genome, coverage, paired=True)
    records = []
    for number, (bases, qualities) in enumerate(
        zip(reads.sequences(), reads.qualities(), strict=True)
    ):
        letters = bytearray(bases)
        if generator.random() < 0.1:
            letters[int(generator.integers(0, len(letters)))] = ord("N")
        if number % 10 == 3:
            letters = letters.lower()
        name = b"run:1:%d/%d some comment=%d" % (number // 2, number % 2 + 1, number)
        records.append(Record(name, bytes(letters), qualities))
    return tuple(records)


def mates(records: tuple[Record, ...]) -> tuple[list[Record], list[Record]]:
    return list(records[::2]), list(records[1::2])
