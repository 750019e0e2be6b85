"""The report's section on assemblies of uncorrected and corrected reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.report import words
from ngsgpu.report.absent import is_present
from ngsgpu.report.drawing import SMALL, VARIANT_COLOURS, VARIANT_LABELS, drawn, thousands
from ngsgpu.report.files import numbered_lines
from ngsgpu.report.model import VARIANTS, FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, Finding, SampleSection
from ngsgpu.report.palette import MUTED
from ngsgpu.report.quast import Quast, join_quast, quast_table, read_quast
from ngsgpu.report.stage import Stage, variants

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False)
class Assembly:
    """Results of a sample's assemblies.

    Attributes:
        contigs: lengths by variant, longest first.
        quast: QUAST's metrics.
    """

    contigs: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    quast: Quast | None = None

    @property
    def has_contigs(self) -> bool:
        """Whether any assembly gave a contig."""
        return any(len(lengths) for lengths in self.contigs.values())

    @property
    def ratio(self) -> float | None:
        """Contiguity after correction by that before it; None if QUAST did not compare them."""
        metric = contiguity(self.quast)
        if self.quast is None or metric is None:
            return None
        before, after = (self.quast.number(metric, name) for name in VARIANTS)
        return after / before if before and after is not None else None


class AssemblyStage(Stage):
    """Assemblies of the uncorrected and of the corrected reads."""

    name = "assembly"
    title = "Assembly"
    files = (
        FileSpec("contigs", ("assembly/{}/contigs.fasta", "assembly/{}/contigs.fa"), VARIANTS),
        FileSpec("quast", ("quast/{}/report.tsv",), (*VARIANTS, "all"), alone="all"),
    )
    intro = (
        "<p>Contigs assembled from the uncorrected and from the corrected reads, with the "
        "same assembler\n  and options. The better value of each pair is marked <span "
        'class="better">✓</span> where they differ by more than 0.05 %.</p>'
    )
    is_expected = True
    is_conclusion = True

    def find(self, sample: str, folder: Path) -> dict[tuple[str, ...], Path]:
        """Contigs, and QUAST's table of both assemblies or those of each."""
        found = super().find(sample, folder)
        joint = folder / "quast/report.tsv"
        if joint.is_file():
            found = {key: path for key, path in found.items() if key[0] != "quast"}
            found["quast", "all"] = joint
        return found

    def read(self, sample: Sample, missing: list[str]) -> Assembly:
        """Read contigs and QUAST's metrics."""
        found = Assembly()
        for variant, path in variants(sample.files, "contigs", "contigs of the {} reads", missing):
            found.contigs[variant] = read_contig_lengths(path)
        what = "QUAST's table"
        paths = sample.files.group("quast")
        if not paths:
            missing.append(what)
        reports = {
            name: read_quast(path)
            for name, path in paths.items()
            if is_present(path, what, missing)
        }
        found.quast = reports.get("all") or (join_quast(reports) if reports else None)
        return found

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """QUAST's metrics, and lengths of the contigs."""
        assembly = results.of(Assembly)
        if assembly.quast is not None:
            section.tables.append(("QUAST", quast_table(assembly.quast)))
            section.details.append(
                ("All QUAST metrics", quast_table(assembly.quast, everything=True))
            )
        lengths = {name: contigs for name, contigs in assembly.contigs.items() if len(contigs)}
        if lengths:
            reference = None
            if assembly.quast is not None:
                found = [assembly.quast.number("Reference length", name) for name in lengths]
                reference = next((value for value in found if value), None)
            caption = (
                "NGx: contigs of at least this length cover x per cent of the genome."
                if reference
                else "Nx: contigs of at least this length cover x per cent of the assembly."
            )
            section.plot(_nx_curves(f"nx{section.number}", lengths, reference), caption)

    def say(self, results: SampleResults, finding: Finding) -> None:
        """Contiguity before and after, and what QUAST found wrong."""
        found = results.of(Assembly)
        without = [name for name, lengths in found.contigs.items() if not len(lengths)]
        if without:
            which = words.listed([{"raw": "uncorrected"}.get(name, name) for name in without])
            finding.sentences.append(f"Assembly of the {which} reads gave no contigs.")
        quast, metric = found.quast, contiguity(found.quast)
        if quast is None or metric is None:
            return
        before, after = quast.number(metric, "raw"), quast.number(metric, "corrected")
        sentence = f"{metric} of the contigs: {words.count(before)} before correction, "
        sentence += f"{words.count(after)} after"
        parts = []
        for name, what in (
            ("# misassemblies", "misassemblies"),
            ("# mismatches per 100 kbp", "mismatches per 100 kb"),
        ):
            pair = [quast.metrics.get(name, {}).get(v) for v in ("raw", "corrected")]
            if None not in pair and "-" not in pair:
                parts.append(f"{what}: {pair[0]} before, {pair[1]} after")
        finding.sentences.append("; ".join([sentence, *parts]) + ".")
        finding.figures.append(
            (f"{metric} of the contigs", words.change(words.count(before), words.count(after)))
        )

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """The most telling contiguity that there is of each sample, before and after."""
        reports = [results.of(Assembly).quast for results in samples]
        metrics = {metric for quast in reports if (metric := contiguity(quast)) is not None}
        cells = []
        for quast in reports:
            cell, metric = words.NOTHING, contiguity(quast)
            if quast is not None and metric is not None:
                before, after = (words.count(quast.number(metric, name)) for name in VARIANTS)
                cell = words.change(before, after, metric if len(metrics) > 1 else "")
            cells.append(cell)
        return [Column(metrics.pop() if len(metrics) == 1 else "contigs", cells)]


def read_contig_lengths(path: Path) -> NDArray[np.int64]:
    """Lengths of the sequences of a FASTA file, longest first.

    Raises:
        InputError: the file cannot be read or does not start with a header.
    """
    lengths: list[int] = []
    for number, line in numbered_lines(path, "run the assembly again"):
        if line.startswith(">"):
            lengths.append(0)
        elif lengths:
            lengths[-1] += len(line.strip())
        elif line.strip():
            raise InputError(path, "this is not FASTA", "run the assembly again", line=number)
    return np.sort(np.array(lengths, dtype=np.int64))[::-1]


def contiguity(quast: Quast | None) -> str | None:
    """The most telling contiguity that QUAST gives for both assemblies."""
    for metric in ("NGA50", "NG50", "N50"):
        if quast and all(quast.number(metric, name) is not None for name in ("raw", "corrected")):
            return metric
    return None


@drawn(SMALL)
def _nx_curves(
    figure: Figure, lengths: Mapping[str, NDArray[np.int64]], reference: float | None
) -> None:
    """Length of the shortest contig needed to cover each share of the assembly or genome.

    Contigs come longest first. ``reference`` is the length of the genome (NGx); without it, shares
    are those of the assembly itself (Nx).
    """
    axes = figure.subplots()
    for variant, contigs in lengths.items():
        total = reference or float(contigs.sum())
        if not len(contigs) or not total:
            continue
        share = np.concatenate([[0.0], 100 * np.cumsum(contigs) / total])
        axes.plot(
            np.append(np.repeat(share, 2)[1:-1], share[-1]),
            np.append(np.repeat(contigs, 2), 0),
            color=VARIANT_COLOURS[variant],
            label=VARIANT_LABELS[variant],
            linestyle="-" if variant == "corrected" else (0, (4, 1.5)),
        )
    axes.axvline(50, color=MUTED, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("x: fraction of the genome (%)" if reference else
                    "x: fraction of the assembly (%)")  # fmt: skip
    axes.set_ylabel("NGx (bases)" if reference else "Nx (bases)")
    thousands(axes.yaxis)
    axes.legend(loc="best")
