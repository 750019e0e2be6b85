"""The report's section on extension."""

from __future__ import annotations

from collections.abc import Sequence

from ngsgpu.report import plots, words
from ngsgpu.report.collect import Json, SampleResults
from ngsgpu.report.content import Table
from ngsgpu.report.sections import Figure, SampleSection


def extension_sections(samples: Sequence[SampleResults]) -> list[SampleSection]:
    """One section for each sample whose pairs were extended."""
    return [
        _section(results, number)
        for number, results in enumerate(samples)
        if results.extend is not None or results.extension is not None
    ]


def _section(results: SampleResults, number: int) -> SampleSection:
    sample = results.sample
    section = SampleSection(sample.name, sample.label, sample.kind)
    if results.extension is not None:
        section.tables.append(("Against the truth", truth_table(results.extension)))
    if results.extend is not None:
        section.tables.append(("What extension did", process_table(results.extend)))
        lengths = _histogram(results.extend)
        if lengths:
            figure = plots.fragment_lengths(f"extended{number}", lengths)
            section.figures.append(Figure(figure, "Lengths of the extended reads."))
    return section


def _histogram(stats: Json) -> list[tuple[int, int]]:
    key = "length_histogram"
    rows = [stats.as_array(row, key) for row in stats.entries(key)]
    return [(int(row[0]), int(row[1])) for row in rows if len(row) == 2]


def process_table(stats: Json) -> Table:
    """What extension saw and did."""

    def line(label: str, key: str, of: str) -> tuple[str, str, str]:
        value = stats.number(f"pairs.{key}")
        share = words.share(value, stats.number(f"pairs.{of}")) if value is not None else ""
        return label, words.count(value), share

    rows = [
        line("pairs", "total", "total"),
        line("connected", "connected", "total"),
        line("… by both sides alike", "both", "connected"),
        line("… by one side, confirmed by the other", "confirmed", "connected"),
        line("… by one side", "one", "connected"),
        line("… by both sides, differently", "differ", "connected"),
        line("… by merging both sides", "merged", "connected"),
    ]
    for label, key in (("mean", "mean"), ("standard deviation", "sd")):
        value = words.decimal(stats.number(f"insert.{key}"), 1)
        rows.append((f"{label} of the fragments' lengths", value, ""))
    return Table(("", "number", "share"), rows)


def truth_table(truth: Json) -> Table:
    """Extended reads and their gaps against the truth."""
    pairs = truth.number("pairs")

    def line(label: str, key: str) -> tuple[str, str, str]:
        value = truth.number(key)
        return label, words.count(value), words.share(value or 0, pairs)

    def rate(label: str, key: str) -> tuple[str, str, str]:
        return label, words.rate(truth.number(f"rates.{key}")), ""

    return Table(
        ("", "number", "share"),
        [
            line("pairs", "pairs"),
            line("connected", "connected"),
            line("gaps without an error", "counts.error_free"),
            line("gaps with at most 2 edits", "counts.few_edits"),
            line("gaps of the right length", "counts.right_length"),
            rate("error rate in gaps", "error_rate"),
            rate("… without differences of length", "error_rate_without_length"),
        ],
    )
