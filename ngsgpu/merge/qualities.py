"""Qualities of merged bases, as tables of the two scores.

``flash`` (Magoč and Salzberg 2011, and FLASH 1.2.11): equal bases get the higher score, different
ones the difference of the scores, at least 2; or, capped, the lower score, at most 2.

``edgar``: the posterior probability that the base is wrong, given two independent calls with
error probabilities x and y and errors that are equally likely to be any of the other three bases
(Edgar and Flyvbjerg 2015, as in Tynes 2018, section 2.5.1). Error probabilities are capped at 3/4,
which means no information: such a base leaves the other one unchanged.

``calibrated``: the same of the error probabilities that the overlaps of the first pairs show
(``calibration``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.merge.params import MergeParameters

SCORES = 128
"""Rows and columns of the tables: a power of two, so that an index is a shift and a sum."""

CYCLES = 10
"""Parts of a read that are calibrated apart, each of ``1 << CYCLE_BITS`` bases but the last."""
CYCLE_BITS = 5

UNIT = 256
"""Log-likelihoods are integers, this many to a bit, so that both backends add up the same."""

_NOTHING_KNOWN = 0.75
_DIVERGENCE = 0.1
"""Part of the bases in which copies of a repeat differ."""
_SURPRISE = 5e-4
"""Least probability of a mismatch in an overlap: what qualities do not know, as variants."""


class Tables(NamedTuple):
    """What the kernels look up.

    Attributes:
        agree: uint8[SCORES * SCORES], scores of equal bases.
        differ: uint8[SCORES * SCORES], scores of the better one of two that differ.
        scores: uint8[2 * CYCLES * SCORES], scores by mate, part of the read, and stated score.
        alone: uint8[SCORES], scores outside overlaps by calibrated score.
        match: int32[SCORES * SCORES], evidence of equal bases against chance, without ``base``.
        mismatch: int32[SCORES * SCORES], evidence of different ones against it.
        alike: int32[SCORES * SCORES], evidence of equal bases against related sequences.
        unlike: int32[SCORES * SCORES], evidence of different ones against them.
        base: int32[4], evidence of equal bases A, C, G and T: rarer ones say more.
        prior: int32[longest fragment + 1], that of fragments of each length against none that can
            be seen; longer ones are like the last.
        usual: int32[longest fragment + 1], that of fragments of each length against all lengths
            being as frequent, where they are more frequent.
    """

    agree: NDArray[np.uint8]
    differ: NDArray[np.uint8]
    scores: NDArray[np.uint8]
    alone: NDArray[np.uint8]
    match: NDArray[np.int32]
    mismatch: NDArray[np.int32]
    alike: NDArray[np.int32]
    unlike: NDArray[np.int32]
    base: NDArray[np.int32]
    prior: NDArray[np.int32]
    usual: NDArray[np.int32]


def as_stated() -> NDArray[np.uint8]:
    """``Tables.scores`` that change nothing."""
    return np.tile(np.arange(SCORES, dtype=np.uint8), 2 * CYCLES)


def quality_tables(
    parameters: MergeParameters, phred_offset: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """``Tables.agree``, ``Tables.differ`` and ``Tables.alone`` of a model.

    Args:
        parameters: which model, and its caps.
        phred_offset: 33 or 64; scores are such that their characters can be printed.
    """
    first, second = np.indices((SCORES, SCORES))
    highest = 126 - phred_offset
    alone = np.arange(SCORES)
    if parameters.quality == "flash":
        agree = np.maximum(first, second)
        if parameters.cap_mismatch_quals:
            differ = np.minimum(np.minimum(first, second), 2)
        else:
            differ = np.maximum(np.abs(first - second), 2)
    else:
        agree, differ = _posterior_scores(first, second)
        highest = min(highest, parameters.max_quality)
    if parameters.quality == "calibrated":
        alone = np.minimum(to_scores(_error_probability(alone)), highest)
    return _table(agree, highest), _table(differ, highest), alone.astype(np.uint8)


def evidence(uniform: NDArray[np.float64]) -> tuple[NDArray[np.int32], ...]:
    """``Tables.match``, ``mismatch``, ``alike``, ``unlike`` and ``base``.

    Args:
        uniform: float64[4], frequencies of A, C, G and T.
    """
    first, second = (_error_probability(scores) for scores in np.indices((SCORES, SCORES)))
    match = (1 - first) * (1 - second) + first * second / 3
    mismatch = np.maximum(1 - match, _SURPRISE)
    related = 1 - match + _DIVERGENCE * (4 * match - 1) / 3
    return (
        in_units(match).ravel(),
        in_units(4 * mismatch / 3).ravel(),
        in_units(match / (1 - related)).ravel(),
        in_units(np.minimum(mismatch / related, 1)).ravel(),
        in_units(1 / uniform),
    )


def in_units(odds: NDArray[np.float64]) -> NDArray[np.int32]:
    """Logarithms of odds, in units of ``1 / UNIT`` bits."""
    return np.floor(UNIT * np.log2(odds) + 0.5).astype(np.int32)


def _posterior_scores(
    first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scores of equal bases, and of the better one of two that differ."""
    better = _error_probability(np.maximum(first, second))
    worse = _error_probability(np.minimum(first, second))
    product = better * worse
    agree = product / 3 / (1 - better - worse + 4 * product / 3)
    differ = better * (1 - worse / 3) / (better + worse - 4 * product / 3)
    return to_scores(agree), to_scores(differ)


def _error_probability(score: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.minimum(_NOTHING_KNOWN, 10 ** (-score / 10))


def to_scores(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Phred scores, rounded to nearest."""
    return np.floor(-10 * np.log10(probability) + 0.5).astype(np.int64)


def _table(scores: NDArray[np.int64], highest: int) -> NDArray[np.uint8]:
    return np.minimum(scores, highest).astype(np.uint8).ravel()
