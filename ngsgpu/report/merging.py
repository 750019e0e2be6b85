"""The report's section on merging."""

from __future__ import annotations

from collections.abc import Sequence

from ngsgpu.report import plots, words
from ngsgpu.report.collect import Json, SampleResults
from ngsgpu.report.content import Table
from ngsgpu.report.sections import Figure, SampleSection

_MERGED_ONLY = (
    "Lengths of the fragments of merged pairs; those of the others are not known, and longer ones "
    "do not overlap."
)
_PARTS = {"overlap": "in overlaps", "alone": "outside of overlaps"}


def merging_sections(samples: Sequence[SampleResults]) -> list[SampleSection]:
    """One section for each sample whose pairs were merged."""
    return [
        _section(results, number)
        for number, results in enumerate(samples)
        if results.merge is not None or results.merging is not None
    ]


def _section(results: SampleResults, number: int) -> SampleSection:
    sample = results.sample
    section = SampleSection(sample.name, sample.label, sample.kind)
    if results.merging is not None:
        section.tables.append(("Against the truth", truth_table(results.merging)))
    if results.merge is not None:
        section.tables.append(("What merging did", process_table(results.merge)))
        sizes = results.merge.histogram("histograms.insert_sizes")
        if sizes:
            figure = plots.fragment_lengths(f"fragments{number}", sizes)
            section.figures.append(Figure(figure, _MERGED_ONLY))
    if results.merging is not None:
        parts = {label: _observed(results.merging, name) for name, label in _PARTS.items()}
        if any(parts.values()):
            figure = plots.calibration(f"calibration{number}", parts)
            caption = (
                "Qualities of merged bases: given, and observed by their errors. On the dotted "
                "line a quality says what it means; above it bases are better than it says. Larger "
                "dots stand for more bases; qualities without an error are not shown."
            )
            section.figures.append(Figure(figure, caption))
    return section


def _observed(truth: Json, part: str) -> list[tuple[float, float, float]]:
    """Given quality, observed quality and bases, where there were errors."""
    rows = []
    for entry in truth.entries(f"calibration.{part}"):
        row = Json(truth.path, entry if isinstance(entry, dict) else {})
        given, observed, bases = (row.number(key) for key in ("quality", "observed", "bases"))
        if given is not None and observed is not None and bases is not None:
            rows.append((given, observed, bases))
    return rows


def process_table(stats: Json) -> Table:
    """What merging saw and did."""

    def line(label: str, key: str, of: str | None = None) -> tuple[str, str, str]:
        value = stats.number(key)
        share = words.share(value or 0, stats.number(of)) if of and value is not None else ""
        return label, words.count(value), share

    rows = [
        line("pairs", "pairs.total"),
        line("merged", "pairs.merged", "pairs.total"),
        line("… of these pointing outwards", "pairs.outward", "pairs.merged"),
        line("without a similar overlap", "pairs.dissimilar", "pairs.total"),
        line("too short for an overlap", "pairs.too_short", "pairs.total"),
        line("bases in overlaps", "overlaps.bases"),
        line("… that mismatch", "overlaps.mismatches", "overlaps.bases"),
        line("bases of adapters trimmed", "trimmed.bases"),
    ]
    for label, key in (("mean", "mean"), ("standard deviation", "deviation")):
        value = words.decimal(stats.number(f"insert_size.{key}"), 1)
        rows.append((f"{label} of the lengths of merged pairs' fragments", value, ""))
    return Table(("", "number", "share"), rows)


def truth_table(truth: Json) -> Table:
    """Merged reads and their bases against the truth."""

    def number(label: str, key: str) -> tuple[str, str]:
        return label, words.count(truth.number(f"pairs.{key}"))

    return Table(
        ("", "number"),
        [
            number("pairs that overlap", "overlapping"),
            number("merged to the right length", "right"),
            number("merged, up to 3 bases off", "near"),
            number("merged to a wrong length", "wrong"),
            number("not merged", "missed"),
            number("pairs that do not overlap", "apart"),
            number("… merged all the same", "apart_merged"),
            ("sensitivity", words.decimal(truth.number("rates.sensitivity"), 4)),
            ("precision", words.decimal(truth.number("rates.precision"), 4)),
            ("error rate of the reads", words.rate(truth.number("rates.error_rate_before"))),
            ("error rate of the merged reads", words.rate(truth.number("rates.error_rate_after"))),
        ],
    )
