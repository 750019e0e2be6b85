"""The merging kernel: pairs of records in, bytes of the output files out.

Pairs are independent, so threads may process any of them. All outputs are in upper case with
everything but A, C, G and T as N.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit
from ngsgpu.merge.likelihood import FOUND, UNDECIDED, likeliest_of_pair
from ngsgpu.merge.overlap import TOO_SHORT, best_overlap
from ngsgpu.merge.params import Outward
from ngsgpu.merge.qualities import SCORES, Tables
from ngsgpu.merge.records import Read, load_pair, put_corrected, put_merged, put_unchanged, room_for
from ngsgpu.merge.rules import Rules

# Counters of a run; the names are those of the statistics.
COUNTERS = (
    "pairs",
    "inward",
    "outward",
    "too_short",
    "dissimilar",
    "undecided",
    "beyond_max_overlap",
    "overlap_bases",
    "overlap_mismatches",
    "overlap_unknown",
    "merged_bases",
    "trimmed_bases",
    "corrected_bases_1",
    "corrected_bases_2",
)
(
    PAIRS, INWARD, OUTWARD, SHORT, DISSIMILAR, UNSURE, BEYOND, OVERLAP_BASES, MISMATCHES, AMBIGUOUS,
    MERGED, TRIMMED, CORRECTED_1, CORRECTED_2,
) = range(len(COUNTERS))  # fmt: skip

_IGNORE = int(Outward.IGNORE)
_TRIM = int(Outward.TRIM)
_N = 78
_MASKED = 2
"""Score of an N where two bases are equally likely: Illumina's."""

MERGED_OUTPUT, FIRST_OUTPUT, SECOND_OUTPUT = range(3)


class Outputs(NamedTuple):
    """Output buffers of a task.

    Attributes:
        merged: uint8, room for the merged records.
        first: uint8, room for unmerged first mates.
        second: uint8, room for second mates; with ``interleaved`` all mates go to ``first``.
        wanted: whether unmerged pairs are written.
        interleaved: whether their mates are interleaved in one output.
    """

    merged: NDArray[np.uint8]
    first: NDArray[np.uint8]
    second: NDArray[np.uint8]
    wanted: bool
    interleaved: bool


class Counts(NamedTuple):
    """Counters of a task.

    Attributes:
        counters: int64[len(COUNTERS)].
        lengths: int64[2, longest + 1], merged reads of each length, from inward and outward pairs.
        inserts: int64[longest + 1], fragments of each length.
        overlaps: int64[longest + 1], overlaps of each length.
        densities: int64[101], overlaps by mismatches in percent of their unambiguous bases.
    """

    counters: NDArray[np.int64]
    lengths: NDArray[np.int64]
    inserts: NDArray[np.int64]
    overlaps: NDArray[np.int64]
    densities: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _consensus(
    first: Read,
    start: Integer,
    second: Read,
    length: Integer,
    tables: Tables,
    prefer_first: bool,
    never_ambiguous: bool,
    mask_ties: bool,
    letters: NDArray[np.uint8],
    scores: NDArray[np.uint8],
) -> tuple[int, int]:
    """Decide the bases of an overlap; return how many mismatch, and how many are unknown.

    Of two bases the one with the higher score is taken; of two with the same score the first
    read's if ``prefer_first``, else the second's unless that is N. With ``never_ambiguous`` a known
    base is taken, as if it were alone, where the other is N, and of two Ns the lower score. With
    ``mask_ties`` two different bases with the same score are N.

    Args:
        first: the read that begins first.
        start: where the other begins in it.
        second: the other read.
        length: of the overlap.
        tables: of scores.
        prefer_first: see above.
        never_ambiguous: see above.
        mask_ties: see above.
        letters: uint8[length], the decided bases.
        scores: uint8[length], their scores.
    """
    mismatches = ambiguous = 0
    for k in range(length):
        base1 = first.letters[start + k]
        base2 = second.letters[k]
        score1 = np.int64(first.scores[start + k])
        score2 = np.int64(second.scores[k])
        is_ambiguous = base1 == _N or base2 == _N
        ambiguous += is_ambiguous
        if is_ambiguous and never_ambiguous:
            if base1 == base2:
                letters[k], score = base1, min(score1, score2)
            elif base1 == _N:
                letters[k], score = base2, score2
            else:
                letters[k], score = base1, score1
            scores[k] = tables.agree[score * SCORES]  # as beside a base that tells nothing
        elif base1 == base2:
            letters[k] = base1
            scores[k] = tables.agree[score1 * SCORES + score2]
        else:
            takes_first = score1 > score2 or (
                score1 == score2 and (prefer_first or bool(base2 == _N))
            )
            letters[k] = base1 if takes_first else base2
            scores[k] = tables.differ[score1 * SCORES + score2]
            mismatches += not is_ambiguous
            if mask_ties and score1 == score2:
                letters[k], scores[k] = _N, _MASKED
    return mismatches, ambiguous


@njit(nogil=True, cache=True)
def _leave_alone(read: Read, length: Integer, tables: Tables) -> None:
    """Give a read the scores that it has outside its overlap."""
    for i in range(length):
        read.scores[i] = tables.alone[read.scores[i]]


@njit(nogil=True, cache=True)
def _fewest_mismatches(
    first: Read,
    length1: Integer,
    second: Read,
    length2: Integer,
    known: bool,
    rules: Rules,
    best: NDArray[np.float32],
) -> int:
    """FLASH's overlap, as ``likelihood.likeliest`` returns it; ``best`` is room for two numbers."""
    best[0] = rules.max_mismatch_density
    best[1] = -1
    place = best_overlap(
        first.planes, length1, second.planes, length2, known, first.scores, second.scores,
        rules.min_overlap, rules.max_overlap, best,
    )  # fmt: skip
    if rules.outward != _IGNORE and not (place >= 0 and best[0] == 0):
        other = best_overlap(
            second.planes, length2, first.planes, length1, known, second.scores, first.scores,
            rules.min_outward, rules.max_overlap, best,
        )  # fmt: skip
        if other >= 0:
            return 2 * other + 1
        place = max(place, other)
    return place if place < 0 else 2 * place


@njit(nogil=True, cache=True)
def merge_records(
    rules: Rules,
    tables: Tables,
    mates1: Mates,
    mates2: Mates,
    begin: int,
    end: int,
    outputs: Outputs,
    counts: Counts,
) -> tuple[int, int, int]:
    """Merge the pairs ``begin`` up to ``end``; return the bytes written to each output.

    Args:
        rules: what decides.
        tables: scores of merged bases.
        mates1: first mates.
        mates2: second mates.
        begin: first pair.
        end: end of the pairs.
        outputs: where to write.
        counts: added to.
    """
    longest = 1
    for i in range(begin, end):
        longest = max(longest, mates1.seq_len[i], mates2.seq_len[i])
    first, second, overlap = room_for(longest), room_for(longest), room_for(longest)
    best = np.empty(2, dtype=np.float32)
    found = np.empty(FOUND, dtype=np.int64)
    offset = rules.phred_offset
    counters = counts.counters
    at0 = at1 = at2 = 0
    for i in range(begin, end):
        length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
        if rules.likelihood != 0:
            code = likeliest_of_pair(mates1, mates2, i, rules, tables, first, second, found)
        else:
            known = load_pair(mates1, mates2, i, offset, first, second)
            code = _fewest_mismatches(first, length1, second, length2, known, rules, best)
        place = code if code < 0 else code >> 1
        outward = code >= 0 and (code & 1) == 1
        counters[PAIRS] += 1
        if place < 0:
            if place == TOO_SHORT:
                counters[SHORT] += 1
            else:
                counters[UNSURE if place == UNDECIDED else DISSIMILAR] += 1
            if outputs.wanted:
                at1 = put_unchanged(mates1, i, outputs.first, at1)
                if outputs.interleaved:
                    at1 = put_unchanged(mates2, i, outputs.first, at1)
                else:
                    at2 = put_unchanged(mates2, i, outputs.second, at2)
            continue
        left, right = (second, first) if outward else (first, second)
        left_length, right_length = (length2, length1) if outward else (length1, length2)
        length = min(left_length - place, right_length)
        mismatches, ambiguous = _consensus(
            left, place, right, length, tables, rules.prefer_first != 0 and not outward,
            rules.never_ambiguous != 0, rules.mask_ties != 0, overlap.letters, overlap.scores,
        )  # fmt: skip
        fragment = length2 - place if outward else place + length2
        _leave_alone(first, length1, tables)
        _leave_alone(second, length2, tables)
        # The first mate is kept up to the end of the fragment, the second from its begin on.
        cut = rules.outward == _TRIM and (outward or fragment < length1)
        end1 = min(length1, fragment) if cut else length1
        begin2 = place if cut and outward else 0
        total = fragment if cut or not outward else length1 + length2 - length
        counters[OUTWARD if outward else INWARD] += 1
        counters[BEYOND] += length > rules.max_overlap
        counters[OVERLAP_BASES] += length
        counters[MISMATCHES] += mismatches
        counters[AMBIGUOUS] += ambiguous
        counters[MERGED] += total
        counters[TRIMMED] += length1 - end1 + begin2
        counts.lengths[1 if outward else 0, total] += 1
        counts.inserts[fragment] += 1
        counts.overlaps[length] += 1
        counts.densities[100 * mismatches // max(1, length - ambiguous)] += 1
        if rules.correct_only == 0:
            if cut and outward:
                at0 = put_merged(
                    mates1, i, second, 0, overlap, length, second, place + length, length2,
                    offset, outputs.merged, at0,
                )  # fmt: skip
            else:
                at0 = put_merged(
                    mates1, i, left, place, overlap, length, right, length, right_length,
                    offset, outputs.merged, at0,
                )  # fmt: skip
            continue
        if outputs.wanted:
            at1, changed1 = put_corrected(
                mates1, i, first, overlap, 0 if outward else place, length, 0, end1, False,
                offset, outputs.first, at1,
            )  # fmt: skip
            target, at = outputs.second, at2
            if outputs.interleaved:
                target, at = outputs.first, at1
            at, changed2 = put_corrected(
                mates2, i, second, overlap, place if outward else 0, length, begin2, length2,
                True, offset, target, at,
            )  # fmt: skip
            if outputs.interleaved:
                at1 = at
            else:
                at2 = at
            counters[CORRECTED_1] += changed1
            counters[CORRECTED_2] += changed2
    return at0, at1, at2


DENSITIES = 101


@dataclass(slots=True)
class Tally:
    """Counts so far; see ``ngsgpu.merge.cpu.Counts``.

    Attributes:
        counters: int64[len(COUNTERS)].
        lengths: int64[2, longest + 1].
        inserts: int64[longest + 1].
        overlaps: int64[longest + 1].
        densities: int64[DENSITIES].
    """

    counters: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(COUNTERS), dtype=np.int64)
    )
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 1), dtype=np.int64))
    inserts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    overlaps: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    densities: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(DENSITIES, dtype=np.int64)
    )

    def __iadd__(self, counts: Counts) -> Self:
        """Add the counts of some pairs."""
        self.counters += counts.counters
        self.lengths = _sum(self.lengths, counts.lengths)
        self.inserts = _sum(self.inserts, counts.inserts)
        self.overlaps = _sum(self.overlaps, counts.overlaps)
        self.densities += counts.densities
        return self

    def __getitem__(self, counter: int) -> int:
        return int(self.counters[counter])


def _sum(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of arrays whose last dimensions may differ."""
    size = max(one.shape[-1], other.shape[-1])
    total = np.zeros((*one.shape[:-1], size), dtype=np.int64)
    total[..., : one.shape[-1]] += one
    total[..., : other.shape[-1]] += other
    return total


def new_counts(longest: int) -> Counts:
    """Counts of nothing.

    Args:
        longest: length of the longest read that two reads can be merged into.
    """
    return Counts(
        np.zeros(len(COUNTERS), dtype=np.int64),
        np.zeros((2, longest + 1), dtype=np.int64),
        np.zeros(longest + 1, dtype=np.int64),
        np.zeros(longest + 1, dtype=np.int64),
        np.zeros(DENSITIES, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Outputs to write.

    Attributes:
        unmerged: unmerged pairs, or both reads of all pairs if they are only corrected.
        interleaved: their mates are interleaved in one output.
    """

    unmerged: bool
    interleaved: bool
