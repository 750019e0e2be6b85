"""Numba kernel of the evaluation of merging: pairs, their fragments and merged reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.merging.result import (
    ALONE,
    APART,
    APART_MERGED,
    BASES,
    ERRORS,
    IN_OVERLAP,
    INDELS,
    MISSED,
    NEAR,
    NEARLY,
    OVERLAPPING,
    PAIRS,
    RIGHT,
    UNKNOWN_FRAGMENT,
    WRONG,
)
from ngsgpu.evaluate.truth.indels import oriented_code
from ngsgpu.jit import njit
from ngsgpu.sequence.codec import AMBIGUOUS


class Texts(NamedTuple):
    """Bases of some records.

    Attributes:
        data: uint8.
        start: int64[n].
        length: int64[n].
        reverse: bool[n], whether a record is the reverse complement of the read.
    """

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    reverse: NDArray[np.bool_]


@njit(nogil=True, cache=True)
def _code(codes: NDArray[np.uint8], texts: Texts, i: int, position: int) -> np.uint8:
    """Code of a base of a read, in the direction of the read."""
    return oriented_code(
        codes, texts.data, texts.start[i], texts.length[i], texts.reverse[i], position
    )


@njit(nogil=True, cache=True)
def _count(truth: np.uint8, called: np.uint8, counts: NDArray[np.int64]) -> None:
    """Count a base, and whether it is wrong, unless the truth is unknown."""
    if truth != AMBIGUOUS:
        counts[BASES] += 1
        counts[ERRORS] += truth != called


@njit(nogil=True, cache=True)
def compare(
    codes: NDArray[np.uint8],
    min_overlap: int,
    spans: NDArray[np.int64],
    indels: NDArray[np.bool_],
    first: Texts,
    second: Texts,
    true_first: Texts,
    true_second: Texts,
    begin: int,
    merged: Texts,
    merged_qualities: NDArray[np.int64],
    rows: NDArray[np.int64],
    outcomes: NDArray[np.int64],
    before: NDArray[np.int64],
    qualities: NDArray[np.int64],
) -> None:
    """Compare pairs with their merged reads; counters are incremented.

    Args:
        codes: uint8[256], letter to code.
        min_overlap: see ``files.evaluate_merging``.
        spans: int64[pairs], lengths of the fragments, 0 if unknown.
        indels: bool[pairs], whether a read has an insertion or a deletion.
        first: first mates.
        second: second mates.
        true_first: first mates without errors.
        true_second: second mates without errors.
        begin: the first pair.
        merged: merged reads.
        merged_qualities: int64, where their qualities start.
        rows: int64[n], the merged read of each pair from ``begin`` on, -1 without.
        outcomes: int64[len(OUTCOMES)].
        before: int64[2].
        qualities: int64[2, QUALITIES, 2].
    """
    for pair in range(begin, begin + len(rows)):
        at = rows[pair - begin]
        length1, length2, span = first.length[pair], second.length[pair], spans[pair]
        is_merged = at >= 0
        length = merged.length[at] if is_merged else 0
        outcomes[PAIRS] += 1
        outcomes[INDELS] += indels[pair]
        if span == 0:
            outcomes[UNKNOWN_FRAGMENT] += 1
        elif length1 + length2 - span < min_overlap:
            outcomes[APART] += 1
            outcomes[APART_MERGED] += is_merged
        else:
            outcomes[OVERLAPPING] += 1
            if not is_merged:
                outcomes[MISSED] += 1
            elif length == span:
                outcomes[RIGHT] += 1
            elif abs(length - span) <= NEAR:
                outcomes[NEARLY] += 1
            else:
                outcomes[WRONG] += 1
            if is_merged and length == span and not indels[pair]:
                for k in range(length1):
                    truth = _code(codes, true_first, pair, k)
                    _count(truth, _code(codes, first, pair, k), before)
                for k in range(length2):
                    truth = _code(codes, true_second, pair, k)
                    _count(truth, _code(codes, second, pair, k), before)
                for k in range(span):
                    if k < length1:
                        truth = _code(codes, true_first, pair, k)
                    else:
                        truth = _code(codes, true_second, pair, span - 1 - k)
                        truth = truth if truth == AMBIGUOUS else np.uint8(3 - truth)
                    row = IN_OVERLAP if span - length2 <= k < length1 else ALONE
                    score = np.int64(merged.data[merged_qualities[at] + k]) - 33
                    _count(truth, _code(codes, merged, at, k), qualities[row, score])
