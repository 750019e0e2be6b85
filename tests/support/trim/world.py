"""Pairs with all that trimming looks at."""

from __future__ import annotations

import random

from tests.support.io.records import Record
from tests.support.minhash.oracle import reverse_complement

ADAPTERS = ("AGATCGGAAGAGCACACGTCTGAACTCCAGTCA", "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT")


def pairs(rng: random.Random, count: int, length: int = 60) -> list[tuple[Record, Record]]:
    """Pairs of short and long fragments, with errors, N, poor ends, tails, UMIs, duplicates."""
    made: list[tuple[Record, Record]] = []
    for number in range(count):
        if made and rng.random() < 0.05:
            first, second = rng.choice(made)
            made.append((renamed(first, number), renamed(second, number)))
            continue
        fragment = "".join(rng.choices("ACGT", k=rng.choice([5, 20, 35, 50, 70, 90, 150])))
        mates = []
        for mate, strand in enumerate((fragment, reverse_complement(fragment))):
            text = strand + ADAPTERS[mate] + "".join(rng.choices("ACGT", k=length))
            if rng.random() < 0.2:
                text = text[: rng.randrange(10, 60)] + rng.choice("GGACT") * length
            mates.append(_sequenced(rng, text[: rng.choice([length, length, 36, 1, 12])]))
        made.append((_named(number, 0, mates[0]), _named(number, 1, mates[1])))
    return made


def renamed(record: Record, number: int) -> Record:
    """The same read under another number."""
    rest = record.header.partition(b" ")[2]
    return record._replace(header=b"NB501:%d" % number + b" " + rest)


def _sequenced(rng: random.Random, bases: str) -> tuple[bytes, bytes]:
    good = rng.choice([15, 30, 38])
    scores = [
        max(2, min(40, int(rng.gauss(good - (at / 4 if rng.random() < 0.5 else 0), 6))))
        for at in range(len(bases))
    ]
    letters = [
        rng.choice("ACGTN") if rng.random() < 10 ** (-score / 10) else base
        for base, score in zip(bases, scores, strict=True)
    ]
    return "".join(letters).encode(), bytes(33 + score for score in scores)


def _named(number: int, mate: int, own: tuple[bytes, bytes]) -> Record:
    return Record(b"NB501:%d %d:N:0:ACGTAC+TTGC" % (number, mate + 1), *own)
