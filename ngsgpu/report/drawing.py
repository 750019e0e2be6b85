"""Draws plots as SVG text embedded in the page, and the plots shared by several stages.

Drawn with Matplotlib, byte-identical for identical data. Text stays text, so that the page's fonts
and search apply.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from ngsgpu.errors import UsageError, install_extra
from ngsgpu.report.palette import AFTER, BEFORE, GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANT_COLOURS = {"raw": BEFORE, "corrected": AFTER}
VARIANT_LABELS = {"raw": "uncorrected", "corrected": "corrected"}

P = ParamSpec("P")

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


def drawn(
    size: tuple[float, float] = SMALL,
) -> Callable[[Callable[Concatenate[Figure, P], None]], Callable[Concatenate[str, P], str]]:
    """Turn a function that paints a figure into one that returns it as an ``<svg>`` element.

    Its first argument becomes the prefix of every id in the figure, so that no two figures of a
    page share one.

    Args:
        size: width and height in inches, unless the function sets them.
    """

    def decorate(
        paint: Callable[Concatenate[Figure, P], None],
    ) -> Callable[Concatenate[str, P], str]:
        @functools.wraps(paint)
        def draw(name: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
            try:
                import matplotlib as mpl
                from matplotlib.backends.backend_svg import FigureCanvasSVG
                from matplotlib.figure import Figure
            except ImportError as error:
                raise UsageError(
                    f"the report's plots need matplotlib; {install_extra('report')}"
                ) from error
            style: Any = {**_STYLE, "svg.hashsalt": name}
            with mpl.rc_context(style):
                figure = Figure(figsize=size, layout="constrained")
                FigureCanvasSVG(figure)
                paint(figure, *args, **kwargs)
                buffer = io.StringIO()
                figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
            return _inline(buffer.getvalue(), name)

        return draw

    return decorate


_LONG = re.compile(r"(\.\d\d)\d+(?![\de])")


def _inline(svg: str, name: str) -> str:
    """An SVG document as an element: without prolog and metadata, with unique ids."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"\s*<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r"url\(#", f"url(#{name}-", element)
    element = re.sub(r'href="#', f'href="#{name}-', element)
    # The size comes from the page; the viewBox keeps the proportions.
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    # A hundredth of a point is more than enough.
    return re.sub(r"<[^>]+>", lambda tag: _LONG.sub(r"\1", tag[0]), element.strip())


def thousands(axis: Any) -> None:
    """Label an axis with numbers that have separators of thousands; halves stay halves."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def plain_decades(axis: Any) -> None:
    """Label the decades of a logarithmic axis in full, as 0.01, 10 or 1,000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    def label(value: float, _: object) -> str:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"

    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(label))
    axis.set_minor_formatter(NullFormatter())


@drawn(SMALL)
def fragment_lengths(figure: Figure, counts: Sequence[tuple[int, int]]) -> None:
    """How many fragments have which length.

    ``counts`` are lengths, ascending, and their counts.
    """
    axes = figure.subplots()
    first, last = counts[0][0], counts[-1][0]
    heights = np.zeros(last - first + 1)
    for length, count in counts:
        heights[length - first] = count
    edges = np.arange(first, last + 2) - 0.5
    axes.stairs(heights, edges, fill=True, color=AFTER, linewidth=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("fragment length (bases)")
    axes.set_ylabel("pairs")
    thousands(axes.yaxis)
