"""Plots of a sample's composition: sunburst, abundances, genome coverage, trade-offs."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ngsgpu.report.drawing import drawn
from ngsgpu.report.palette import (
    AFTER,
    AMBER,
    BLUE,
    CYCLE,
    GREEN,
    GRID,
    INK,
    LIGHT,
    MUTED,
    PURPLE,
    SAMPLES,
    SKY,
)
from ngsgpu.report.sections.classification.files import Composition, Share, TargetCoverage, Taxon

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RINGS: Final = ("D", "P", "C", "F", "G", "S")
RING_NAMES: Final = ("domain", "phylum", "class", "family", "genus", "species")

_SMALLEST: Final = 1 / 400
"""Parts of the circle below this are not drawn."""
_NAMED: Final = 1 / 50
"""Share of unclassified reads from which their part of the circle is named."""
_HOLE: Final = 0.9
_WITH_NAMES: Final = 1.377
"""Radius of the figure, with room for the names outside, by that of the rings."""
_DOMAINS: Final = ("#e8d5a3", "#d3c4e6", "#b9dfd0", "#f0c6bd")
"""Of taxa above the phyla: sand, lilac, mint and rose."""
_HUES: Final = (BLUE, AMBER, GREEN, PURPLE, SKY)


@dataclass(frozen=True)
class Arc:
    """An arc of a ring: its taxon, its position (fractions of the circle), and its colour."""

    taxon: Taxon
    ring: int
    begin: float
    end: float
    colour: str


def arcs_of(composition: Composition) -> list[Arc]:
    """The arcs of the rings, each inside its parent's, in the order of the report.

    Taxa at other ranks are skipped. The parts of reads called above a ring's rank and of the
    unclassified ones stay empty. Phyla determine the colours, which get lighter outwards; domains
    have distinct tints. No taxon is grey, which stands for unclassified reads.
    """
    arcs: list[Arc] = []
    whole = composition.total
    hues = iter(range(10**9))

    def place(taxon: Taxon, begin: float, hue: str | None, ring: int) -> None:
        share = taxon.clade / whole
        if share < _SMALLEST:
            return
        own = RINGS.index(taxon.code) if taxon.code in RINGS else -1
        if own > ring:
            ring = own
            if RINGS[own] == "P" or (hue is None and own > 1):
                hue = _HUES[next(hues) % len(_HUES)]
            domains = sum(arc.colour in _DOMAINS for arc in arcs)
            colour = _shade(hue, own, len(arcs)) if hue else _DOMAINS[domains % len(_DOMAINS)]
            arcs.append(Arc(taxon, own, begin, begin + share, colour))
        for child in taxon.children:
            place(child, begin, hue, ring)
            begin += child.clade / whole

    if whole > 0:
        place(composition.root, 0.0, None, -1)
    return arcs


def rings_of(arcs: Sequence[Arc]) -> list[int]:
    """The rings that have any part, from the inside out; the others are not drawn."""
    return sorted({arc.ring for arc in arcs})


def _shade(colour: str, ring: int, number: int) -> str:
    """A colour's lighter relative: by ring, and a little by number so that neighbours differ."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    light = min(light + 0.055 * ring + 0.045 * (number % 3), 0.86)
    parts = colorsys.hls_to_rgb(hue, light, saturation * 0.85)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


@drawn((8.6, 8.0))
def sunburst(figure: Figure, composition: Composition, unit: str = "reads") -> None:
    """What the reads are, from the domain inside to the species outside; all make a full circle.

    Args:
        figure: empty figure.
        composition: reads by taxon.
        unit: ``reads`` or ``pairs``.
    """
    arcs = arcs_of(composition)
    rings = rings_of(arcs)
    axes: Any = figure.subplots(subplot_kw={"projection": "polar"})
    axes.set_axis_off()
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    for arc in arcs:
        middle = math.pi * (arc.begin + arc.end)
        place = rings.index(arc.ring)
        axes.bar(middle, 1, width=2 * math.pi * (arc.end - arc.begin), bottom=_HOLE + place,
                 color=arc.colour, edgecolor="white", linewidth=0.7)  # fmt: skip
        _write_label(axes, arc, _HOLE + place, is_outer=place == len(rings) - 1)
    axes.set_ylim(0, _WITH_NAMES * (_HOLE + len(rings)))
    _draw_unclassified(axes, composition, len(rings))
    text = f"{composition.root.clade:,}\nof {composition.total:,}\n{unit}"
    axes.text(0, 0, text, ha="center", va="center", fontsize=8)


def _draw_unclassified(axes: Any, composition: Composition, rings: int) -> None:
    """Grey, over all rings, for what no taxon has."""
    share = composition.unclassified / composition.total
    if share:
        middle = math.pi * (2 - share)
        axes.bar(middle, rings, width=2 * math.pi * share, bottom=_HOLE, color=GRID,
                 edgecolor="white", linewidth=0.7)  # fmt: skip
        if share > _NAMED:
            axes.text(middle, _HOLE + rings + 0.12, "unclassified", fontsize=9, ha="right",
                      va="center", rotation_mode="anchor", color=MUTED,
                      rotation=270 - math.degrees(middle))  # fmt: skip


def _write_label(axes: Any, arc: Arc, inner: float, *, is_outer: bool) -> None:
    """The taxon's name: outside of the circle for the last ring, in the ring if there is room."""
    middle = (arc.begin + arc.end) / 2
    width = arc.end - arc.begin
    radius = inner + 0.5
    degrees = 90 - 360 * middle
    is_left = 0.5 < middle < 1
    if is_outer:
        if width < 1 / 220:
            return
        axes.text(2 * math.pi * middle, inner + 1.12, arc.taxon.name, fontsize=9,
                  ha="right" if is_left else "left", va="center", rotation_mode="anchor",
                  rotation=degrees + 180 if is_left else degrees)  # fmt: skip
        return
    # Along the ring if the arc is longer than the ring is wide, otherwise across it.
    length = 2 * math.pi * radius * width
    if length > 1.2 and length > 0.185 * len(arc.taxon.name):
        turn = -360 * middle + (180 if 0.25 < middle < 0.75 else 0)
        text = arc.taxon.name
    elif length > 0.3:
        turn = degrees + (180 if is_left else 0)
        text = _shortened(arc.taxon.name, 7)
    else:
        return
    axes.text(2 * math.pi * middle, radius, text, fontsize=7.8, ha="center", va="center",
              rotation=turn, rotation_mode="anchor")  # fmt: skip


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}."


@drawn()
def abundance_bars(
    figure: Figure, samples: Sequence[tuple[str, Sequence[Share], int]], unit: str = "reads"
) -> None:
    """The most abundant taxa of each sample, in per cent of all its reads or pairs.

    Args:
        figure: empty figure.
        samples: label, abundances, and number of reads or pairs of each sample.
        unit: ``reads`` or ``pairs``.
    """
    total = {share.name: 0.0 for _, shares, _ in samples for share in shares if share.reads > 0}
    for _, shares, reads in samples:
        for share in shares:
            if share.name in total:
                total[share.name] += share.reads / max(reads, 1)
    shown = sorted(total, key=lambda taxon: (-total[taxon], taxon))[:20]
    axes = figure.subplots()
    height = 0.8 / len(samples)
    for number, (label, shares, reads) in enumerate(samples):
        of = {share.name: 100 * share.reads / max(reads, 1) for share in shares}
        at = np.arange(len(shown)) + (number - (len(samples) - 1) / 2) * height
        widths = [of.get(taxon, 0.0) for taxon in shown]
        axes.barh(at, widths, height=0.9 * height, color=SAMPLES[number % len(SAMPLES)],
                  label=label)  # fmt: skip
        if len(samples) == 1:
            for place, width in zip(at, widths, strict=True):
                axes.annotate(f"{width:.3g}", (width, place), (4, 0), va="center", fontsize=8,
                              textcoords="offset points", color=MUTED)  # fmt: skip
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"fraction of all {unit} (%)")
    if len(samples) > 1:
        figure.legend(loc="outside upper left", ncols=min(len(samples), 4))
    figure.set_size_inches(8.2, 0.9 + 0.24 * max(len(shown), 3) * max(1, 0.6 * len(samples)))


@drawn()
def stacked_abundances(
    figure: Figure, samples: Sequence[tuple[str, Sequence[Share], Composition]]
) -> None:
    """The most abundant taxa of many samples, a stacked bar each; what is missing is other taxa.

    A sample is its label, its abundances, and all of its reads or pairs.
    """
    shares = []
    for _, of, every in samples:
        counts = {share.name: share.reads for share in of}
        counts["unclassified"] = every.unclassified
        shares.append({name: 100 * count / max(every.total, 1) for name, count in counts.items()})
    names = {name for of in shares for name in of} - {"unclassified"}
    total = {name: sum(of.get(name, 0.0) for of in shares) for name in names}
    shown = sorted(names, key=lambda name: (-total[name], name))[: len(CYCLE)]
    axes, base = figure.subplots(), np.zeros(len(samples))
    for colour, name in zip((*CYCLE[: len(shown)], LIGHT), (*shown, "unclassified"), strict=True):
        heights = np.array([of.get(name, 0.0) for of in shares])
        axes.bar(range(len(samples)), heights, bottom=base, width=0.9, color=colour, label=name)
        base += heights
    axes.set_xticks(range(len(samples)), [label for label, *_ in samples], rotation=90, fontsize=6)
    axes.set_xlim(-0.6, len(samples) - 0.4)
    axes.set_ylim(0, 100)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("fraction of all (%)")
    figure.legend(loc="outside upper left", ncols=3, fontsize=8)
    figure.set_size_inches(8.6, 4.2)


@drawn()
def genome_coverage(figure: Figure, targets: Sequence[TargetCoverage], unit: str = "reads") -> None:
    """Reads or pairs along reference sequences, one strip each; true species have even strips.

    Each strip has its own scale; bins without reads are white.

    Args:
        figure: empty figure.
        targets: coverage of each reference sequence in bins.
        unit: ``reads`` or ``pairs``.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    panels = figure.subplots(len(targets), 1, squeeze=False)[:, 0]
    for axes, target in zip(panels, targets, strict=True):
        edges = np.arange(len(target.bins) + 1) * target.bin_bases
        edges[-1] = max(target.length, edges[-2])
        axes.stairs(target.bins, edges, fill=True, color=AFTER)
        axes.set_xlim(0, target.length)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10], integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(_in_bases_of(target.length)))
        axes.set_ylim(0, max(int(target.bins.max(initial=1)), 1) * 1.08)
        axes.set_yticks([max(int(target.bins.max(initial=1)), 1)])
        axes.grid(visible=False)
        share = 100 * target.covered / max(target.windows, 1)
        axes.set_title(f"{target.name}, {target.target}", fontsize=8.5, pad=3)
        axes.set_title(f"{share:.3g} % of windows covered", fontsize=8, pad=3, loc="right",
                       color=MUTED, weight="normal")  # fmt: skip
        axes.tick_params(labelsize=7.5)
    panels[-1].set_xlabel("position")
    figure.supylabel(unit, fontsize=9, color=INK)
    figure.set_size_inches(8.6, 0.7 + 0.68 * len(targets))


def _in_bases_of(length: int) -> Callable[[float, int | None], str]:
    """Writes positions in the unit that suits a sequence of a length."""
    size, unit = next(
        (pair for pair in ((1_000_000, "Mb"), (1000, "kb")) if length >= pair[0]), (1, "b")
    )
    return lambda position, _: f"{position / size:g} {unit}" if position else "0"


@drawn((4.5, 3.6))
def trade_off(
    figure: Figure,
    curves: Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]],
    points: Mapping[str, tuple[float | None, float | None]],
    rank: str,
) -> None:
    """Precision against sensitivity at a rank: curves over the least number of hits, and points.

    Args:
        figure: empty figure.
        curves: precisions and sensitivities by run.
        points: precision and sensitivity of each run as it is.
        rank: rank of the taxa.
    """
    axes = figure.subplots()
    for number, (label, (precision, sensitivity)) in enumerate(points.items()):
        colour = CYCLE[number % len(CYCLE)]
        if label in curves:
            pairs = [
                (100 * s, 100 * p)
                for p, s in zip(*curves[label], strict=True)
                if p is not None and s is not None
            ]
            axes.plot([s for s, _ in pairs], [p for _, p in pairs], color=colour,
                      marker="o", markersize=2.5, linewidth=1.3)  # fmt: skip
        if precision is not None and sensitivity is not None:
            axes.plot([100 * sensitivity], [100 * precision], "D", color=colour, markersize=7,
                      label=label)  # fmt: skip
    axes.set_xlabel(f"sensitivity at {rank} (%)")
    axes.set_ylabel(f"precision at {rank} (%)")
    axes.legend(loc="best")
