"""Counts of a merging run, on either backend, and its outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ngsgpu.merge.cpu import COUNTERS, Counts

DENSITIES = 101


@dataclass(slots=True)
class Tally:
    """Counts so far; see ``ngsgpu.merge.cpu.Counts``.

    Attributes:
        counters: int64[len(COUNTERS)].
        lengths: int64[2, longest + 1].
        inserts: int64[longest + 1].
        overlaps: int64[longest + 1].
        densities: int64[DENSITIES].
    """

    counters: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(COUNTERS), dtype=np.int64)
    )
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 1), dtype=np.int64))
    inserts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    overlaps: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    densities: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(DENSITIES, dtype=np.int64)
    )

    def add(self, counts: Counts) -> None:
        """Add the counts of some pairs."""
        self.counters += counts.counters
        self.lengths = _sum(self.lengths, counts.lengths)
        self.inserts = _sum(self.inserts, counts.inserts)
        self.overlaps = _sum(self.overlaps, counts.overlaps)
        self.densities += counts.densities

    def __getitem__(self, counter: int) -> int:
        return int(self.counters[counter])


def _sum(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of arrays whose last dimensions may differ."""
    size = max(one.shape[-1], other.shape[-1])
    total = np.zeros((*one.shape[:-1], size), dtype=np.int64)
    total[..., : one.shape[-1]] += one
    total[..., : other.shape[-1]] += other
    return total


def new_counts(longest: int) -> Counts:
    """Counts of nothing.

    Args:
        longest: length of the longest read that two reads can be merged into.
    """
    return Counts(
        np.zeros(len(COUNTERS), dtype=np.int64),
        np.zeros((2, longest + 1), dtype=np.int64),
        np.zeros(longest + 1, dtype=np.int64),
        np.zeros(longest + 1, dtype=np.int64),
        np.zeros(DENSITIES, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Outputs to write.

    Attributes:
        unmerged: unmerged pairs, or both reads of all pairs if they are only corrected.
        interleaved: their mates are interleaved in one output.
    """

    unmerged: bool
    interleaved: bool
