"""Bars as SVG, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 760
_TOP: Final = 34
_BAR: Final = 18
_GAP: Final = 16
_STACKED: Final = 34
_FOOT: Final = 24
_LETTER: Final = 7.6
"""Width of a letter, about."""

COLOURS: Final = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d9da1")
_STYLE: Final = """
  text { font-family: sans-serif; font-size: 13px; fill: #1b2a38; }
  .inside { fill: #ffffff; text-anchor: middle; }
  .label { text-anchor: end; }
  .axis { font-size: 11px; fill: #4b5d6e; text-anchor: middle; }
  .small { font-size: 11px; fill: #4b5d6e; }
  line { stroke: #c3ced8; }
  .base { stroke: #1b2a38; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e3e9ee; } .axis, .small { fill: #a8b5c0; } line { stroke: #46525d; }
    .base { stroke: #e3e9ee; }
  }
"""


class Bar(NamedTuple):
    """A bar, or a part of one.

    Attributes:
        name: of its colour in the legend.
        value: its length.
        text: what stands behind it.
    """

    name: str
    value: float
    text: str = ""


class Row(NamedTuple):
    """Bars that belong together.

    Attributes:
        title: stands before them.
        bars: of it.
        below: a second, smaller line of the title.
    """

    title: str
    bars: Sequence[Bar]
    below: str = ""


def log_chart(
    rows: Sequence[Row], unit: str, description: str, *, low: float, base: float | None = None
) -> str:
    """Horizontal bars on a logarithmic axis.

    Args:
        rows: from top to bottom.
        unit: of the axis.
        description: of the picture, for those who do not see it.
        low: left end of the axis; smaller values have no bar, only their text.
        base: value at which bars begin, marked by a line; None: the left end.
    """
    left = _left(rows)
    most = max(bar.value for row in rows for bar in row.bars)
    room = max(map(_room, rows))
    decades = log10(max(most, 10 * low) / low)
    pixels = (WIDTH - left - room) / decades

    def place(value: float) -> float:
        return left + pixels * log10(max(value, low) / low)

    names = _names(rows)
    bottom = _TOP + sum(_BAR * len(row.bars) + _GAP for row in rows)
    lines = head(bottom + _FOOT, description)
    lines += _ticks([(own, place(own)) for own in _log_values(low, most)], bottom, unit)
    start = low if base is None else base
    y = float(_TOP)
    for row in rows:
        lines += _title(row, left, y + _BAR * len(row.bars) / 2)
        for bar in row.bars:
            x, end = sorted((place(start), place(bar.value)))
            if bar.value > low:
                lines.append(_rectangle(bar, names, x, y, end - x, _BAR - 2))
            behind = max(end, place(start)) + 6
            lines.append(f'<text x="{behind:.1f}" y="{y + 13:.1f}">{escape(bar.text)}</text>')
            y += _BAR
        y += _GAP
    if base is not None:
        x = place(base)
        lines.append(
            f'<line class="base" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{bottom:.0f}"/>'
        )
    return "\n".join([*lines, *legend(names, left), "</svg>"]) + "\n"


def _log_values(low: float, most: float) -> list[float]:
    """Values for the axis: 1, 2 and 5 of each power of ten, of many powers only 1."""
    powers = range(floor(log10(low)), ceil(log10(most)) + 1)
    steps = (1, 2, 5) if len(powers) < 4 else (1,)
    values = [number * 10.0**power for power in powers for number in steps]
    return [value for value in values if low <= value <= most * 1.001]


def _ticks(places: Iterable[tuple[float, float]], bottom: float, unit: str) -> Iterable[str]:
    for value, x in places:
        yield f'<line x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{bottom:.0f}"/>'
        text = f"{value:,.10g} {unit}".strip()
        yield f'<text class="axis" x="{x:.1f}" y="{bottom + 16:.0f}">{text}</text>'


def _left(rows: Sequence[Row]) -> int:
    letters = max(max(len(row.title), 0.85 * len(row.below)) for row in rows)
    return round(_LETTER * letters) + 18


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(bar.name for row in rows for bar in row.bars if bar.name))


def chart(rows: Sequence[Row], unit: str, description: str, *, stacked: bool = False) -> str:
    """Horizontal bars.

    Args:
        rows: from top to bottom.
        unit: of the axis.
        description: of the picture, for those who do not see it.
        stacked: whether the bars of a row follow each other in one.
    """
    left = _left(rows)
    most = max(_length(row, stacked) for row in rows)
    scale = min((WIDTH - left - _room(row)) / _length(row, stacked) for row in rows)
    names = _names(rows)
    heights = [_STACKED if stacked else _BAR * len(row.bars) for row in rows]
    bottom = _TOP + sum(heights) + _GAP * len(rows)
    lines = [*head(bottom + _FOOT, description), *_axis(most, scale, left, bottom, unit)]
    y = float(_TOP)
    for row, height in zip(rows, heights, strict=True):
        lines += _title(row, left, y + height / 2)
        draw = _stack if stacked else _side_by_side
        lines += draw(row.bars, names, left, y, scale)
        y += height + _GAP
    return "\n".join([*lines, *legend(names, left), "</svg>"]) + "\n"


def _room(row: Row) -> float:
    """Width of what stands behind the bars."""
    return _LETTER * max(len(bar.text) for bar in row.bars) + 16


def _length(row: Row, stacked: bool) -> float:
    values = [bar.value for bar in row.bars]
    return sum(values) if stacked else max(values)


def head(height: float, description: str) -> list[str]:
    """The beginning of a picture of a height."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(description)}">',
        f"<style>{_STYLE}</style>",
    ]


def _axis(most: float, scale: float, left: int, bottom: float, unit: str) -> Iterable[str]:
    steps = (number * 10**power for power in range(-3, 8) for number in (1, 2, 5))
    step = next(step for step in steps if most / step <= 6)
    count = floor(most / step + 1e-9)
    values = [round(number * step, 9) for number in range(count + 1)]
    return _ticks([(value, left + value * scale) for value in values], bottom, unit)


def _title(row: Row, left: int, middle: float) -> Iterable[str]:
    shift = -2 if row.below else 5
    yield (
        f'<text class="label" x="{left - 10}" y="{middle + shift:.1f}">{escape(row.title)}</text>'
    )
    if row.below:
        yield (
            f'<text class="label small" x="{left - 10}" y="{middle + 12:.1f}">'
            f"{escape(row.below)}</text>"
        )


def _stack(
    bars: Sequence[Bar], names: list[str], left: float, y: float, scale: float
) -> Iterable[str]:
    x, middle = float(left), y + _STACKED / 2 + 5
    for bar in bars:
        width = bar.value * scale
        yield _rectangle(bar, names, x, y, width, _STACKED)
        if width > 9 * len(bar.name):
            yield f'<text class="inside" x="{x + width / 2:.1f}" y="{middle:.1f}">{bar.name}</text>'
        x += width
    yield f'<text x="{x + 8:.1f}" y="{middle:.1f}">{bars[-1].text}</text>'


def _side_by_side(
    bars: Sequence[Bar], names: list[str], left: float, y: float, scale: float
) -> Iterable[str]:
    for bar in bars:
        width = bar.value * scale
        yield _rectangle(bar, names, left, y, width, _BAR - 2)
        yield f'<text x="{left + width + 6:.1f}" y="{y + 13:.1f}">{escape(bar.text)}</text>'
        y += _BAR


def _rectangle(bar: Bar, names: list[str], x: float, y: float, width: float, height: float) -> str:
    colour = COLOURS[names.index(bar.name) % len(COLOURS) if bar.name else 0]
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height}" '
        f'fill="{colour}"><title>{escape(bar.name)}: {bar.value:,.4g}</title></rect>'
    )


def legend(names: list[str], left: float) -> Iterable[str]:
    """Names and their colours, in the first line of a picture."""
    x = float(left)
    for name, colour in zip(names, COLOURS, strict=False):
        yield f'<rect x="{x:.1f}" y="4" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18:.1f}" y="15">{escape(name)}</text>'
        x += 40 + _LETTER * len(name)
