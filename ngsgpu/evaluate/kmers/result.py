"""The result of comparing k-mers before and after correction: counts, JSON, tables.

A canonical k-mer is true if the truth has it, otherwise false. A true k-mer is *lost* if the raw
reads have it and the corrected ones have not (Kallenborn 2024, section 5.6.1). A false one is
*introduced* if the corrected reads have it and the raw ones have not, *removed* if it is the other
way round.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.kmers.sample import SampleCounts
from ngsgpu.evaluate.output import TextTable, fixed, head, ratio

SCHEMA = "ngsgpu.evaluate.kmers"
SCHEMA_VERSION = 1

HIGHEST = 20
"""Coverage from which on true k-mers are counted together."""

SHOWN = 10


@dataclass(frozen=True)
class Minority:
    """Own k-mers of a rarer strain: those that the other genomes have not.

    Attributes:
        own: their number.
        min_before: occurrences in the raw reads from which on one counts.
        min_after: occurrences in the corrected reads from which on it remains.
        covered: own k-mers that count.
        kept: those that remain.
        erased: those that no corrected read has.
    """

    own: int
    min_before: int
    min_after: int
    covered: int
    kept: int
    erased: int


@dataclass(frozen=True)
class KmerEvaluation:
    """Counts of a comparison; numbers of k-mers are those of the sample.

    Attributes:
        k: k-mer length.
        sampled: one in this many k-mers was sampled.
        true: true k-mers.
        by_coverage: int64[HIGHEST + 1, 2], true k-mers and lost ones by their occurrences in the
            raw reads; the last row holds those with ``HIGHEST`` or more.
        gained: true k-mers that only the corrected reads have.
        false_before: false k-mers of the raw reads.
        false_after: false k-mers of the corrected reads.
        introduced: those that the raw reads have not.
        minority: own k-mers of a rarer strain.
    """

    k: int
    sampled: int
    true: int
    by_coverage: NDArray[np.int64]
    gained: int
    false_before: int
    false_after: int
    introduced: int
    minority: Minority | None = None

    @classmethod
    def of(
        cls, true: NDArray[np.uint64], before: SampleCounts, after: SampleCounts
    ) -> KmerEvaluation:
        """Compare counts of the same sample.

        Args:
            true: uint64[n], true k-mers, ascending.
            before: of the raw reads.
            after: of the corrected reads.
        """
        raw, corrected = before.of(true), after.of(true)
        table = np.zeros((HIGHEST + 1, 2), dtype=np.int64)
        rows = np.minimum(raw, HIGHEST)
        np.add.at(table[:, 0], rows, 1)
        np.add.at(table[:, 1], rows[(raw > 0) & (corrected == 0)], 1)
        false = after.kmers[~np.isin(after.kmers, true, assume_unique=True)]
        return cls(
            before.k,
            1 << before.shift,
            len(true),
            table,
            int(((raw == 0) & (corrected > 0)).sum()),
            len(before.kmers) - int((raw > 0).sum()),
            len(false),
            int((before.of(false) == 0).sum()),
        )

    def with_minority(self, minority: Minority) -> KmerEvaluation:
        """The same with the own k-mers of a rarer strain."""
        return replace(self, minority=minority)

    @property
    def lost(self) -> int:
        """True k-mers lost."""
        return int(self.by_coverage[1:, 1].sum())

    def document(self) -> dict[str, Any]:
        """Everything, for JSON; numbers are those of the sample."""
        covered = int(self.by_coverage[1:, 0].sum())
        document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "k": self.k,
            "sampled": self.sampled,
            "true": {
                "kmers": self.true,
                "covered": covered,
                "lost": self.lost,
                "gained": self.gained,
                "by_coverage": [
                    {"coverage": row, "kmers": kmers, "lost": lost}
                    for row, (kmers, lost) in enumerate(self.by_coverage.tolist())
                    if row
                ],
            },
            "false": {
                "before": self.false_before,
                "after": self.false_after,
                "introduced": self.introduced,
            },
            "rates": {"lost": ratio(self.lost, covered)},
        }
        if self.minority is not None:
            document["minority"] = asdict(self.minority) | {
                "share_kept": ratio(self.minority.kept, self.minority.covered)
            }
        return document

    def tables(self) -> list[TextTable]:
        """Two tables: totals, and true k-mers lost by coverage."""
        scale = self.sampled
        rows = [
            ("true k-mers of the raw reads", f"{scale * int(self.by_coverage[1:, 0].sum()):,}"),
            ("    lost", f"{scale * self.lost:,}"),
            ("true k-mers gained", f"{scale * self.gained:,}"),
            ("false k-mers of the raw reads", f"{scale * self.false_before:,}"),
            ("false k-mers of the corrected reads", f"{scale * self.false_after:,}"),
            ("    introduced", f"{scale * self.introduced:,}"),
        ]
        if self.minority is not None:
            own = self.minority
            rows += [
                ("own k-mers of the minority", f"{scale * own.own:,}"),
                (f"    in {own.min_before} or more raw reads", f"{scale * own.covered:,}"),
                (f"    still in {own.min_after} or more", f"{scale * own.kept:,}"),
                ("    share", f"{fixed(ratio(own.kept, own.covered, 100), 2)} %"),
            ]
        lost = [
            (str(row), f"{scale * kmers:,}", f"{scale * gone:,}")
            for row, (kmers, gone) in enumerate(self.by_coverage.tolist())
            if 1 <= row <= SHOWN
        ]
        foot = f"estimated from one in {scale} k-mers\n" if scale > 1 else ""
        return [
            TextTable(f"{self.k}-mers before and after correction", ("", ""), rows),
            TextTable("True k-mers by coverage", ("coverage", "k-mers", "lost"), lost, True, foot),
        ]
