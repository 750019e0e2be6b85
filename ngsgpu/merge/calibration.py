"""What the reads' qualities are worth, from the disagreements of mates.

Where mates overlap and differ, at least one of both is wrong. Expectation maximisation shares the
blame among them by the error rates of their qualities, and takes the error rates from the blame,
until both agree. Rates are learned for each mate, score, and part of the read, and are drawn
towards those of the score in the whole read, and these towards what is stated, as if a few errors
at that rate had been seen already.

Mates agree on what went wrong before sequencing: polymerase errors, damage. Where many fragments of
the sample have the same bases on both sides of one, a base that next to none of them has is such an
error; bases that several have may be variants, and are not counted. Amplicons, small genomes and
deep sequencing tell; where no sequence is seen often enough nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import njit
from ngsgpu.merge.likelihood import second_start
from ngsgpu.merge.qualities import CYCLES, SCORES, to_scores
from ngsgpu.merge.records import load, load_reversed, room_for

_ROUNDS = 25
_PRIOR_ERRORS = 2.0
"""Errors that count as seen at the expected rate."""
_WORST = 0.75

_FLANK = 12
"""Bases on both sides that tell a place."""
_MOST_COLUMNS = 400_000
_LEAST_FRAGMENTS = 20
"""Fragments in which a place must be seen."""
_LEAST_BASES = 20_000
"""Bases in such places that an error rate needs."""
_RARE = 0.005
"""Part of a place's fragments that have the same error, beyond a single one."""


@dataclass(frozen=True)
class Calibration:
    """Error rates of qualities.

    Attributes:
        scores: uint8[2 * CYCLES * SCORES], as ``qualities.Tables.scores``.
        bases: int64[2, CYCLES, SCORES], bases in overlaps by mate, part, and score.
        rates: float64[2, CYCLES, SCORES], their error rates.
        shared: probability of an error that both mates have; None if unknown.
    """

    scores: NDArray[np.uint8]
    bases: NDArray[np.int64]
    rates: NDArray[np.float64]
    shared: float | None = None

    def for_statistics(self) -> dict[str, Any]:
        """As in the statistics of a run."""
        rows = []
        for mate in range(2):
            bases = self.bases[mate].sum(axis=0)
            for score in np.flatnonzero(bases).tolist():
                errors = float((self.rates[mate, :, score] * self.bases[mate, :, score]).sum())
                rate = errors / int(bases[score])
                rows.append(
                    {
                        "mate": mate + 1,
                        "stated": score,
                        "estimated": round(float(-10 * np.log10(rate)), 2),
                        "bases": int(bases[score]),
                    }
                )
        return {"shared_error_rate": self.shared, "qualities": rows}


def stated_rates() -> NDArray[np.float64]:
    """Error rates of scores, float64[SCORES]; no information is an error rate of 3/4."""
    return np.minimum(_WORST, 10 ** (-np.arange(SCORES) / 10))


def calibrate(columns: NDArray[np.int32]) -> Calibration:
    """Learn error rates.

    Args:
        columns: int32[2, CYCLES * SCORES, CYCLES * SCORES], columns in which mates agree, and
            disagree, by the states (part of the read, score) of the first and the second mate.
    """
    shape = (CYCLES, SCORES)
    total = columns[0] + columns[1]
    counts = [total.sum(axis=1 - mate, dtype=np.int64) for mate in range(2)]
    seen = [np.flatnonzero(own) for own in counts]
    agree, differ = (part[np.ix_(*seen)].astype(np.float64) for part in columns)
    scores = [own % SCORES for own in seen]
    stated = stated_rates()
    by_score = [np.unique(own, return_inverse=True) for own in scores]
    merged = [_by_score(part, [inverse for _, inverse in by_score]) for part in (agree, differ)]
    whole = _maximise(merged[0], merged[1], [stated[own] for own, _ in by_score])
    expected = [rates[inverse] for rates, (_, inverse) in zip(whole, by_score, strict=True)]
    rates = _maximise(agree, differ, expected)
    all_rates = np.empty((2, *shape))
    bases = np.zeros((2, *shape), dtype=np.int64)
    for mate in range(2):
        own = stated.copy()
        own[by_score[mate][0]] = whole[mate]
        all_rates[mate] = own
        all_rates[mate].reshape(-1)[seen[mate]] = rates[mate]
        bases[mate] = counts[mate].reshape(shape)
    table = np.clip(to_scores(np.minimum(all_rates, _WORST)), 0, SCORES - 1).astype(np.uint8)
    return Calibration(table.ravel(), bases, all_rates)


def _by_score(part: NDArray[np.float64], groups: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Sums of a table's rows and columns by group."""
    sums = np.zeros([int(group.max(initial=-1)) + 1 for group in groups])
    np.add.at(sums, tuple(np.meshgrid(*groups, indexing="ij")), part)
    return sums


def _maximise(
    agree: NDArray[np.float64], differ: NDArray[np.float64], expected: list[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Error rates of the states of both mates, from columns by both."""
    first, second = expected
    total = agree + differ
    weights = [_PRIOR_ERRORS / own for own in expected]
    for _ in range(_ROUNDS):
        one, two = first[:, None], second[None, :]
        both_alike = one * two / 3
        both = differ * (2 * both_alike)
        different = one * (1 - two) + two * (1 - one) + 2 * both_alike
        alike = agree * both_alike / ((1 - one) * (1 - two) + both_alike)
        blame1 = (differ * one * (1 - two) + both) / different + alike
        blame2 = (differ * two * (1 - one) + both) / different + alike
        first = (blame1.sum(axis=1) + _PRIOR_ERRORS) / (total.sum(axis=1) + weights[0])
        second = (blame2.sum(axis=0) + _PRIOR_ERRORS) / (total.sum(axis=0) + weights[1])
    return [np.minimum(first, _WORST), np.minimum(second, _WORST)]


def shared_errors(found: NDArray[np.uint64]) -> float | None:
    """The rate of errors that both mates have; None if too few places are seen often enough.

    Args:
        found: uint64[n], places and bases as ``contexts`` returns them.
    """
    own, counts = np.unique(found, return_counts=True)
    places, first = np.unique(own >> np.uint64(2), return_index=True)
    if len(places) == 0:
        return None
    totals = np.add.reduceat(counts, first)
    most = np.maximum.reduceat(counts, first)
    rare = np.where(
        counts <= np.repeat(np.maximum(1, _RARE * totals), _sizes(first, own)), counts, 0
    )
    errors = np.add.reduceat(rare, first)
    often = (totals >= _LEAST_FRAGMENTS) & (most > totals // 2)
    bases = int(totals[often].sum())
    if bases < _LEAST_BASES:
        return None
    return float((errors[often].sum() + 1) / (bases + 1))


def _sizes(first: NDArray[np.int64], own: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Sizes of groups by where they begin."""
    return np.diff(np.append(first, len(own)))


def contexts(
    batches: Sequence[tuple[Mates, Mates, int]], codes: Sequence[NDArray[np.int64]]
) -> NDArray[np.uint64]:
    """Bases that mates agree on, with those around them, on which they also agree.

    Args:
        batches: of pairs, and how many to look at.
        codes: of each batch, where its mates overlap, as ``likeliest`` returns it.

    Returns:
        uint64[n], the bases on both sides, in two bits each, and the one between them in the lowest
        two; at most ``_MOST_COLUMNS`` of the first pairs.
    """
    found = np.empty(_MOST_COLUMNS, dtype=np.uint64)
    count = 0
    for (first, second, pairs), own in zip(batches, codes, strict=True):
        if pairs:
            longest = 1 + max(int(mate.seq_len[:pairs].max()) for mate in (first, second))
            count = _collect(first, second, own, longest, found, count)
    return found[:count]


@njit(nogil=True, cache=True)
def _collect(
    mates1: Mates,
    mates2: Mates,
    codes: NDArray[np.int64],
    longest: int,
    found: NDArray[np.uint64],
    count: int,
) -> int:
    """Add to ``found`` from ``count`` on; return its end."""
    first, second = room_for(longest), room_for(longest)
    window = 2 * _FLANK + 1
    middle = np.uint64(2 * _FLANK)
    low = (np.uint64(1) << middle) - np.uint64(1)
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        shift = second_start(codes[i])
        length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
        load(mates1, i, 0, first)  # whatever the offset of qualities is: only bases count
        load_reversed(mates2, i, 0, second)
        bases, run = np.uint64(0), 0
        for k in range(max(0, shift), min(length1, shift + length2)):
            letter = first.letters[k]
            if letter != second.letters[k - shift] or letter == 78:
                run = 0
                continue
            bases = (bases << np.uint64(2)) | np.uint64(((letter >> 1) & 3) ^ ((letter >> 2) & 1))
            run += 1
            if run >= window and count < len(found):
                right = bases & low
                base = (bases >> middle) & np.uint64(3)
                left = (bases >> (middle + np.uint64(2))) & low
                found[count] = (((left << middle) | right) << np.uint64(2)) | base
                count += 1
    return count
