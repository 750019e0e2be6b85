"""Sequences whose k-mers are counted by a dictionary."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

from ngsgpu.kmers import KmerDatabase
from ngsgpu.kmers.text import dump
from tests.support.io.records import Record
from tests.support.minhash.oracle import canonical


class World(NamedTuple):
    """Sequences with repeats, both cases, letters that are no bases, and qualities."""

    records: list[Record]

    @classmethod
    def of(cls, seed: int, longest: int) -> World:
        rng = random.Random(seed)
        genome = "".join(rng.choices("ACGT", k=longest)) + "A" * 140 + "ACGT" * 40
        records = []
        for i in range(rng.randrange(1, 40)):
            start = rng.randrange(len(genome))
            own = list(genome[start : start + rng.randrange(longest)])
            for at in range(len(own)):
                if rng.random() < 0.004:
                    own[at] = rng.choice("ACGTNacgtnR")
            qualities = bytes(rng.choices(b"#5F", weights=(1, 2, 200), k=len(own)))
            records.append(Record(b"s%d" % i, "".join(own).encode(), qualities))
        return cls(records)

    def counts(self, k: int, least: int = 0) -> Counter[str]:
        """Every canonical k-mer and how often it occurs."""
        found: Counter[str] = Counter()
        for record in self.records:
            bases = record.bases.decode().upper()
            for i in range(len(bases) - k + 1):
                own = bases[i : i + k]
                if set(own) <= set("ACGT") and min(record.qualities[i : i + k]) - 33 >= least:
                    found[canonical(own)] += 1
        return found


def as_dict(database: KmerDatabase) -> dict[str, int]:
    """The k-mers in the order of the database."""
    text = b"".join(dump(database, 1, 2**32 - 1)).decode()
    pairs = (line.split("\t") for line in text.splitlines())
    return {kmer: int(found) for kmer, found in pairs}
