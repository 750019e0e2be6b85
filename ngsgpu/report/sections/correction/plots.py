"""Plots of corrections and their data: errors by position, outcomes, k-mer spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.numbers import whole_number
from ngsgpu.errors import InputError
from ngsgpu.report.drawing import SMALL, VARIANT_COLOURS, VARIANT_LABELS, drawn, plain_decades
from ngsgpu.report.files import numbered_lines
from ngsgpu.report.palette import AFTER, AMBER, BEFORE, LIGHT, MUTED, SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class PositionCounts:
    """Errors by position of one mate's reads, all int64 [positions].

    Attributes:
        mate: 1 or 2.
        bases: reads that reach the position.
        before: errors in the input.
        after: errors in the output.
    """

    mate: int
    bases: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A k-mer histogram.

    Attributes:
        k: k-mer length; 0 if unknown.
        sampled: fraction of the k-mers counted, 1 for all.
        multiplicity: int64 [n], ascending.
        count: int64 [n], distinct k-mers with this multiplicity.
    """

    k: int
    sampled: float
    multiplicity: NDArray[np.int64]
    count: NDArray[np.int64]

    @property
    def once(self) -> int:
        """Distinct k-mers that occur once; errors, nearly all of them, where coverage is high."""
        return int(self.count[self.multiplicity == 1].sum())


def read_spectrum(path: Path) -> Spectrum:
    """Read a histogram of ``ngsgpu kmers spectrum``: ``# k=21 sampled=1/16``, header, two columns.

    Raises:
        InputError: the file cannot be read or has an invalid line.
    """
    remedy = "make the histogram again with ngsgpu kmers spectrum"
    k, sampled = 0, 1.0
    rows: list[tuple[int, int]] = []
    for number, line in numbered_lines(path, remedy):
        if line.startswith("#"):
            words = dict(word.split("=", 1) for word in line[1:].split() if "=" in word)
            try:
                k = whole_number(words.get("k", str(k)))
                part, _, whole = words.get("sampled", "1").partition("/")
                sampled = whole_number(part) / whole_number(whole or "1")
            except (ValueError, ZeroDivisionError) as error:
                raise InputError(path, "the comment is damaged", remedy, line=number) from error
        elif line and line != "multiplicity\tcount":
            try:
                multiplicity, count = map(whole_number, line.split("\t"))
            except ValueError as error:
                cause = "this is not a multiplicity and a count"
                raise InputError(path, cause, remedy, line=number) from error
            if multiplicity < 1 or count < 0 or (rows and multiplicity <= rows[-1][0]):
                raise InputError(path, "multiplicities must ascend", remedy, line=number)
            rows.append((multiplicity, count))
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Spectrum(k, sampled, table[:, 0], table[:, 1])


def _window(counts: NDArray[np.float64], width: int = 5) -> NDArray[np.float64]:
    """Sums over a centred window that is narrower at the ends."""
    total = np.concatenate([[0.0], np.cumsum(counts)])
    at = np.arange(len(counts))
    half = width // 2
    upper = np.minimum(at + half + 1, len(counts))
    return np.asarray(total[upper] - total[np.maximum(at - half, 0)])


@drawn()
def error_rate_by_position(figure: Figure, mates: Sequence[PositionCounts]) -> None:
    """Error rate at each position before and after correction, one panel a mate."""
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
    plain_decades(panels[0].yaxis)
    panels[-1].legend(loc="best")
    figure.set_size_inches(4.1 * max(len(mates), 1.4), 3.1)


@drawn()
def outcomes(figure: Figure, samples: Sequence[tuple[str, Mapping[str, float]]]) -> None:
    """What became of the errors of the input, one bar a sample."""
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
    axes.set_xlabel("fraction of the input errors (%)")
    figure.legend(loc="outside upper left", ncols=3)
    figure.set_size_inches(8.2, 1.35 + 0.75 * len(samples))


@drawn(SMALL)
def corrected_by_position(figure: Figure, mates: Sequence[NDArray[np.float64]]) -> None:
    """Bases replaced by position in the reads, means over five positions, one line per mate."""
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


def binned(spectrum: Spectrum) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean number of k-mers per multiplicity, in bins that widen with the multiplicity.

    Up to 16 every multiplicity has its own bin, beyond that there are 24 bins per decade. Empty
    bins are dropped, since a logarithmic axis cannot show them.
    """
    last = max(int(spectrum.multiplicity.max(initial=1)), 1)
    edges = np.unique(np.concatenate([np.arange(1, 18), 10 ** np.arange(1.25, 19, 1 / 24)]).round())
    edges = np.append(edges[edges <= last], last + 1)
    total, _ = np.histogram(spectrum.multiplicity, edges, weights=spectrum.count)
    height = total / np.diff(edges) / spectrum.sampled
    middle = np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1, edges[:-1]))
    return middle[height > 0], height[height > 0]


@drawn(SMALL)
def spectra(figure: Figure, histograms: Mapping[str, Spectrum]) -> None:
    """k-mer spectra before and after correction, both axes logarithmic."""
    axes = figure.subplots()
    for variant, spectrum in histograms.items():
        at, height = binned(spectrum)
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
        plain_decades(axis)
    axes.set_xlabel("multiplicity in the reads")
    axes.set_ylabel("distinct k-mers")
    axes.legend(loc="best")
