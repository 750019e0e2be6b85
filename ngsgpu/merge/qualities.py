"""Qualities of two overlapping bases, as tables of their two scores.

``flash`` (Magoč and Salzberg 2011, and FLASH 1.2.11): equal bases get the higher score, different
ones the difference of the scores, at least 2; or, capped, the lower score, at most 2.

``edgar``: the posterior probability that the base is wrong, given two independent calls with
error probabilities x and y and errors that are equally likely to be any of the other three bases
(Edgar and Flyvbjerg 2015, as in Tynes 2018, section 2.5.1). Error probabilities are capped at 3/4,
which means no information: such a base leaves the other one unchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.merge.params import MergeParameters

SCORES = 128
"""Rows and columns of the tables: a power of two, so that an index is a shift and a sum."""

_NOTHING_KNOWN = 0.75


class QualityTables(NamedTuple):
    """Scores of merged bases, by the scores of the first and the second read's base.

    Attributes:
        agree: uint8[SCORES * SCORES], where the bases are equal.
        differ: uint8[SCORES * SCORES], where they are not.
    """

    agree: NDArray[np.uint8]
    differ: NDArray[np.uint8]


def quality_tables(parameters: MergeParameters, phred_offset: int) -> QualityTables:
    """The tables of a model.

    Args:
        parameters: which model, and its caps.
        phred_offset: 33 or 64; scores are such that their characters can be printed.
    """
    first, second = np.indices((SCORES, SCORES))
    highest = 126 - phred_offset
    if parameters.quality == "flash":
        agree = np.maximum(first, second)
        if parameters.cap_mismatch_quals:
            differ = np.minimum(np.minimum(first, second), 2)
        else:
            differ = np.maximum(np.abs(first - second), 2)
    else:
        agree, differ = _posterior_scores(first, second)
        highest = min(highest, parameters.max_quality)
    return QualityTables(*(_table(scores, highest) for scores in (agree, differ)))


def _posterior_scores(
    first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scores of equal bases, and of the better one of two that differ."""
    better = _error_probability(np.maximum(first, second))
    worse = _error_probability(np.minimum(first, second))
    product = better * worse
    agree = product / 3 / (1 - better - worse + 4 * product / 3)
    differ = better * (1 - worse / 3) / (better + worse - 4 * product / 3)
    return _score(agree), _score(differ)


def _error_probability(score: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.minimum(_NOTHING_KNOWN, 10 ** (-score / 10))


def _score(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(-10 * np.log10(probability) + 0.5).astype(np.int64)


def _table(scores: NDArray[np.int64], highest: int) -> NDArray[np.uint8]:
    return np.minimum(scores, highest).astype(np.uint8).ravel()
