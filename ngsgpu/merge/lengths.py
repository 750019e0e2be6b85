"""Histograms of lengths as files: FLASH's two, and BBMap's table of insert sizes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_WIDTH: Final = 72
"""Asterisks of the longest bar."""


def numbers(counts: NDArray[np.int64]) -> str:
    """FLASH's ``hist``: a line for each length that occurs, with its count.

    Args:
        counts: int64, how many have each length.
    """
    return "".join(f"{length}\t{counts[length]}\n" for length in np.flatnonzero(counts).tolist())


def bars(counts: NDArray[np.int64]) -> str:
    """FLASH's ``histogram``: a bar of asterisks for each length from the shortest to the longest.

    Args:
        counts: int64, how many have each length.
    """
    lengths = np.flatnonzero(counts)
    if len(lengths) == 0:
        return ""
    # In this order of operations, which is FLASH's, some bars are shorter by one.
    scale = _WIDTH / int(counts.max())
    return "".join(
        f"{length}\t{'*' * int(int(counts[length]) * scale)}\n"
        for length in range(int(lengths[0]), int(lengths[-1]) + 1)
    )


def insert_sizes(counts: NDArray[np.int64], pairs: int) -> str:
    """BBMap's ``ihist``, which MultiQC reads: mean, median, mode, deviation, and the table.

    Args:
        counts: int64, number of fragments of each length.
        pairs: total number of pairs.
    """
    known = summary(counts)
    total = int(counts.sum())
    lines = [
        f"#Mean\t{known['mean']:.3f}",
        f"#Median\t{known['median']:.0f}",
        f"#Mode\t{known['mode']:.0f}",
        f"#STDev\t{known['deviation']:.3f}",
        f"#PercentOfPairs\t{100 * total / max(1, pairs):.3f}",
        "#InsertSize\tCount",
    ]
    lengths = np.flatnonzero(counts)
    if len(lengths):
        span = range(int(lengths[0]), int(lengths[-1]) + 1)
        lines += [f"{length}\t{counts[length]}" for length in span]
    return "\n".join(lines) + "\n"


def summary(counts: NDArray[np.int64]) -> dict[str, float]:
    """Mean, median, mode and standard deviation of lengths; zeros if there are none.

    Args:
        counts: int64, how many have each length.
    """
    total = int(counts.sum())
    if total == 0:
        return dict.fromkeys(("mean", "median", "mode", "deviation"), 0.0)
    lengths = np.arange(len(counts))
    mean = float((counts * lengths).sum()) / total
    variance = float((counts * (lengths - mean) ** 2).sum()) / total
    below = np.cumsum(counts)
    return {
        "mean": mean,
        "median": float(np.searchsorted(below, (total + 1) // 2)),
        "mode": float(np.argmax(counts)),
        "deviation": variance**0.5,
    }
