"""Statistics of counting k-mers and of comparing databases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ngsgpu.run.statistics import RunStatistics


@dataclass(slots=True, kw_only=True)
class CountStatistics(RunStatistics):
    """Summary of counted k-mers; see also ``RunStatistics``.

    Attributes:
        sequences: number of sequences.
        bases: their letters.
        kmers: their counted k-mers.
        distinct: k-mers of the database or histogram, each once.
        adapters: what a sample of the reads says of adapters, see `ngsgpu.run.adapters`.
    """

    SCHEMA = "ngsgpu.kmers_count"
    sequences: int
    bases: int
    kmers: int
    distinct: int
    adapters: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """Lines for people."""
        return [
            f"{self.kmers:,} k-mers of {self.sequences:,} sequences, {self.distinct:,} distinct",
            self.resources(),
        ]


@dataclass(slots=True, kw_only=True)
class CombinationStatistics(RunStatistics):
    """Summary of a database made from others; see also ``RunStatistics``.

    Attributes:
        databases: path and distinct k-mers of each of the others.
        distinct: k-mers of the new one.
        kmers: sum of their counts.
    """

    SCHEMA = "ngsgpu.kmers_combination"
    databases: list[dict[str, Any]]
    distinct: int
    kmers: int
