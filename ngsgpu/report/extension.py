"""The report's section on extension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ngsgpu.report import plots, tables, words
from ngsgpu.report.collect import Json, SampleResults
from ngsgpu.report.content import Table
from ngsgpu.report.sections import Figure, SampleSection
from ngsgpu.report.sources import Quast

PROGRAMS = {"ngsgpu": "ngsgpu", "konnector": "Konnector"}
_CONNECTED_ONLY = (
    "Lengths of the extended reads, that is, of connected pairs only: those with longer fragments "
    "are connected less often."
)
USES = {"single": "as single reads", "merged": "as merged pairs"}
"""How the assembler got extended reads."""


def extension_sections(samples: Sequence[SampleResults]) -> list[SampleSection]:
    """One section for each sample whose pairs were extended."""
    return [
        _section(results, number)
        for number, results in enumerate(samples)
        if results.extend is not None or results.extension or results.quast_extended is not None
    ]


def _section(results: SampleResults, number: int) -> SampleSection:
    sample = results.sample
    section = SampleSection(sample.name, sample.label, sample.kind)
    if results.extension:
        section.tables.append(("Against the truth", truth_table(results.extension)))
    if results.extend is not None:
        section.tables.append(("What extension did", process_table(results.extend)))
        lengths = results.extend.histogram("length_histogram")
        if lengths:
            figure = plots.fragment_lengths(f"extended{number}", lengths)
            section.figures.append(Figure(figure, _CONNECTED_ONLY))
    if results.quast_extended is not None:
        quast = results.quast_extended
        section.tables.append(("Assemblies (QUAST)", assembly_table(quast)))
        section.details.append(("All metrics of QUAST", assembly_table(quast, everything=True)))
    return section


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
        rows.append((f"{label} of the fragments' lengths, {_origin(stats)}", value, ""))
    return Table(("", "number", "share"), rows)


def _origin(stats: Json) -> str:
    """Which fragments a mean length speaks for."""
    if not stats.get("insert.estimated"):
        return "as given"
    return f"estimated from {words.count(stats.number('insert.pairs'))} pairs that were connected"


def truth_table(truths: Mapping[str, Json]) -> Table:
    """Extended reads and their gaps against the truth, a column a program."""

    def line(label: str, key: str) -> tuple[str, ...]:
        cells = []
        for truth in truths.values():
            value = truth.number(key)
            share = words.share(value or 0, truth.number("pairs"))
            cells.append(f"{words.count(value)} ({share})")
        return label, *cells

    def rate(label: str, key: str) -> tuple[str, ...]:
        return label, *(words.rate(truth.number(f"rates.{key}")) for truth in truths.values())

    return Table(
        ("", *(PROGRAMS.get(name, name) for name in truths)),
        [
            ("pairs", *(words.count(truth.number("pairs")) for truth in truths.values())),
            line("connected", "connected"),
            line("gaps without an error", "counts.error_free"),
            line("gaps with at most 2 edits", "counts.few_edits"),
            line("gaps of the right length", "counts.right_length"),
            rate("error rate in gaps", "error_rate"),
            rate("… without differences of length", "error_rate_without_length"),
        ],
    )


def assembly_table(quast: Quast, *, everything: bool = False) -> Table:
    """QUAST's metrics of assemblies of extended reads and of others, the best ones marked."""
    names = list(dict.fromkeys(name for values in quast.metrics.values() for name in values))
    rows, marks = tables.quast_rows(quast, names, everything=everything)
    return Table(("", *map(assembly_words, names)), rows, marks)


def assembly_words(name: str) -> str:
    """What an assembly was made from, in words."""
    program, _, use = name.rpartition("_")
    if program in PROGRAMS and use in USES:
        return f"{PROGRAMS[program]}, {USES[use]}"
    return {"raw": "uncorrected"}.get(name, name)
