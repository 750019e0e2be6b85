"""Equivalence classes of reads: as many features, the same sources with the same hits.

A source is what reads may come from: a species, or a reference sequence without one. What a sample
contains follows from how many reads each class has (``fit``), whose number hardly grows with that
of the reads. Beside it, reads that only one source explains are counted, and the places of its
reference sequences where they are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.likelihood import LEAST_HITS, LEVELS, Likelihoods
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.jit import Integer, njit

MOST: Final = 8
"""Sources of a class."""
WIDTH: Final = 1 + MOST
"""Words of a class: features, then its sources with their hits, best first."""
SUBSTITUTIONS: Final = 4
"""A source with as many substitutions more than the best one does not matter."""
_HIT_BITS: Final = 7
NONE: Final = -1
_FREE: Final = -1
_FIRST: Final = np.uint64(0x9E3779B97F4A7C15)
_SECOND: Final = np.uint64(0xBF58476D1CE4E5B9)


class Sources(NamedTuple):
    """What reads may come from.

    Attributes:
        of_target: int32[t], number of each reference sequence's source.
        first_place: int64[t + 1], where the places of each reference sequence begin.
        per_place: windows of a place.
    """

    of_target: NDArray[np.int32]
    first_place: NDArray[np.int64]
    per_place: int


class Rows(NamedTuple):
    """Classes of reads, each maybe more than once.

    Attributes:
        words: int64[n, WIDTH], see ``WIDTH``; ``NONE`` behind the last source.
        hashes: uint64[n], of the words.
        counts: int64[n], reads.
    """

    words: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]


class ReadClasses:
    """Collects the classes of a sample's reads.

    Args:
        sources: what reads may come from.
        likelihoods: when one source alone explains a read.

    Attributes:
        own: int64[sources], reads that only one explains.
        marks: uint8[places], 1 where such a read is.
        left_out: reads with fewer hits than ``LEAST_HITS``, or with a list cut off amid equals.
        step: features that one substitution costs.
        least: int32, see ``Likelihoods``.
    """

    def __init__(self, sources: Sources, likelihoods: Likelihoods) -> None:
        self.sources = sources
        self.step = likelihoods.step
        self.least = likelihoods.least
        self.own = np.zeros(int(sources.of_target.max(initial=-1)) + 1, dtype=np.int64)
        self.marks = np.zeros(int(sources.first_place[-1]), dtype=np.uint8)
        self.left_out = 0
        self._words = np.zeros((1 << 10, WIDTH), dtype=np.int64)
        self._hashes = np.zeros(1 << 10, dtype=np.uint64)
        self._counts = np.zeros(1 << 10, dtype=np.int64)
        self._used = 0
        self._slots = np.full(1 << 12, _FREE, dtype=np.int64)

    def rows(self, best: CandidateArrays, features: NDArray[np.int64]) -> Rows:
        """The classes of some reads; threads may do so at the same time."""
        words = np.full((len(features), WIDTH), NONE, dtype=np.int64)
        hashes = np.zeros(len(features), dtype=np.uint64)
        _class_rows(best, features, self.sources, self.step, words, hashes)
        return Rows(words, hashes, np.ones(len(features), dtype=np.int64))

    def add(self, best: CandidateArrays, rows: Rows) -> None:
        """Add reads and their classes; threads may not add at the same time."""
        _mark(best, rows.words, self.sources, self.step, self.least, self.own, self.marks)
        self.add_rows(rows)

    def add_rows(self, rows: Rows) -> None:
        """Add classes."""
        done = 0
        while True:
            done, self._used, out = _insert(
                rows, done, self._slots, self._words, self._hashes, self._counts, self._used
            )
            self.left_out += out
            if done == len(rows.hashes):
                return
            self._grow()

    def _grow(self) -> None:
        size = 2 * len(self._hashes)
        for name in ("_words", "_hashes", "_counts"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        self._slots = np.full(4 * size, _FREE, dtype=np.int64)
        _rehash(self._hashes[: self._used], self._slots)

    def sorted(self) -> Rows:
        """All classes, once each, in an order that depends on nothing but themselves."""
        order = np.argsort(self._hashes[: self._used], kind="stable")
        return Rows(self._words[order], self._hashes[order], self._counts[order])


def unpacked(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Features of each class; sources, -1 for none, and hits: int64[n, MOST]."""
    words = rows.words
    sources = np.where(words[:, 1:] < 0, NONE, words[:, 1:] >> _HIT_BITS)
    return words[:, 0], sources, words[:, 1:] & ((1 << _HIT_BITS) - 1)


@njit(nogil=True, cache=True, inline="always")
def scaled(hits: Integer, features: Integer) -> Integer:
    """Hits of a read with more than ``LEVELS`` features, as if it had these; at most all."""
    found = np.int64(hits)
    if features > LEVELS:
        found = (found * LEVELS + features // 2) // features
        found = max(found, min(np.int64(hits), np.int64(LEAST_HITS)))
        features = LEVELS
    return min(found, np.int64(features))


@njit(nogil=True, cache=True)
def _class_rows(best, features, sources, step, words, hashes):  # type: ignore[no-untyped-def]
    """Fill ``words`` and ``hashes`` of reads; a hash is 0 for those that say nothing."""
    most = best.target.shape[1]
    for i in range(features.size):
        row = words[i]
        if best.target[i, 0] < 0 or best.hits[i, 0] < LEAST_HITS:
            continue
        top = scaled(best.hits[i, 0], features[i])
        least = max(np.int64(LEAST_HITS), top - SUBSTITUTIONS * step)
        last = best.target[i, most - 1] >= 0
        near = max(np.int64(LEAST_HITS), top - step)
        if last and scaled(best.hits[i, most - 1], features[i]) >= near:
            continue  # others that were not kept may be as good
        row[0] = min(features[i], LEVELS)
        count = 0
        for j in range(min(most, MOST)):
            if best.target[i, j] < 0:
                break
            hits = scaled(best.hits[i, j], features[i])
            if j > 0 and hits < least:
                break
            word = (np.int64(sources.of_target[best.target[i, j]]) << _HIT_BITS) | hits
            place = count
            # More hits first, of as many the smaller source.
            while (
                place > 0
                and (row[place] & 127) <= hits
                and ((row[place] & 127) < hits or row[place] > word)
            ):
                row[place + 1] = row[place]
                place -= 1
            row[place + 1] = word
            count += 1
        value = np.uint64(0)
        for j in range(count + 1):
            value = (value ^ np.uint64(row[j])) * _FIRST
            value ^= value >> np.uint64(29)
            value = value * _SECOND
            value ^= value >> np.uint64(32)
        hashes[i] = max(value, np.uint64(1))


@njit(nogil=True, cache=True)
def _mark(best, words, sources, step, least, own, marks):  # type: ignore[no-untyped-def]
    """Count reads that only one source explains, and mark their places."""
    for i in range(words.shape[0]):
        if words[i, 0] < 0:
            continue
        source, hits = words[i, 1] >> _HIT_BITS, words[i, 1] & 127
        if hits < least[words[i, 0]] or (words[i, 2] >= 0 and (words[i, 2] & 127) > hits - step):
            continue
        target = best.target[i, 0]
        own[source] += 1
        marks[sources.first_place[target] + best.window_begin[i, 0] // sources.per_place] = 1


@njit(nogil=True, cache=True)
def _insert(rows, begin, slots, words, hashes, counts, used):  # type: ignore[no-untyped-def]
    """Insert rows until the arrays are full; the end of those inserted, classes, reads left out."""
    mask = np.uint64(slots.size - 1)
    left_out = np.int64(0)
    for i in range(begin, rows.hashes.size):
        value = rows.hashes[i]
        if value == 0:
            left_out += rows.counts[i]
            continue
        slot = value & mask
        while slots[slot] >= 0 and hashes[slots[slot]] != value:
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] >= 0:
            counts[slots[slot]] += rows.counts[i]
            continue
        if used == hashes.size:
            return i, used, left_out
        slots[slot] = used
        words[used] = rows.words[i]
        hashes[used] = value
        counts[used] = rows.counts[i]
        used += 1
    return rows.hashes.size, used, left_out


@njit(nogil=True, cache=True)
def _rehash(hashes, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(slots.size - 1)
    for i in range(hashes.size):
        slot = hashes[i] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i
