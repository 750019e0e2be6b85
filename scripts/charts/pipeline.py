"""The steps of the package and where reads go, from the reads of a run to a report."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, NamedTuple

from scripts.charts.svg import COLOURS, WIDTH, head

_HEIGHT: Final = 264
_BOX: Final = (136, 52)
_GAP: Final = 18
"""Between two columns, less an arrow."""


class _Step(NamedTuple):
    """A command, at a column and a row, which may lie between two."""

    name: str
    about: str
    column: int
    row: float
    colour: str


_CLEAN, _JOIN, _USE, _END = COLOURS[:4]
_STEPS: Final = {
    own.name: own
    for own in (
        _Step("reads", "FASTQ, BAM, CRAM", 0, 1.5, COLOURS[4]),
        _Step("trim", "adapters, poor ends", 1, 0.5, _CLEAN),
        _Step("deplete", "reads of a host", 1, 1.5, _CLEAN),
        _Step("correct", "sequencing errors", 1, 2.5, _CLEAN),
        _Step("merge", "pairs that overlap", 2, 0.5, _JOIN),
        _Step("extend", "pairs with a gap", 2, 1.5, _JOIN),
        _Step("kmers", "counts, unitigs", 3, 2.5, _USE),
        _Step("classify", "taxa of reads", 3, 0.5, _USE),
        _Step("assemble", "contigs", 3, 1.5, _USE),
        _Step("report", "one HTML page", 4, 1.5, _END),
    )
}
_FLOWS: Final = (
    ("reads", "trim"), ("trim", "deplete"), ("deplete", "correct"), ("correct", "merge"),
    ("correct", "extend"), ("correct", "kmers"), ("merge", "classify"), ("merge", "assemble"),
    ("extend", "assemble"), ("correct", "classify"), ("correct", "assemble"),
    ("classify", "report"), ("assemble", "report"), ("kmers", "report"),
)  # fmt: skip
_STYLE: Final = """<style>
  .name { font-weight: bold; text-anchor: middle; }
  .about { font-size: 11px; text-anchor: middle; fill: #4b5d6e; }
  .box { fill: #ffffff; stroke-width: 2; }
  path { fill: none; stroke: #8fa5b7; stroke-width: 1.5; }
  marker path { fill: #8fa5b7; stroke: none; }
  @media (prefers-color-scheme: dark) {
    .box { fill: #1e262d; } .about { fill: #a8b5c0; }
  }
</style>"""
_ARROW: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
)


def draw() -> str:
    """The picture."""
    about = "Reads are trimmed, depleted and corrected, then merged, extended, counted, classified "
    lines = [*head(_HEIGHT, f"{about}or assembled; a report shows all results"), _STYLE, _ARROW]
    lines += [_arrow(_STEPS[begin], _STEPS[end]) for begin, end in _FLOWS]
    for step in _STEPS.values():
        lines += _box(step)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _place(step: _Step) -> tuple[float, float]:
    """The upper left corner of a step."""
    width, _ = _BOX
    return step.column * (WIDTH - width) / 4, 80 * step.row - 30


def _box(step: _Step) -> Iterable[str]:
    (x, y), (width, height) = _place(step), _BOX
    middle = x + width / 2
    yield (
        f'<rect class="box" x="{x + 1:.0f}" y="{y:.0f}" width="{width - 2}" height="{height}" '
        f'rx="6" stroke="{step.colour}"/>'
    )
    yield f'<text class="name" x="{middle:.0f}" y="{y + 22:.0f}">{escape(step.name)}</text>'
    yield f'<text class="about" x="{middle:.0f}" y="{y + 40:.0f}">{escape(step.about)}</text>'


def _arrow(begin: _Step, end: _Step) -> str:
    (x, y), (to_x, to_y), (width, height) = _place(begin), _place(end), _BOX
    if begin.column == end.column:
        middle = x + width / 2
        path = f"M{middle:.0f},{y + height:.0f} L{middle:.0f},{to_y - 1:.0f}"
    else:
        x, y, to_x, to_y = x + width, y + height / 2, to_x - 1, to_y + height / 2
        # Past a column in its way, a flow goes straight on, and bends before the next one.
        turn = x if end.column - begin.column == 1 else to_x - _GAP
        path = f"M{x:.0f},{y:.0f} H{turn:.0f} C{turn + 14:.0f},{y:.0f} {to_x - 14:.0f},{to_y:.0f} "
        path += f"{to_x:.0f},{to_y:.0f}"
    return f'<path d="{path}" marker-end="url(#tip)"/>'
