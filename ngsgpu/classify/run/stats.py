"""The counters of a classification run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ngsgpu.run.statistics import RunStatistics


@dataclass(slots=True, kw_only=True)
class ClassificationStatistics(RunStatistics):
    """Counts and resources of classifying a sample; see also ``RunStatistics``.

    Attributes:
        sample: its name.
        database: path, digest, targets, taxa of the taxonomy (0: there is none), targets
            without a taxon, partitions, parameters.
        queries: reads or pairs, bases, classified, unclassified.
        calls_by_rank: queries called at each rank.
        dropped_targets: reference sequences that the coverage filter dropped.
        gpu_memory: bytes planned per GPU, for the partitions; empty on the CPU.
    """

    SCHEMA = "ngsgpu.classify"
    sample: str
    database: dict[str, Any]
    queries: dict[str, Any] = field(default_factory=dict)
    calls_by_rank: dict[str, int] = field(default_factory=dict)
    dropped_targets: int = 0
    gpu_memory: dict[str, int] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """A short text summary."""
        total, classified = self.queries["total"], self.queries["classified"]
        unit = "pairs" if self.queries["paired"] else "reads"
        ranks = ", ".join(f"{rank} {count:,}" for rank, count in self.calls_by_rank.items())
        share = 100 * classified / max(1, total)
        return [
            f"{self.sample}: {total:,} {unit}, {classified:,} classified ({share:.1f} %) "
            f"in {self.time_s['total']:.1f} s",
            *([f"{self.sample}: called at {ranks}"] if ranks else []),
        ]
