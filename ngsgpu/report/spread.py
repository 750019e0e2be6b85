"""Figures of a study with many samples: a dot or a thin line for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ngsgpu.report import words
from ngsgpu.report.drawing import SMALL, drawn, plain_decades, thousands
from ngsgpu.report.page import Column, Plot
from ngsgpu.report.palette import AFTER, BEFORE, MUTED
from ngsgpu.report.words import Number, Several, first_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY_SAMPLES: Final = 12
"""With more samples than this, the page folds each one's results and has a figure for all of them
where it otherwise has one for each."""

_PANELS: Final = 3
"""Side by side."""

Curve = tuple[Sequence[float], Sequence[float]]
"""The x and y values of a curve."""


def main_results(samples: Sequence[str], columns: Sequence[Column]) -> Plot | None:
    """A dot a sample for every column of numbers; None if there are none.

    Args:
        samples: their labels.
        columns: of the table of main results.
    """
    found = {}
    for column in columns:
        ends = [_ends(cell) for cell in column.cells]
        known = {
            number: [value for value in values if value is not None]
            for number, values in enumerate(ends)
            if None not in values
        }
        if len({tuple(values) for values in known.values()}) > 1:
            found[column.heading] = known
    if not found:
        return None
    return Plot(
        _dots("spread", found, samples),
        "The main results of all samples, in the order of the table; the lowest and the highest "
        "one are named. Where there are two values, orange is before correction and blue after "
        "it. Results that are the same for all samples are left out.",
        is_wide=True,
    )


def _ends(cell: str) -> list[float | None]:
    """The value of a cell in its unit, or those before and after correction."""
    if isinstance(cell, Several) and words.BEFORE in cell.parts:
        return [part.shown for part in cell.parts.values() if isinstance(part, Number)]
    number = first_number(cell)
    return [number.shown if number is not None else None]


@drawn()
def _dots(
    figure: Figure,
    values: Mapping[str, Mapping[int, Sequence[float]]],
    samples: Sequence[str],
) -> None:
    """A panel a result; samples from left to right."""
    lines = math.ceil(len(values) / _PANELS)
    panels = list(figure.subplots(lines, _PANELS, squeeze=False).flat)
    for axes, (heading, known) in zip(panels, values.items(), strict=False):
        numbers = sorted(known)
        for colour, end in ((BEFORE, 0), (AFTER, -1)):
            axes.plot(numbers, [known[number][end] for number in numbers], ".", color=colour,
                      markersize=4)  # fmt: skip
        axes.set_title(heading, fontsize=9)
        axes.set_xlim(-2, len(samples) + 1)
        axes.set_xticks([])
        axes.margins(y=0.22)
        if max(known[number][-1] for number in numbers) >= 1000:
            thousands(axes.yaxis)
        for pick, above in ((min, -10), (max, 5)):
            number = pick(numbers, key=lambda number: known[number][-1])
            side = "right" if number > len(samples) / 2 else "left"
            axes.annotate(samples[number], (number, known[number][-1]), (0, above), ha=side,
                          textcoords="offset points", fontsize=7.5, color=MUTED)  # fmt: skip
    for axes in panels[len(values) :]:
        axes.set_axis_off()
    figure.set_size_inches(8.6, 1.8 * lines)


def length_curves(
    name: str, histograms: Sequence[Sequence[tuple[int, int]]], caption: str
) -> list[Plot]:
    """Lengths of fragments as shares of a sample's, since samples differ in size; none for none.

    Args:
        name: name of the drawing.
        histograms: lengths and counts of each sample.
        caption: caption of the plot.
    """
    lines = []
    for counts in histograms:
        total = sum(count for _, count in counts)
        if total:
            shares = [100 * count / total for _, count in counts]
            lines.append(([length for length, _ in counts], shares))
    if not lines:
        return []
    drawing = curves(name, {"": lines}, "fragment length (bases)", "share of the pairs (%)")
    return [Plot(drawing, f"{caption} A line a sample.")]


@drawn(SMALL)
def curves(
    figure: Figure,
    groups: Mapping[str, Sequence[Curve]],
    x: str,
    y: str,
    is_logarithmic: bool = False,
) -> None:
    """A thin line a sample; groups differ in colour.

    Args:
        figure: empty figure.
        groups: curves by label.
        x: label of the x axis.
        y: label of the y axis.
        is_logarithmic: whether both axes are logarithmic.
    """
    axes = figure.subplots()
    for colour, (label, lines) in zip((AFTER, BEFORE), groups.items(), strict=False):
        for number, (at, height) in enumerate(lines):
            axes.plot(at, height, color=colour, linewidth=0.6, alpha=0.5,
                      label=None if number else label)  # fmt: skip
    if is_logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_decades(axes.xaxis)
        plain_decades(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if len(groups) > 1:
        for line in axes.legend(loc="best").get_lines():
            line.set(alpha=1, linewidth=1.6)
