"""The report's section on the trimming of adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ngsgpu.report import words
from ngsgpu.report.absent import is_present
from ngsgpu.report.files import Json, load_fastp, trimmers
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, SampleSection, Table
from ngsgpu.report.stage import Stage

READS = "summary.before_filtering.total_reads"
READS_LEFT = "summary.after_filtering.total_reads"
TRIMMED = "adapter_cutting.adapter_trimmed_reads"
BASES = "summary.before_filtering.total_bases"
TRIMMED_BASES = "adapter_cutting.adapter_trimmed_bases"
_FILTERS = {
    "too long": "filtering_result.too_long_reads",
    "of low quality": "filtering_result.low_quality_reads",
    "with too many N": "filtering_result.too_many_N_reads",
    "of low complexity": "filtering_result.low_complexity_reads",
}
"""Filters that only further options switch on."""


@dataclass(eq=False)
class Trimming:
    """Figures of the trimming of a sample, in fastp's form; None if it was not trimmed."""

    stats: Json | None = None


class TrimmingStage(Stage):
    """Adapters trimmed."""

    name = "trimming"
    title = "Trimming"
    files = (FileSpec("trim", ("trim/fastp.json",)),)
    intro = (
        "<p>{} trimmed adapters, and tails of G where many reads had them, before all other "
        "steps; nothing was filtered by quality. What is said of uncorrected reads below is of "
        "trimmed ones.</p>"
    )

    def read(self, sample: Sample, missing: list[str]) -> Trimming:
        """Read the report of the run; not every study has it."""
        path = sample.files.one("trim")
        if path is None or not is_present(path, "figures of trimming", missing):
            return Trimming()
        return Trimming(load_fastp(path))

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """A table of the run."""
        stats = results.of(Trimming).stats
        if stats is not None:
            rows = [
                stats.line("reads as sequenced", READS),
                stats.line("with adapter, trimmed", TRIMMED, READS),
                stats.line("left out, since too short", "filtering_result.too_short_reads", READS),
                stats.line("reads after trimming", READS_LEFT, READS),
                stats.line("bases as sequenced", BASES),
                stats.line("bases of adapters", TRIMMED_BASES, BASES),
                stats.line("bases after trimming", "summary.after_filtering.total_bases", BASES),
            ]  # fmt: skip
            rows[3:3] = [
                stats.line(f"left out, since {why}", key, READS)
                for why, key in _FILTERS.items()
                if stats.number(key)
            ]
            section.tables.append(("Trimming statistics", Table(("", "number", "share"), rows)))

    def intro_for(self, samples: Sequence[SampleResults]) -> str:
        """Which program trimmed, and what."""
        return self.intro.format(trimmers(trimmed(samples)))

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """The share of the reads that were trimmed."""
        return [Column("reads trimmed", [words.percent(trimmed_share(own), 1) for own in samples])]


def trimmed(samples: Sequence[SampleResults]) -> list[Json]:
    """The figures of the samples that were trimmed."""
    return [own for results in samples if (own := results.of(Trimming).stats) is not None]


def trimmed_share(results: SampleResults) -> float | None:
    """Share of a sample's reads whose adapter was trimmed; None if it was not trimmed, or empty.

    The report has no such number where no adapter was looked for.
    """
    stats = results.of(Trimming).stats
    total = stats.number(READS) if stats is not None else None
    if stats is None or not total:
        return None
    return (stats.number(TRIMMED) or 0.0) / total
