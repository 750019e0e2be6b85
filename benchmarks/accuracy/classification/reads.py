"""Reads drawn from genomes, whose names tell the genome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.accuracy.classification.genomes import ACGT, COMPLEMENT, Bases

FRAGMENT: Final = 350
"""Bases of a pair's fragment; at least a quarter more than a mate has."""
QUALITY: Final = b"I"


class Kind(NamedTuple):
    """Bases of a read, of its mate (0: there is none), errors per base."""

    length: int
    mate: int
    errors: float

    @property
    def fragment(self) -> int:
        """Bases from which a read or pair is taken."""
        return max(FRAGMENT, self.length * 5 // 4) if self.mate else self.length


PAIRS: Final = Kind(150, 150, 0.003)
KINDS: Final = {
    "50": Kind(50, 0, 0.003),
    "75": Kind(75, 0, 0.003),
    "100": Kind(100, 0, 0.003),
    "150": Kind(150, 0, 0.003),
    "250": Kind(250, 0, 0.01),
    "300": Kind(300, 0, 0.01),
    "2 x 75": Kind(75, 75, 0.003),
    "2 x 100": Kind(100, 100, 0.003),
    "2 x 150": PAIRS,
    "2 x 250": Kind(250, 250, 0.005),
    "2 x 300": Kind(300, 300, 0.01),
}


class Drawn(NamedTuple):
    """What reads are drawn from: a name without ``_``, its sequences, and how many reads."""

    label: str
    bases: Sequence[Bases]
    number: int


def coverage_reads(bases: Sequence[Bases], coverage: float, kind: Kind) -> int:
    """Reads or pairs that cover sequences so often."""
    return round(coverage * sum(map(len, bases)) / (kind.length + kind.mate))


def draw_reads(drawn: Drawn, kind: Kind, source: np.random.Generator) -> Iterator[list[bytes]]:
    """Reads, or pairs, from anywhere in sequences, on either strand."""
    room = np.array([max(len(bases) - kind.fragment, 0) for bases in drawn.bases], dtype=float)

    def misread(text: bytes) -> bytes:
        bases = np.frombuffer(text, dtype=np.uint8).copy()
        places = np.flatnonzero(source.random(len(bases)) < kind.errors)
        bases[places] = ACGT[source.integers(0, 4, len(places))]
        return bases.tobytes()

    for which in source.choice(len(room), drawn.number, p=room / room.sum()):
        start = source.integers(0, len(drawn.bases[which]) - kind.fragment)
        text = drawn.bases[which][start : start + kind.fragment].tobytes()
        if source.random() < 0.5:
            text = text.translate(COMPLEMENT)[::-1]
        mates = [misread(text[: kind.length])]
        if kind.mate:
            mates.append(misread(text[-kind.mate :].translate(COMPLEMENT)[::-1]))
        yield mates


def write_reads(all_drawn: Iterable[Drawn], kind: Kind, seed: int, prefix: Path) -> list[Path]:
    """Write reads to ``PREFIX_1.fq``, and mates to ``PREFIX_2.fq``; named LABEL_NUMBER."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    paths = [Path(f"{prefix}_{mate}.fq") for mate in (1, 2)[: 2 if kind.mate else 1]]
    source = np.random.default_rng(seed)
    texts: list[list[bytes]] = [[] for _ in paths]
    for drawn in all_drawn:
        for number, mates in enumerate(draw_reads(drawn, kind, source)):
            for text, mate in zip(texts, mates, strict=True):
                name = f"{drawn.label}_{number}".encode()
                text.append(b"@%b\n%b\n+\n%b\n" % (name, mate, QUALITY * len(mate)))
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(b"".join(text))
    return paths


def label_of(name: str) -> str:
    """The label of a read."""
    return name.partition("_")[0]
