"""What the reads' qualities are worth, from the disagreements of mates.

Where mates overlap and differ, at least one of both is wrong. Expectation maximisation shares the
blame among them by the error rates of their qualities, and takes the error rates from the blame,
until both agree. Rates are learned for each mate, score, and part of the read, and are drawn
towards those of the score in the whole read, and these towards what is stated, as if a few errors
at that rate had been seen already.

Nothing is learned from other molecules, which may be different ones: what both mates of a fragment
have is in the molecule, be it a variant or an error of a polymerase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.merge.qualities import CYCLES, SCORES, to_scores

_ROUNDS = 25
_PRIOR_ERRORS = 2.0
"""Errors that count as seen at the expected rate."""
_WORST = 0.75


@dataclass(frozen=True)
class Calibration:
    """Error rates of qualities.

    Attributes:
        scores: uint8[2 * CYCLES * SCORES], as ``qualities.Tables.scores``.
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
    return np.minimum(_WORST, 10 ** (-np.arange(SCORES) / 10))


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
    table = np.clip(to_scores(np.minimum(all_rates, _WORST)), 0, SCORES - 1).astype(np.uint8)
    return Calibration(table.ravel(), bases, all_rates)


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
    return [np.minimum(first, _WORST), np.minimum(second, _WORST)]
