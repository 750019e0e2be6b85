"""The report's section on merging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ngsgpu.report import words
from ngsgpu.report.drawing import SMALL, drawn, fragment_lengths
from ngsgpu.report.files import Json, json_if_named, moments
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, Plot, SampleSection, Table
from ngsgpu.report.palette import AFTER, AMBER, MUTED
from ngsgpu.report.spread import length_curves
from ngsgpu.report.stage import Stage, shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MERGED_ONLY = (
    "Fragment lengths of merged pairs; those of the others are unknown, and longer ones "
    "do not overlap."
)
_PARTS = {"overlap": "in overlaps", "alone": "outside of overlaps"}


@dataclass(eq=False)
class Merging:
    """Results of the merging of a sample's pairs.

    Attributes:
        stats: statistics of the run.
        truth: comparison of merged reads with the truth.
    """

    stats: Json | None = None
    truth: Json | None = None


class MergingStage(Stage):
    """Merging of pairs, and its truth."""

    name = "merging"
    title = "Merging"
    files = (
        FileSpec("merge", ("merge/stats.json",)),
        FileSpec("merging", ("evaluate/merging.json",)),
    )
    intro = (
        "<p>Overlapping pairs were merged into one read each. A fragment's length is known "
        "once its pair is\n  merged.</p>"
    )

    def read(self, sample: Sample, missing: list[str]) -> Merging:
        """Read statistics and the comparison with the truth; not every study has them."""
        run, truth = sample.files.one("merge"), sample.files.one("merging")
        return Merging(
            json_if_named(run, "statistics of merging", "ngsgpu.merge", missing),
            json_if_named(truth, "truth of merged reads", "ngsgpu.evaluate.merging", missing),
        )

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """Tables of the truth and the run, lengths of fragments, calibration of qualities."""
        found = results.of(Merging)
        if found.truth is not None:
            section.tables.append(("Against the truth", _truth_table(found.truth)))
        if found.stats is not None:
            section.tables.append(("Merging statistics", _process_table(found.stats)))
            sizes = found.stats.histogram("histograms.insert_sizes")
            qualities = _estimated(found.stats)
            if qualities and not is_brief:
                section.plot(
                    _learned(f"learned{section.number}", qualities),
                    "Qualities of the reads: stated, and estimated from the disagreements of "
                    "mates in the overlaps of the first pairs. On the dotted line they mean what "
                    "they say; below it reads have more errors. Larger dots mean more bases.",
                )
            if sizes and not is_brief:
                section.plot(fragment_lengths(f"fragments{section.number}", sizes), _MERGED_ONLY)
        if found.truth is not None:
            parts = {label: _observed(found.truth, name) for name, label in _PARTS.items()}
            if any(parts.values()):
                section.plot(
                    _calibration(f"calibration{section.number}", parts),
                    "Qualities of merged bases: reported, and observed from errors. On the "
                    "dotted line qualities are calibrated; above it bases are better. "
                    "Larger dots mean more bases; qualities without errors are not shown.",
                )

    def overlays(self, samples: Sequence[SampleResults]) -> list[Plot]:
        """Lengths of merged fragments."""
        stats = [own for r in samples if (own := r.of(Merging).stats) is not None]
        counts = [own.histogram("histograms.insert_sizes") for own in stats]
        return length_curves("all-fragments", counts, _MERGED_ONLY)

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """The share of pairs that was merged."""
        stats = [results.of(Merging).stats for results in samples]
        return [shares("pairs merged", stats, "pairs.merged", "pairs.total")]


def _observed(truth: Json, part: str) -> list[tuple[float, float, float]]:
    """Given quality, observed quality and bases, where there were errors."""
    rows = []
    for entry in truth.entries(f"calibration.{part}"):
        row = Json(truth.path, entry if isinstance(entry, dict) else {})
        given, observed, bases = (row.number(key) for key in ("quality", "observed", "bases"))
        if given is not None and observed is not None and bases is not None:
            rows.append((given, observed, bases))
    return rows


def _estimated(stats: Json) -> dict[str, list[tuple[float, float, float]]]:
    """Stated quality, estimated quality and bases, by mate."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for entry in stats.entries("learned.qualities"):
        row = Json(stats.path, entry if isinstance(entry, dict) else {})
        mate, *own = (row.number(key) for key in ("mate", "stated", "estimated", "bases"))
        stated, estimated, bases = own
        if None not in (mate, stated, estimated, bases):
            label = "first mates" if mate == 1 else "second mates"
            rows.setdefault(label, []).append((stated, estimated, bases))  # type: ignore[arg-type]
    return rows


def _process_table(stats: Json) -> Table:
    """Table of pairs by how they were merged or why not."""
    rows = [
        stats.line("pairs", "pairs.total"),
        stats.line("merged", "pairs.merged", "pairs.total"),
        stats.line("… of these pointing outwards", "pairs.outward", "pairs.merged"),
        stats.line("without a similar overlap", "pairs.dissimilar", "pairs.total"),
        stats.line("with several overlaps, or of repeats", "pairs.undecided", "pairs.total"),
        stats.line("too short for an overlap", "pairs.too_short", "pairs.total"),
        stats.line("bases in overlaps", "overlaps.bases"),
        stats.line("… that mismatch", "overlaps.mismatches", "overlaps.bases"),
        stats.line("adapter bases trimmed", "trimmed.bases"),
        *moments(stats, "insert_size", "deviation", "insert size of merged pairs", "pairs.merged"),
    ]
    return Table(("", "number", "share"), rows)


def _truth_table(truth: Json) -> Table:
    """Merged reads and their bases against the truth."""

    def number(label: str, key: str) -> tuple[str, str]:
        return label, words.count(truth.number(f"pairs.{key}"))

    return Table(
        ("", "number"),
        [
            number("pairs that overlap", "overlapping"),
            number("merged to the correct length", "right"),
            number("merged, up to 3 bases off", "near"),
            number("merged to a wrong length", "wrong"),
            number("not merged", "missed"),
            number("pairs that do not overlap", "apart"),
            number("… merged nevertheless", "apart_merged"),
            ("sensitivity", words.decimal(truth.number("rates.sensitivity"), 4)),
            ("precision", words.decimal(truth.number("rates.precision"), 4)),
            ("error rate of the reads", words.rate(truth.number("rates.error_rate_before"))),
            ("error rate of the merged reads", words.rate(truth.number("rates.error_rate_after"))),
        ],
    )


@drawn(SMALL)
def _calibration(figure: Figure, parts: Mapping[str, Sequence[tuple[float, float, float]]]) -> None:
    """Quality that the errors speak for, by the quality given."""
    _compared(figure, parts, "quality given", "observed quality")


@drawn(SMALL)
def _learned(figure: Figure, parts: Mapping[str, Sequence[tuple[float, float, float]]]) -> None:
    """Quality that mates' disagreements speak for, by the quality stated."""
    _compared(figure, parts, "stated quality", "estimated quality")


def _compared(
    figure: Figure,
    parts: Mapping[str, Sequence[tuple[float, float, float]]],
    given_label: str,
    found_label: str,
) -> None:
    """Dots for parts of up to two names: found by given quality, sized by bases."""
    axes = figure.subplots()
    highest = max((max(row[:2]) for rows in parts.values() for row in rows), default=1.0)
    axes.plot([0, highest], [0, highest], color=MUTED, linewidth=0.8, linestyle=":")
    most = max((row[2] for rows in parts.values() for row in rows), default=1.0)
    for colour, (label, rows) in zip((AFTER, AMBER), parts.items(), strict=False):
        given, observed, bases = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        sizes = 8 + 60 * np.sqrt(bases / most)
        axes.scatter(given, observed, s=sizes, color=colour, label=label, alpha=0.8, linewidth=0)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(given_label)
    axes.set_ylabel(found_label)
    axes.legend(loc="upper left")
