"""Qualities of merged bases, as tables of the two scores.

``flash`` (Magoč and Salzberg 2011, and FLASH 1.2.11): equal bases get the higher score, different
ones the difference of the scores, at least 2; or, capped, the lower score, at most 2.

``edgar``: the posterior probability that the base is wrong, given two independent calls with
error probabilities x and y and errors that are equally likely to be any of the other three bases
(Edgar and Flyvbjerg 2015, as in Tynes 2018, section 2.5.1). Error probabilities are capped at 3/4,
which means no information: such a base leaves the other one unchanged.

``calibrated``: the same of the error probabilities that the overlaps of the first pairs show. Where
mates overlap and differ, at least one of both is wrong. Expectation maximisation shares the blame
among them by the error rates of their qualities, and takes the error rates from the blame, until
both agree. Rates are learned for each mate, score, and part of the read, and are drawn towards
those of the score in the whole read, and these towards what is stated, as if a few errors at that
rate had been seen already. Nothing is learned from other molecules, which may be different ones:
what both mates of a fragment have is in the molecule, be it a variant or an error of a polymerase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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


_ROUNDS = 25
_PRIOR_ERRORS = 2.0
"""Errors that count as seen at the expected rate."""


@dataclass(frozen=True)
class Calibration:
    """Error rates of qualities.

    Attributes:
        scores: uint8[2 * CYCLES * SCORES], as ``Tables.scores``.
        bases: int64[2, CYCLES, SCORES], bases in overlaps by mate, part, and score.
        rates: float64[2, CYCLES, SCORES], their error rates.
    """

    scores: NDArray[np.uint8]
    bases: NDArray[np.int64]
    rates: NDArray[np.float64]

    def for_statistics(self) -> dict[str, Any]:
        """As in the statistics of a run."""
        rows = []
        for mate in range(2):
            bases = self.bases[mate].sum(axis=0)
            for score in np.flatnonzero(bases).tolist():
                errors = float((self.rates[mate, :, score] * self.bases[mate, :, score]).sum())
                rate = errors / int(bases[score])
                rows.append(
                    {
                        "mate": mate + 1,
                        "stated": score,
                        "estimated": round(float(-10 * np.log10(rate)), 2),
                        "bases": int(bases[score]),
                    }
                )
        return {"qualities": rows}


def stated_rates() -> NDArray[np.float64]:
    """Error rates of scores, float64[SCORES]; no information is an error rate of 3/4."""
    return _error_probability(np.arange(SCORES, dtype=np.int64))


def calibrate(columns: NDArray[np.int32]) -> Calibration:
    """Learn error rates.

    Args:
        columns: int32[2, CYCLES * SCORES, CYCLES * SCORES], columns in which mates agree, and
            disagree, by the states (part of the read, score) of the first and the second mate.
    """
    shape = (CYCLES, SCORES)
    total = columns[0] + columns[1]
    counts = [total.sum(axis=1 - mate, dtype=np.int64) for mate in range(2)]
    seen = [np.flatnonzero(own) for own in counts]
    agree, differ = (part[np.ix_(*seen)].astype(np.float64) for part in columns)
    scores = [own % SCORES for own in seen]
    stated = stated_rates()
    by_score = [np.unique(own, return_inverse=True) for own in scores]
    merged = [_by_score(part, [inverse for _, inverse in by_score]) for part in (agree, differ)]
    whole = _maximise(merged[0], merged[1], [stated[own] for own, _ in by_score])
    expected = [rates[inverse] for rates, (_, inverse) in zip(whole, by_score, strict=True)]
    rates = _maximise(agree, differ, expected)
    all_rates = np.empty((2, *shape))
    bases = np.zeros((2, *shape), dtype=np.int64)
    for mate in range(2):
        own = stated.copy()
        own[by_score[mate][0]] = whole[mate]
        all_rates[mate] = own
        all_rates[mate].reshape(-1)[seen[mate]] = rates[mate]
        bases[mate] = counts[mate].reshape(shape)
    table = np.clip(to_scores(np.minimum(all_rates, _NOTHING_KNOWN)), 0, SCORES - 1)
    return Calibration(table.astype(np.uint8).ravel(), bases, all_rates)


def _by_score(part: NDArray[np.float64], groups: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Sums of a table's rows and columns by group."""
    sums = np.zeros([int(group.max(initial=-1)) + 1 for group in groups])
    np.add.at(sums, tuple(np.meshgrid(*groups, indexing="ij")), part)
    return sums


def _maximise(
    agree: NDArray[np.float64], differ: NDArray[np.float64], expected: list[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Error rates of the states of both mates, from columns by both."""
    first, second = expected
    total = agree + differ
    weights = [_PRIOR_ERRORS / own for own in expected]
    for _ in range(_ROUNDS):
        one, two = first[:, None], second[None, :]
        both_alike = one * two / 3
        both = differ * (2 * both_alike)
        different = one * (1 - two) + two * (1 - one) + 2 * both_alike
        alike = agree * both_alike / ((1 - one) * (1 - two) + both_alike)
        blame1 = (differ * one * (1 - two) + both) / different + alike
        blame2 = (differ * two * (1 - one) + both) / different + alike
        first = (blame1.sum(axis=1) + _PRIOR_ERRORS) / (total.sum(axis=1) + weights[0])
        second = (blame2.sum(axis=0) + _PRIOR_ERRORS) / (total.sum(axis=0) + weights[1])
    return [np.minimum(first, _NOTHING_KNOWN), np.minimum(second, _NOTHING_KNOWN)]
