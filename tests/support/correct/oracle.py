"""The correction in plain Python, slowly, written from docs/correct.md.

Reads are strings, columns are dicts, thresholds are fractions. Nothing is shared with the package
but the parameters. ``correct`` goes through all the steps; every step can be called by itself.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate

from ngsgpu.correct import CorrectionParameters
from tests.support.minhash.oracle import Placement, candidates, make_tables, mix, reverse_complement

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
    """

    bases: str
    ambiguous: frozenset[int]
    weights: tuple[int, ...]
    q20: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.bases)

    def reverse_complemented(self) -> Read:
        return Read(
            reverse_complement(self.bases), self.ambiguous, self.weights[::-1], self.q20[::-1]
        )


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
    reads = []
    for number, text in enumerate(letters):
        bases, ambiguous, weights, q20 = "", set(), [], []
        for position, letter in enumerate(text.upper()):
            if letter in "ACGT":
                bases += letter
            else:
                bases += "ACGT"[mix((number << 15) + position) % 4]
                ambiguous.add(position)
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
        reads.append(Read(bases, frozenset(ambiguous), tuple(weights), tuple(q20)))
    return reads


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
        """1 - sqrt(mismatches / (ratio x overlap)) in 2^-14, rounded up."""
        square = self.mismatches / (max_mismatch_ratio * self.overlap)
        return ONE - math.isqrt(math.floor(square * ONE * ONE))

    def base_at(self, column: int) -> str | None:
        inside = self.shift <= column < self.shift + len(self.aligned_offset)
        return self.aligned_offset.bases[column - self.shift] if inside else None


@dataclass
class Cell:
    """One base of a column."""

    reads: int = 0
    q20: int = 0
    weight: int = 0


Columns = dict[int, dict[str, Cell]]


def consensus(column: dict[str, Cell]) -> str:
    """The base of largest weight, the first in the alphabet of equals."""
    return min(sorted(column), key=lambda base: -column[base].weight)


def support(column: dict[str, Cell], base: str) -> int:
    return column[base].weight * WHOLE // sum(cell.weight for cell in column.values())


@dataclass
class Decision:
    """What an anchor's own MSA says: its class, and edits (position to base).

    ``own`` are the edits of its correction, ``complete`` those that would make it the consensus;
    ``votes`` are corrected sequences for other reads.
    """

    quality: str
    own: dict[int, str]
    complete: dict[int, str]
    votes: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Result:
    """The correction of all reads: edits and what became of each, and counts of the stages."""

    edits: list[dict[int, str]]
    outcomes: list[str]
    counts: dict[str, int]


class Corrector:
    """The rules for one coverage, and the reads."""

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
        self.window = min(self.max_bucket_size, 16_384 // minhash.hashes)
        self.max_mismatch_ratio = exact(parameters.max_mismatch_ratio)
        self.e = exact(parameters.error_rate)
        self.tables = make_tables(
            [read.bases for read in reads], minhash.kmer, minhash.hashes, minhash.seed
        )
        self.counts: dict[str, int] = defaultdict(int)
        self.q20_error_rate = 0.001
        # Of the columns asked for last.
        self._alleles: tuple[Columns | None, dict[int, set[str]]] = None, {}

    # Steps 3 and 4: candidates and alignments.

    def placements(self, anchor: int) -> tuple[set[Placement], bool]:
        bases = [read.bases for read in self.reads]
        return candidates(
            bases, self.tables, anchor, self.p.minhash.kmer, self.max_bucket_size, self.window
        )

    def lay(self, anchor: int, placement: Placement) -> Candidate | None:
        """Lay a candidate on the anchor; None if it does not fit."""
        own, aligned_offset = self.reads[anchor], self.reads[placement.read]
        if placement.reverse_complemented:
            aligned_offset = aligned_offset.reverse_complemented()
        both = overlap = mismatches = 0
        for column in range(len(own)):
            if 0 <= column - placement.shift < len(aligned_offset):
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
        enough = exact(self.p.coverage_factor) * self.coverage - TOLERANCE
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
            for position, base in enumerate(read.bases):
                cell = columns[shift + position][base]
                cell.reads += 1
                cell.q20 += read.q20[position]
                cell.weight += max(1, weight * read.weights[position] // ONE)
        return columns

    # Step 7: refinement.

    def refine(self, anchor: int, kept: list[Candidate]) -> list[Candidate]:
        enough = math.floor(exact(self.p.refine_factor) * math.floor(self.coverage) + TOLERANCE)
        enough = max(1, enough)
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

    # Steps 8 and 9: the anchor's correction, and its candidates'.

    def classify(self, anchor: int, columns: Columns) -> str:
        """``high``, ``good`` or ``low``."""
        length = len(self.reads[anchor])
        supports = [support(columns[i], consensus(columns[i])) for i in range(length)]
        depth = min(sum(cell.reads for cell in columns[i].values()) for i in range(length))
        if depth < exact(self.p.coverage_factor) / 6 * self.coverage - TOLERANCE:
            return "low"
        # Half of the error rate, in whole percent rounded up.
        strict = Fraction(math.ceil(100 * self.e) // 2, 100)
        for quality, rate in (("high", strict), ("good", self.e)):
            mean = sum(supports) >= length * units(1 - rate)
            if mean and min(supports) >= units(1 - 3 * rate):
                return quality
        return "low"

    # Alleles, gaps and evidence.

    def needed(self, depth: int) -> int:
        """Reads that must agree on an allele where ``depth`` reads are sure of their base."""
        if self.p.keep_variants is not None:
            return self.p.keep_variants
        mean = depth * self.q20_error_rate / 3
        reads = 3
        while reads < 11:
            fewer = sum(mean**i / math.factorial(i) for i in range(reads - 1)) * math.exp(-mean)
            if 1 - fewer <= 0.002:
                break
            reads += 1
        return reads

    def alleles(self, anchor: int, columns: Columns, kept: list[Candidate]) -> dict[int, set[str]]:
        """The bases of each column that errors do not explain, beside the consensus."""
        if self._alleles[0] is columns:
            return self._alleles[1]
        result: dict[int, set[str]] = defaultdict(set)
        self._alleles = columns, result
        if self.p.classic:
            return result
        own = self.reads[anchor]
        rows = [(anchor, own, 0, False)]
        rows += [
            (c.read, c.aligned_offset, c.shift, c.placement.reverse_complemented) for c in kept
        ]
        for column in range(-self.p.margin, len(own) + self.p.margin):
            cells = columns[column]
            needed = self.needed(sum(cell.q20 for cell in cells.values()))
            for base in set("ACGT") - {consensus(cells)}:
                if cells[base].q20 < needed:
                    continue
                carriers = [
                    (
                        read // 2 if self.paired else read,
                        shift + len(row) if turned else shift,
                        turned,
                    )
                    for read, row, shift, turned in rows
                    if 0 <= column - shift < len(row)
                    and row.bases[column - shift] == base
                    and row.q20[column - shift]
                ]
                fragments = {fragment for fragment, _, _ in carriers}
                ends = {carrier[1:] for carrier in carriers}
                if min(len(fragments), len(ends)) >= needed or len(carriers) >= needed + 2:
                    result[column].add(base)
        return result

    def reads_besides(self, anchor: int, columns: Columns, column: int) -> int:
        inside = 0 <= column < len(self.reads[anchor])
        return sum(cell.reads for cell in columns[column].values()) - inside

    def gap(self, anchor: int, columns: Columns) -> tuple[int, int, int]:
        """First and end of the positions that fit better some columns further on, and how many."""
        bases = self.reads[anchor].bases

        def differs(position: int, shift: int) -> int:
            column = position + shift
            if bases[position] != consensus(columns[column]):
                return 1
            return int(shift != 0 and self.reads_besides(anchor, columns, column) < 2)

        unshifted = [differs(i, 0) for i in range(len(bases))]
        if self.p.classic or sum(unshifted) < 4:
            return 0, 0, 0
        most = min(6, self.p.margin)
        ways = [(3, 0, 0, 0, 0)]
        for shift in [*range(-most, 0), *range(1, most + 1)]:
            gains = (unshifted[i] - differs(i, shift) for i in range(len(bases)))
            totals = [0, *accumulate(gains)]
            for end in range(1, len(bases) + 1):
                for first in range(end):
                    gain = totals[end] - totals[first]
                    if gain > 3:
                        ways.append((gain, -shift, -end, -first, shift))
        gain, _, end, first, shift = max(ways)
        if gain < 8 and 2 * gain < sum(unshifted):
            return 0, 0, 0
        return -first, -end, shift

    def outweighs(self, anchor: int, columns: Columns, position: int, new: str) -> bool:
        """Whether the reads with a base outweigh the others, without the anchor."""
        own = self.reads[anchor]
        others = sum(cell.weight for base, cell in columns[position].items() if base != new)
        if others == 0:
            return True
        if own.bases[position] != new:
            others -= max(1, own.weights[position])
        least = math.ceil((exact(self.p.evidence_reads) - TOLERANCE) * ONE)
        return columns[position][new].weight >= least + self.p.evidence_ratio * others

    def edits(
        self, anchor: int, columns: Columns, kept: list[Candidate], *, whole: bool, crowded: bool
    ) -> dict[int, str]:
        """The anchor's edits: the whole consensus, or its certain positions."""
        own = self.reads[anchor]
        alleles, gap = self.alleles(anchor, columns, kept), self.gap(anchor, columns)
        result = {}
        for position, old in enumerate(own.bases):
            if in_gap(gap, position):
                continue
            column = columns[position]
            new = consensus(column)
            ambiguous = position in own.ambiguous
            if not ambiguous and old in alleles[position]:
                continue
            # Some other read has to be sure of the base; only without qualities is this one.
            if ambiguous and column[new].q20 - (own.q20[position] and new == old) < 1:
                continue
            if not ambiguous:
                if new == old or (crowded and own.q20[position]):
                    continue
                if self.p.classic and not whole and column[old].q20 > self.p.position_max_reads:
                    continue
            if not self.p.classic:
                if whole or self.outweighs(anchor, columns, position, new):
                    result[position] = new
            elif whole or support(column, new) >= units(exact(self.p.position_support)):
                result[position] = new
        return result

    def votes(self, anchor: int, columns: Columns, kept: list[Candidate]) -> list[tuple[int, str]]:
        """Corrected sequences of the candidates that hardly reach beyond the anchor."""
        votes = []
        length = len(self.reads[anchor])
        alleles = self.alleles(anchor, columns, kept)
        for c in kept:
            end = c.shift + len(c.aligned_offset)
            if any(c.base_at(column) in bases for column, bases in alleles.items()):
                continue
            if c.shift >= -self.p.margin and end <= length + self.p.margin:
                under = "".join(consensus(columns[i]) for i in range(c.shift, end))
                votes.append(
                    (
                        c.read,
                        reverse_complement(under) if c.placement.reverse_complemented else under,
                    )
                )
        return votes

    def decide(
        self, anchor: int, aligned: dict[int, Candidate], *, crowded: bool
    ) -> Decision | None:
        """What the anchor's MSA says; None without candidates."""
        filtered = self.keep(aligned)
        kept = self.refine(anchor, filtered)
        self.counts["kept"] += len(filtered)
        self.counts["refined_away"] += len(filtered) - len(kept)
        if not kept:
            return None
        columns = self.lay_out(anchor, kept)
        quality = self.classify(anchor, columns)
        complete = self.edits(anchor, columns, kept, whole=True, crowded=crowded)
        own = complete
        if quality == "low":
            own = self.edits(anchor, columns, kept, whole=False, crowded=crowded)
        votes = self.votes(anchor, columns, kept) if quality == "high" else []
        self.counts["high"] += quality == "high"
        return Decision(self.standing(anchor, columns, quality), own, complete, votes)

    def standing(self, anchor: int, columns: Columns, quality: str) -> str:
        """The correction of a read with a gap stands as one of high quality does."""
        return "high" if self.gap(anchor, columns)[2] else quality

    # All steps.

    def aligned(
        self, group: range
    ) -> tuple[dict[int, tuple[set[Placement], bool]], dict[int, dict[int, Candidate]]]:
        """What is found for a read or both mates, and how it is laid on them."""
        found = {anchor: self.placements(anchor) for anchor in group}
        aligned = {anchor: self.align(anchor, found[anchor][0]) for anchor in group}
        if self.paired:
            self.mark_mates(aligned[group[0]], aligned[group[1]])
        return found, aligned

    def observe(self) -> None:
        """Take the error rate of sure bases from a sample of the reads."""
        mates = 2 if self.paired else 1
        every = max(8, math.ceil(len(self.reads) // mates / 4096))
        bases = errors = 0
        for first in range(0, len(self.reads) // mates * mates, every * mates):
            _, aligned = self.aligned(range(first, first + mates))
            for anchor, laid in aligned.items():
                kept = self.refine(anchor, self.keep(laid))
                columns = self.lay_out(anchor, kept)
                own = self.reads[anchor]
                for position in range(len(own) if kept else 0):
                    if own.q20[position]:
                        old = own.bases[position]
                        bases += 1
                        depth = sum(cell.q20 for cell in columns[position].values())
                        rare = columns[position][old].q20 <= max(1, depth // 50)
                        errors += rare and old != consensus(columns[position])
        self.q20_error_rate = min(0.1, (errors + 1) / (bases + 1000))

    def correct(self) -> Result:
        self.observe()
        decisions: list[Decision | None] = [None] * len(self.reads)
        step = 2 if self.paired else 1
        for first in range(0, len(self.reads), step):
            group = range(first, first + step)
            found, aligned = self.aligned(group)
            for anchor in group:
                self.counts["found"] += len(found[anchor][0])
                self.counts["aligned"] += len(aligned[anchor])
                self.counts["crowded"] += found[anchor][1]
                decisions[anchor] = self.decide(anchor, aligned[anchor], crowded=found[anchor][1])
        return self.combine(decisions)

    def combine(self, decisions: list[Decision | None]) -> Result:
        """Step 10: let candidate corrections confirm, complete or reject."""
        votes: dict[int, list[str]] = defaultdict(list)
        for decision in decisions:
            for read, sequence in decision.votes if decision else []:
                votes[read].append(sequence)
        edits, outcomes = [], []
        for number, decision in enumerate(decisions):
            outcome, taken = self.outcome(number, decision, votes[number])
            outcomes.append(outcome)
            edits.append(taken)
        return Result(edits, outcomes, dict(self.counts))

    def outcome(
        self, number: int, decision: Decision | None, votes: list[str]
    ) -> tuple[str, dict[int, str]]:
        if decision is None:
            return "none", {}
        if decision.quality == "high":
            return "high", decision.own
        if len(votes) < 2:
            return "anchor only", decision.own
        for outcome, edits in (("confirmed", decision.own), ("completed", decision.complete)):
            if all(vote == self.edited(number, edits) for vote in votes):
                return outcome, edits
        return "rejected", {}

    def edited(self, number: int, edits: dict[int, str]) -> str:
        bases = list(self.reads[number].bases)
        for position, base in edits.items():
            bases[position] = base
        return "".join(bases)


def in_gap(gap: tuple[int, int, int], position: int) -> bool:
    """Whether a position is shifted or within eight bases of those that are."""
    first, end, shift = gap
    return shift != 0 and first - 8 <= position < end + 8


def exact(value: float) -> Fraction:
    """The decimal number that was meant."""
    return Fraction(str(value))


def units(threshold: Fraction) -> int:
    """Smallest support, in 2^-20, that reaches a threshold."""
    return math.ceil((threshold - TOLERANCE) * WHOLE)
