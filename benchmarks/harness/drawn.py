"""Reads drawn at random from sequences, as FASTQ."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Letters = NDArray[np.uint8]

LETTERS: Final = np.frombuffer(b"ACGT", dtype=np.uint8)
QUALITIES: Final = np.frombuffer(b"#-:" + b"F" * 13, dtype=np.uint8)
"""What qualities are drawn from: those of an instrument that gives few values."""

_COMPLEMENT: Final = np.arange(256, dtype=np.uint8)
_COMPLEMENT[LETTERS] = LETTERS[::-1]


def mates(fragments: Letters, length: int) -> tuple[Letters, Letters]:
    """Reads of both ends of fragments.

    Args:
        fragments: [n, bases].
        length: of a read.

    Returns:
        [n, length] each; they may be written to.
    """
    return fragments[:, :length].copy(), _COMPLEMENT[fragments[:, : -length - 1 : -1]]


def substitute(bases: Letters, share: float, rng: np.random.Generator) -> None:
    """Draw a share of the bases anew, which may give the same base."""
    changed = rng.random(bases.shape, dtype=np.float32) < share
    bases[changed] = LETTERS[rng.integers(0, 4, int(changed.sum()))]


def fastq(name: bytes, first: int, bases: Letters, rng: np.random.Generator | None = None) -> bytes:
    """Records of reads.

    Args:
        name: with a ``%d`` for the number of the read.
        first: number of the first one.
        bases: [n, length].
        rng: draws qualities; without, all are the best.
    """
    shape = bases.shape
    qualities = np.full(shape, QUALITIES[-1]) if rng is None else rng.choice(QUALITIES, shape)
    record = b"@" + name + b"\n%s\n+\n%s\n"
    return b"".join(
        record % (first + i, own.tobytes(), quality.tobytes())
        for i, (own, quality) in enumerate(zip(bases, qualities, strict=True))
    )
