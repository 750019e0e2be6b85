"""The result of comparing merged reads with the truth: counts, rates, and their JSON.

A pair overlaps if its fragment is at least ``min_overlap`` bases shorter than its two reads
together. Its merged read is

=====  ===============================================================
right  as long as the fragment
near   up to 3 bases shorter or longer, because of indels
wrong  of another length
=====  ===============================================================

Merged pairs that do not overlap are wrong, too. Bases are compared in pairs that were merged to the
right length and have no indel: before in both reads, after in the merged one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.output import TextTable, fixed, head, ratio

SCHEMA = "ngsgpu.evaluate.merging"
SCHEMA_VERSION = 1

NEAR = 3
"""Bases by which the length of a ``near`` merged read may be off."""

# Columns of the table of pairs.
OUTCOMES = (
    "pairs",
    "unknown_fragment",
    "overlapping",
    "right",
    "near",
    "wrong",
    "missed",
    "apart",
    "apart_merged",
    "with_indels",
)
(
    PAIRS, UNKNOWN_FRAGMENT, OVERLAPPING, RIGHT, NEARLY, WRONG, MISSED, APART, APART_MERGED, INDELS,
) = range(len(OUTCOMES))  # fmt: skip

IN_OVERLAP, ALONE = range(2)
"""Rows of the table of qualities: merged bases covered by both reads, and by one."""

BASES, ERRORS = range(2)
QUALITIES = 94


@dataclass(frozen=True)
class MergingEvaluation:
    """Counts of a comparison.

    Attributes:
        outcomes: int64[len(OUTCOMES)], pairs.
        before: int64[2], bases of both reads and errors in them.
        qualities: int64[2, QUALITIES, 2], merged bases and errors in them, by where they are and
            by their quality.
        min_overlap: from how many common bases on pairs count as overlapping.
    """

    outcomes: NDArray[np.int64]
    before: NDArray[np.int64]
    qualities: NDArray[np.int64]
    min_overlap: int

    def __getitem__(self, outcome: int) -> int:
        return int(self.outcomes[outcome])

    @property
    def merged(self) -> int:
        """Merged reads of pairs whose fragment is known."""
        return self[RIGHT] + self[NEARLY] + self[WRONG] + self[APART_MERGED]

    @property
    def wrong(self) -> int:
        """Merged reads that are neither right nor near."""
        return self[WRONG] + self[APART_MERGED]

    @property
    def sensitivity(self) -> float | None:
        """Right merged reads a pair that overlaps."""
        return ratio(self[RIGHT], self[OVERLAPPING])

    @property
    def precision(self) -> float | None:
        """Right merged reads a merged read."""
        return ratio(self[RIGHT], self.merged)

    @property
    def after(self) -> NDArray[np.int64]:
        """int64[2], merged bases and errors in them."""
        return self.qualities.sum(axis=(0, 1))

    @property
    def error_rate_before(self) -> float | None:
        """Errors a base of the reads."""
        return ratio(int(self.before[ERRORS]), int(self.before[BASES]))

    @property
    def error_rate_after(self) -> float | None:
        """Errors a merged base."""
        return ratio(int(self.after[ERRORS]), int(self.after[BASES]))

    def document(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            **head(SCHEMA, SCHEMA_VERSION),
            "min_overlap": self.min_overlap,
            "pairs": {name: self[number] for number, name in enumerate(OUTCOMES)},
            "rates": {
                "sensitivity": self.sensitivity,
                "precision": self.precision,
                "error_rate_before": self.error_rate_before,
                "error_rate_after": self.error_rate_after,
                "miscalibration": self.miscalibration,
            },
            "bases": {
                "before": int(self.before[BASES]),
                "errors_before": int(self.before[ERRORS]),
                "after": int(self.after[BASES]),
                "errors_after": int(self.after[ERRORS]),
            },
            "calibration": {
                name: _calibration(self.qualities[row])
                for name, row in (("overlap", IN_OVERLAP), ("alone", ALONE))
            },
        }

    def tables(self) -> list[TextTable]:
        """One table: pairs by outcome, rates, error rates."""
        rows = [
            ("pairs", f"{self[PAIRS]:,}"),
            ("pairs that overlap", f"{self[OVERLAPPING]:,}"),
            ("    merged, right length", f"{self[RIGHT]:,}"),
            (f"    merged, up to {NEAR} bases off", f"{self[NEARLY]:,}"),
            ("    merged, wrong length", f"{self[WRONG]:,}"),
            ("    not merged", f"{self[MISSED]:,}"),
            ("pairs that do not overlap", f"{self[APART]:,}"),
            ("    merged all the same", f"{self[APART_MERGED]:,}"),
            ("sensitivity (right a pair that overlaps)", fixed(self.sensitivity, 5)),
            ("precision (right a merged read)", fixed(self.precision, 5)),
            ("error rate of the reads", fixed(self.error_rate_before, 6)),
            ("error rate of the merged reads", fixed(self.error_rate_after, 6)),
            (
                "mean error of qualities below the highest",
                fixed(self.miscalibration, 2),
            ),
        ]
        if self[UNKNOWN_FRAGMENT]:
            rows.append(("pairs of unknown fragments", f"{self[UNKNOWN_FRAGMENT]:,}"))
        return [TextTable("Merging against the truth", ("", ""), rows)]

    @property
    def miscalibration(self) -> float | None:
        """Mean difference of reported and observed quality in overlaps, weighted by bases.

        The highest quality is excluded, since it also represents all higher values, and so are
        qualities without observed errors.
        """
        weight = total = 0.0
        for entry in _calibration(self.qualities[IN_OVERLAP])[:-1]:
            if entry["observed"] is not None:
                weight += entry["bases"]
                total += entry["bases"] * abs(entry["quality"] - entry["observed"])
        return total / weight if weight else None


def _calibration(table: NDArray[np.int64]) -> list[dict[str, Any]]:
    """For each quality that occurs: bases, errors, and the quality that the errors speak for."""
    entries = []
    for quality in np.flatnonzero(table[:, BASES]).tolist():
        bases, errors = (int(value) for value in table[quality])
        observed = round(-10 * math.log10(errors / bases), 2) if errors else None
        entries.append({"quality": quality, "bases": bases, "errors": errors, "observed": observed})
    return entries
