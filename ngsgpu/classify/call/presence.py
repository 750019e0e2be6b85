"""Which species are present: by reads that nothing else explains, in many places.

The strains of a source are present if all of this holds:

- **Likelihood.** With them the sample is likelier than without, by more than 1 / ``max_p_value``.
- **Places.** Reads that only it explains are in as many different places as reads from anywhere in
  the fraction ``genome_share`` of its genome would be; a plasmid, a gene or a contaminated
  reference sequence are few places.
- **Strays.** A strain of a more abundant relative has sequence whose nearest reference belongs to
  this source: a part (``STRAYS``) of the reads that this source nearly explains, at the relative's
  depth, not scattered. The odds for the source against this are those of the places, and of that
  number of strays, and have to exceed 1 / ``max_p_value``.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.chance import at_least
from ngsgpu.classify.call.likelihood import STRAINS
from ngsgpu.classify.params import EvidenceParameters

PLACE: Final = 1000
"""Bases of a place: a gene."""
STRAYS: Final = 0.2
"""Reads of a strain whose nearest reference is of a relative, in the mean, for each read that the
relative nearly explains."""
_LEAST_VARIANCE: Final = 0.5


class Genomes(NamedTuple):
    """What presence depends on beside reads, of each source.

    Attributes:
        places: float64[sources], of a genome.
        own: int64[sources], reads that only it explains.
        marked: int64[sources], places of these.
    """

    places: NDArray[np.float64]
    own: NDArray[np.int64]
    marked: NDArray[np.int64]


class Relatives(NamedTuple):
    """Pairs of sources, of which strays of one may look like the other.

    Attributes:
        source: int64[pairs].
        other: int64[pairs].
        near: float64[pairs], reads of the other's strains that the source nearly explains.
    """

    source: NDArray[np.int64]
    other: NDArray[np.int64]
    near: NDArray[np.float64]


class Presence(NamedTuple):
    """What was found of each source.

    Attributes:
        is_present: bool[n], whether its strains are.
        own: int64[n], reads that only it explains.
        places: int64[n], of these.
        gain: float64[n], logarithm of the likelihood with its strains by that without.
        scatter: float64[n], probability of so few places, or fewer.
        odds: float64[n], logarithm of the odds against strays of a relative; infinite without one.
        least: what ``gain`` and ``odds`` have to exceed.
        rare: what ``scatter`` has to reach.
    """

    is_present: NDArray[np.bool_]
    own: NDArray[np.int64]
    places: NDArray[np.int64]
    gain: NDArray[np.float64]
    scatter: NDArray[np.float64]
    odds: NDArray[np.float64]
    least: float
    rare: float

    def since(self, before: Presence | None, is_new: NDArray[np.bool_]) -> Presence:
        """What was found last of each source: here, or of sources that were dropped ``before``."""
        if before is None:
            return self
        arrays = {
            name: np.where(is_new, getattr(self, name), getattr(before, name))
            for name in ("is_present", "own", "places", "gain", "scatter", "odds")
        }
        return self._replace(**arrays)

    @property
    def are_strays(self) -> NDArray[np.bool_]:
        """Sources whose reads are those of a relative that is there, bool[n]."""
        return ~self.is_present & (self.gain > self.least) & np.isfinite(self.odds)

    def note(self, at: int) -> str:
        """Why a source is not present: the first reason; empty if it is."""
        if self.gain[at] <= self.least or self.own[at] == 0:
            return "little evidence"
        if self.scatter[at] < self.rare:
            return "few places"
        return "strays" if self.odds[at] <= self.least else ""


def judge(
    genomes: Genomes,
    relatives: Relatives,
    shares: NDArray[np.float64],
    gain: NDArray[np.float64],
    reads: int,
    parameters: EvidenceParameters,
) -> Presence:
    """Judge the strains of each source.

    Args:
        genomes: of the sources.
        relatives: of each source.
        shares: float64[n, components], fitted.
        gain: float64[n], see ``Presence``.
        reads: fitted.
        parameters: thresholds.
    """
    own, places = genomes.own, genomes.marked
    mass = shares[:, :STRAINS].sum(axis=1) * reads
    scatter, odds = np.ones(len(own)), np.full(len(own), np.inf)
    for at in np.flatnonzero((own > 0) & (gain > 0)).tolist():
        n, found = int(own[at]), int(places[at])
        room = parameters.genome_share * float(genomes.places[at])
        if room > 0:
            scatter[at] = _at_most(found, n, room)
    is_more = mass[relatives.other] > mass[relatives.source]
    for pair in np.flatnonzero(is_more & (own[relatives.source] > 0)).tolist():
        at, other = int(relatives.source[pair]), int(relatives.other[pair])
        n, found = int(own[at]), int(places[at])
        room = max(parameters.genome_share * float(genomes.places[at]), 1.0)
        depth = mass[other] / max(float(genomes.places[other]), 1.0)
        against = (
            _log_density(found, n, room, more=True)
            - _log_density(found, n, min(max(n / depth, 1.0), room))
            + float(mass[at]) / (STRAYS * float(relatives.near[pair]))
        )
        odds[at] = min(odds[at], against)
    least, rare = -math.log(parameters.max_p_value), parameters.max_p_value
    is_present = (gain > least) & (scatter >= rare) & (odds > least) & (own > 0)
    return Presence(is_present, own, places, gain, scatter, odds, least, rare)


def _occupied(reads: int, places: float) -> tuple[float, float]:
    """Mean and variance of the number of places that reads are in, if any place is as likely."""
    if places <= 1:
        return 1.0, _LEAST_VARIANCE
    once = math.exp(reads * math.log1p(-1 / places))
    twice = math.exp(reads * math.log1p(-2 / places)) if places > 2 else 0.0
    variance = places * once + places * (places - 1) * twice - (places * once) ** 2
    return places * (1 - once), max(variance, _LEAST_VARIANCE)


def _at_most(found: int, reads: int, places: float) -> float:
    """Probability of at most ``found`` places.

    Where places are many, reads in a place of others are few and follow a Poisson distribution;
    else the places follow a normal one.
    """
    mean, variance = _occupied(reads, places)
    if 2 * reads < places:
        return at_least(reads - found, reads - mean)
    return 0.5 * math.erfc((mean - found - 0.5) / math.sqrt(2 * variance))


def _log_density(found: int, reads: int, places: float, *, more: bool = False) -> float:
    """Logarithm of the density of a number of places; ``more``: there may be more of them."""
    mean, variance = _occupied(reads, places)
    if more:
        found = min(found, round(mean))
    if 2 * reads < places:
        again, usual = reads - found, max(reads - mean, 1e-9)
        return again * math.log(usual) - usual - math.lgamma(again + 1)
    return -0.5 * ((found - mean) ** 2 / variance + math.log(2 * math.pi * variance))
