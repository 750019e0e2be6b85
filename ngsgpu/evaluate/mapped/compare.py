"""Numba kernel that compares corrected reads with the raw ones where those align."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.mapped.aligner import Alignments
from ngsgpu.evaluate.mapped.pileup import BAD, GAPPED, Reads, add_agreeing, called, locate, score
from ngsgpu.evaluate.truth.indels import oriented_code
from ngsgpu.jit import njit
from ngsgpu.sequence.codec import AMBIGUOUS

MANY = 7
"""Mismatches from which on a read is one with many."""

QUALITIES = 94

TOTALS = (
    "reads",
    "unaligned",
    "changed_length",
    "bases",
    "errors_before",
    "errors_after",
    "n_before",
    "n_after",
    "mended",
    "introduced",
    "wrong_to_wrong",
    "perfect_before",
    "perfect_after",
    "made_perfect",
    "made_imperfect",
    "allele_bases",
    "alleles_switched",
    "alleles_spoilt",
    "indels_undone",
    "errors_after_in_undone",
    "introduced_in_undone",
)
(
    READS, UNALIGNED, CHANGED_LENGTH, BASES, ERRORS_BEFORE, ERRORS_AFTER, N_BEFORE, N_AFTER, MENDED,
    INTRODUCED, WRONG_TO_WRONG, PERFECT_BEFORE, PERFECT_AFTER, MADE_PERFECT, MADE_IMPERFECT,
    ALLELE_BASES, SWITCHED, SPOILT, UNDONE, AFTER_IN_UNDONE, INTRODUCED_IN_UNDONE,
) = range(len(TOTALS))  # fmt: skip

KINDS = ("gaps_or_clipped", "many_mismatches", "others")
KIND_READS, KIND_BEFORE, KIND_AFTER, KIND_INTRODUCED = range(4)


class Counters(NamedTuple):
    """What ``compare`` adds to.

    Attributes:
        totals: int64[len(TOTALS)].
        kinds: int64[len(KINDS), 4], reads, errors before and after, and errors introduced.
        quality: int64[2, QUALITIES, 2], bases and errors by quality, before and after.
        counts: uint32[2, sites, 4], bases at variant sites before and after.
        agreeing: uint32[2, sites, 4], pairs whose mates agree there.
    """

    totals: NDArray[np.int64]
    kinds: NDArray[np.int64]
    quality: NDArray[np.int64]
    counts: NDArray[np.uint32]
    agreeing: NDArray[np.uint32]


@njit(nogil=True, cache=True)
def _is_undone(
    codes: NDArray[np.uint8],
    genome: NDArray[np.uint8],
    out: Reads,
    i: int,
    reverse: bool,
    where: NDArray[np.int64],
) -> bool:
    """Whether a corrected read fits the reference better without the indels of the raw one.

    Bases behind the shift are then those of the genome there, although they differ from those
    under the raw read's alignment.
    """
    length = out.length[i]
    first, last = 0, length - 1
    while first < length and where[first] < 0:
        first += 1
    while last > first and where[last] < 0:
        last -= 1
    if first >= last or where[last] - where[first] == last - first:
        return False
    gapped = from_left = from_right = 0
    for q in range(first, last + 1):
        base = oriented_code(codes, out.data, out.start[i], length, reverse, q)
        left, right = where[first] + q - first, where[last] + q - last
        from_left += left >= len(genome) or base != genome[left]
        from_right += right < 0 or base != genome[right]
        gapped += where[q] >= 0 and base != genome[where[q]]
    return min(from_left, from_right) < gapped


@njit(nogil=True, cache=True)
def _compare_read(
    codes: NDArray[np.uint8],
    genome: NDArray[np.uint8],
    number: NDArray[np.int32],
    alleles: NDArray[np.int64],
    raw: Reads,
    out: Reads,
    i: int,
    reverse: bool,
    is_gapped: bool,
    where: NDArray[np.int64],
    counters: Counters,
) -> None:
    """Count the errors of a read outside variant sites, and its alleles at heterozygous ones."""
    totals = counters.totals
    length = raw.length[i]
    before = after = introduced = 0
    for q in range(length):
        position = where[q]
        if position < 0 or genome[position] == AMBIGUOUS:
            continue
        truth = genome[position]
        old = oriented_code(codes, raw.data, raw.start[i], length, reverse, q)
        new = oriented_code(codes, out.data, out.start[i], length, reverse, q)
        site = number[position]
        if site >= 0:
            first, second = alleles[site]
            if first >= 0 and (old in (first, second)):
                totals[ALLELE_BASES] += 1
                if new != old:
                    is_other = new in (first, second)
                    totals[SWITCHED if is_other else SPOILT] += 1
            continue
        totals[BASES] += 1
        totals[N_BEFORE] += old == AMBIGUOUS
        totals[N_AFTER] += new == AMBIGUOUS
        before += old != truth
        after += new != truth
        introduced += old == truth and new != truth
        totals[MENDED] += old != truth and new == truth
        totals[WRONG_TO_WRONG] += old != truth and new != truth and new != old
        if old != AMBIGUOUS:
            counters.quality[0, score(raw, i, reverse, q), 0] += 1
            counters.quality[0, score(raw, i, reverse, q), 1] += old != truth
        if new != AMBIGUOUS:
            counters.quality[1, score(out, i, reverse, q), 0] += 1
            counters.quality[1, score(out, i, reverse, q), 1] += new != truth
    totals[ERRORS_BEFORE] += before
    totals[ERRORS_AFTER] += after
    totals[INTRODUCED] += introduced
    totals[PERFECT_BEFORE] += before == 0
    totals[PERFECT_AFTER] += after == 0
    totals[MADE_PERFECT] += before > 0 and after == 0
    totals[MADE_IMPERFECT] += before == 0 and after > 0
    kind = 0 if is_gapped else 1 if before >= MANY else 2
    counters.kinds[kind, KIND_READS] += 1
    counters.kinds[kind, KIND_BEFORE] += before
    counters.kinds[kind, KIND_AFTER] += after
    counters.kinds[kind, KIND_INTRODUCED] += introduced
    if is_gapped and after > 0 and _is_undone(codes, genome, out, i, reverse, where):
        totals[UNDONE] += 1
        totals[AFTER_IN_UNDONE] += after
        totals[INTRODUCED_IN_UNDONE] += introduced


@njit(nogil=True, cache=True)
def compare(
    codes: NDArray[np.uint8],
    genome: NDArray[np.uint8],
    number: NDArray[np.int32],
    alleles: NDArray[np.int64],
    raw: tuple[Reads, Reads],
    out: tuple[Reads, Reads],
    group: int,
    aligned: Alignments,
    min_quality: int,
    where: NDArray[np.int64],
    calls: NDArray[np.int64],
    counters: Counters,
) -> None:
    """Compare reads; a read that changed its length is counted, its bases are not.

    Args:
        codes: uint8[256], letter to code.
        genome: uint8[positions], codes of the reference.
        number: int32[positions], as in ``Sites``.
        alleles: int64[sites, 2], as in ``Sites``.
        raw: the reads before; twice the same if they are single.
        out: the same reads after.
        group: 2 for pairs, 1 for single reads.
        aligned: of the raw reads, mates in turn.
        min_quality: bases whose raw quality is lower do not count at variant sites.
        where: int64[2, longest], scratch.
        calls: int64[2, longest], scratch.
        counters: incremented.
    """
    lengths = np.zeros(2, dtype=np.int64)
    for i in range(len(raw[0].start)):
        for m in range(group):
            row = i * group + m
            lengths[m] = 0
            counters.totals[READS] += 1
            if aligned.place[row] < 0:
                counters.totals[UNALIGNED] += 1
            if raw[m].length[i] != out[m].length[i]:
                counters.totals[CHANGED_LENGTH] += 1
            elif aligned.place[row] >= 0:
                kind = locate(aligned, row, raw[m].length[i], where[m])
                if kind == BAD:
                    continue
                lengths[m] = raw[m].length[i]
                _compare_read(
                    codes, genome, number, alleles, raw[m], out[m], i, aligned.reverse[row],
                    kind == GAPPED, where[m], counters,
                )  # fmt: skip
                for q in range(lengths[m]):
                    where[m, q] = number[where[m, q]] if where[m, q] >= 0 else -1
        for side in range(2):
            for m in range(group):
                source = raw[m] if side == 0 else out[m]
                for q in range(lengths[m]):
                    if where[m, q] >= 0:
                        reverse = aligned.reverse[i * group + m]
                        base = called(codes, source, raw[m], i, reverse, q, min_quality)
                        calls[m, q] = base
                        if base < AMBIGUOUS:
                            counters.counts[side, where[m, q], base] += np.uint32(1)
            if group == 2:
                add_agreeing(where, calls, lengths, counters.agreeing[side])
