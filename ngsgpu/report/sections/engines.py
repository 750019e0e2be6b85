"""The report's section on assemblers: the same reads assembled by several programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ngsgpu.report import words
from ngsgpu.report.absent import is_present
from ngsgpu.report.drawing import SMALL, VARIANT_LABELS, drawn, thousands
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Finding, SampleSection, Table
from ngsgpu.report.palette import CYCLE, MUTED
from ngsgpu.report.quast import Curve, Quast, quast_rows, read_curves, read_quast
from ngsgpu.report.stage import Stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENGINES: Final = {"spades": "SPAdes", "ngsgpu": "ngsgpu", "skesa": "SKESA", "megahit": "MEGAHIT"}
"""Assemblers by their names in the workflow's config."""

_CURVES: Final = {
    "ngx": "NGx: contigs of at least this length cover x per cent of the genome.",
    "nx": "Nx: contigs of at least this length cover x per cent of the assembly.",
    "ngax": "NGAx: the same for the blocks of contigs that align to the genome, split at "
    "misassemblies.",
    "nax": "NAx: the same for the blocks of contigs that align to the reference, split at "
    "misassemblies.",
}


@dataclass(eq=False)
class Engines:
    """QUAST's comparison of assemblers.

    Attributes:
        quast: metrics by program and reads, such as ``skesa_corrected``.
        curves: of contiguity, by kind and assembly.
    """

    quast: Quast | None = None
    curves: dict[str, dict[str, Curve]] = field(default_factory=dict)


class EnginesStage(Stage):
    """Assemblies of the same reads by several programs."""

    name = "engines"
    title = "Assemblers"
    files = (
        FileSpec("quast_engines", ("quast_engines/report.tsv",)),
        FileSpec("quast_curves", ("quast_engines/report.html",)),
    )
    intro = (
        "<p>The uncorrected and the corrected reads, assembled by several programs with their own "
        "defaults; the best\n  value of each line is marked "
        '<span class="better">✓</span>.</p>'
    )
    is_conclusion = True

    def read(self, sample: Sample, missing: list[str]) -> Engines:
        """Read QUAST's metrics and curves; few studies have them."""
        found, files = Engines(), sample.files
        table, page = files.one("quast_engines"), files.one("quast_curves")
        if table is not None and is_present(table, "QUAST's table of assemblers", missing):
            found.quast = read_quast(table, are_variants=False)
            if page is not None and is_present(page, "QUAST's curves of assemblers", missing):
                found.curves = read_curves(page)
        return found

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """QUAST's metrics, a column an assembly, and curves of contiguity."""
        found = results.of(Engines)
        if found.quast is None:
            return
        section.tables.append(("Assemblers (QUAST)", engine_table(found.quast)))
        section.details.append(("All QUAST metrics", engine_table(found.quast, everything=True)))
        for kinds in (("ngx", "nx"), ("ngax", "nax")):
            kind = next((kind for kind in kinds if found.curves.get(kind)), None)
            if kind is not None:
                name = kind.replace("x", "").upper() + "x"
                svg = _curves(f"engines{kind}{section.number}", found.curves[kind], name)
                section.plot(svg, _CURVES[kind])

    def say(self, results: SampleResults, finding: Finding) -> None:
        """The contiguity that each program reached with the last reads, the corrected ones."""
        quast = results.of(Engines).quast
        if quast is None:
            return
        last = [name for name in assemblies(quast) if name.endswith("_corrected")]
        names = last or assemblies(quast)
        for metric in ("NGA50", "NG50", "N50"):
            values = [quast.number(metric, name) for name in names]
            if any(value is not None for value in values):
                said = [
                    f"{engine_words(name).partition(',')[0]} {words.count(value)}"
                    for name, value in zip(names, values, strict=True)
                ]
                reads = "corrected" if last else "uncorrected"
                finding.sentences.append(
                    f"{metric} of the assemblers' contigs, {reads} reads: {words.listed(said)}."
                )
                return


def assemblies(quast: Quast) -> list[str]:
    """Names of the assemblies, in QUAST's order."""
    return list(dict.fromkeys(name for values in quast.metrics.values() for name in values))


def engine_words(name: str) -> str:
    """An assembly's program and reads, as text."""
    engine, _, variant = name.partition("_")
    reads = VARIANT_LABELS.get(variant, variant)
    return f"{ENGINES.get(engine, engine)}, {reads}" if reads else ENGINES.get(engine, engine)


def engine_table(quast: Quast, *, everything: bool = False) -> Table:
    """QUAST's metrics of all assemblies, the best ones marked."""
    names = assemblies(quast)
    rows, marks = quast_rows(quast, names, everything=everything)
    return Table(("", *map(engine_words, names)), rows, marks)


@drawn(SMALL)
def _curves(figure: Figure, curves: Mapping[str, Curve], name: str) -> None:
    """Contiguity of each assembly: colours are programs, dashes uncorrected reads."""
    axes = figure.subplots()
    engines: Sequence[str] = list(dict.fromkeys(label.partition("_")[0] for label in curves))
    for label, (share, lengths) in curves.items():
        engine, _, variant = label.partition("_")
        axes.plot(
            [*share, *share[-1:]],
            [*lengths, 0],
            color=CYCLE[engines.index(engine) % len(CYCLE)],
            label=engine_words(label),
            linestyle=(0, (4, 1.5)) if variant == "raw" else "-",
        )
    axes.axvline(50, color=MUTED, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    whole = "genome" if "G" in name else "assembly"
    axes.set_xlabel(f"x: fraction of the {whole} (%)")
    axes.set_ylabel(f"{name} (bases)")
    thousands(axes.yaxis)
    axes.legend(loc="best")
