"""Pairs of which some are longer than their fragments: they continue into adapters, and G's."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

TRUSEQ: Final = (
    "AGATCGGAAGAGCACACGTCTGAACTCCAGTCACATCACGATCTCGTATGCCGTCTTCTGCTTG",
    "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGTAGATCTCGGTGGTCGCCGTATCATT",
)


class Pair(NamedTuple):
    """Sequences of both mates, and the length of their fragment."""

    first: str
    second: str
    fragment: int


def random_genome(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("ACGT", k=length))


def pairs_of(
    rng: random.Random,
    genome: str,
    count: int,
    *,
    length: int = 150,
    mean: float = 262,
    deviation: float = 80,
    adapters: tuple[str, str] = TRUSEQ,
    errors: float = 0.005,
) -> list[Pair]:
    """Pairs at random places, behind whose fragments adapters and G's follow."""
    pairs = []
    for _ in range(count):
        size = min(max(25, round(rng.gauss(mean, deviation))), len(genome))
        start = rng.randrange(len(genome) - size + 1)
        forward = genome[start : start + size]
        both = [forward, reverse_complement(forward)]
        rng.shuffle(both)
        mates = (
            with_errors(rng, (own + adapter + "G" * length)[:length], errors)
            for own, adapter in zip(both, adapters, strict=True)
        )
        pairs.append(Pair(*mates, size))
    return pairs


def with_errors(rng: random.Random, read: str, rate: float) -> str:
    return "".join(
        rng.choice("ACGT".replace(base, "")) if rng.random() < rate else base for base in read
    )


def trimmed(pairs: Iterable[Pair]) -> list[Pair]:
    """The same without adapters."""
    return [Pair(one[:size], two[:size], size) for one, two, size in pairs]


def write_mates(folder: Path, pairs: list[Pair], suffix: str = "") -> list[Path]:
    """Files of first and of second mates."""
    paths = []
    for mate in (0, 1):
        records = [
            Record(b"p%d/%d" % (number, mate + 1), pair[mate].encode(), b"I" * len(pair[mate]))
            for number, pair in enumerate(pairs)
        ]
        paths.append(write(folder / f"r{mate + 1}{suffix}.fq", fastq(records)))
    return paths
