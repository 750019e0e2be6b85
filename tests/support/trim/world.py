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


_HEADERS = (
    "NB501:{number} {mate}:N:0:ACGTAC+TTGC", "r{number}/{mate}", "r{number} {mate}:N:0:ACGT",
    "r{number} ", "r{number}:A+C", "{number} :", "{number} ::+", "{number} 1+2+3:", "{number} +++",
    "r{number}\tx y:zz+k", "{number}", "H:6:{number}#ACGT/{mate}", "r{number}.{mate} x",
    "r{number}_{mate}", "r{number}/{mate}\tBC:Z:AC-GT", "r:{number}:+ACGT", "r{number} #AC:GT/1 ",
    "r{number} {mate}:" + "A" * 200 + "+" + "C" * 150,
)  # fmt: skip


def odd_pairs(rng: random.Random, count: int, lowest: int = 33) -> list[tuple[bytes, bytes]]:
    """Texts of pairs of any length, with names, letters, lines and qualities of all kinds."""
    made: list[tuple[bytes, bytes]] = []
    for number in range(count):
        if made and rng.random() < 0.1:
            made.append(rng.choice(made))
            continue
        letters = rng.choice(["ACGT", "ACGT", "ACGT", "AC", "A", "G", "ACGTN", "ACGTacgtNRYU."])
        size = rng.choice([0, 1, 4, 10, 29, 30, 31, 40, 60, 100, 200])
        fragment = "".join(rng.choices(letters, k=size))
        plain = "".join(base if base in "ACGT" else "N" for base in fragment)
        changed, line_end = rng.choice([0, 0, 0.01, 0.05, 0.2]), rng.choice(["\n"] * 6 + ["\r\n"])
        scores = rng.choice([(0, 40), (0, 0), (40, 40), (0, 126 - lowest), (12, 17), (2, 33)])
        lengths = [rng.choice([0, 1, 2, 3, 8, 15, 16, 17, 31, 49, 50, 51, 60, 100, 151, 600])] * 2
        if rng.random() < 0.3:
            lengths[1] = rng.choice([0, 1, 2, 10, 36, 60, 100])
        texts = []
        for mate, strand in enumerate((fragment, reverse_complement(plain))):
            adapter = rng.choice([ADAPTERS[mate], ADAPTERS[mate], ADAPTERS[0][2:], ""])
            rest = rng.choice(["G" * 600, "A" * 600, "".join(rng.choices("ACGT", k=600))])
            bases = "".join(
                rng.choice("ACGTN") if rng.random() < changed else base
                for base in (strand + adapter + rest)[: lengths[mate]]
            )
            own = [lowest + rng.randint(*scores) for _ in bases]
            qualities = "".join(map(chr, sorted(own, reverse=True) if number % 5 == 0 else own))
            name = _HEADERS[number % len(_HEADERS)].format(number=number, mate=mate + 1)
            plus = rng.choice(["", "", name, name.split()[0]])
            lines = f"@{name}", bases, f"+{plus}", qualities, ""
            texts.append(line_end.join(lines).encode())
        made.append((texts[0], texts[1]))
    return made
