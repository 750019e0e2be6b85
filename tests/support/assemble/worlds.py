"""Random graphs, and k-mers as databases have them."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from ngsgpu.kmers.params import words_of
from tests.support.minhash.oracle import number, reverse_complement


def packed(kmers: list[str], k: int) -> NDArray[np.uint64]:
    """K-mers as a database has them."""
    words = words_of(k)
    rows = np.zeros((len(kmers), words), dtype=np.uint64)
    for i, kmer in enumerate(kmers):
        value = number(kmer) << 2 * (32 * words - k)
        for j in range(words):
            rows[i, j] = (value >> 64 * (words - 1 - j)) & ((1 << 64) - 1)
    return rows


def world(seed: int, k: int) -> list[str]:
    """Genomes that are lines or circles, with repeats on both strands and a few variants."""
    rng = random.Random(seed)
    letters = rng.choice(["ACGT", "ACGT", "AT", "AC", "ACG"])
    sequences = []
    for _ in range(rng.randrange(1, 5)):
        own = "".join(rng.choices(letters, k=rng.randrange(1, 6 * k)))
        for _ in range(rng.randrange(3)):
            begin = rng.randrange(len(own))
            piece = own[begin : begin + rng.randrange(2 * k)]
            own += rng.choice([piece, reverse_complement(piece)])
        if rng.random() < 0.4:
            own = (own * (k // len(own) + 2))[: len(own) + k - 1]
        sequences.append(own)
        if rng.random() < 0.4:
            at = rng.randrange(len(own))
            sequences.append(own[:at] + rng.choice("ACGT") + own[at + 1 :])
    return sequences
