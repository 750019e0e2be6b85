"""The report's section on extension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ngsgpu.report import words
from ngsgpu.report.absent import is_present
from ngsgpu.report.drawing import fragment_lengths
from ngsgpu.report.files import Json, json_if_named, json_if_present, moments
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, Plot, SampleSection, Table
from ngsgpu.report.quast import Quast, quast_rows, read_quast
from ngsgpu.report.spread import length_curves
from ngsgpu.report.stage import Stage, shares

PROGRAMS = {"ngsgpu": "ngsgpu", "konnector": "Konnector"}
"""Programs whose extended reads may be compared with the truth."""

_CONNECTED_ONLY = (
    "Lengths of the extended reads, that is, of connected pairs only: pairs with longer fragments "
    "are connected less often."
)
USES = {"single": "as single reads", "merged": "as merged pairs"}
"""How the assembler got extended reads."""


@dataclass(eq=False)
class Extension:
    """Results of the extension of a sample's pairs.

    Attributes:
        stats: statistics of the run.
        truths: comparisons of extended reads with the truth, by program.
        quast: QUAST's metrics of the assemblies of extended reads, next to the others.
    """

    stats: Json | None = None
    truths: dict[str, Json] = field(default_factory=dict)
    quast: Quast | None = None


class ExtensionStage(Stage):
    """Extension of pairs, its truth, and assemblies of extended reads."""

    name = "extension"
    title = "Extension"
    files = (
        FileSpec("extend", ("extend/stats.json",)),
        FileSpec("quast_extended", ("quast_extended/report.tsv",)),
        FileSpec("extension", ("evaluate/extension_{}.json",), tuple(PROGRAMS), alone="ngsgpu"),
    )
    intro = (
        "<p>Both reads of a pair and the gap between them became one long read, by "
        "consensus of the\n  other reads. The reads' own bases are unchanged. Where "
        "assemblies are shown, the assembler got\n  extended reads as single reads or as "
        "merged pairs, and the remaining pairs as pairs; the best value\n  of each line is "
        'marked <span class="better">✓</span>.</p>'
    )

    def read(self, sample: Sample, missing: list[str]) -> Extension:
        """Read statistics, comparisons with the truth and metrics; not every study has them."""
        found, files = Extension(), sample.files
        what = "statistics of extension"
        found.stats = json_if_named(files.one("extend"), what, "ngsgpu.extend", missing)
        for program, path in files.group("extension").items():
            what = f"truth of the reads that {program} extended"
            truth = json_if_present(path, what, "ngsgpu.evaluate.extension", missing)
            if truth is not None:
                found.truths[program] = truth
        quast = files.one("quast_extended")
        if quast is not None and is_present(quast, "QUAST's table on extended reads", missing):
            found.quast = read_quast(quast)
        return found

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """Tables of the truth, the run and the assemblies, and lengths of extended reads."""
        found = results.of(Extension)
        if found.truths:
            section.tables.append(("Against the truth", _truth_table(found.truths)))
        if found.stats is not None:
            section.tables.append(("Extension statistics", _process_table(found.stats)))
            lengths = found.stats.histogram("length_histogram")
            if lengths and not is_brief:
                drawing = fragment_lengths(f"extended{section.number}", lengths)
                section.plot(drawing, _CONNECTED_ONLY)
        if (quast := found.quast) is not None:
            section.tables.append(("Assemblies (QUAST)", assembly_table(quast)))
            section.details.append(("All QUAST metrics", assembly_table(quast, everything=True)))

    def overlays(self, samples: Sequence[SampleResults]) -> list[Plot]:
        """Lengths of extended reads."""
        stats = [own for r in samples if (own := r.of(Extension).stats) is not None]
        counts = [own.histogram("length_histogram") for own in stats]
        return length_curves("all-extended", counts, _CONNECTED_ONLY)

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """The share of pairs that was connected."""
        stats = [results.of(Extension).stats for results in samples]
        return [shares("pairs connected", stats, "pairs.connected", "pairs.total")]


def _process_table(stats: Json) -> Table:
    """Table of pairs by how they were connected."""
    rows = [
        stats.line("pairs", "pairs.total", "pairs.total"),
        stats.line("connected", "pairs.connected", "pairs.total"),
        stats.line("… by both directions, identically", "pairs.both", "pairs.connected"),
        stats.line(
            "… by one direction, confirmed by the other", "pairs.confirmed", "pairs.connected"
        ),
        stats.line("… by one direction", "pairs.one", "pairs.connected"),
        stats.line("… by both directions, differently", "pairs.differ", "pairs.connected"),
        stats.line("… by merging both directions", "pairs.merged", "pairs.connected"),
        *moments(stats, "insert", "sd", f"insert size, {_origin(stats)}", "pairs.total"),
    ]
    return Table(("", "number", "share"), rows)


def _origin(stats: Json) -> str:
    """Say whether the insert size was given, or from which pairs it was estimated."""
    if not stats.get("insert.estimated"):
        return "as given"
    return f"estimated from {words.count(stats.number('insert.pairs'))} pairs that were connected"


def _truth_table(truths: Mapping[str, Json]) -> Table:
    """Extended reads and their gaps against the truth, a column a program."""

    def line(label: str, key: str) -> tuple[str, ...]:
        cells = []
        for truth in truths.values():
            value = truth.number(key)
            share = words.share(value or 0, truth.number("pairs"))
            cells.append(words.with_share(words.count(value), share))
        return label, *cells

    def rate(label: str, key: str) -> tuple[str, ...]:
        return label, *(words.rate(truth.number(f"rates.{key}")) for truth in truths.values())

    return Table(
        ("", *(PROGRAMS.get(name, name) for name in truths)),
        [
            ("pairs", *(words.count(truth.number("pairs")) for truth in truths.values())),
            line("connected", "connected"),
            line("error-free gaps", "counts.error_free"),
            line("gaps with at most 2 edits", "counts.few_edits"),
            line("gaps of correct length", "counts.right_length"),
            rate("error rate in gaps", "error_rate"),
            rate("… without length differences", "error_rate_without_length"),
        ],
    )


def assembly_table(quast: Quast, *, everything: bool = False) -> Table:
    """QUAST's metrics of assemblies of extended reads and of others, the best ones marked."""
    names = list(dict.fromkeys(name for values in quast.metrics.values() for name in values))
    rows, marks = quast_rows(quast, names, everything=everything)
    return Table(("", *map(assembly_words, names)), rows, marks)


def assembly_words(name: str) -> str:
    """The input of an assembly, as text."""
    program, _, use = name.rpartition("_")
    if program in PROGRAMS and use in USES:
        return f"{PROGRAMS[program]}, {USES[use]}"
    return {"raw": "uncorrected"}.get(name, name)
