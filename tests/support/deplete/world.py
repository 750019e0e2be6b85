"""Hosts, reads of theirs and of others, and runs whose outputs the oracle foretells."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ngsgpu.deplete import (
    DepletionParameters,
    IndexParameters,
    RunOptions,
    build_index,
    deplete_files,
)
from tests.support.deplete.oracle import is_host, kmers_of, reverse_complement
from tests.support.io.records import Record, fasta, fastq, write

Unit = tuple[Record, ...]
"""A read, or a pair."""


def sequence(rng: random.Random, length: int) -> str:
    """Bases with a repeat, a homopolymer and some N, partly in lower case."""
    bases = "".join(rng.choices("ACGT", k=length))
    at = rng.randrange(length)
    low = rng.choice(["A", "CA", "GATA"]) * 20
    bases = f"{bases[:at]}{low}NN{bases[at:]}"
    half = len(bases) // 2
    return bases[:half] + bases[half:].lower()


def read_from(rng: random.Random, source: str, length: int, changed: float) -> bytes:
    """A read of either strand of a sequence, with some bases changed."""
    start = rng.randrange(max(1, len(source) - length))
    bases = source[start : start + length]
    plain = "".join(base if base in "ACGTacgt" else "A" for base in bases)
    if rng.random() < 0.5 and plain == bases:
        bases = reverse_complement(bases.upper())
    letters = [rng.choice("ACGTN") if rng.random() < changed else base for base in bases]
    return "".join(letters).encode()


@dataclass
class World:
    """A host and others, and units of reads."""

    host: list[str]
    others: list[str]
    units: list[Unit]

    @classmethod
    def of(cls, seed: int, count: int, *, paired: bool) -> World:
        rng = random.Random(seed)
        host = [sequence(rng, rng.choice([40, 900, 3000])) for _ in range(3)]
        # Others have a stretch of the host.
        others = [sequence(rng, 2000) + host[0][:60]]
        units = []
        for number in range(count):
            source = rng.choice(rng.choice([host, others]))
            changed = rng.choice([0, 0.02, 0.1])
            mates = []
            for mate in range(1 + paired):
                bases = read_from(rng, source, rng.choice([5, 24, 36, 64, 100, 151]), changed)
                header = f"r{number}/{mate + 1}" if paired else f"r{number} of all"
                mates.append(Record(header.encode(), bases, b"F" * len(bases)))
            units.append(tuple(mates))
        return cls(host, others, units)

    def kept(
        self, parameters: IndexParameters, depletion: DepletionParameters, exclude: bool = False
    ) -> list[Unit]:
        """The units that the oracle keeps."""
        host = kmers_of(self.host, parameters)
        if exclude:
            host -= kmers_of(self.others, parameters)
        return [
            unit
            for unit in self.units
            if is_host([r.bases.decode() for r in unit], host, parameters, depletion)
            == depletion.keep_host
        ]


def write_sequences(path: Path, sequences: Sequence[str], width: int = 70) -> Path:
    records = [Record(b"s%d" % i, own.encode(), None) for i, own in enumerate(sequences)]
    return write(path, fasta(records, width=width))


def index_of(
    folder: Path, world: World, parameters: IndexParameters, *, exclude: bool = False
) -> Path:
    """Write the index of a world's host."""
    host = write_sequences(folder / "host.fa", world.host)
    others = [write_sequences(folder / "others.fa", world.others)] if exclude else []
    index = build_index([host], parameters, exclude=others, options=RunOptions(threads=2))
    path = folder / "host.idx"
    index.save(path)
    return path


def depleted(
    backend: str,
    folder: Path,
    index: Path,
    inputs: Sequence[bytes],
    depletion: DepletionParameters,
    *,
    interleaved: bool = False,
    options: RunOptions | None = None,
) -> list[bytes]:
    """Deplete texts of one or two files; what was written."""
    from dataclasses import replace

    files = [write(folder / f"in{i}", text) for i, text in enumerate(inputs)]
    outputs = [folder / f"out{i}" for i in range(len(files))]
    deplete_files(
        index, files[:1], outputs[:1], files[1:], outputs[1:],
        interleaved=interleaved,
        parameters=depletion,
        options=replace(options or RunOptions(threads=2), backend=backend),  # type: ignore[arg-type]
    )  # fmt: skip
    return [path.read_bytes() for path in outputs]


def texts(units: Sequence[Unit], *, interleaved: bool, end: bytes = b"\n") -> list[bytes]:
    """FASTQ of units: one text, or one of each mate."""
    if interleaved or not units or len(units[0]) == 1:
        return [fastq((record for unit in units for record in unit), end)]
    return [fastq((unit[mate] for unit in units), end) for mate in (0, 1)]
