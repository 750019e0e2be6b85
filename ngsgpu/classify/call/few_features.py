"""Which fraction of their k-mers reads share, where a database has a fraction of the features.

There a read has few features (``features``, n), and those with fewer than ``LEAST_HITS`` hits are
not looked at, so that hits by themselves say little: of four features two are found, if any read
counts. Instead each number of hits is compared with what else reads with as many features would
show: at a fraction s of shared k-mers, the share of such reads that have fewer hits, and half of
those that have as many. In the mean over the reads of a species this is a half where s is right,
and above it where s is too small.

- Of n features of a read, each is found in an identical sequence with a probability q, the mean
  over all reads of a sample of hits that are expected for each feature (``SketchParameters``).
- Differences are not spread evenly over a genome. Where the median stretch shares s, one with g
  times as many differences as that shares s ** g; g is spread as the time to the second of two
  accidents (a gamma distribution of shape 2, with a median of 1).

Reads are counted by classes of features and hits. All sums are of integers; floating point makes
the table, which is rounded.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import PER_MILLION
from ngsgpu.jit import Integer, njit

LEAST_HITS: Final = 2
"""A read with fewer hits is left out: one is chance."""
EXACT: Final = 16
"""Features up to which each number of features and hits is a class."""
_OF_EXACT: Final = EXACT * (EXACT - 1) // 2
STEPS: Final = 20
"""Classes of hits of reads with more features, which are in groups of sizes that double."""
_FIRST_GROUP: Final = 24
_GROUPS: Final = (20, 36, 72, 128)
"""Features that stand for those of a group: 17 to 24, to 48, to 96, and more."""
CLASSES: Final = _OF_EXACT + STEPS * len(_GROUPS)

_STRETCHES: Final = 24
"""Stretches of a genome, as many reads of each, with other numbers of differences."""


@njit(nogil=True, cache=True)
def class_of(features: Integer, hits: Integer) -> Integer:
    """The class of a read with at least ``LEAST_HITS``, 0 to ``CLASSES`` - 1."""
    if features <= EXACT:
        # A feature that a range has twice is hit twice.
        most = max(features, LEAST_HITS)
        return (most - 2) * (most - 1) // 2 + min(hits, most) - LEAST_HITS
    group = 0
    while group < len(_GROUPS) - 1 and features > _FIRST_GROUP << group:
        group += 1
    return _OF_EXACT + STEPS * group + min(hits * STEPS // features, STEPS - 1)


def last_above(
    counts: NDArray[np.int64], found: float, shares: tuple[float, ...], more: int = 0
) -> NDArray[np.int64]:
    """The largest fraction of shared k-mers for which the reads of a species do not have too few.

    Args:
        counts: int64[species, CLASSES], reads.
        found: probability to find a feature in an identical sequence.
        shares: the fractions, ascending.
        more: millionths that the mean has to be above a half.

    Returns:
        int64[species], index of the fraction; 0 without reads.
    """
    known = np.flatnonzero(counts.any(axis=1))
    own = counts[known]
    mean = own @ smaller(found, shares)
    wanted = own.sum(axis=1) * (PER_MILLION // 2 + more)
    last = np.zeros(len(counts), dtype=np.int64)
    last[known] = np.maximum((mean >= wanted[:, None]).sum(axis=1) - 1, 0)
    return last


@lru_cache(maxsize=4)
def smaller(found: float, shares: tuple[float, ...]) -> NDArray[np.int64]:
    """Millionths of reads that have fewer hits than those of a class, and half of those in it.

    Args:
        found: probability to find a feature in an identical sequence.
        shares: fractions of k-mers.

    Returns:
        int64[CLASSES, shares].
    """
    probability = found * np.array(shares)[:, None] ** _differences()
    return np.concatenate([
        *(_of_features(features, features, probability)[LEAST_HITS:]
          for features in range(LEAST_HITS, EXACT + 1)),
        *(_of_features(features, STEPS, probability)[:STEPS] for features in _GROUPS),
    ])  # fmt: skip


def _differences() -> NDArray[np.float64]:
    """Of stretches of a genome, as many reads of each: differences, 1 in the median one."""
    wanted = np.append((np.arange(_STRETCHES) + 0.5) / _STRETCHES, 0.5)
    low, high = np.zeros(len(wanted)), np.full(len(wanted), 64.0)
    for _ in range(64):
        middle = (low + high) / 2
        is_below = 1 - (1 + middle) * np.exp(-middle) < wanted
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return low[:-1] / low[-1]


def _of_features(features: int, steps: int, probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """See ``smaller``: of reads with as many features, by hits in steps; int64[steps + 1, shares].

    Args:
        features: of a read.
        steps: in which hits are counted.
        probability: to find a feature, float64[shares, stretches].
    """
    of_step = np.zeros((steps + 1, len(probability)))
    for hits in range(LEAST_HITS, features + 1):
        ways = comb(features, hits) * probability**hits * (1 - probability) ** (features - hits)
        of_step[min(hits * steps // features, steps)] += ways.mean(axis=1)
    if steps < features:
        of_step[steps - 1] += of_step[steps]
        of_step[steps] = 0
    total = np.maximum(of_step.sum(axis=0), np.finfo(np.float64).tiny)
    below = (np.cumsum(of_step, axis=0) - of_step / 2) / total
    return np.rint(below * PER_MILLION).astype(np.int64)
