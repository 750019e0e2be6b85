"""Probabilities of numbers that are due to chance."""

from __future__ import annotations

import math
from typing import Final

LEAST_CHANCE: Final = 1e-300
"""Stands for all smaller probabilities."""
_NEGLIGIBLE: Final = 1e-17


def at_least(count: int, mean: float) -> float:
    """Probability that a Poisson variable is ``count`` or more, at least ``LEAST_CHANCE``."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return LEAST_CHANCE
    # Terms fall from the one nearest the mean on, which is summed up from.
    if count > mean:
        return max(_tail(count, mean, 1), LEAST_CHANCE)
    return max(1.0 - _tail(count - 1, mean, -1), LEAST_CHANCE)


def _tail(count: int, mean: float, step: int) -> float:
    """Probability of ``count`` or more (``step`` 1), or of ``count`` or less (-1)."""
    term = total = 1.0
    at = count
    while term > _NEGLIGIBLE * total and at + step >= 0:
        term *= mean / (at + 1) if step > 0 else at / mean
        total += term
        at += step
    log = count * math.log(mean) - mean - math.lgamma(count + 1) + math.log(total)
    return math.exp(min(log, 0.0))
