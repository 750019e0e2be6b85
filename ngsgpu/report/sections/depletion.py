"""The report's section on depletion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ngsgpu.report import words
from ngsgpu.report.files import Json, json_if_named
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, Finding, SampleSection, Table
from ngsgpu.report.stage import Stage, shares


@dataclass(eq=False)
class Depletion:
    """Results of the depletion of a sample.

    Attributes:
        stats: statistics of the run.
    """

    stats: Json | None = None


class DepletionStage(Stage):
    """Reads of the host taken out."""

    name = "depletion"
    title = "Depletion"
    files = (FileSpec("deplete", ("deplete/stats.json",)),)
    intro = (
        "<p>Reads of the host were removed before all steps below; a pair goes or stays as a "
        "whole.</p>"
    )

    def read(self, sample: Sample, missing: list[str]) -> Depletion:
        """Read the statistics; not every study has them."""
        run = sample.files.one("deplete")
        return Depletion(json_if_named(run, "statistics of depletion", "ngsgpu.deplete", missing))

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """A table of the run."""
        stats = results.of(Depletion).stats
        if stats is not None:
            rows = [
                stats.line("reads", "reads.total"),
                stats.line("of the host", "reads.host", "reads.total"),
                stats.line("kept", "reads.kept", "reads.total"),
                stats.line("bases kept", "bases.kept", "bases.total"),
            ]
            section.tables.append(("Depletion statistics", Table(("", "number", "share"), rows)))

    def say(self, results: SampleResults, finding: Finding) -> None:
        """Add a sentence about the reads that were taken out."""
        stats = results.of(Depletion).stats
        total = None if stats is None else stats.number("reads.total")
        if stats is not None and total:
            kept = stats.number("reads.kept")
            share = words.share(stats.number("reads.host"), total)
            finding.sentences.append(
                f"Depletion kept {words.count(kept)} of {words.count(total)} reads; {share} were "
                "the host's."
            )

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """The share of the reads that were the host's."""
        stats = [results.of(Depletion).stats for results in samples]
        return [shares("host reads", stats, "reads.host", "reads.total")]
