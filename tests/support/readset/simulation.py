"""Reads of a random genome with errors, made with NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)
COMPLEMENT = np.array([3, 2, 1, 0], dtype=np.uint8)


@dataclass(frozen=True)
class Simulated:
    """Reads and their truth.

    Attributes:
        truth: codes of each read without errors.
        codes: the same with errors.
        scores: Phred scores of the bases.
    """

    truth: list[NDArray[np.uint8]]
    codes: list[NDArray[np.uint8]]
    scores: list[NDArray[np.uint8]]

    def sequences(self) -> list[bytes]:
        return [LETTERS[codes].tobytes() for codes in self.codes]

    def truths(self) -> list[bytes]:
        return [LETTERS[codes].tobytes() for codes in self.truth]

    def qualities(self) -> list[bytes]:
        return [(scores + 33).tobytes() for scores in self.scores]

    def write_fastq(self, path: object, *, mate: int | None = None) -> None:
        """Write all reads, or those of one mate (0 or 1), as FASTQ."""
        step, first = (1, 0) if mate is None else (2, mate)
        ending = "" if mate is None else f"/{mate + 1}"
        records = zip(self.sequences()[first::step], self.qualities()[first::step], strict=True)
        with open(path, "wb") as file:  # type: ignore[call-overload] # noqa: PTH123
            for number, (letters, quality) in enumerate(records):
                file.write(b"@r%d%s\n%s\n+\n%s\n" % (number, ending.encode(), letters, quality))


def random_genome(
    generator: np.random.Generator, length: int, *, repeats: int = 0, repeat_length: int = 500
) -> NDArray[np.uint8]:
    """Codes of a genome in which ``repeats`` pieces occur a second time, 1 % different."""
    genome = generator.integers(0, 4, length, dtype=np.uint8)
    for _ in range(repeats):
        source, target = generator.integers(0, length - repeat_length, 2)
        piece = with_errors(generator, genome[source : source + repeat_length], 0.01)
        if generator.random() < 0.5:
            piece = COMPLEMENT[piece[::-1]]
        genome[target : target + repeat_length] = piece
    return genome


def with_errors(
    generator: np.random.Generator, codes: NDArray[np.uint8], rate: float | NDArray[np.float64]
) -> NDArray[np.uint8]:
    wrong = generator.random(len(codes)) < rate
    return (codes + wrong * generator.integers(1, 4, len(codes))).astype(np.uint8) % 4


def error_rates(generator: np.random.Generator, scores: NDArray[np.uint8]) -> NDArray[np.float64]:
    return 10.0 ** (-scores.astype(np.float64) / 10)


def quality_scores(generator: np.random.Generator, length: int) -> NDArray[np.uint8]:
    """Scores that fall towards the end of a read, about 1 % errors together."""
    level = 38 - 12 * (np.arange(length) / max(1, length)) ** 2
    scores = level + generator.normal(0, 3, length)
    bad = generator.random(length) < 0.035
    return np.clip(np.where(bad, generator.integers(2, 16, length), scores), 2, 41).astype(np.uint8)


def simulate(
    generator: np.random.Generator,
    genome: NDArray[np.uint8],
    coverage: float,
    *,
    shortest: int = 100,
    longest: int = 100,
    paired: bool = False,
    insert: int = 300,
) -> Simulated:
    """Reads at a coverage (reads per position), mates alternating if ``paired``."""
    simulated = Simulated([], [], [])
    bases = 0
    while bases < coverage * len(genome):
        length = int(generator.integers(shortest, longest + 1))
        span = insert + int(generator.integers(-10, 11)) if paired else length
        start = int(generator.integers(0, len(genome) - span + 1))
        fragment = genome[start : start + span]
        if generator.random() < 0.5:
            fragment = COMPLEMENT[fragment[::-1]]
        mates = [fragment, COMPLEMENT[fragment[::-1]]] if paired else [fragment]
        for piece in mates:
            truth = piece[:length].copy()
            scores = quality_scores(generator, length)
            simulated.truth.append(truth)
            simulated.codes.append(with_errors(generator, truth, error_rates(generator, scores)))
            simulated.scores.append(scores)
            bases += length
    return simulated
