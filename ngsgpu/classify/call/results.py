"""Results of classification: the calls of a batch, their candidates, and a sample's totals.

A query is a read, or a pair of mates. A call is an int32: ``UNCLASSIFIED`` (-1), a node of the
taxonomy (0 to nodes - 1), or a reference sequence (nodes + its number), which has rank "sequence"
and is below its taxon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.query.queries import QueryBlock
from ngsgpu.jit import Integer, njit

UNCLASSIFIED: Final = -1
NO_TARGET: Final = -1


@dataclass(frozen=True, slots=True)
class CalledReads:
    """The calls of consecutive queries, in the order of the input.

    Attributes:
        queries: names and lengths.
        call: int32[n], see above.
        score: int32[n], hits of the best candidate; 0 without one.
        target: int32[n], the best candidate; ``NO_TARGET`` without one.
        window_begin: int32[n], first window of its range.
        window_end: int32[n], last window of its range.
    """

    queries: QueryBlock
    call: NDArray[np.int32]
    score: NDArray[np.int32]
    target: NDArray[np.int32]
    window_begin: NDArray[np.int32]
    window_end: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.call)


@dataclass(slots=True)
class SampleTotals:
    """Totals over the queries of a sample; all that reports need.

    Attributes:
        name: sample name.
        counts: int64[nodes + targets], queries called exactly so, excluding those called below.
        queries: reads, or pairs.
        bases: of all of them.
        unclassified: queries without a call.
        paired: whether any queries are pairs.
        window_reads: int32 per window of all targets, concatenated: queries whose best candidate's
            range covers the window; empty if not requested.
    """

    name: str
    counts: NDArray[np.int64]
    queries: int = 0
    bases: int = 0
    unclassified: int = 0
    paired: bool = False
    window_reads: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @property
    def classified(self) -> int:
        """Queries with a call."""
        return self.queries - self.unclassified

    def add(self, calls: NDArray[np.int32], bases: int) -> None:
        """Count the calls of a batch.

        Args:
            calls: int32[n].
            bases: of its queries.
        """
        self.unclassified += int(_count(calls, self.counts))
        self.queries += len(calls)
        self.bases += bases


@njit(nogil=True, cache=True)
def _count(calls: NDArray[np.int32], counts: NDArray[np.int64]) -> Integer:
    """Count calls; returns how many are none."""
    unclassified = 0
    for i in range(calls.size):
        if calls[i] >= 0:
            counts[calls[i]] += 1
        else:
            unclassified += 1
    return unclassified


@njit(nogil=True, cache=True)
def count_windows(
    call: NDArray[np.int32],
    target: NDArray[np.int32],
    window_begin: NDArray[np.int32],
    window_end: NDArray[np.int32],
    first_window: NDArray[np.int64],
    window_reads: NDArray[np.int32],
) -> None:
    """Count the queries with a call on each window of their best candidates' ranges.

    Args:
        call: int32[n].
        target: int32[n].
        window_begin: int32[n].
        window_end: int32[n].
        first_window: int64[targets], where each target's windows begin in ``window_reads``.
        window_reads: see ``SampleTotals``.
    """
    for i in range(call.size):
        if call[i] >= 0:
            first = first_window[target[i]]
            for window in range(first + window_begin[i], first + window_end[i] + 1):
                window_reads[window] += 1
