"""The report's section on the quality of the reads, from the JSON of `ngsgpu trim` or fastp."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.report import words
from ngsgpu.report.drawing import SMALL, VARIANT_COLOURS, VARIANT_LABELS, drawn, fragment_lengths
from ngsgpu.report.files import Json, load_fastp, trimmers
from ngsgpu.report.model import VARIANTS, FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, Finding, Plot, SampleSection, Table
from ngsgpu.report.palette import BASES
from ngsgpu.report.spread import curves, length_curves
from ngsgpu.report.stage import Stage, variants

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY_ADAPTERS: Final = 0.01
"""Share of reads with adapter from which the report recommends to trim them."""
_WITHOUT_ADAPTERS: Final = frozenset({"-A", "--disable-adapter-trimming"})
"""Options with which no adapters are looked for."""
_ALL: Final = "summary.before_filtering"
"""Figures of all reads, of which some would be filtered."""
_INSERTS: Final = "Fragment lengths of pairs whose mates overlap; longer ones are unknown."


@dataclass(eq=False)
class Quality:
    """Figures of a sample's reads, uncorrected and corrected, in fastp's form."""

    reads: dict[str, Json] = field(default_factory=dict)


class QualityStage(Stage):
    """Base qualities and content, adapters, duplication and lengths of reads and fragments."""

    name = "quality"
    title = "Read quality"
    files = (FileSpec("qc", ("qc/{}.fastp.json",), VARIANTS),)
    intro = "<p>{} looked at the reads{}. Adapters were counted here, not trimmed.</p>"

    def read(self, sample: Sample, missing: list[str]) -> Quality:
        """Read the reports; not every study has them."""
        if not sample.files.group("qc"):
            return Quality()
        found = {}
        for variant, path in variants(sample.files, "qc", "quality of the {} reads", missing):
            found[variant] = load_fastp(path)
        return Quality(found)

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """A table of both, qualities and GC content by position."""
        reads = results.of(Quality).reads
        if reads:
            section.note = _doubt(results)
            section.tables.append(("Reads", _table(reads, _doubt(results))))
            qualities = _curves(reads, "quality_curves.mean")
            contents = _curves(reads, "content_curves.GC")
            if qualities and not is_brief:
                drawing = _by_position(f"quality{section.number}", qualities, "mean quality")
                section.plot(drawing, "Mean base quality by position; dashed: second mates.")
            if contents and not is_brief:
                drawing = _by_position(f"gc{section.number}", contents, "GC content")
                section.plot(drawing, "GC content by position; dashed: second mates.")
            if not is_brief:
                _plot_uncorrected(section, reads)

    def intro_for(self, samples: Sequence[SampleResults]) -> str:
        """Whether correction kept numbers and lengths, which it does unless it trims reads."""
        both = [
            [own.number(f"{_ALL}.{key}") for key in ("total_reads", "total_bases")]
            == [raw.number(f"{_ALL}.{key}") for key in ("total_reads", "total_bases")]
            for results in samples
            if (raw := whole_reads(results)) is not None
            and (own := results.of(Quality).reads.get("corrected")) is not None
        ]
        found = [own for results in samples for own in results.of(Quality).reads.values()]
        program = trimmers(found)
        if not both:
            return self.intro.format(program, "")
        changed = both.count(False)
        kept = ", which keeps their number and lengths" if not changed else (
            f", which also changed their number or lengths in {changed} of {len(both)} samples"
            if len(both) > 1 else ", which also changed their number or lengths"
        )  # fmt: skip
        return self.intro.format(program, f" before and after correction{kept}")

    def overlays(self, samples: Sequence[SampleResults]) -> list[Plot]:
        """Qualities and GC content by position, and fragments, of the uncorrected reads."""
        plots = []
        for key, name, label in (
            ("quality_curves.mean", "quality", "mean quality"),
            ("content_curves.GC", "gc", "GC content"),
        ):
            lines = [
                (range(1, len(values) + 1), values.tolist())
                for results in samples
                if not _doubt(results)
                for (variant, mate), values in _curves(results.of(Quality).reads, key).items()
                if (variant, mate) == ("raw", 1)
            ]
            if lines:
                drawing = curves(f"all-{name}", {"": lines}, "position in the read", label)
                caption = f"{label[0].upper()}{label[1:]} by position in the uncorrected reads "
                plots.append(Plot(drawing, f"{caption}(first mates), a line a sample."))
        raw = [own for results in samples if (own := whole_reads(results)) is not None]
        return plots + length_curves("all-inserts", [_inserts(own) for own in raw], _INSERTS)

    def say(self, results: SampleResults, finding: Finding) -> None:
        """Adapters, if there are many."""
        share = adapters_left(results)
        if share is not None and share >= MANY_ADAPTERS:
            finding.sentences.append(
                f"{words.percent(share, 1)} of the reads contain adapter sequence: trim it, for "
                "example with ngsgpu trim, or merge the pairs, which trims them."
            )

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """Share of bases with a quality of 30 or more, and of duplicates, before correction."""
        raw = [whole_reads(results) for results in samples]
        return [
            Column(heading, [words.percent(own.number(key) if own else None, 1) for own in raw])
            for heading, key in (
                ("bases of Q30 or more", "summary.before_filtering.q30_rate"),
                ("duplicates", "duplication.rate"),
            )
        ]


def whole_reads(results: SampleResults) -> Json | None:
    """The figures of a sample's uncorrected reads; None unless they speak for the sample."""
    return None if _doubt(results) else results.of(Quality).reads.get("raw")


def _doubt(results: SampleResults) -> str:
    """Why the figures do not speak for the sample; empty if they do.

    fastp itself takes the reads before a damaged one, and what is no FASTQ for no reads.
    """
    raw = results.of(Quality).reads.get("raw")
    is_empty = raw is not None and number_of(raw) == 0
    if results.failed_in and not results.is_read:
        if is_empty:
            return "Failed sample: fastp found no reads."
        return "Failed sample: these are the reads that fastp could read, not the sample's quality."
    return "Empty sample: there are no reads." if is_empty else ""


def adapters_left(results: SampleResults) -> float | None:
    """Share of a sample's uncorrected reads that have adapter; None of trimmed ones."""
    raw = whole_reads(results)
    is_trimmed = results.sample.files.one("trim") is not None
    return None if raw is None or is_trimmed else adapters(raw)


def adapters(reads: Json) -> float | None:
    """Share of the reads with adapter; None if none was looked for.

    There is no entry for single reads in which no adapter is detected: none of them has one.
    """
    total = number_of(reads)
    found = reads.number("adapter_cutting.adapter_trimmed_reads")
    words_given = str(reads.get("command")).replace("_", "-").split()
    if found is None and _WITHOUT_ADAPTERS.isdisjoint(words_given):
        found = 0.0
    return None if found is None or not total else found / total


def number_of(reads: Json) -> float | None:
    """How many reads there are."""
    return reads.number(f"{_ALL}.total_reads")


_CUT_OFF: Final = 5
"""Bases from the longest known fragment within which a peak is where the mates cease to overlap."""


def _table(reads: Mapping[str, Json], doubt: str) -> Table:
    def percent(key: str) -> Callable[[Json], str]:
        return lambda own: words.percent(own.number(key) if number_of(own) != 0 else None)

    def count(key: str) -> Callable[[Json], str]:
        return lambda own: words.count(own.number(key))

    rows: dict[str, Callable[[Json], str]] = {
        "reads": count(f"{_ALL}.total_reads"),
        "bases": count(f"{_ALL}.total_bases"),
        "mean length": count(f"{_ALL}.read1_mean_length"),
        "… of second mates": count(f"{_ALL}.read2_mean_length"),
        "bases of Q20 or more": percent(f"{_ALL}.q20_rate"),
        "bases of Q30 or more": percent(f"{_ALL}.q30_rate"),
        "GC content": percent(f"{_ALL}.gc_content"),
        "duplicates": percent("duplication.rate"),
        "reads with adapter": lambda own: words.percent(adapters(own)),
        "most frequent fragment length (mates that overlap)": lambda own: words.count(
            _most_frequent(own)
        ),
    }
    cells = [(label, *(cell(own) for own in reads.values())) for label, cell in rows.items()]
    kept = [row for row in cells if any(cell != words.NOTHING for cell in row[1:])]
    if doubt:
        # The table as a file has no note above it.
        kept.insert(0, ("sample", *(doubt.partition(" sample")[0].lower() for _ in reads)))
    return Table(("", *(VARIANT_LABELS[variant] for variant in reads)), kept)


Curves = dict[tuple[str, int], NDArray[np.float64]]


def _curves(reads: Mapping[str, Json], key: str) -> Curves:
    """Values by position, for each variant and mate that has any."""
    found = {
        (variant, mate): own.array(f"read{mate}_before_filtering.{key}")
        for variant, own in reads.items()
        for mate in (1, 2)
    }
    return {name: values for name, values in found.items() if len(values) > 0}


def _inserts(reads: Json) -> list[tuple[int, int]]:
    """Lengths of the fragments whose mates overlap, and their counts."""
    counts = reads.array("insert_size.histogram")
    return [(length, int(count)) for length, count in enumerate(counts.tolist()) if count > 0]


def _most_frequent(reads: Json) -> float | None:
    """The most frequent length of the fragments; None if none is known.

    Lengths are known only where mates overlap: a peak at the longest of them is the end of what can
    be seen, with more fragments beyond.
    """
    lengths = [length for length, _ in _inserts(reads)]
    peak = reads.number("insert_size.peak")
    if peak is None or not lengths or peak > lengths[-1] - _CUT_OFF:
        return None
    return peak


def _plot_uncorrected(section: SampleSection, reads: Mapping[str, Json]) -> None:
    """Content by position and lengths of fragments, which correction hardly changes."""
    raw = reads.get("raw")
    if raw is None:
        return
    contents = {
        (base, mate): values
        for base in BASES
        for mate in (1, 2)
        if len(values := raw.array(f"read{mate}_before_filtering.content_curves.{base}")) > 0
    }
    if contents:
        section.plot(
            _contents(f"contents{section.number}", contents),
            "Bases by position in the uncorrected reads; dashed: second mates.",
        )
    if sizes := _inserts(raw):
        section.plot(fragment_lengths(f"inserts{section.number}", sizes), _INSERTS)


@drawn(SMALL)
def _contents(figure: Figure, contents: Mapping[tuple[str, int], NDArray[np.float64]]) -> None:
    """The share of each base along the reads."""
    axes = figure.subplots()
    for (base, mate), values in contents.items():
        axes.plot(
            np.arange(1, len(values) + 1),
            100 * values,
            color=BASES[base],
            linestyle="-" if mate == 1 else "--",
            linewidth=1.2,
            label=base if mate == 1 else None,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("position in the read")
    axes.set_ylabel("bases (%)")
    axes.legend(loc="lower left", ncols=len(BASES))


@drawn(SMALL)
def _by_position(figure: Figure, curves: Curves, label: str) -> None:
    """Curves along the reads."""
    axes = figure.subplots()
    for (variant, mate), values in curves.items():
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            color=VARIANT_COLOURS[variant],
            linestyle="-" if mate == 1 else "--",
            linewidth=1.4,
            label=VARIANT_LABELS[variant] if mate == 1 else None,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("position in the read")
    axes.set_ylabel(label)
    axes.legend(loc="lower left")
