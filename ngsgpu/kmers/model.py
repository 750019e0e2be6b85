"""Size, heterozygosity, repeats and read errors of a genome from a histogram of k-mers.

The model is GenomeScope's (Vurture and others, Bioinformatics 33, 2017): k-mers of one up to four
copies in a diploid genome make peaks at multiples of a haploid depth, each a negative binomial
distribution. It is fitted right of the valley behind which the k-mers with read errors are, by the
squared differences of square roots, which have about the same variance everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError

Floats = NDArray[np.float64]
Ploidy = Literal[1, 2]

_HIGHEST: Final = 10_000
"""Highest count that is searched for the main peak."""

_MIN_PEAK: Final = 5
_MIN_SHARE: Final = 0.05
"""Fewest k-mer occurrences right of the valley, as a share of all."""

_PEAKS: Final = 6
"""Multiples of the haploid depth up to which the model is fitted."""

_STEPS: Final = 600
_SIMPLER: Final = 2.0
"""Of two fits, the one with more heterozygous and duplicated k-mers must be better by this factor:
peaks at a depth and its double are heterozygous and other k-mers, or single and duplicated ones."""


@dataclass(frozen=True, slots=True)
class GenomeModel:
    """What a histogram says about a genome and its reads.

    Attributes:
        kmer: k-mer length.
        ploidy: sets of chromosomes, 1 or 2.
        depth: mean count of a k-mer that is once in one set of chromosomes.
        genome_size: bases of one set.
        heterozygosity: share of positions that differ between the sets; 0 for one set.
        duplicated: share of the k-mers that are twice in a set.
        error_rate: errors per base of the reads.
        spread: variance of counts divided by their mean.
    """

    kmer: int
    ploidy: Ploidy
    depth: float
    genome_size: int
    heterozygosity: float
    duplicated: float
    error_rate: float
    spread: float


def fit_genome(
    histogram: NDArray[np.int64],
    k: int,
    ploidy: Ploidy = 2,
    *,
    high: NDArray[np.int64] | None = None,
    path: str = "the histogram",
) -> GenomeModel:
    """Fit the model.

    Args:
        histogram: distinct k-mers by count, from 0.
        k: k-mer length.
        ploidy: sets of chromosomes.
        high: the counts beyond the histogram, whose k-mers its last element has, too.
        path: of the database, for messages.

    Raises:
        InputError: there is no peak apart from the k-mers with errors.
    """
    counts = histogram.astype(np.float64)
    numbers = np.arange(len(counts))
    valley, peak = _landmarks(counts, path)
    fits = []
    # The main peak is that of k-mers in both sets, or of those in one of them.
    for depth, r in ((peak / ploidy, 0.002), (float(peak), 0.03))[:ploidy]:
        last = min(len(counts), round(_PEAKS * ploidy * depth) + 2)
        seen = np.sqrt(counts[valley:last])

        def distance(point: Floats, last: int = last, seen: Floats = seen) -> float:
            curve = _curve(point, k, ploidy, last)[valley:]
            # The number of k-mers that fits best follows from the others.
            root = np.sqrt(curve)
            scale = float(seen @ root) / max(1e-300, float(root @ root))
            return float(((seen - scale * root) ** 2).sum()) / max(1.0, float((seen**2).sum()))

        start = np.array([np.log(depth), np.log(0.5), _logit(r), _logit(0.05)])
        point, found = _minimised(distance, start)
        fits.append((found, point, last))
    fits.sort(key=lambda fit: sum(_parameters(fit[1])[2:]))
    _, point, last = fits[-1] if _SIMPLER * fits[-1][0] < fits[0][0] else fits[0]
    root = np.sqrt(_curve(point, k, ploidy, last))
    own = root[valley:]
    scale = float(np.sqrt(counts[valley:last]) @ own) / float(own @ own)
    fitted = (scale * root) ** 2
    depth, spread, r, duplicated = _parameters(point)
    low = numbers[1:valley]
    errors = float((low * np.maximum(0, counts[1:valley] - fitted[1:valley])).sum())
    total = float((numbers * counts).sum())
    if high is not None:
        total += float((high - numbers[-1]).sum())
    return GenomeModel(
        kmer=k,
        ploidy=ploidy,
        depth=depth,
        genome_size=round((total - errors) / (ploidy * depth)),
        heterozygosity=r if ploidy == 2 else 0.0,
        duplicated=duplicated,
        error_rate=1 - (1 - errors / total) ** (1 / k),
        spread=1 + spread,
    )


def valley_of(histogram: NDArray[np.int64]) -> int | None:
    """The count at which the k-mers of the genome begin to outnumber those with errors.

    Args:
        histogram: distinct k-mers by count, from 0.

    Returns:
        The valley left of the main peak; None if there is no such peak.
    """
    try:
        return _landmarks(histogram.astype(np.float64), "the histogram")[0]
    except InputError:
        return None


def _landmarks(counts: Floats, path: str) -> tuple[int, int]:
    """The valley right of the errors, and the main peak behind it.

    Raises:
        InputError: there are none.
    """
    smooth = counts[: _HIGHEST + 2].copy()
    smooth[2:-1] = (counts[1:_HIGHEST] + counts[2 : _HIGHEST + 1] + counts[3 : _HIGHEST + 2]) / 3
    valley = 1
    while valley < _HIGHEST and smooth[valley + 1] < smooth[valley]:
        valley += 1
    occurrences = counts * np.arange(len(counts))
    peak = valley + int(np.argmax(occurrences[valley : _HIGHEST + 1]))
    share = float(occurrences[valley:].sum()) / max(1.0, float(occurrences.sum()))
    if peak < _MIN_PEAK or peak <= valley or share < _MIN_SHARE:
        raise InputError(
            path,
            "has no peak of the genome's k-mers apart from those with errors",
            "count more reads (at least 15 per position), or shorter k-mers",
        )
    return valley, peak


def _curve(point: Floats, k: int, ploidy: Ploidy, size: int) -> Floats:
    """Share of k-mers by count, float64[size], where a k-mer of the genome is 1."""
    depth, spread, r, duplicated = _parameters(point)
    if ploidy == 1:
        shares = [1 - duplicated, duplicated]
    else:
        same = (1 - r) ** k
        other = 1 - same
        shares = [
            2 * (1 - duplicated) * other + 2 * duplicated * (other**2 + same * other),
            (1 - duplicated) * same + duplicated * other**2,
            2 * duplicated * same * other,
            duplicated * same**2,
        ]
    curve = np.zeros(size)
    for copies, share in enumerate(shares, 1):
        curve += share * _negative_binomial(copies * depth, copies * depth / spread, size)
    return curve


def _negative_binomial(mean: float, shape: float, size: int) -> Floats:
    """Probabilities of 0 up to ``size`` - 1 for a mean, and a variance of mean + mean^2 / shape."""
    numbers = np.arange(1, size)
    steps = np.log((numbers - 1 + shape) / numbers) + np.log(mean / (shape + mean))
    logs = np.concatenate(([0.0], np.cumsum(steps))) + shape * np.log(shape / (shape + mean))
    return np.asarray(np.exp(logs))


def _parameters(point: Floats) -> tuple[float, float, float, float]:
    """Depth, spread, heterozygosity and duplicated share of a point."""
    depth, spread, r, duplicated = np.clip(point, -20, 20).tolist()
    return (
        float(np.exp(depth)),
        float(np.exp(spread)),
        float(0.3 / (1 + np.exp(-r))),
        float(0.5 / (1 + np.exp(-duplicated))),
    )


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _minimised(function: Callable[[Floats], float], start: Floats) -> tuple[Floats, float]:
    """A minimum of a function of few variables, and its value (Nelder and Mead, 1965)."""
    size = len(start)
    points = [start, *(start + 0.5 * np.eye(size)[i] for i in range(size))]
    # A depth is known within a few per cent; half of e would lead to another peak.
    points[1] = start + 0.1 * np.eye(size)[0]
    simplex = sorted(
        ((function(point), i, point) for i, point in enumerate(points)), key=lambda own: own[:2]
    )
    for step in range(_STEPS):
        middle = np.mean([point for _, _, point in simplex[:-1]], axis=0)
        worst, _, last = simplex[-1]
        mark = size + 1 + step * (size + 1)

        def at(
            far: float, mark: int, middle: Floats = middle, last: Floats = last
        ) -> tuple[float, int, Floats]:
            point = middle + far * (middle - last)
            return function(point), mark, point

        new = at(1.0, mark)
        if new[0] < simplex[0][0]:
            new = min(new, at(2.0, mark + 1), key=lambda own: own[0])
        elif new[0] >= simplex[-2][0]:
            new = at(0.5 if new[0] < worst else -0.5, mark + 1)
            if new[0] >= worst:
                best = simplex[0][2]
                shrunk = [(best + point) / 2 for _, _, point in simplex[1:]]
                simplex[1:] = [(function(p), mark + i, p) for i, p in enumerate(shrunk)]
                simplex.sort(key=lambda own: own[:2])
                continue
        simplex[-1] = new
        simplex.sort(key=lambda own: own[:2])
        if simplex[-1][0] - simplex[0][0] < 1e-9 * simplex[0][0]:
            break
    return simplex[0][2], simplex[0][0]
