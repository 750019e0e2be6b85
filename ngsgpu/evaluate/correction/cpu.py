"""Numba kernel of the evaluation of corrections: three-way comparison of bases.

Reads are compared in the direction of the input.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.truth.indels import (
    CLAIM_INDEL,
    CLAIM_NO_INDEL,
    gapped_mismatches,
    has_indel,
    oriented_code,
)
from ngsgpu.jit import njit
from ngsgpu.sequence.codec import AMBIGUOUS

TP, FP, FN, TN = 0, 1, 2, 3

# Columns of the table of reads, in the order of ``result.ReadCounts``.
READS, KEPT_PERFECT, MADE_PERFECT, IMPROVED, UNCHANGED, MADE_WORSE, CHANGED, UNKNOWN_TRUTH = range(
    8
)

# Columns of the aligned reads with indels: sums of costs, and reads by how theirs changed.
COST_BEFORE, COST_AFTER, NEARER, AS_NEAR, FARTHER = range(5)


class Reads(NamedTuple):
    """Reads with their corrected and true forms, all of equal lengths, as passed to kernels.

    Attributes:
        in_data: uint8, text with the input reads' bases and qualities.
        in_start: int64[n], where each read's bases start in ``in_data``.
        out_data: uint8, text with the corrected reads' bases.
        out_start: int64[n], where they start.
        truth_data: uint8, text with the true bases.
        truth_start: int64[n], where they start.
        truth_reversed: bool[n], whether the truth is stored as the reverse complement.
        quality_start: int64[n], where the qualities (Phred+33) start in ``in_data``; -1: none.
        lengths: int64[n], bases of each read.
        mates: uint8[n], 0 or 1.
        claims: int32[n], indels according to the alignment (``CLAIM_*``, or a number of
            mismatches).
    """

    in_data: NDArray[np.uint8]
    in_start: NDArray[np.int64]
    out_data: NDArray[np.uint8]
    out_start: NDArray[np.int64]
    truth_data: NDArray[np.uint8]
    truth_start: NDArray[np.int64]
    truth_reversed: NDArray[np.bool_]
    quality_start: NDArray[np.int64]
    lengths: NDArray[np.int64]
    mates: NDArray[np.uint8]
    claims: NDArray[np.int32]


class Counters(NamedTuple):
    """Sums over reads; int64, shapes and columns as in ``result.CorrectionEvaluation``."""

    bases: NDArray[np.int64]
    positions: NDArray[np.int64]
    qualities: NDArray[np.int64]
    reads: NDArray[np.int64]
    aligned: NDArray[np.int64]


@njit(nogil=True, cache=True)
def compare(
    codes: NDArray[np.uint8],
    batch: Reads,
    scratch: NDArray[np.uint8],
    rows: NDArray[np.int64],
    counters: Counters,
) -> None:
    """Compare reads with their corrected and true forms and add to the counters.

    Args:
        codes: uint8[256], letter to code.
        batch: the reads.
        scratch: uint8[5, longest read].
        rows: int64[6, 2 * BAND + 1].
        counters: incremented; their positions have room for the longest read.
    """
    lengths, reads = batch.lengths, counters.reads
    for r in range(lengths.size):
        length = lengths[r]
        before = 0
        after = 0
        unknown = 0
        changed = 0
        for p in range(length):
            i = codes[batch.in_data[batch.in_start[r] + p]]
            o = codes[batch.out_data[batch.out_start[r] + p]]
            t = oriented_code(
                codes, batch.truth_data, batch.truth_start[r], length, batch.truth_reversed[r], p
            )
            scratch[0, p] = i
            scratch[1, p] = o
            scratch[2, p] = t
            changed += i != o
            if t == AMBIGUOUS:
                unknown += 1
            else:
                before += i != t
                after += o != t
        claim = batch.claims[r]
        if claim == CLAIM_INDEL:
            indel = 1
        elif claim in (CLAIM_NO_INDEL, before):
            indel = 0
        else:
            found = has_indel(scratch[0], scratch[2], length, before, scratch[3:], rows)
            indel = 1 if found else 0
        if indel:
            _count_aligned(scratch, length, rows, changed > 0, counters.aligned)
        _count_bases(scratch, length, indel, batch, r, counters)
        reads[indel, READS] += 1
        reads[indel, UNKNOWN_TRUTH] += unknown > 0
        reads[indel, CHANGED] += changed > 0
        if after > before:
            reads[indel, MADE_WORSE] += 1
        elif after == before:
            reads[indel, KEPT_PERFECT if before == 0 else UNCHANGED] += 1
        else:
            reads[indel, MADE_PERFECT if after == 0 else IMPROVED] += 1


@njit(nogil=True, cache=True)
def _count_aligned(
    scratch: NDArray[np.uint8],
    length: int,
    rows: NDArray[np.int64],
    changed: bool,
    aligned: NDArray[np.int64],
) -> None:
    """Align a read with its truth before and after correction, both ends free."""
    before = gapped_mismatches(scratch[0], scratch[2], length, rows, True)
    after = before
    if changed:
        after = gapped_mismatches(scratch[1], scratch[2], length, rows, True)
    aligned[COST_BEFORE] += before
    aligned[COST_AFTER] += after
    if after < before:
        aligned[NEARER] += 1
    elif after == before:
        aligned[AS_NEAR] += 1
    else:
        aligned[FARTHER] += 1


@njit(nogil=True, cache=True)
def _count_bases(
    scratch: NDArray[np.uint8], length: int, indel: int, batch: Reads, r: int, counters: Counters
) -> None:
    quality_start = batch.quality_start[r]
    for p in range(length):
        i = scratch[0, p]
        o = scratch[1, p]
        t = scratch[2, p]
        counters.bases[indel, t, i, o] += 1
        if indel == 1 or t == AMBIGUOUS:
            continue
        right = o == t
        outcome = (TN if right else FP) if i == t else (TP if right else FN)
        counters.positions[batch.mates[r], p, outcome] += 1
        if quality_start >= 0:
            quality = int(batch.in_data[quality_start + p]) - 33
            counters.qualities[min(max(quality, 0), 93), outcome] += 1
