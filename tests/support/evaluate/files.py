"""Small simulated pairs in files, as ART writes them, for tests."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.evaluate import oracle


@dataclass
class Pairs:
    """Reads with truth; index 0 and 1 are the mates."""

    names: list[str] = field(default_factory=list)
    truth: tuple[list[bytes], list[bytes]] = ((), ())  # type: ignore[assignment]
    before: tuple[list[bytes], list[bytes]] = ((), ())  # type: ignore[assignment]
    after: tuple[list[bytes], list[bytes]] = ((), ())  # type: ignore[assignment]


def mutate(read: bytes, generator: random.Random, rate: float) -> bytes:
    return bytes(generator.choice(b"ACGTN") if generator.random() < rate else base for base in read)


def make_pairs(count: int, seed: int, *, paired: bool = True) -> Pairs:
    generator = random.Random(seed)
    pairs = Pairs([f"chr-{number}" for number in range(count, 0, -1)], ([], []), ([], []), ([], []))
    for _ in pairs.names:
        for mate in range(2 if paired else 1):
            length = generator.randint(5, 40)
            truth = bytes(generator.choice(b"ACGT") for _ in range(length))
            before = mutate(truth, generator, 0.04)
            after = bytes(
                t if generator.random() < 0.8 else b for t, b in zip(truth, before, strict=True)
            )
            pairs.truth[mate].append(truth)
            pairs.before[mate].append(before)
            pairs.after[mate].append(mutate(after, generator, 0.01))
    return pairs


def fastq(names: list[str], reads: list[bytes], ending: str = "\n") -> bytes:
    records = (
        f"@{name}{ending}{read.decode()}{ending}+{ending}{'I' * len(read)}{ending}"
        for name, read in zip(names, reads, strict=True)
    )
    return "".join(records).encode()


def sam_line(name: str, truth: bytes, flag: int, cigar: str | None = None) -> str:
    bases = oracle.reverse_complement(truth) if flag & 16 else truth
    cigar = cigar or f"{len(bases)}="
    return f"{name}\t{flag}\tchr\t1\t99\t{cigar}\t=\t1\t0\t{bases.decode()}\t{'~' * len(bases)}\n"


def sam_records(pairs: Pairs) -> list[str]:
    """Alternating strands, mates one after the other, as ART's error-free SAM has them."""
    lines = []
    for row, name in enumerate(pairs.names):
        flags = (99, 147) if row % 2 else (83, 163)
        lines += [sam_line(name, pairs.truth[m][row], flags[m]) for m in range(2)]
    return lines


HEADER = "@HD\tVN:1.4\tSO:unsorted\n@SQ\tSN:chr with words\tLN:1000\n"


def write_pairs(folder: Path, pairs: Pairs) -> dict[str, Path]:
    """Files ``truth``, ``in1``, ``in2``, ``out1``, ``out2``."""
    paths = {name: folder / f"{name}.fq" for name in ("in1", "in2", "out1", "out2")}
    for mate in range(2):
        names = [f"{name}/{mate + 1}" for name in pairs.names]
        paths[f"in{mate + 1}"].write_bytes(fastq(names, pairs.before[mate]))
        paths[f"out{mate + 1}"].write_bytes(fastq(names, pairs.after[mate]))
    paths["truth"] = folder / "truth.sam"
    paths["truth"].write_text(HEADER + "".join(sam_records(pairs)))
    return paths
