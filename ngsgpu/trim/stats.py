"""The counters of a run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field

from ngsgpu.run.statistics import RunStatistics
from ngsgpu.trim.counts import (
    CORRECTED_BASES,
    CORRECTED_READS,
    READS,
    TRIMMED_BASES,
    TRIMMED_READS,
    Counts,
)
from ngsgpu.trim.filters import LONG, MANY_N, PASSED, POOR, SHORT, SIMPLE

_NAMES = {
    PASSED: "kept",
    POOR: "low_quality",
    MANY_N: "many_n",
    SHORT: "too_short",
    LONG: "too_long",
    SIMPLE: "low_complexity",
}


@dataclass(slots=True, kw_only=True)
class TrimStatistics(RunStatistics):
    """Counts and resources of a run; see also ``RunStatistics``.

    Attributes:
        paired: whether the reads have mates.
        reads: ``total``, ``kept`` and those that are not kept, by the reason; each of a pair counts
            with the pair's reason.
        bases: ``total`` and those that are ``kept``.
        adapters: ``reads`` and ``bases`` that were cut, and the sequences looked for.
        tails: reads and bases of tails of one base.
        corrected: ``reads`` and ``bases``.
        duplicates: reads or pairs that are equal to an earlier one; None if they were not counted.
        two_colours: whether tails of G were cut because the names tell of such an instrument.
    """

    SCHEMA = "ngsgpu.trim"
    paired: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    adapters: dict[str, int | list[str]] = field(default_factory=dict)
    tails: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    duplicates: int | None = None
    two_colours: bool = False

    def count(self, counts: Counts) -> None:
        """Fill in the counts."""
        total = int(sum(own.totals[READS] for own in counts.before))
        results = {name: int(counts.results[number]) for number, name in _NAMES.items()}
        self.reads = {"total": total, **results}
        self.bases = {
            "total": int(sum(own.content.sum() for own in counts.before)),
            "kept": int(sum(own.content.sum() for own in counts.after)),
        }
        self.adapters |= {
            "reads": int(counts.totals[TRIMMED_READS]),
            "bases": int(counts.totals[TRIMMED_BASES]),
        }
        reads, bases = counts.poly_x.sum(axis=1).tolist()
        self.tails = {"reads": reads, "bases": bases}
        self.corrected = {
            "reads": int(counts.totals[CORRECTED_READS]),
            "bases": int(counts.totals[CORRECTED_BASES]),
        }

    def summary(self) -> list[str]:
        """A short text summary."""
        total = max(1, self.reads["total"])
        lost = ", ".join(
            f"{number:,} {name.replace('_', ' ')}"
            for name, number in self.reads.items()
            if number and name not in ("total", "kept")
        )
        kept = self.reads["kept"]
        lines = [
            f"{self.reads['total']:,} reads, {kept:,} kept ({100 * kept / total:.2f} %)"
            + (f"; {lost}" if lost else ""),
            f"{self.bases['total']:,} bases, {self.bases['kept']:,} kept; adapters of "
            f"{self.adapters['reads']:,} reads cut, {self.adapters['bases']:,} bases",
        ]
        if self.duplicates is not None:
            units = total // 2 if self.paired else total
            share = 100 * self.duplicates / max(1, units)
            kind = "pairs" if self.paired else "reads"
            lines.append(f"{self.duplicates:,} {kind} equal to an earlier one ({share:.2f} %)")
        return [*lines, self.resources()]
