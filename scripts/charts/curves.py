"""Curves as SVG, for light and dark pages: panels side by side, over an axis of powers of two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from scripts.charts.svg import COLOURS, WIDTH, head, legend

_LEFT: Final = 44
_BETWEEN: Final = 52
_TOP: Final = 58
_PANEL: Final = 230
_FOOT: Final = 40


class Curve(NamedTuple):
    """Points that belong together.

    Attributes:
        name: in the legend.
        points: (x, y), x ascending and positive, y from 0 to 1.
    """

    name: str
    points: Sequence[tuple[float, float]]


class Panel(NamedTuple):
    """A diagram.

    Attributes:
        title: stands above it.
        curves: of it; those of a name have a colour in all panels.
    """

    title: str
    curves: Sequence[Curve]


def curves(panels: Sequence[Panel], unit: str, description: str) -> str:
    """Panels side by side with the same axes.

    Args:
        panels: from left to right.
        unit: of the x axis.
        description: of the picture, for those who do not see it.
    """
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    points = [point for panel in panels for curve in panel.curves for point in curve.points]
    xs = [math.log2(x) for x, _ in points]
    low, high = math.floor(min(xs) * 2) / 2, math.ceil(max(xs) * 2) / 2
    width = (WIDTH - _LEFT - 12 - _BETWEEN * (len(panels) - 1)) / len(panels)
    lines = head(_TOP + _PANEL + _FOOT, description)
    for number, panel in enumerate(panels):
        left = _LEFT + number * (width + _BETWEEN)
        lines += _axes(panel.title, left, width, (low, high), unit)
        for curve in panel.curves:
            places = [
                (left + width * (math.log2(x) - low) / (high - low), _TOP + _PANEL * (1 - y))
                for x, y in curve.points
            ]
            lines += _line(curve, places, COLOURS[names.index(curve.name) % len(COLOURS)])
    return "\n".join([*lines, *legend(names, _LEFT), "</svg>"]) + "\n"


def _axes(
    title: str, left: float, width: float, span: tuple[float, float], unit: str
) -> Iterable[str]:
    yield f'<text x="{left:.1f}" y="{_TOP - 12}">{escape(title)}</text>'
    for tenths in range(0, 11, 2):
        y = _TOP + _PANEL * (1 - tenths / 10)
        yield f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{left + width:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="axis" x="{left - 16:.1f}" y="{y + 4:.1f}">{tenths / 10:g}</text>'
    low, high = span
    for power in range(math.ceil(low), math.floor(high) + 1):
        x = left + width * (power - low) / (high - low)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_TOP + _PANEL}"/>'
        text = f"{2.0**power:g} {unit}"
        yield f'<text class="axis" x="{x:.1f}" y="{_TOP + _PANEL + 18}">{text}</text>'


def _line(curve: Curve, places: Sequence[tuple[float, float]], colour: str) -> Iterable[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for (x, y), (size, value) in zip(places, curve.points, strict=True):
        text = f"{escape(curve.name)}: {value:.3f} at {size:,.4g}"
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}">'
            f"<title>{text}</title></circle>"
        )
