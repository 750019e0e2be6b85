"""Fit of a sample as a mixture of sources: which share of the reads is from each, and how far.

Each source (a species) stands for two kinds of genomes: its strains, up to the boundary of a
species, and relatives of it that the database lacks, beyond. Shares of each source and divergence
are fitted by expectation maximization over the classes of reads (``classes``), each weighted by
its number of reads. Then, until nothing changes:

1. Where a source has both kinds, one that the other explains is dropped: without it the likelihood
   must fall by the factor ``max_p_value``.
2. A source whose strains are not present (``presence``) keeps only relatives; one whose reads are
   strays of another is dropped altogether.

Sums are in the order of the classes, by one thread: the result does not depend on threads,
partitions or the backend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.classes import Rows, unpacked
from ngsgpu.classify.call.likelihood import COMPONENTS, OCTAVE, STRAINS, Likelihoods
from ngsgpu.classify.call.presence import Genomes, Presence, Relatives, judge
from ngsgpu.classify.params import EvidenceParameters
from ngsgpu.jit import njit

NEVER: Final = -(1 << 24)
"""Logarithm of no share."""
_ROUNDS: Final = 8
_STEPS: Final = 200
_SMALL: Final = 1e-6
"""Change of all shares together at which the fit is good enough."""
_AGAIN: Final = 1e-7
"""Share from which a source may come back when another was dropped."""
_LEAST_READS: Final = 0.5
_NOTHING: Final = 1e-12
_TINY: Final = 1e-300


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted sample.

    Attributes:
        sources: int32[n], those with reads, ascending.
        shares: float64[n, COMPONENTS], of the reads that were fitted.
        unknown: share of what is related to no source.
        reads: reads that were fitted.
        judged: for each source.
        likelihoods: the tables.
    """

    sources: NDArray[np.int32]
    shares: NDArray[np.float64]
    unknown: float
    reads: int
    judged: Presence
    likelihoods: Likelihoods

    def weights(self) -> tuple[NDArray[np.int32], int]:
        """Logarithms of shares, in parts of an octave, int32[n, COMPONENTS], and of ``unknown``."""

        def logs(shares: NDArray[np.float64]) -> NDArray[np.int32]:
            found = np.rint(np.log2(np.maximum(shares, 1e-300)) * OCTAVE)
            return np.where(shares < 1e-12, NEVER, found).astype(np.int32)

        return logs(self.shares), int(logs(np.array([max(self.unknown, 1e-9)]))[0])


class _Entries(NamedTuple):
    """Classes and their sources, flat.

    Attributes:
        start: int64[classes + 1], where each class's sources begin.
        features: int64[classes].
        counts: float64[classes], reads.
        source: int64[entries].
        hits: int64[entries].
        factor: float64[entries], ways of the best source's hits, by those of this one's.
    """

    start: NDArray[np.int64]
    features: NDArray[np.int64]
    counts: NDArray[np.float64]
    source: NDArray[np.int64]
    hits: NDArray[np.int64]
    factor: NDArray[np.float64]


def fit(
    rows: Rows, genomes: Genomes, likelihoods: Likelihoods, parameters: EvidenceParameters
) -> Fit:
    """Fit a sample.

    Args:
        rows: classes of its reads, in a fixed order.
        genomes: the sources.
        likelihoods: tables of probabilities.
        parameters: what counts as evidence.
    """
    features, source, hits = unpacked(rows)
    sources, numbers = np.unique(source[source >= 0], return_inverse=True)
    entries = _entries(features, source, hits, rows.counts, numbers, likelihoods)
    prob, least = likelihoods.probability, -math.log(parameters.max_p_value)
    known = Genomes(genomes.places[sources], genomes.own[sources], genomes.marked[sources])
    n, reads = len(sources), int(rows.counts.sum())
    allowed = np.ones((n, COMPONENTS))
    shares = allowed / (n * COMPONENTS + 1)
    unknown = 1 / (n * COMPONENTS + 1)
    order = np.argsort(entries.source, kind="stable")
    ends = np.cumsum(np.bincount(entries.source, minlength=n))
    judged: Presence | None = None
    for _ in range(_ROUNDS):
        shares = np.maximum(shares, _AGAIN) * allowed
        unknown = max(unknown, _AGAIN)
        unknown = _maximize(entries, prob, shares, unknown, _STEPS, _SMALL)
        total = np.zeros(len(features))
        own = np.zeros((len(entries.source), 2))
        _add_up(entries, prob, shares, unknown, total, own)
        before = allowed.copy()
        gain = np.zeros(n)
        for at in np.flatnonzero(shares[:, :STRAINS].sum(axis=1) * reads >= _LEAST_READS).tolist():
            mine = order[ends[at - 1] if at else 0 : ends[at]]
            gain[at] = _choose(at, mine, entries, prob, shares, total, own, allowed, reads, least)
        relatives = _relatives(entries, own, n)
        judged = judge(known, relatives, shares, gain, reads, parameters).since(
            judged, before[:, 0] > 0
        )
        if np.array_equal(before, allowed):
            allowed[~judged.is_present, :STRAINS] = 0
            allowed[~judged.is_present, STRAINS:] = 1
            allowed[judged.are_strays] = 0
            if np.array_equal(before, allowed):
                break
    assert judged is not None
    return Fit(sources.astype(np.int32), shares, unknown, reads, judged, likelihoods)


def _entries(
    features: NDArray[np.int64],
    source: NDArray[np.int64],
    hits: NDArray[np.int64],
    counts: NDArray[np.int64],
    numbers: NDArray[np.int64],
    likelihoods: Likelihoods,
) -> _Entries:
    is_there = source >= 0
    of_class = np.nonzero(is_there)[0]
    start = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))]).astype(np.int64)
    ways, own, best = likelihoods.ways, hits[is_there], hits[:, 0][of_class]
    factor = 2.0 ** (ways[features[of_class], best] - ways[features[of_class], own])
    return _Entries(start, features, counts.astype(np.float64), numbers.reshape(-1), own, factor)


@njit(nogil=True, cache=True)
def _maximize(entries, prob, shares, unknown, steps, small):  # type: ignore[no-untyped-def]
    """Expectation maximization; changes ``shares``, returns the share of what is unknown."""
    sources, components = shares.shape
    reads = entries.counts.sum()
    low, high = np.zeros(sources, dtype=np.int64), np.full(sources, components)
    for _ in range(steps):
        for s in range(sources):
            # Components at the ends that have no share any more are passed over.
            while low[s] < high[s] and shares[s, low[s]] < _NOTHING:
                low[s] += 1
            while high[s] > low[s] and shares[s, high[s] - 1] < _NOTHING:
                high[s] -= 1
        new = np.zeros((sources, components))
        other = 0.0
        for c in range(entries.counts.size):
            n, first, end = entries.features[c], entries.start[c], entries.start[c + 1]
            mine = unknown * prob[n, entries.hits[first], components]
            total = mine
            for e in range(first, end):
                row, source = prob[n, entries.hits[e]], entries.source[e]
                share = shares[source]
                found = 0.0
                for k in range(low[source], high[source]):
                    found += share[k] * row[k]
                total += found * entries.factor[e]
            weight = entries.counts[c] / (max(total, _TINY) * reads)
            other += weight * mine
            for e in range(first, end):
                row, source = prob[n, entries.hits[e]], entries.source[e]
                share, to = shares[source], new[source]
                scale = weight * entries.factor[e]
                for k in range(low[source], high[source]):
                    to[k] += scale * share[k] * row[k]
        change = abs(other - unknown)
        for s in range(sources):
            for k in range(components):
                change += abs(new[s, k] - shares[s, k])
                shares[s, k] = new[s, k]
        unknown = other
        if change < small:
            break
    return unknown


@njit(nogil=True, cache=True)
def _add_up(entries, prob, shares, unknown, total, own):  # type: ignore[no-untyped-def]
    """Probability of each class, and the parts of each entry's strains and relatives."""
    components = shares.shape[1]
    for c in range(entries.counts.size):
        n, first = entries.features[c], entries.start[c]
        total[c] = unknown * prob[n, entries.hits[first], components]
        for e in range(first, entries.start[c + 1]):
            row = prob[n, entries.hits[e]]
            for k in range(components):
                own[e, int(k >= STRAINS)] += (
                    shares[entries.source[e], k] * row[k] * entries.factor[e]
                )
            total[c] += own[e, 0] + own[e, 1]


def _choose(
    at: int,
    mine: NDArray[np.int64],
    entries: _Entries,
    prob: NDArray[np.float64],
    shares: NDArray[np.float64],
    total: NDArray[np.float64],
    own: NDArray[np.float64],
    allowed: NDArray[np.float64],
    reads: int,
    least: float,
) -> float:
    """How much likelier the sample is with strains of a source than without.

    A natural logarithm. Of strains and relatives, ``allowed`` loses what the other explains.
    """
    of_class = np.searchsorted(entries.start, mine, side="right") - 1
    others = np.maximum(total[of_class] - own[mine].sum(axis=1), 1e-300)
    table = prob[entries.features[of_class], entries.hits[mine], :COMPONENTS]
    table = table * entries.factor[mine][:, None]
    strains = (np.arange(COMPONENTS) < STRAINS).astype(np.float64)
    without = float(entries.counts[of_class] @ np.log(others))

    def likelihood(which: NDArray[np.float64]) -> float:
        return float(
            _alone(entries.counts[of_class], others, table, shares[at], which, float(reads))
        )

    relatives, close = likelihood(1 - strains), likelihood(strains)
    if not allowed[at, 0]:
        return 0.0
    if allowed[at, -1]:
        both = likelihood(np.ones(COMPONENTS))
        if both - close > least:
            if both - relatives <= least:
                allowed[at] = 1 - strains
            return both - relatives
    allowed[at] = strains if close >= relatives else 1 - strains
    return close - without if close >= relatives else 0.0


def _relatives(entries: _Entries, own: NDArray[np.float64], sources: int) -> Relatives:
    """The reads of each source that others nearly explain."""
    owner = np.zeros(len(entries.source), dtype=np.int64)
    _owners(entries, own, owner)
    is_other = (owner >= 0) & (owner != entries.source)
    pairs, reads = entries.source * sources + owner, entries.counts[_class_of(entries)]
    found, numbers = np.unique(pairs[is_other], return_inverse=True)
    near = np.bincount(numbers.reshape(-1), reads[is_other], len(found))
    return Relatives(found // sources, found % sources, near.astype(np.float64))


def _class_of(entries: _Entries) -> NDArray[np.int64]:
    """The class of each entry."""
    return np.repeat(np.arange(len(entries.counts)), np.diff(entries.start))


@njit(nogil=True, cache=True)
def _owners(entries, own, owner):  # type: ignore[no-untyped-def]
    """The source whose strains are likeliest of each entry's class; -1 if there are none."""
    for c in range(entries.counts.size):
        best, most = np.int64(-1), 0.0
        for e in range(entries.start[c], entries.start[c + 1]):
            if own[e, 0] > most:
                best, most = entries.source[e], own[e, 0]
        owner[entries.start[c] : entries.start[c + 1]] = best


@njit(nogil=True, cache=True)
def _alone(counts, others, table, before, which, reads):  # type: ignore[no-untyped-def]
    """Logarithm of the likelihood with some components of one source, the others as they are."""
    components = table.shape[1]
    share = before * which
    if share.sum() <= 0:
        share = which / reads
    for k in range(components):
        if which[k] > 0:
            share[k] = max(share[k], 1e-3 / reads)
    for _ in range(_STEPS):
        new = np.zeros(components)
        for c in range(counts.size):
            total = others[c]
            for k in range(components):
                total += share[k] * table[c, k]
            for k in range(components):
                new[k] += counts[c] * share[k] * table[c, k] / total
        change = 0.0
        for k in range(components):
            change += abs(new[k] - share[k] * reads)
            share[k] = new[k] / reads
        if change < 1e-3:
            break
    found = -reads * share.sum()
    for c in range(counts.size):
        total = others[c]
        for k in range(components):
            total += share[k] * table[c, k]
        found += counts[c] * np.log(total)
    return found
