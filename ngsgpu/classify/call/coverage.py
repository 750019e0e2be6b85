"""The coverage filter (MetaCache's; Kobus, section 6.4): it drops sparsely covered sequences.

A window is covered if it is in the range of a candidate with at least ``min_hits`` hits, and the
coverage of a sequence is the fraction of its windows that are covered. In ascending order of
coverage, ties by number, sequences are dropped while the sum of the dropped coverages is at most
the given fraction of the total. Reads are then classified again with the remaining candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.errors import UsageError
from ngsgpu.jit import njit


class CoverageCounter:
    """Marks covered windows; one byte per window of the database.

    Args:
        windows: int64[t], windows of each reference sequence (``Labels.windows``).
        min_hits: minimum hits of a candidate to count.

    Attributes:
        first_window: int64[t + 1], where each sequence's windows begin, and the end of the last.
        marks: uint8, 1 for each covered window, concatenated over the sequences.
    """

    def __init__(self, windows: NDArray[np.int64], min_hits: int) -> None:
        self._windows = np.asarray(windows, dtype=np.int64)
        self.first_window = np.concatenate([[0], np.cumsum(self._windows)]).astype(np.int64)
        self._min_hits = min_hits
        self.marks = np.zeros(int(self.first_window[-1]), dtype=np.uint8)

    def add(self, candidates: CandidateArrays) -> None:
        """Mark the windows in the ranges of candidates; threads may not add at the same time."""
        _mark(
            candidates.target, candidates.hits, candidates.window_begin, candidates.window_end,
            self.first_window, np.int32(self._min_hits), self.marks,
        )  # fmt: skip

    def covered(self) -> NDArray[np.int64]:
        """Covered windows of each reference sequence, int64[t]."""
        return sums_by_sequence(self.marks, self._windows)

    def dropped(self, share: float) -> NDArray[np.bool_]:
        """Mask of the reference sequences that the filter drops, bool[t]; see `drop_sparse`."""
        return drop_sparse(self.covered(), self._windows, share)


def sums_by_sequence(values: NDArray[Any], windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of what the windows of each reference sequence have, int64[t].

    Args:
        values: of each window, concatenated over the sequences.
        windows: int64[t], windows of each sequence.
    """
    sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    ends = np.cumsum(windows)
    return sums[ends] - sums[ends - windows]


def drop_sparse(
    covered: NDArray[np.int64], windows: NDArray[np.int64], share: float
) -> NDArray[np.bool_]:
    """Which reference sequences the filter drops.

    Args:
        covered: int64[t], windows that are covered.
        windows: int64[t], all windows.
        share: of the sum of all coverages, 0 to below 1.

    Returns:
        bool[t]; sequences without any covered window are dropped, too.

    Raises:
        UsageError: a share that makes no sense.
    """
    if not 0 <= share < 1:
        raise UsageError("the share of the coverage filter must be from 0 to below 1")
    coverage = covered / np.maximum(windows, 1)
    order = np.argsort(coverage, kind="stable")
    sums = np.cumsum(coverage[order])
    dropped = np.zeros(len(coverage), dtype=np.bool_)
    if len(sums) > 0:
        dropped[order] = (sums <= share * sums[-1]) | (coverage[order] == 0)
    return dropped


@njit(nogil=True, cache=True)
def _mark(target, hits, window_begin, window_end, first, min_hits, covered):  # type: ignore[no-untyped-def]
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            best = target[i, j]
            if best >= 0 and hits[i, j] >= min_hits:
                start = first[best]
                for window in range(window_begin[i, j], window_end[i, j] + 1):
                    covered[start + window] = 1
