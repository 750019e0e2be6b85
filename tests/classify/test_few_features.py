"""Fractions of shared k-mers told from few features, against plain Python and drawn reads."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
import pytest

from ngsgpu.classify.call.few_features import (
    CLASSES,
    EXACT,
    LEAST_HITS,
    class_of,
    last_above,
    smaller,
)
from ngsgpu.classify.params import PER_MILLION

SHARES = tuple((2 * i + 1) / 400 for i in range(200))


def pairs(most: int) -> Iterator[tuple[int, int]]:
    """Numbers of features, and of hits among them."""
    for features in range(LEAST_HITS, most + 1):
        yield from ((features, hits) for hits in range(LEAST_HITS, features + 1))


def test_each_number_of_few_features_and_hits_is_a_class() -> None:
    classes = [class_of(*own) for own in pairs(EXACT)]
    assert classes == list(range(len(classes)))


def test_classes_of_more_features_follow_and_ascend_with_hits() -> None:
    first = class_of(EXACT, EXACT) + 1
    found = {own: class_of(*own) for own in pairs(300) if own[0] > EXACT}
    assert first <= min(found.values()) and max(found.values()) == CLASSES - 1
    for (features, hits), own in found.items():
        if hits > LEAST_HITS:
            assert own >= found[features, hits - 1]
    assert class_of(1, 3) == class_of(2, 2) and class_of(5, 9) == class_of(5, 5)


def test_the_table_is_what_plain_sums_say() -> None:
    table = smaller(0.75, (0.2, 0.6))
    # Stretches: quantiles of a gamma distribution of shape 2, by bisection in plain Python.
    stretches = [_quantile((i + 0.5) / 24) / _quantile(0.5) for i in range(24)]
    for features, hits in pairs(6):
        for place, share in enumerate((0.2, 0.6)):
            ways = [0.0] * (features + 1)
            for stretch in stretches:
                found = 0.75 * share**stretch
                for k in range(LEAST_HITS, features + 1):
                    ways[k] += comb(features, k) * found**k * (1 - found) ** (features - k)
            expected = (sum(ways[:hits]) + ways[hits] / 2) / sum(ways)
            assert abs(table[class_of(features, hits), place] - expected * PER_MILLION) <= 1


def _quantile(wanted: float) -> float:
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - (1 + middle) * np.exp(-middle) < wanted else (low, middle)
    return low


@pytest.mark.parametrize("features", [4, 9, 30, 80])
@pytest.mark.parametrize("share", [0.3, 0.4, 0.7])
def test_the_fraction_of_drawn_reads_is_found_whatever_their_features(
    features: int, share: float
) -> None:
    """Reads of which only those with enough hits are seen do not look closer than they are."""
    rng = np.random.default_rng(features)
    stretches = np.array([_quantile((i + 0.5) / 24) / _quantile(0.5) for i in range(24)])
    own = rng.poisson(features, 20_000)
    hits = rng.binomial(own, 0.75 * share ** rng.choice(stretches, len(own)))
    counts = np.zeros((3, CLASSES), dtype=np.int64)
    for read in np.flatnonzero(hits >= LEAST_HITS).tolist():
        counts[1, class_of(int(own[read]), int(hits[read]))] += 1
    assert last_above(counts[:1], 0.75, SHARES).tolist() == [0]
    first, found, last = last_above(counts, 0.75, SHARES).tolist()
    assert (first, last) == (0, 0)
    assert SHARES[found] == pytest.approx(share, abs=0.05)
    low, high = (last_above(counts[1:2], 0.75, SHARES, more)[0] for more in (20_000, -20_000))
    assert low <= found <= high
