"""Reads of random genomes with everything that real ones have, and files of them."""

from __future__ import annotations

import gzip
import random
from pathlib import Path


def simulate(
    rng: random.Random, *, paired: bool, quality: bool, most: int | None = None
) -> tuple[list[str], list[str] | None]:
    """Reads of a random genome with repeats: errors, indels, Ns, mixed lengths, both strands.

    Args:
        rng: what decides.
        paired: whether mates are in turn; else the first read is left out.
        quality: whether there are qualities.
        most: after so many reads no further pair is made.
    """
    genome = "".join(rng.choices("ACGT", k=rng.randrange(500, 6000)))
    for _ in range(rng.randrange(4)):
        unit = genome[: rng.randrange(100, 400)]
        genome += "".join(rng.choice("ACGT") if rng.random() < 0.01 else base for base in unit)
        genome += "".join(rng.choices("ACGT", k=50))
    longest = rng.choice([50, 76, 100, 100, 150, 250, 300])
    mixed = rng.random() < 0.4
    coverage = rng.choice([3, 10, 30, 60, 200])
    complement = str.maketrans("ACGT", "TGCA")
    sequences, qualities = [], []
    for _ in range(max(2, int(coverage * len(genome) / longest / 2))):
        if most is not None and len(sequences) >= most:
            break
        insert = min(len(genome), longest + rng.randrange(10, 200))
        begin = rng.randrange(len(genome) - insert + 1)
        fragment = genome[begin : begin + insert]
        if rng.random() < 0.5:
            fragment = fragment.translate(complement)[::-1]
        for mate in (fragment, fragment.translate(complement)[::-1]):
            length = rng.randrange(10, longest + 1) if mixed else longest
            if rng.random() < 0.03:
                at, size = rng.randrange(length), rng.randrange(1, 4)
                extra = "".join(rng.choices("ACGT", k=size)) if rng.random() < 0.5 else ""
                mate = mate[:at] + extra + mate[at if extra else at + size :]
            letters, scores = [], []
            for base in mate[:length]:
                score = rng.choice([2, 10, 20, 30, 40])
                if rng.random() < 10 ** (-score / 10) * 0.3:
                    base = rng.choice("ACGTN")
                letters.append(base)
                scores.append(chr(33 + score))
            sequences.append("".join(letters))
            qualities.append("".join(scores))
    if not paired:
        sequences, qualities = sequences[1:], qualities[1:]
    return sequences, qualities if quality else None


def write_fastq(path: Path, sequences: list[str], qualities: list[str], line_end: str) -> None:
    records = zip(sequences, qualities, strict=True)
    text = "".join(
        line_end.join([f"@read{number}", sequence, "+", quality, ""])
        for number, (sequence, quality) in enumerate(records)
    )
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:  # type: ignore[operator]
        file.write(text.encode())
