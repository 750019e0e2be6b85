"""Numba kernel of the evaluation of corrections: three-way comparison of bases.

Reads are compared in the direction of the input.
"""

from __future__ import annotations

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


@njit(nogil=True, cache=True)
def compare(
    codes: NDArray[np.uint8],
    in_data: NDArray[np.uint8],
    in_start: NDArray[np.int64],
    out_data: NDArray[np.uint8],
    out_start: NDArray[np.int64],
    truth_data: NDArray[np.uint8],
    truth_start: NDArray[np.int64],
    truth_reversed: NDArray[np.bool_],
    quality_start: NDArray[np.int64],
    lengths: NDArray[np.int64],
    mates: NDArray[np.uint8],
    claims: NDArray[np.int32],
    scratch: NDArray[np.uint8],
    rows: NDArray[np.int64],
    bases: NDArray[np.int64],
    positions: NDArray[np.int64],
    qualities: NDArray[np.int64],
    reads: NDArray[np.int64],
    aligned: NDArray[np.int64],
) -> None:
    """Compare reads with their corrected and true forms and add to the counters.

    Args:
        codes: uint8[256], letter to code.
        in_data: text with the input reads' bases and qualities.
        in_start: where each read's bases start in ``in_data``.
        out_data: text with the corrected reads' bases, as long as the input's.
        out_start: where they start.
        truth_data: text with the true bases, as long as the input's.
        truth_start: where they start.
        truth_reversed: whether the truth is stored as the reverse complement.
        quality_start: where each read's qualities (Phred+33) start in ``in_data``; -1: none.
        lengths: bases of each read.
        mates: 0 or 1.
        claims: indels of each read according to its alignment (``CLAIM_*``, or a number of
            mismatches).
        scratch: uint8[5, longest read].
        rows: int64[6, 2 * BAND + 1].
        bases: int64[2, 5, 5, 5]: with indel, code of truth, input, output; incremented.
        positions: int64[2, longest read, 4]: mate, position, TP, FP, FN, TN of reads without
            indels; incremented.
        qualities: int64[94, 4]: the same by the quality of the input base; incremented.
        reads: int64[2, 8]: with indel, outcomes of the reads; incremented.
        aligned: int64[5]: reads with indels aligned with their truth; incremented.
    """
    for r in range(lengths.size):
        length = lengths[r]
        before = 0
        after = 0
        unknown = 0
        changed = 0
        for p in range(length):
            i = codes[in_data[in_start[r] + p]]
            o = codes[out_data[out_start[r] + p]]
            t = oriented_code(codes, truth_data, truth_start[r], length, truth_reversed[r], p)
            scratch[0, p] = i
            scratch[1, p] = o
            scratch[2, p] = t
            changed += i != o
            if t == AMBIGUOUS:
                unknown += 1
            else:
                before += i != t
                after += o != t
        claim = claims[r]
        if claim == CLAIM_INDEL:
            indel = 1
        elif claim in (CLAIM_NO_INDEL, before):
            indel = 0
        else:
            found = has_indel(scratch[0], scratch[2], length, before, scratch[3:], rows)
            indel = 1 if found else 0
        if indel:
            _count_aligned(scratch, length, rows, changed > 0, aligned)
        _count_bases(
            scratch, length, indel, mates[r], in_data, quality_start[r], bases, positions, qualities
        )
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
    scratch: NDArray[np.uint8],
    length: int,
    indel: int,
    mate: int,
    in_data: NDArray[np.uint8],
    quality_start: int,
    bases: NDArray[np.int64],
    positions: NDArray[np.int64],
    qualities: NDArray[np.int64],
) -> None:
    for p in range(length):
        i = scratch[0, p]
        o = scratch[1, p]
        t = scratch[2, p]
        bases[indel, t, i, o] += 1
        if indel == 1 or t == AMBIGUOUS:
            continue
        right = o == t
        outcome = (TN if right else FP) if i == t else (TP if right else FN)
        positions[mate, p, outcome] += 1
        if quality_start >= 0:
            quality = int(in_data[quality_start + p]) - 33
            qualities[min(max(quality, 0), 93), outcome] += 1
