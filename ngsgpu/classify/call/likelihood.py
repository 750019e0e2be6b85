"""Probability of a read's hits, given how far its genome is from a reference sequence.

A feature of a read is found in a reference sequence if none of the bases of its k-mer differs.
Neighbouring features share bases, so that one substitution costs several; `_distribution` follows
the distance since the last substitution along a read whose features are at random places. The
divergence of a genome varies along it: it is spread as a gamma distribution of shape 2 around its
mean, which fits pairs of genomes from one strain to one family (``docs/classify.md``).

References of one read are compared by the probability of the read itself, not of its number of
hits: `_ways` is the number of reads with as many hits, by the substitutions that leave as many. A
read with fewer than ``LEAST_HITS`` says nothing, since one hit is chance in a large database;
probabilities are those among the others.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, comb, lgamma, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit

LEVELS: Final = 100
"""Features up to which each number is looked at; hits of reads with more are scaled to these."""
LEAST_HITS: Final = 2
OCTAVE: Final = 256
"""Logarithms are to base 2, in these parts."""
_WITHIN: Final = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_BEYOND: Final = (1.2, 1.6, 2.0, 2.4, 2.8, 3.4, 4.2)
"""Mean divergences that are tried, in units of that at the boundary of a species: of strains of the
species of a reference sequence, and of its relatives."""
CHANCE: Final = 0.002
"""Probability that a feature of what is related to no source is found where another one is."""
STRAINS: Final = len(_WITHIN)
COMPONENTS: Final = STRAINS + len(_BEYOND)
_STRETCHES: Final = 16
"""Parts of a genome, equally many reads of each, with other divergences."""
_LARGEST: Final = 0.6
_TINY: Final = 1e-200


class Likelihoods(NamedTuple):
    """What `likelihoods` returns.

    Attributes:
        divergence: float64[COMPONENTS], means.
        probability: float64[LEVELS + 1, LEVELS + 1, COMPONENTS + 1], by features and hits; last of
            what is related to none.
        ways: float64[LEVELS + 1, LEVELS + 1], reads with as many hits, to base 2.
        log2: int32, ``probability`` of a read, in parts of an octave.
        found: float64[LEVELS + 1, COMPONENTS], share of reads with ``LEAST_HITS`` or more.
        step: features that one substitution costs.
        least: int32[LEVELS + 1], hits of a read half way to the boundary of a species.
    """

    divergence: NDArray[np.float64]
    probability: NDArray[np.float64]
    ways: NDArray[np.float64]
    log2: NDArray[np.int32]
    found: NDArray[np.float64]
    step: int
    least: NDArray[np.int32]


@lru_cache(maxsize=4)
def likelihoods(kmer: int, density: float, identity: float, errors: float) -> Likelihoods:
    """Tables for reads with errors.

    Args:
        kmer: length of k-mers.
        density: features per base.
        identity: of a species to its reference sequences, at least.
        errors: per base of a read.
    """
    boundary = 1 - identity
    means = boundary * np.array([*_WITHIN, *_BEYOND])
    table = np.zeros((LEVELS + 1, LEVELS + 1, COMPONENTS + 1))
    out = np.zeros((LEVELS + 1, LEVELS + 1))
    for place, mean in enumerate(means.tolist()):
        stretches = _spread(mean) if mean > 0 else np.zeros(1)
        for divergence in stretches.tolist():
            differs = 1 - (1 - divergence) * (1 - errors)
            _distribution(kmer, differs, _steps(kmer, density, differs), out)
            table[:, :, place] += out / len(stretches)
    table[:, :, COMPONENTS] = _by_chance()
    found = table[:, LEAST_HITS:].sum(axis=1)
    probability = np.maximum(table, _TINY) / np.maximum(found, _TINY)[:, None]
    ways = _ways(kmer, density)
    logs = np.log2(probability) - ways[:, :, None]
    half = identity ** (kmer / 2) * (1 - errors) ** kmer
    least = [max(LEAST_HITS, ceil(n * half)) for n in range(LEVELS)]
    # How many errors long reads have may only be known when all were looked at.
    least.append(LEAST_HITS)
    return Likelihoods(
        divergence=means,
        probability=probability,
        ways=ways,
        log2=np.rint(logs * OCTAVE).astype(np.int32),
        found=found[:, :COMPONENTS],
        step=max(1, round(kmer * density)),
        least=np.array(least, dtype=np.int32),
    )


def _by_chance() -> NDArray[np.float64]:
    """Probability of hits by chance: of one, and of others where it is; as ``_distribution``."""
    table = np.zeros((LEVELS + 1, LEVELS + 1))
    for n in range(1, LEVELS + 1):
        for h in range(1, n + 1):
            table[n, h] = comb(n - 1, h - 1) * CHANCE ** (h - 1) * (1 - CHANCE) ** (n - h)
    return table


def _spread(mean: float) -> NDArray[np.float64]:
    """Divergences of the stretches of a genome, ascending, float64[stretches]."""
    wanted = (np.arange(_STRETCHES) + 0.5) / _STRETCHES
    low, high = np.zeros(_STRETCHES), np.full(_STRETCHES, 64.0)
    for _ in range(64):
        middle = (low + high) / 2
        is_below = 1 - (1 + middle) * np.exp(-middle) < wanted
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.minimum(low * mean / 2, _LARGEST)


def _steps(kmer: int, density: float, differs: float) -> NDArray[np.float64]:
    """Transitions of the bases since the last substitution, from one feature to the next.

    float64[kmer + 1, kmer + 1]; ``kmer`` stands for as many or more. Features are at random places.
    """
    base = np.zeros((kmer + 1, kmer + 1))
    base[:, 0] = differs
    base[np.arange(kmer + 1), np.minimum(np.arange(kmer + 1) + 1, kmer)] += 1 - differs
    return np.asarray(density * base @ np.linalg.inv(np.eye(kmer + 1) - (1 - density) * base))


@njit(nogil=True, cache=True)
def _distribution(kmer, differs, steps, out):  # type: ignore[no-untyped-def]
    """Probability that of n features h are found: ``out[n, h]``."""
    levels = out.shape[0] - 1
    state, after = np.zeros((2, kmer + 1, levels + 1))
    for bases in range(kmer):
        state[bases, 0] = differs * (1 - differs) ** bases
    state[kmer, 0] = (1 - differs) ** kmer
    out[:] = 0
    out[0, 0] = 1
    for n in range(1, levels + 1):
        for h in range(n, 0, -1):
            state[kmer, h] = state[kmer, h - 1]
        state[kmer, 0] = 0
        after[:, : n + 1] = 0
        for bases in range(kmer + 1):
            for h in range(n + 1):
                out[n, h] += state[bases, h]
            for later in range(kmer + 1):
                share = steps[bases, later]
                for h in range(n + 1):
                    after[later, h] += share * state[bases, h]
        state, after = after, state


def _ways(kmer: int, density: float) -> NDArray[np.float64]:
    """Reads with h of n hits, to base 2, float64[LEVELS + 1, LEVELS + 1].

    As many as there are of the substitutions that leave h hits in the mean.
    """
    ways = np.zeros((LEVELS + 1, LEVELS + 1))
    for n in range(1, LEVELS + 1):
        length = n / density + kmer - 1
        kept = log(1 - kmer / max(length, kmer + 1))
        for h in range(n):
            places = min(log(max(h, 0.5) / n) / kept, 0.75 * length)
            choices = lgamma(length + 1) - lgamma(places + 1) - lgamma(length - places + 1)
            ways[n, h] = (choices + places * log(3)) / log(2)
    return ways
