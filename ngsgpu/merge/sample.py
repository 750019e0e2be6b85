"""What the first pairs say about all: bases, lengths of fragments, and errors by quality.

A pair's overlap shows which of its bases are wrong at least once, without a reference. The first
``SAMPLED_PAIRS`` pairs are looked at twice: for overlaps that are certain without knowing how long
fragments are and what qualities are worth, from which both are learned; and again, knowing them.
Neither batches nor threads nor the backend matter: the pairs are always the same, and are always
looked at here, by the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import njit
from ngsgpu.merge.likelihood import BEST, FOUND, RELATED, likeliest_of_pair, second_start
from ngsgpu.merge.params import (
    ACCEPT_BITS,
    CERTAIN_BITS,
    CLEAR_BITS,
    CLEARER_BITS,
    LEAD_BITS,
    SAMPLED_PAIRS,
    STRONG_BITS,
    MergeParameters,
)
from ngsgpu.merge.qualities import (
    CYCLE_BITS,
    CYCLES,
    SCORES,
    UNIT,
    Calibration,
    Tables,
    as_stated,
    calibrate,
    evidence,
    in_units,
    quality_tables,
)
from ngsgpu.merge.records import Read, load, load_reversed, room_for
from ngsgpu.merge.rules import Rules
from ngsgpu.pool import map_all
from ngsgpu.run.record import Batch

_CERTAIN_LEAD_BITS = 10.0
_ROUNDS = 2
"""How often calibrated qualities, and the lengths found, are used to find overlaps again."""
_RELATED_BITS = 1.5
_LEAST_RELATED_BITS = -10.0
"""Odds against copies of a repeat that an overlap needs, where these are as frequent as overlaps,
and at least."""
_STATES = CYCLES * SCORES
_N = 78
_COPIES = -4
"""In place of a code: the mates seem to be from copies of a repeat."""
_PAIRS_PER_TASK = 1000

_NARROW, _WIDE = 1.0, 16.0
"""Bases by which the lengths of fragments are smoothed: amplicons', and sheared fragments'."""
_WIDE_SHARE, _ANY_SHARE = 0.4, 0.02
_LEAST_APART = 0.02
"""Part of the pairs that is taken not to overlap, at least."""


@dataclass(frozen=True)
class Sample:
    """The first pairs of a run.

    Attributes:
        batches: of pairs, and how many of each batch are in the sample.
        mean_length: of their reads, in bases; 0 if there are none.
        longest: of their reads, in bases.
    """

    batches: list[tuple[Mates, Mates, int]]
    mean_length: float
    longest: int

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return sum(count for _, _, count in self.batches)


def take_sample(batches: Iterator[Batch]) -> tuple[Sample, Iterator[Batch]]:
    """The first ``SAMPLED_PAIRS`` pairs, and all batches."""
    taken: list[Batch] = []
    held: list[tuple[Mates, Mates, int]] = []
    left = SAMPLED_PAIRS
    bases = reads = longest = 0
    for batch in batches:
        first, second = batch.mates
        count = min(left, len(first.seq_len))
        taken.append(batch)
        held.append((first, second, count))
        for mate in (first, second):
            lengths = mate.seq_len[:count]
            reads += count
            bases += int(lengths.sum(dtype=np.int64))
            longest = max(longest, int(lengths.max(initial=0)))
        left -= count
        if left == 0:
            break
    return Sample(held, bases / max(1, reads), longest), chain(taken, batches)


@dataclass(frozen=True)
class Learned:
    """What a sample says.

    Attributes:
        pairs: in the sample.
        overlapping: pairs of these with a certain overlap.
        related: pairs whose mates seem to be from copies of a repeat.
        bases: float64[4], frequencies of A, C, G and T.
        calibration: of qualities; None if they are taken as stated.
    """

    pairs: int
    overlapping: int
    related: int
    bases: NDArray[np.float64]
    calibration: Calibration | None

    def for_statistics(self) -> dict[str, Any]:
        """As in the statistics of a run."""
        document: dict[str, Any] = {
            "pairs": self.pairs,
            "overlapping": self.overlapping,
            "related": self.related,
            "bases": {
                base: round(float(share), 4) for base, share in zip("ACGT", self.bases, strict=True)
            },
        }
        if self.calibration is not None:
            document |= self.calibration.for_statistics()
        return document


def learn(
    sample: Sample, parameters: MergeParameters, rules: Rules, threads: int = 1
) -> tuple[Rules, Tables, Learned]:
    """Rules and tables of overlaps by likelihood, from a sample.

    Args:
        sample: the first pairs.
        parameters: of merging.
        rules: what does not depend on the sample.
        threads: how many find overlaps; does not affect the result.
    """
    bases = _frequencies(sample)
    stated = as_stated()
    agree, differ, alone = quality_tables(parameters, rules.phred_offset)
    match, mismatch, alike, unlike, base = evidence(bases)
    flat = np.zeros(2 * sample.longest + 1, dtype=np.int32)
    tables = Tables(agree, differ, stated, alone, match, mismatch, alike, unlike, base, flat, flat)
    rules = rules._replace(
        most_match=int(match.max() + base.max()), most_mismatch=int(mismatch.max())
    )
    certain = _with_threshold(rules, CERTAIN_BITS, _CERTAIN_LEAD_BITS)
    found = _survey(sample, certain, tables, threads)
    calibration = None
    for _ in range(_ROUNDS):
        _, usual = prior_of(found.fragments, sample.pairs)
        tables = tables._replace(usual=usual)
        if parameters.quality == "calibrated":
            tables = tables._replace(scores=calibrate(found.columns).scores)
        found = _survey(sample, certain, tables, threads)
    if parameters.quality == "calibrated":
        calibration = calibrate(found.columns)
        tables = tables._replace(scores=calibration.scores)
    prior, usual = prior_of(found.fragments, sample.pairs)
    tables = tables._replace(prior=prior, usual=usual)
    overlapping, related = int(found.fragments.sum()), found.related
    # Sequences that are related are as much more frequent than overlaps, or less.
    odds = float(np.log2((related + 1) / (overlapping + 1)))
    rules = _with_threshold(rules, ACCEPT_BITS, LEAD_BITS)._replace(
        related=round(UNIT * max(_LEAST_RELATED_BITS, _RELATED_BITS + odds))
    )
    return rules, tables, Learned(sample.pairs, overlapping, related, bases, calibration)


def unlearned(parameters: MergeParameters, phred_offset: int) -> Tables:
    """The tables of FLASH's overlaps, which need no sample."""
    nothing = np.zeros(1, dtype=np.int32)
    agree, differ, alone = quality_tables(parameters, phred_offset)
    return Tables(agree, differ, as_stated(), alone, *[nothing] * 7)


def _with_threshold(rules: Rules, accept: float, lead: float) -> Rules:
    return rules._replace(
        accept=round(UNIT * accept),
        lead=round(UNIT * lead),
        strong=round(UNIT * STRONG_BITS),
        clear=round(UNIT * CLEAR_BITS),
        clearer=round(UNIT * CLEARER_BITS),
        certain=round(UNIT * CERTAIN_BITS),
    )


def prior_of(
    fragments: NDArray[np.int64], pairs: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``Tables.prior`` and ``Tables.usual``.

    Args:
        fragments: int64[longest fragment + 1], certain ones of each length.
        pairs: how many were looked at.
    """
    lengths = np.arange(len(fragments))
    shares = (1 - _WIDE_SHARE - _ANY_SHARE, _WIDE_SHARE)
    seen = np.zeros(len(fragments))
    for share, width in zip(shares, (_NARROW, _WIDE), strict=True):
        reach = np.arange(-int(8 * width), int(8 * width) + 1)
        kernel = np.exp(-np.abs(reach) / width)
        seen += (
            share
            * np.convolve(fragments, kernel / kernel.sum(), "full")[
                int(8 * width) : int(8 * width) + len(lengths)
            ]
        )
    total = float(fragments.sum())
    seen += (_ANY_SHARE * total + 1) / len(fragments)
    apart = max(pairs - total + 1, _LEAST_APART * (pairs + 1))
    return in_units(seen / apart), in_units(np.maximum(seen / seen.mean(), 1))


def _frequencies(sample: Sample) -> NDArray[np.float64]:
    """Frequencies of A, C, G and T in the direction of the fragments."""
    counts = np.zeros(5, dtype=np.int64)
    for first, second, count in sample.batches:
        if count:
            _count_bases(first, second, count, counts)
    known = counts[:4] + 1.0
    return np.maximum(known / known.sum(), 0.02)


@njit(nogil=True, cache=True)
def _count_bases(first: Mates, second: Mates, pairs: int, counts: NDArray[np.int64]) -> None:
    """Count A, C, G and T, and others."""
    codes = np.full(256, 4, dtype=np.uint8)
    for code in range(4):
        for letter in (np.int64(b"ACGT"[code]), np.int64(b"acgt"[code])):
            codes[letter] = code
    for i in range(pairs):
        for k in range(first.seq_len[i]):
            counts[codes[first.data[first.seq_start[i] + k]]] += 1
        for k in range(second.seq_len[i]):
            code = codes[second.data[second.seq_start[i] + k]]
            counts[code if code == 4 else 3 - code] += 1


class _Found(NamedTuple):
    """Certain overlaps of a sample.

    Attributes:
        codes: of each batch, int64[pairs] as ``likeliest`` returns them, or _COPIES.
        fragments: int64[longest fragment + 1], how many fragments have each length.
        columns: int32[2, states, states], as ``calibrate`` takes them.
        related: pairs whose mates seem to be from copies of a repeat.
    """

    codes: list[NDArray[np.int64]]
    fragments: NDArray[np.int64]
    columns: NDArray[np.int32]
    related: int


def _survey(sample: Sample, rules: Rules, tables: Tables, threads: int) -> _Found:
    """Certain overlaps of a sample."""
    codes = [np.empty(pairs, dtype=np.int64) for _, _, pairs in sample.batches]
    tasks = [
        (*batch[:2], own, begin, min(begin + _PAIRS_PER_TASK, len(own)))
        for batch, own in zip(sample.batches, codes, strict=True)
        for begin in range(0, len(own), _PAIRS_PER_TASK)
    ]
    map_all(
        threads,
        lambda task: _find_overlaps(*task, sample.longest, rules, tables),
        tasks,
        name="sample",
    )
    fragments = np.zeros(2 * sample.longest + 1, dtype=np.int64)
    columns = np.zeros((2, _STATES, _STATES), dtype=np.int32)
    for (first, second, pairs), own in zip(sample.batches, codes, strict=True):
        if pairs:
            offset = rules.phred_offset
            _count(first, second, own, sample.longest, offset, fragments, columns)
    return _Found(codes, fragments, columns, sum(int((own == _COPIES).sum()) for own in codes))


@njit(nogil=True, cache=True)
def _find_overlaps(
    mates1: Mates,
    mates2: Mates,
    codes: NDArray[np.int64],
    begin: int,
    end: int,
    longest: int,
    rules: Rules,
    tables: Tables,
) -> None:
    """Set the codes of some pairs."""
    first, second = room_for(longest), room_for(longest)
    found = np.empty(FOUND, dtype=np.int64)
    for i in range(begin, end):
        code = likeliest_of_pair(mates1, mates2, i, rules, tables, first, second, found)
        copies = code < 0 and found[BEST] < rules.accept <= found[RELATED]
        codes[i] = _COPIES if copies else code


@njit(nogil=True, cache=True)
def _count(
    mates1: Mates,
    mates2: Mates,
    codes: NDArray[np.int64],
    longest: int,
    phred_offset: int,
    fragments: NDArray[np.int64],
    columns: NDArray[np.int32],
) -> None:
    """Count the fragments and columns of overlaps; qualities as stated."""
    first, second = room_for(longest), room_for(longest)
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        shift = second_start(codes[i])
        length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
        fragments[shift + length2] += 1
        load(mates1, i, phred_offset, first)
        load_reversed(mates2, i, phred_offset, second)
        _count_columns(first, length1, second, length2, shift, columns)


@njit(nogil=True, cache=True)
def _count_columns(
    first: Read,
    length1: int,
    second: Read,
    length2: int,
    shift: int,
    columns: NDArray[np.int32],
) -> None:
    """Count the columns of an overlap by the states of both bases, and whether they are equal."""
    for i in range(max(0, shift), min(length1, shift + length2)):
        one, two = first.letters[i], second.letters[i - shift]
        if one == _N or two == _N:
            continue
        cycle1 = min(i >> CYCLE_BITS, CYCLES - 1)
        cycle2 = min((length2 - 1 - (i - shift)) >> CYCLE_BITS, CYCLES - 1)
        state1 = cycle1 * SCORES + (np.int64(first.scores[i]) & (SCORES - 1))
        state2 = cycle2 * SCORES + (np.int64(second.scores[i - shift]) & (SCORES - 1))
        columns[0 if one == two else 1, state1, state2] += 1
