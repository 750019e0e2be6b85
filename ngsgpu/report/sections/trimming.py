"""The report's section on the trimming of adapters by fastp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ngsgpu.report import words
from ngsgpu.report.absent import is_present
from ngsgpu.report.files import Json, load_fastp
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, SampleSection, Table
from ngsgpu.report.stage import Stage

READS = "summary.before_filtering.total_reads"
READS_LEFT = "summary.after_filtering.total_reads"
TRIMMED = "adapter_cutting.adapter_trimmed_reads"
BASES = "summary.before_filtering.total_bases"
TRIMMED_BASES = "adapter_cutting.adapter_trimmed_bases"


@dataclass(eq=False)
class Trimming:
    """fastp's figures of the trimming of a sample; None if it was not trimmed."""

    stats: Json | None = None


class TrimmingStage(Stage):
    """Adapters trimmed."""

    name = "trimming"
    title = "Trimming"
    files = (FileSpec("trim", ("trim/fastp.json",)),)
    intro = (
        "<p>fastp trimmed adapters, and tails of G where many reads had them, before all other "
        "steps; nothing was filtered by quality. What is said of uncorrected reads below is of "
        "trimmed ones.</p>"
    )

    def read(self, sample: Sample, missing: list[str]) -> Trimming:
        """Read fastp's report; not every study has it."""
        path = sample.files.one("trim")
        if path is None or not is_present(path, "figures of trimming", missing):
            return Trimming()
        return Trimming(load_fastp(path))

    def section(
        self, results: SampleResults, number: int, *, is_brief: bool = False
    ) -> SampleSection:
        """A table of the run."""
        stats, section = results.of(Trimming).stats, super().section(results, number)
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
            section.tables.append(("Trimming statistics", Table(("", "number", "share"), rows)))
        return section

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """The share of the reads that were trimmed."""
        return [Column("reads trimmed", [words.percent(trimmed_share(own), 1) for own in samples])]


def trimmed_share(results: SampleResults) -> float | None:
    """Share of a sample's reads whose adapter was trimmed; None if it was not trimmed, or empty.

    fastp's report has no such number where it was given no adapter to look for.
    """
    stats = results.of(Trimming).stats
    total = stats.number(READS) if stats is not None else None
    if stats is None or not total:
        return None
    return (stats.number(TRIMMED) or 0.0) / total
