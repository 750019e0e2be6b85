"""The counters of a merging run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.merge import cpu
from ngsgpu.merge.cpu import Tally
from ngsgpu.merge.outputs import summary
from ngsgpu.run.statistics import RunStatistics


@dataclass(slots=True, kw_only=True)
class MergeStatistics(RunStatistics):
    """Counts and resources of a merging run; see also ``RunStatistics``.

    Attributes:
        max_overlap: ``value`` in bases, and whether it is ``automatic``.
        learned: what the first pairs said: ``pairs`` looked at, how many were certain to be
            ``overlapping`` or seem to be ``related`` (mates from copies of a repeat), frequencies
            of ``bases``, and what ``qualities`` are worth.
        pairs: how many were merged, and why the others were not.
        overlaps: bases, mismatches and ambiguous bases of the overlaps.
        trimmed: bases of adapters taken away.
        corrected: bases changed, where overlaps were corrected only.
        merged_length: mean, median, mode and deviation of the merged reads' lengths.
        insert_size: the same of the fragments'.
        histograms: pairs of value and count: ``merged_lengths``, ``insert_sizes``,
            ``overlap_lengths``, ``mismatch_percent`` of the overlaps.
    """

    SCHEMA = "ngsgpu.merge"
    max_overlap: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, Any] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    overlaps: dict[str, Any] = field(default_factory=dict)
    trimmed: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    merged_length: dict[str, float] = field(default_factory=dict)
    insert_size: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[list[int]]] = field(default_factory=dict)

    def count(self, tally: Tally) -> None:
        """Fill in the counts."""
        pairs, inward, outward = tally[cpu.PAIRS], tally[cpu.INWARD], tally[cpu.OUTWARD]
        self.pairs = {
            "total": pairs,
            "merged": inward + outward,
            "inward": inward,
            "outward": outward,
            "not_merged": pairs - inward - outward,
            "too_short": tally[cpu.SHORT],
            "dissimilar": tally[cpu.DISSIMILAR],
            "undecided": tally[cpu.UNSURE],
            "beyond_max_overlap": tally[cpu.BEYOND],
        }
        known = tally[cpu.OVERLAP_BASES] - tally[cpu.AMBIGUOUS]
        self.overlaps = {
            "bases": tally[cpu.OVERLAP_BASES],
            "mismatches": tally[cpu.MISMATCHES],
            "unknown": tally[cpu.AMBIGUOUS],
            "mismatch_rate": round(tally[cpu.MISMATCHES] / max(1, known), 8),
        }
        self.trimmed = {"bases": tally[cpu.TRIMMED]}
        self.corrected = {
            "first_bases": tally[cpu.CORRECTED_1],
            "second_bases": tally[cpu.CORRECTED_2],
        }
        merged = tally.lengths.sum(axis=0)
        self.merged_length = _rounded(summary(merged))
        self.insert_size = _rounded(summary(tally.inserts))
        self.histograms = {
            "merged_lengths": _pairs(merged),
            "insert_sizes": _pairs(tally.inserts),
            "overlap_lengths": _pairs(tally.overlaps),
            "mismatch_percent": _pairs(tally.densities),
        }

    def summary(self) -> list[str]:
        """A short text summary."""
        pairs = self.pairs
        share = 100 * pairs["merged"] / max(1, pairs["total"])
        only = self.parameters.get("correct_only")
        done = "overlap and were corrected" if only else "merged"
        lines = [
            f"{pairs['total']:,} pairs, {pairs['merged']:,} {done} ({share:.1f} %)",
            f"{pairs['dissimilar']:,} without a similar overlap, "
            f"{pairs['undecided']:,} with several, {pairs['too_short']:,} too short for one",
            f"fragments of {self.insert_size['mean']:.0f} ± {self.insert_size['deviation']:.0f} "
            f"bases, {100 * self.overlaps['mismatch_rate']:.2f} % mismatches in overlaps",
        ]
        if pairs["outward"]:
            trimmed = self.trimmed["bases"]
            what = f", {trimmed:,} bases of adapters trimmed" if trimmed else ""
            lines.append(f"{pairs['outward']:,} pairs reach beyond their overlap{what}")
        return [*lines, self.resources()]


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}


def _pairs(counts: NDArray[np.int64]) -> list[list[int]]:
    return [[value, int(counts[value])] for value in np.flatnonzero(counts).tolist()]
