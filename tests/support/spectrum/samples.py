"""Reads with errors for tests of the spectrum correction."""

from __future__ import annotations

import random

from tests.support.spectrum import oracle

_SHORTEST = 10
_LONGEST = 45


def sample(
    seed: int, reads: int, errors: float, of_errors: tuple[int, ...] = (2, 12, 25)
) -> tuple[list[str], list[str], list[str]]:
    """Truth, reads and qualities of a genome with a repeat and a variant, with Ns and noise."""
    rng = random.Random(seed)
    unit = "".join(rng.choices("ACGT", k=60))
    genome = "".join(rng.choices("ACGT", k=150)) + unit + "".join(rng.choices("ACGT", k=90))
    genome += oracle.changed(unit, {30: "A", 50: "C"})
    truths, texts, qualities = [], [], []
    for _ in range(reads):
        begin = rng.randrange(len(genome) - _LONGEST)
        truth = genome[begin : begin + rng.randint(_SHORTEST, _LONGEST)]
        truth = truth if rng.random() < 0.5 else oracle.turned(truth)
        wrong = {i for i in range(len(truth)) if rng.random() < errors}
        text = oracle.changed(truth, {i: rng.choice("ACGT") for i in wrong})
        if rng.random() < 0.1:
            text = oracle.changed(text, {rng.randrange(len(text)): "N"})
        if rng.random() < 0.02:
            text = "".join(rng.choices("ACGT", k=len(text)))
        scores = [rng.choice(of_errors if i in wrong else (12, 25, 37)) for i in range(len(text))]
        truths.append(truth)
        texts.append(text)
        qualities.append("".join(chr(33 + score) for score in scores))
    return truths, texts, qualities


def errors_in(
    rng: random.Random, *, genome: int, reads: int, length: int
) -> tuple[list[str], list[str], list[str]]:
    """Reads, qualities and truth of a random genome; of errors, one in four has a good quality."""
    text = "".join(rng.choices("ACGT", k=genome))
    texts, qualities, truths = [], [], []
    for _ in range(reads):
        begin = rng.randrange(genome - length + 1)
        truth = text[begin : begin + length]
        truth = truth if rng.random() < 0.5 else oracle.turned(truth)
        wrong = {i: rng.choice("ACGT") for i in range(length) if rng.random() < 0.01}
        low = {i for i in wrong if rng.random() < 0.75} | {rng.randrange(length)}
        texts.append(oracle.changed(truth, wrong))
        qualities.append("".join("+" if i in low else "I" for i in range(length)))
        truths.append(truth)
    return texts, qualities, truths
