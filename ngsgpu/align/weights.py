"""Weights of bases, from their qualities; see ``weights.cuh`` for the GPU."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ngsgpu.readset.cpu import BIN_SCORES

WEIGHT_BITS = 14
"""A weight of 1 is ``1 << WEIGHT_BITS``: 65,536 full weights still fit 31 bits."""

Q20_WEIGHT = math.floor(0.99 * (1 << WEIGHT_BITS))
"""Weight of a Q20 base."""

MIN_QUALITY_WEIGHT = 0.001


def quality_weights(quality_bits: int) -> NDArray[np.int32]:
    """Weight of each stored quality code: 1 minus the error probability, at least 0.001.

    Returns:
        int32[codes] in 2^-14; one entry of weight 1 where no qualities are kept.
    """
    if quality_bits == 0:
        return np.array([1 << WEIGHT_BITS], dtype=np.int32)
    scores = BIN_SCORES[quality_bits].astype(np.float64)
    weights = np.maximum(MIN_QUALITY_WEIGHT, 1 - 10 ** (-scores / 10))
    return np.floor(weights * (1 << WEIGHT_BITS) + 0.5).astype(np.int32)
