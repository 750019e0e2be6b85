"""The length of fragments, estimated from pairs that can be connected without knowing it.

A sample of the pairs is extended with wide bounds and the strictest rules. Pairs that overlap and
pairs with a gap are found alike. The estimate is the mean and the standard deviation of the
lengths near the median, so that the odd chimera or repeat does not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.extend.params import MAX_FRAGMENT, ExtensionParameters

SAMPLE = 4096
"""Pairs that are looked at, spread evenly over the input."""

MAX_SAMPLED_FRAGMENT = 2000
"""Maximum fragment length for the estimate, in bases, unless ``--max-length`` is given."""

MIN_CONNECTED = 20
"""Connected pairs below which nothing is estimated."""


@dataclass(frozen=True, slots=True)
class InsertSize:
    """Length of fragments.

    Attributes:
        mean: in bases.
        sd: standard deviation in bases.
        estimated: whether it was estimated.
        pairs: connected pairs that the estimate is from.
    """

    mean: float
    sd: float
    estimated: bool = False
    pairs: int = 0


def sampled_pairs(pairs: int) -> NDArray[np.int64]:
    """Numbers of the pairs of the sample."""
    count = min(pairs, SAMPLE)
    return (np.arange(count, dtype=np.int64) * pairs) // max(1, count)


def sampling_parameters(parameters: ExtensionParameters) -> ExtensionParameters:
    """Parameters with which the sample is extended."""
    return replace(
        parameters,
        strict=2,
        outward=False,
        min_length=parameters.min_length or 1,
        max_length=parameters.max_length
        or max(MAX_SAMPLED_FRAGMENT, min(MAX_FRAGMENT, 2 * (parameters.min_length or 1))),
    )


def estimate_insert(lengths: NDArray[np.int32], sampled: int) -> InsertSize:
    """Mean and deviation of the lengths of connected fragments.

    Args:
        lengths: of those of the sample.
        sampled: pairs of the sample.

    Raises:
        UsageError: there are too few.
    """
    if len(lengths) < MIN_CONNECTED:
        raise UsageError(
            f"only {len(lengths)} of {sampled:,} sampled pairs could be connected, too few to "
            "estimate the insert size; give `insert_mean` and `insert_sd`, or another "
            "`library` if the mate orientation differs"
        )
    middle = np.median(lengths)
    deviation = np.median(np.abs(lengths - middle))
    near = lengths[np.abs(lengths - middle) <= max(20.0, 8 * deviation)]
    return InsertSize(
        mean=round(float(near.mean()), 1),
        sd=round(max(1.0, float(near.std())), 1),
        estimated=True,
        pairs=len(near),
    )
