"""Reads, their alignments and columns in plain Python, slowly; the first half of ``oracle``."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from ngsgpu.correct import CorrectionParameters
from tests.support.minhash.oracle import Placement, candidates, make_tables, mix, reverse_complement
from tests.support.readset.fill import fill_by_strings

ONE = 1 << 14
"""Weights are integers in units of 2^-14."""
WHOLE = 1 << 20
"""Supports are integers in units of 2^-20."""
TOLERANCE = Fraction(1, 100_000)

SCORES_KEPT = {
    2: [(4, 3), (13, 7), (20, 16), (99, 24)],
    1: [(13, 7), (99, 20)],
}
"""By quality bits: up to which score of the input a base counts as of which score."""


@dataclass(frozen=True)
class Read:
    """A read as the correction sees it.

    Attributes:
        bases: with a base in the place of every unknown letter.
        ambiguous: where the letters are not known.
        weights: of each base, in 2^-14.
        q20: whether each base is sure.
        scores: of each base, where they are kept as they are.
    """

    bases: str
    ambiguous: frozenset[int]
    weights: tuple[int, ...]
    q20: tuple[bool, ...]
    scores: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.bases)

    def score(self, position: int) -> int:
        """The Phred score of a base, 0 where it is not kept."""
        return self.scores[position] if self.scores else 0

    def reverse_complemented(self) -> Read:
        return Read(
            reverse_complement(self.bases), self.ambiguous, self.weights[::-1], self.q20[::-1],
            self.scores[::-1],
        )  # fmt: skip


@cache
def quality_weight(score: int) -> int:
    """max(0.001, 1 - 10^(-Q/10)) in 2^-14, rounded to the nearest."""
    exact = max(Decimal("0.001"), 1 - Decimal(10) ** (Decimal(-score) / 10))
    return int((exact * ONE + Decimal("0.5")).to_integral_value("ROUND_FLOOR"))


COMPARED = quality_weight(15)
"""Weight from which a base of the anchor is compared."""


def make_reads(
    letters: list[str], qualities: list[str] | None, quality_bits: int, phred_offset: int = 33
) -> list[Read]:
    """Put bases in the place of unknown letters, and weigh all bases."""
    known = [re.sub("[^ACGT]", "N", text.upper()) for text in letters]
    reads = []
    for number, (text, filled) in enumerate(zip(known, fill_by_strings(known), strict=True)):
        bases, ambiguous, weights, q20, scores = "", set(), [], [], []
        for position, letter in enumerate(text):
            if letter == "N":
                ambiguous.add(position)
            if filled[position] == "N":
                bases += "ACGT"[mix((number << 15) + position) % 4]
            else:
                bases += filled[position]
            if qualities is None or quality_bits == 0:
                weights.append(ONE)
                q20.append(True)
                continue
            score = 0
            if position not in ambiguous:
                score = max(0, ord(qualities[number][position]) - phred_offset)
            for bound, stands_for in SCORES_KEPT.get(quality_bits, []):
                if score <= bound:
                    score = stands_for
                    break
            weights.append(quality_weight(score))
            q20.append(score >= 20)
            scores += [score] * (quality_bits == 8)
        rows = tuple(weights), tuple(q20), tuple(scores)
        reads.append(Read(bases, frozenset(ambiguous), *rows))
    return reads


@cache
def weight_of(mismatches: int, overlap: int, max_mismatch_ratio: Fraction) -> int:
    """1 - sqrt(mismatches / (ratio x overlap)) in 2^-14, rounded up."""
    square = mismatches / (max_mismatch_ratio * overlap)
    return ONE - math.isqrt(math.floor(square * ONE * ONE))


@dataclass(eq=False)
class Candidate:
    """A read laid on an anchor; its bases and weights are in the anchor's direction."""

    placement: Placement
    aligned_offset: Read
    mismatches: int
    overlap: int
    score: int
    with_mate: bool = False

    @property
    def read(self) -> int:
        return self.placement.read

    @property
    def shift(self) -> int:
        return self.placement.shift

    def weight(self, max_mismatch_ratio: Fraction) -> int:
        return weight_of(self.mismatches, self.overlap, max_mismatch_ratio)

    def base_at(self, column: int) -> str | None:
        inside = self.shift <= column < self.shift + len(self.aligned_offset)
        return self.aligned_offset.bases[column - self.shift] if inside else None


@dataclass(slots=True)
class Cell:
    """One base of a column."""

    reads: int = 0
    q20: int = 0
    weight: int = 0


Columns = dict[int, dict[str, Cell]]


def consensus(column: dict[str, Cell]) -> str:
    """The base of largest weight, the first in the alphabet of equals."""
    return max(column, key=lambda base: column[base].weight)


def support(column: dict[str, Cell], base: str) -> int:
    return column[base].weight * WHOLE // sum(cell.weight for cell in column.values())


class Aligner:
    """The rules for one coverage, the reads, and what is aligned with each: steps 3 to 7."""

    def __init__(
        self, reads: list[Read], parameters: CorrectionParameters, coverage: float, *, paired: bool
    ) -> None:
        self.reads = reads
        self.p = parameters
        self.paired = paired
        self.coverage = exact(coverage)
        minhash = parameters.minhash
        self.max_bucket_size = max(
            minhash.crowd_minimum, math.floor(exact(minhash.crowd_factor) * self.coverage)
        )
        # At most 16,384 entries over all tables.
        self.window = min(self.max_bucket_size, 16_384 // minhash.tables)
        self.max_mismatch_ratio = exact(parameters.max_mismatch_ratio)
        self.e = exact(parameters.error_rate)
        self.tables = make_tables(
            [read.bases for read in reads], minhash.k, minhash.tables, minhash.seed
        )
        self.counts: dict[str, int] = defaultdict(int)

    # Steps 3 and 4: candidates and alignments.

    def placements(self, anchor: int) -> tuple[set[Placement], bool]:
        bases = [read.bases for read in self.reads]
        return candidates(
            bases, self.tables, anchor, self.p.minhash.k, self.max_bucket_size, self.window
        )

    def lay(self, anchor: int, placement: Placement) -> Candidate | None:
        """Lay a candidate on the anchor; None if it does not fit."""
        own, aligned_offset = self.reads[anchor], self.reads[placement.read]
        if placement.reverse_complemented:
            aligned_offset = aligned_offset.reverse_complemented()
        both = overlap = mismatches = 0
        length = len(aligned_offset)
        for column in range(len(own)):
            if 0 <= column - placement.shift < length:
                both += 1
                if not self.p.classic and own.weights[column] < COMPARED:
                    continue
                overlap += 1
                mismatches += own.bases[column] != aligned_offset.bases[column - placement.shift]
        ratio = exact(self.p.min_overlap_ratio)
        if both < max(self.p.min_overlap, math.floor(ratio * len(own))):
            return None
        if overlap < min(20, self.p.min_overlap):
            return None
        if mismatches >= math.floor(self.max_mismatch_ratio * overlap):
            return None
        outside = (len(own) - overlap) + (len(aligned_offset) - overlap)
        return Candidate(placement, aligned_offset, mismatches, overlap, mismatches + outside)

    def align(self, anchor: int, placements: set[Placement]) -> dict[int, Candidate]:
        """The best way to lay each candidate."""
        ways: dict[int, list[Candidate]] = defaultdict(list)
        for placement in placements:
            aligned_offset = self.lay(anchor, placement)
            if aligned_offset is not None:
                ways[aligned_offset.read].append(aligned_offset)
        return {
            read: min(
                several, key=lambda way: (way.score, way.shift, way.placement.reverse_complemented)
            )
            for read, several in ways.items()
        }

    # Step 5: filter.

    def mark_mates(self, first: dict[int, Candidate], second: dict[int, Candidate]) -> None:
        """Mark the candidates of two mates that are mates of each other."""
        for read, candidate in first.items():
            mate = read + 1 if read % 2 == 0 else read - 1
            if mate in second:
                candidate.with_mate = second[mate].with_mate = True

    def keep(self, aligned: dict[int, Candidate]) -> list[Candidate]:
        def below(bound: Fraction) -> list[Candidate]:
            return [c for c in aligned.values() if c.mismatches < bound * c.overlap]

        if self.paired:
            good = below(exact(self.p.pair_mismatch_ratio))
            return [c for c in aligned.values() if c.with_mate or c in good]
        # Of a bucket no more than a window of reads is seen.
        seen = self.coverage if self.p.classic else min(self.coverage, self.window)
        enough = exact(self.p.coverage_factor) * seen - TOLERANCE
        for factor in (2, 3, 4):
            if len(below(factor * self.e)) >= enough:
                return below(factor * self.e)
        return []

    # Step 6: multiple sequence alignment.

    def lay_out(self, anchor: int, kept: list[Candidate]) -> Columns:
        """Columns of anchor and candidates; a base that no read has there has an empty cell."""
        columns: Columns = defaultdict(lambda: {base: Cell() for base in "ACGT"})
        rows = [(self.reads[anchor], 0, ONE)]
        rows += [(c.aligned_offset, c.shift, c.weight(self.max_mismatch_ratio)) for c in kept]
        for read, shift, weight in rows:
            letters = zip(read.bases, read.q20, read.weights, strict=True)
            for column, (base, is_sure, own) in enumerate(letters, shift):
                cell = columns[column][base]
                cell.reads += 1
                cell.q20 += is_sure
                cell.weight += max(1, weight * own // ONE)
        return columns

    def msa(self, anchor: int, aligned: dict[int, Candidate]) -> tuple[list[Candidate], Columns]:
        """The candidates that are kept, and the columns of them and the anchor."""
        filtered = self.keep(aligned)
        kept = self.refine(anchor, filtered)
        self.counts["kept"] += len(filtered)
        self.counts["refined_away"] += len(filtered) - len(kept)
        return kept, self.lay_out(anchor, kept)

    # Step 7: refinement.

    def refine(self, anchor: int, kept: list[Candidate]) -> list[Candidate]:
        enough = math.floor(exact(self.p.refine_factor) * math.floor(self.coverage) + TOLERANCE)
        enough = max(1 if self.p.classic else 2, enough)
        bases = self.reads[anchor].bases
        for _ in range(self.p.refine_rounds):
            columns = self.lay_out(anchor, kept)
            majority = [consensus(columns[i]) for i in range(len(bases))]
            if "".join(majority) == bases:
                break
            others = [
                (column, base)
                for column in range(len(bases))
                for base in "TGCA"
                if base != majority[column] and columns[column][base].q20 >= enough
            ]
            if not others:
                break
            column, base = others[0]
            if bases[column] == base:
                strangers = [c for c in kept if c.base_at(column) not in (base, None)]
            else:
                strangers = [c for c in kept if c.base_at(column) == base]
            close = (Fraction(9, 10) - TOLERANCE) * ONE
            if any(c.weight(self.max_mismatch_ratio) >= close for c in strangers):
                break
            kept = [c for c in kept if c not in strangers]
        return kept


def exact(value: float) -> Fraction:
    """The decimal number that was meant."""
    return Fraction(str(value))


def units(threshold: Fraction) -> int:
    """Smallest support, in 2^-20, that reaches a threshold."""
    return math.ceil((threshold - TOLERANCE) * WHOLE)
