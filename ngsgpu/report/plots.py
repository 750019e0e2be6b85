"""The report's plots, as SVG text that stands in the page.

Matplotlib draws them; the same data give the same bytes. Text stays text, so that the page's
fonts, search and screen readers apply.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.report.collect import PositionCounts
from ngsgpu.report.palette import AFTER, AMBER, BEFORE, CYCLE, GRID, INK, LIGHT, MUTED, SKY
from ngsgpu.report.sources import Spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANT_COLOURS = {"raw": BEFORE, "corrected": AFTER}
VARIANT_LABELS = {"raw": "uncorrected", "corrected": "corrected"}

SMALL = (4.5, 3.0)
"""Inches of a figure that shares its line with another, or with a table."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
}


def draw(name: str, size: tuple[float, float], paint: Callable[[Figure], None]) -> str:
    """Draw a figure and return it as an ``<svg>`` element.

    Args:
        name: prefix of every id in the figure, so that no two figures of a page share one.
        size: width and height in inches.
        paint: puts axes and data into the figure.
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "the report's plots need matplotlib; install it with pip install 'ngsgpu[report]'"
        ) from error
    style: Any = {**_STYLE, "svg.hashsalt": name}
    with mpl.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    return _inline(buffer.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    """An SVG document as an element: without prolog and metadata, with ids of its own."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"\s*<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r"url\(#", f"url(#{name}-", element)
    element = re.sub(r'href="#', f'href="#{name}-', element)
    # The size comes from the page; the viewBox keeps the proportions.
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    return element.strip()


def _thousands(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _window(counts: NDArray[np.float64], width: int = 5) -> NDArray[np.float64]:
    """Sums over a centred window that is narrower at the ends."""
    total = np.concatenate([[0.0], np.cumsum(counts)])
    at = np.arange(len(counts))
    half = width // 2
    upper = np.minimum(at + half + 1, len(counts))
    return np.asarray(total[upper] - total[np.maximum(at - half, 0)])


def error_rate_by_position(name: str, mates: Sequence[PositionCounts]) -> str:
    """Error rate at each position before and after correction, one panel a mate."""

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(mates), sharey=True, squeeze=False)[0]
        for axes, mate in zip(panels, mates, strict=True):
            at = np.arange(1, len(mate.bases) + 1)
            bases = np.maximum(mate.bases, 1)
            for counts, colour, label in (
                (mate.before, BEFORE, "before correction"),
                (mate.after, AFTER, "after correction"),
            ):
                rate = 100 * counts / bases
                smooth = 100 * _window(counts) / np.maximum(_window(mate.bases), 1)
                axes.plot(at, np.where(rate > 0, rate, np.nan), ".", color=colour, ms=2.5,
                          alpha=0.45)  # fmt: skip
                axes.plot(at, np.where(smooth > 0, smooth, np.nan), color=colour, label=label)
            axes.set_yscale("log")
            axes.set_xlabel("position in the read")
            axes.set_title(f"mate {mate.mate}" if len(mates) > 1 else "")
            axes.set_xlim(0, len(at) + 1)
        panels[0].set_ylabel("wrong bases (%)")
        _plain_decades(panels[0].yaxis)
        panels[-1].legend(loc="best")

    return draw(name, (4.1 * max(len(mates), 1.4), 3.1), paint)


def _plain_decades(axis: Any) -> None:
    """Label the decades of a logarithmic axis in full, as 0.01, 10 or 1,000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    def label(value: float, _: object) -> str:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"

    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(label))
    axis.set_minor_formatter(NullFormatter())


def outcomes(name: str, samples: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """What became of the errors of the input, one bar a sample.

    Args:
        name: prefix of ids.
        samples: label and totals (``tp``, ``fn``, ``fp``, ``wrong_to_wrong``).
    """

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for row, (_, totals) in enumerate(samples):
            errors = max(totals["tp"] + totals["fn"], 1)
            parts = (
                (totals["tp"], AFTER, "corrected"),
                (totals["fn"] - totals["wrong_to_wrong"], LIGHT, "left as it was"),
                (totals["wrong_to_wrong"], AMBER, "changed to another wrong base"),
            )
            left = 0.0
            for count, colour, label in parts:
                width = 100 * count / errors
                axes.barh(row, width, left=left, color=colour, height=0.55,
                          label=label if row == 0 else None)  # fmt: skip
                left += width
            share = 100 * totals["tp"] / errors
            if share > 12:
                axes.text(1.2, row, f"{share:.1f} %", va="center", color="white", weight="bold")
            axes.text(0, row - 0.36, f"{errors:,.0f} errors in the input", fontsize=8.5,
                      color=MUTED, va="bottom")  # fmt: skip
            axes.text(101, row, f"+ {totals['fp']:,.0f} new", va="center", color=BEFORE)
        axes.set_yticks(range(len(samples)), [label for label, _ in samples])
        axes.set_ylim(len(samples) - 0.4, -0.75)
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("share of the errors in the input (%)")
        figure.legend(loc="outside upper left", ncols=3)

    return draw(name, (8.2, 1.35 + 0.75 * len(samples)), paint)


def corrected_by_position(name: str, mates: Sequence[NDArray[np.float64]]) -> str:
    """Bases replaced at the positions of the reads, means over five, one line a mate."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for number, counts in enumerate(mates):
            edges = np.unique(np.append(np.arange(0, len(counts), 5), len(counts)))
            means = np.add.reduceat(counts, edges[:-1]) / np.diff(edges)
            axes.stairs(
                means,
                edges + 0.5,
                baseline=None,
                color=(AFTER, SKY)[number % 2],
                linewidth=1.8,
                label=f"mate {number + 1}" if len(mates) > 1 else None,
            )
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, max((len(counts) for counts in mates), default=1) + 1)
        axes.set_xlabel("position in the read")
        axes.set_ylabel("bases replaced per position")
        if len(mates) > 1:
            axes.legend(loc="upper left")

    return draw(name, SMALL, paint)


def _binned(spectrum: Spectrum) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean number of k-mers per multiplicity, in bins that widen with the multiplicity.

    Up to 16 every multiplicity stands for itself, beyond that there are 24 bins a factor of ten.
    Empty bins are left out, as a logarithmic axis has no place for them.
    """
    last = max(int(spectrum.multiplicity.max(initial=1)), 1)
    edges = np.unique(np.concatenate([np.arange(1, 18), 10 ** np.arange(1.25, 19, 1 / 24)]).round())
    edges = np.append(edges[edges <= last], last + 1)
    total, _ = np.histogram(spectrum.multiplicity, edges, weights=spectrum.count)
    height = total / np.diff(edges) / spectrum.sampled
    middle = np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1, edges[:-1]))
    return middle[height > 0], height[height > 0]


def spectra(name: str, histograms: Mapping[str, Spectrum]) -> str:
    """k-mer spectra before and after correction, both axes logarithmic."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for variant, spectrum in histograms.items():
            at, height = _binned(spectrum)
            axes.plot(
                at,
                height,
                color=VARIANT_COLOURS[variant],
                label=f"{VARIANT_LABELS[variant]} reads",
                marker="o",
                markersize=2.5,
                linewidth=1.5,
            )
        for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            set_scale("log")
            _plain_decades(axis)
        axes.set_xlabel("occurrences in the reads")
        axes.set_ylabel("distinct k-mers")
        axes.legend(loc="best")

    return draw(name, SMALL, paint)


def fragment_lengths(name: str, counts: Sequence[tuple[int, int]]) -> str:
    """How many fragments have which length.

    Args:
        name: prefix of ids.
        counts: lengths, ascending, and their counts.
    """

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        first, last = counts[0][0], counts[-1][0]
        heights = np.zeros(last - first + 1)
        for length, count in counts:
            heights[length - first] = count
        edges = np.arange(first, last + 2) - 0.5
        axes.stairs(heights, edges, fill=True, color=AFTER, linewidth=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("length of the fragment (bases)")
        axes.set_ylabel("pairs")
        _thousands(axes.yaxis)

    return draw(name, SMALL, paint)


def calibration(name: str, parts: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    """Quality that the errors speak for, by the quality given.

    Args:
        name: prefix of ids.
        parts: label to given quality, observed quality and bases.
    """

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        highest = max((max(row[:2]) for rows in parts.values() for row in rows), default=1.0)
        axes.plot([0, highest], [0, highest], color=MUTED, linewidth=0.8, linestyle=":")
        most = max((row[2] for rows in parts.values() for row in rows), default=1.0)
        for colour, (label, rows) in zip((AFTER, AMBER), parts.items(), strict=True):
            given, observed, bases = np.array(rows, dtype=np.float64).reshape(-1, 3).T
            sizes = 8 + 60 * np.sqrt(bases / most)
            axes.scatter(
                given, observed, s=sizes, color=colour, label=label, alpha=0.8, linewidth=0
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("quality given")
        axes.set_ylabel("quality observed")
        axes.legend(loc="upper left")

    return draw(name, SMALL, paint)


def nx_curves(name: str, lengths: Mapping[str, NDArray[np.int64]], reference: float | None) -> str:
    """Length of the shortest contig needed to cover each share of the assembly or genome.

    Args:
        name: prefix of ids.
        lengths: contig lengths by variant, longest first.
        reference: bases of the genome (NGx), ``None`` for shares of the assembly itself (Nx).
    """

    def paint(figure: Figure) -> None:
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
        axes.set_xlabel("x: share of the genome (%)" if reference else
                        "x: share of the assembly (%)")  # fmt: skip
        axes.set_ylabel("NGx (bases)" if reference else "Nx (bases)")
        _thousands(axes.yaxis)
        axes.legend(loc="best")

    return draw(name, SMALL, paint)


def costs(
    name: str, rules: Sequence[str], samples: Mapping[str, Mapping[str, tuple[float, float]]]
) -> str:
    """Run time and peak memory by rule, one bar a sample.

    Args:
        name: prefix of ids.
        rules: rules in the order shown.
        samples: label to rule to seconds and MiB (0 where not known).
    """

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        height = 0.8 / len(samples)
        for panel, (axes, title) in enumerate(
            zip(panels, ("wall time (s)", "peak memory (MiB)"), strict=True)
        ):
            for number, (label, values) in enumerate(samples.items()):
                at = np.arange(len(rules)) + (number - (len(samples) - 1) / 2) * height
                widths = [values.get(rule, (0.0, 0.0))[panel] for rule in rules]
                axes.barh(at, widths, height=height * 0.9, color=CYCLE[number % len(CYCLE)],
                          label=label)  # fmt: skip
            axes.set_xlabel(title)
            axes.grid(axis="y", visible=False)
            _thousands(axes.xaxis)
        panels[0].set_yticks(range(len(rules)), rules)
        for axes in panels:
            axes.tick_params(axis="y", length=0)
        panels[0].set_ylim(len(rules) - 0.4, -0.6)
        if len(samples) > 1:
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left",
                          ncols=min(len(samples), 4))  # fmt: skip

    bars = len(rules) * max(len(samples), 1.6)
    return draw(name, (8.6, 1.1 + 0.17 * bars), paint)
