"""Counts of an evaluation of extended reads: connections, edits in gaps, lengths."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.output import TextTable, fixed, ratio

SCHEMA = "ngsgpu.evaluate.extension"
SCHEMA_VERSION = 1
WIDEST_DIFFERENCE = 4
"""Largest length difference counted separately; larger ones are pooled (table 9.3)."""

EDITS, DIFFERENCE, GAP, OUTWARD_BASES, OUTWARD_EDITS = range(5)
"""Columns of compared reads: edit distance of the gap, found less true length, true length of the
gap (below 0 where the reads overlap), bases and edits outside of the pair."""


@dataclass(slots=True)
class GapCounts:
    """Sums over extended reads.

    Attributes:
        reads: extended reads that were compared.
        error_free: those whose gap has no edit.
        few_edits: those with at most 2 edits.
        right_length: those whose gap is as long as the true one.
        gap_bases: true lengths of the gaps (of pairs that overlap, 0).
        edits: sum of edit distances of the gaps.
        edits_without_length: the same, each less the difference of the lengths.
        outward_bases: bases outside of the pairs.
        outward_edits: edit distances of these.
    """

    reads: int = 0
    error_free: int = 0
    few_edits: int = 0
    right_length: int = 0
    gap_bases: int = 0
    edits: int = 0
    edits_without_length: int = 0
    outward_bases: int = 0
    outward_edits: int = 0


@dataclass(slots=True)
class ExtensionEvaluation:
    """Result of an evaluation.

    Attributes:
        pairs: pairs that were to be extended; 0 where it is not known.
        mapped: whether the places come from alignments of the extended reads.
        counts: sums over the reads that could be compared.
        unmapped: extended reads without an alignment.
        clipped: those with a clipped one.
        differences: found less true length, from below -4 to above 4.
        lengths: shortest, sum and longest of all extended reads.
    """

    pairs: int
    mapped: bool = False
    counts: GapCounts = field(default_factory=GapCounts)
    unmapped: int = 0
    clipped: int = 0
    differences: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(2 * WIDEST_DIFFERENCE + 3, dtype=np.int64)
    )
    lengths: list[int] = field(default_factory=lambda: [0, 0, 0])

    def add(self, compared: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Add extended reads.

        Args:
            compared: int64[n, 5], see ``EDITS`` and so on.
            lengths: int64[n], of the extended reads.
        """
        edits, differences, gaps, bases, outward_edits = compared.T
        counts = self.counts
        counts.reads += len(edits)
        counts.error_free += int(np.count_nonzero(edits == 0))
        counts.few_edits += int(np.count_nonzero(edits <= 2))
        counts.right_length += int(np.count_nonzero(differences == 0))
        counts.gap_bases += int(np.maximum(gaps, 0).sum())
        counts.edits += int(edits.sum())
        counts.edits_without_length += int((edits - np.abs(differences)).sum())
        counts.outward_bases += int(bases.sum())
        counts.outward_edits += int(outward_edits.sum())
        bound = WIDEST_DIFFERENCE + 1
        clipped = np.clip(differences, -bound, bound) + bound
        self.differences += np.bincount(clipped, minlength=2 * bound + 1)
        self._add_lengths(lengths)

    def skip(self, lengths: NDArray[np.int64], *, clipped: bool) -> None:
        """Count extended reads that cannot be compared."""
        if clipped:
            self.clipped += len(lengths)
        else:
            self.unmapped += len(lengths)
        self._add_lengths(lengths)

    def _add_lengths(self, lengths: NDArray[np.int64]) -> None:
        if len(lengths) == 0:
            return
        shortest = int(lengths.min())
        self.lengths[0] = min(self.lengths[0] or shortest, shortest)
        self.lengths[1] += int(lengths.sum())
        self.lengths[2] = max(self.lengths[2], int(lengths.max()))

    @property
    def connected(self) -> int:
        """All extended reads."""
        return self.counts.reads + self.unmapped + self.clipped

    def document(self) -> dict[str, Any]:
        """Everything as JSON; rates without a divisor are None."""
        counts = self.counts
        labels = [f"<{-WIDEST_DIFFERENCE}"]
        labels += [str(n) for n in range(-WIDEST_DIFFERENCE, WIDEST_DIFFERENCE + 1)]
        labels += [f">{WIDEST_DIFFERENCE}"]
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "truth": "alignments" if self.mapped else "simulation",
            "pairs": self.pairs,
            "connected": self.connected,
            "unmapped": self.unmapped,
            "clipped": self.clipped,
            "counts": asdict(counts),
            "rates": {
                "connected": ratio(self.connected, self.pairs),
                "error_free": ratio(counts.error_free, self.pairs),
                "error_free_of_connected": ratio(counts.error_free, counts.reads),
                "error_rate": ratio(counts.edits, counts.gap_bases),
                "error_rate_without_length": ratio(counts.edits_without_length, counts.gap_bases),
                "outward_error_rate": ratio(counts.outward_edits, counts.outward_bases),
            },
            "length_differences": dict(zip(labels, self.differences.tolist(), strict=True)),
            "lengths": {
                "min": self.lengths[0],
                "mean": ratio(self.lengths[1], self.connected),
                "max": self.lengths[2],
            },
        }

    def tables(self) -> list[TextTable]:
        """One table: connected pairs, gaps, error rates, lengths."""
        document = self.document()
        counts, rates = document["counts"], document["rates"]

        def share(number: int) -> str:
            part = ratio(number, self.pairs)
            return f"{number:,}" + ("" if part is None else f" ({100 * part:.2f} %)")

        rows = [("pairs", f"{self.pairs:,}" if self.pairs else "-")]
        rows.append(("connected", share(self.connected)))
        if self.mapped:
            rows.append(("not aligned, clipped", f"{self.unmapped:,}, {self.clipped:,}"))
        rows += [
            ("error-free gaps", share(counts["error_free"])),
            ("gaps with at most 2 edits", share(counts["few_edits"])),
            ("gaps of the right length", share(counts["right_length"])),
            ("error rate in gaps", fixed(rates["error_rate"], 6)),
            ("without differences of length", fixed(rates["error_rate_without_length"], 6)),
        ]
        if counts["outward_bases"]:
            rows.append(("error rate outside", fixed(rates["outward_error_rate"], 6)))
        lengths = document["lengths"]
        rows.append(
            ("lengths", f"{lengths['min']:,} - {lengths['max']:,}, mean {lengths['mean'] or 0:.1f}")
        )
        rows += [
            (f"gaps longer than the true one by {label}", f"{count:,}")
            for label, count in document["length_differences"].items()
        ]
        return [TextTable("Extension", ("", ""), rows)]
