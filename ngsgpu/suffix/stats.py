"""Statistics of making an index, and of finding reads in it."""

from __future__ import annotations

from dataclasses import dataclass

from ngsgpu.run.statistics import RunStatistics


@dataclass(slots=True, kw_only=True)
class IndexSummary(RunStatistics):
    """Summary of an indexing run; see also ``RunStatistics``.

    Attributes:
        sequences: their number.
        bases: their letters.
        replaced: letters other than A, C, G and T.
    """

    SCHEMA = "ngsgpu.index_build"
    sequences: int
    bases: int
    replaced: int

    def summary(self) -> list[str]:
        """Lines for people."""
        return [
            f"{self.sequences:,} sequences of {self.bases:,} bases, "
            f"{self.replaced:,} of them ambiguous",
            self.resources(),
        ]


@dataclass(slots=True, kw_only=True)
class QuerySummary(RunStatistics):
    """Summary of a query run; see also ``RunStatistics``.

    Attributes:
        reads: their number.
        with_matches: reads with a match.
        matches: matches.
    """

    SCHEMA = "ngsgpu.index_query"
    reads: int = 0
    with_matches: int = 0
    matches: int = 0

    def summary(self) -> list[str]:
        """Lines for people."""
        return [
            f"{self.reads:,} reads, {self.with_matches:,} with a match; {self.matches:,} matches",
            self.resources(),
        ]
