"""Indexes whose sizes fit and whose content is rubbish."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.suffix import FmIndex
from ngsgpu.suffix.fm import SAMPLED, word_count


def rubbish(source: np.random.Generator, size: int, kind: str) -> FmIndex:
    """A consistent index of ``size`` bases whose transform is then overwritten.

    Args:
        source: of random numbers.
        size: of the text.
        kind: ``zeros``, ``random``, or ``bases`` (right counts, and bases in any order).
    """
    own = source.multinomial(size, [0.25] * 4)
    totals = np.concatenate(([0], np.cumsum(own))).astype(np.int64)
    words = np.zeros(word_count(size), dtype=np.uint32)
    if kind == "random":
        words[:] = source.integers(0, 1 << 32, len(words), dtype=np.uint32)
    elif kind == "bases":
        _write_bases(words, source.permutation(np.repeat(np.arange(4), own)))
    sample = source.integers(0, size, size // SAMPLED + 1)
    sample[0] = -1
    return FmIndex(int(source.integers(1, size + 1)), totals, words, sample)


def _write_bases(words: NDArray[np.uint32], bases: NDArray[np.int64]) -> None:
    """Write bases and the right counts before each block."""
    counts = np.zeros(4, dtype=np.int64)
    at = 0
    for begin in range(0, len(bases), 128):
        words[at : at + 8] = counts.view(np.uint32)
        block = bases[begin : begin + 128]
        at += 8
        for first in range(0, len(block), 16):
            word = 0
            for place, base in enumerate(block[first : first + 16].tolist()):
                word |= base << (30 - 2 * place)
            words[at] = word
            at += 1
        counts += np.bincount(block, minlength=4)
    words[at:] = counts.view(np.uint32)


def reads(source: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes of some reads, a few of them ambiguous, and where they begin."""
    lengths = source.integers(0, 120, 40)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return source.choice(5, int(starts[-1]), p=[0.24] * 4 + [0.04]).astype(np.uint8), starts
