"""The correction in plain Python, slowly, written from docs/correct.md.

Reads are strings, columns are dicts, thresholds are fractions. Nothing is shared with the package
but the parameters. ``correct`` goes through all the steps; every step can be called by itself.
``alignment`` has the steps up to the columns.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from ngsgpu.correct import CorrectionParameters
from tests.support.correct.alignment import (
    ONE,
    TOLERANCE,
    Aligner,
    Candidate,
    Columns,
    Read,
    consensus,
    exact,
    quality_weight,
    support,
    units,
)
from tests.support.correct.strains import Decision, ask
from tests.support.minhash.oracle import Placement, reverse_complement

Q20 = quality_weight(20)
Q30 = quality_weight(30)


@dataclass
class Result:
    """The correction of all reads: edits and what became of each, and counts of the stages."""

    edits: list[dict[int, str]]
    outcomes: list[str]
    counts: dict[str, int]


class Corrector(Aligner):
    """The correction of all reads."""

    def __init__(
        self, reads: list[Read], parameters: CorrectionParameters, coverage: float, *, paired: bool
    ) -> None:
        super().__init__(reads, parameters, coverage, paired=paired)
        self.q20_error_rate = self.q30_error_rate = 0.001
        # Of the columns asked for last.
        self._alleles: tuple[Columns | None, dict[int, set[str]]] = None, {}

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

    def pair_suffices(self, depth: int) -> bool:
        """Whether two reads of Q30 make an allele where ``depth`` reads are sure of their base."""
        if self.p.classic or self.p.keep_variants is not None:
            return False
        return depth <= math.floor(3 * 0.01 / self.q30_error_rate)

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
            depth = sum(cell.q20 for cell in cells.values())
            needed = self.needed(depth)
            for base in set("ACGT") - {consensus(cells)}:
                carriers = [
                    (
                        read // 2 if self.paired else read,
                        shift + len(row) if turned else shift,
                        turned,
                        row.weights[column - shift],
                    )
                    for read, row, shift, turned in rows
                    if 0 <= column - shift < len(row)
                    and row.bases[column - shift] == base
                    and row.q20[column - shift]
                ]
                if len(carriers) >= needed:
                    if len(carriers) >= needed + 2 or independent(carriers) >= needed:
                        result[column].add(base)
                    continue
                sure = [own for own in carriers if own[3] >= Q30]
                if self.pair_suffices(depth) and independent(sure) >= 2:
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
        last = len(self.reads[anchor]) + self.p.margin
        alleles = self.alleles(anchor, columns, kept)
        for c in kept:
            if any(c.base_at(column) in bases for column, bases in alleles.items()):
                continue
            if c.shift >= -self.p.margin and c.shift + len(c.aligned_offset) <= last:
                under = self.corrected(anchor, columns, c)
                turned = c.placement.reverse_complemented
                votes.append((c.read, reverse_complement(under) if turned else under))
        return votes

    def corrected(self, anchor: int, columns: Columns, c: Candidate) -> str:
        """What a candidate becomes, in the anchor's direction."""
        end = c.shift + len(c.aligned_offset)
        return "".join(consensus(columns[i]) for i in range(c.shift, end))

    def decide(
        self, anchor: int, aligned: dict[int, Candidate], *, crowded: bool
    ) -> Decision | None:
        """What the anchor's MSA says; None without candidates."""
        kept, columns = self.msa(anchor, aligned)
        if not kept:
            return None
        quality = self.classify(anchor, columns)
        complete = self.edits(anchor, columns, kept, whole=True, crowded=crowded)
        own = complete
        if quality == "low":
            own = self.edits(anchor, columns, kept, whole=False, crowded=crowded)
        return self.decided(anchor, columns, kept, quality, own, complete)

    def decided(
        self,
        anchor: int,
        columns: Columns,
        kept: list[Candidate],
        quality: str,
        own: dict[int, str],
        complete: dict[int, str],
    ) -> Decision:
        """A decision with these edits."""
        votes = self.votes(anchor, columns, kept) if quality == "high" else []
        self.counts["high"] += quality == "high"
        rare, doubtful, asked = self.doubts(anchor, columns, kept)
        standing = self.standing(anchor, columns, quality)
        surely = any(self.reads[anchor].q20[i] for i in rare)
        others = self.is_of_others(anchor, columns, kept)
        return Decision(standing, own, complete, bool(rare), surely, others, doubtful, asked, votes)

    def is_of_others(self, anchor: int, columns: Columns, kept: list[Candidate]) -> bool:
        """Whether the read has the consensus, at Q20, where others have a rare allele."""
        own, alleles = self.reads[anchor], self.alleles(anchor, columns, kept)
        return any(
            own.q20[i]
            and i not in own.ambiguous
            and base == consensus(columns[i])
            and any(columns[i][other].q20 <= 8 for other in alleles[i])
            for i, base in enumerate(own.bases)
        )

    def doubts(
        self, anchor: int, columns: Columns, kept: list[Candidate]
    ) -> tuple[list[int], set[int], set[int]]:
        """Where the read has a rare allele, where it has variants of its own, and may have."""
        own, alleles = self.reads[anchor], self.alleles(anchor, columns, kept)
        known = [i for i in range(len(own.bases)) if i not in own.ambiguous]
        rare = [
            i for i in known
            if own.bases[i] in alleles[i] and columns[i][own.bases[i]].q20 <= 8
        ]  # fmt: skip
        relatives = [c for c in kept if any(c.base_at(i) == own.bases[i] for i in rare)]
        doubtful = set()
        asked = {
            position for position in known
            if self.pair_suffices(sum(cell.q20 for cell in columns[position].values()))
        }  # fmt: skip
        for position in asked:
            theirs = {c.base_at(position) for c in relatives}
            if consensus(columns[position]) in theirs:
                continue
            needed = 0 if own.bases[position] in theirs else Q20 if rare else Q30
            if own.weights[position] >= needed:
                doubtful.add(position)
        return rare, doubtful, asked

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
        bases = errors = good_bases = good_errors = 0
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
                        wrong = rare and old != consensus(columns[position])
                        errors += wrong
                        good_bases += own.weights[position] >= Q30
                        good_errors += wrong and own.weights[position] >= Q30
        self.q20_error_rate = min(0.1, (errors + 1) / (bases + 1000))
        self.q30_error_rate = min(0.1, (good_errors + 1) / (good_bases + 1000))

    def suit_short_reads(self) -> None:
        """Let the least overlap, and the reads that it leaves, follow from the mean length."""
        length = Fraction(sum(len(read) for read in self.reads), max(1, len(self.reads)))
        half = max(self.p.minhash.k + 4, math.floor(length / 2))
        if self.p.classic or not half < min(self.p.min_overlap, length):
            return
        left = (1 - half / length) / (1 - exact(self.p.min_overlap_ratio))
        factor = float(exact(self.p.coverage_factor) * min(Fraction(1), left))
        self.p = dataclasses.replace(self.p, min_overlap=half, coverage_factor=factor)

    def correct(self) -> Result:
        self.suit_short_reads()
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
        ends = [self.outcome(number, own, votes[number]) for number, own in enumerate(decisions)]
        outcomes, edits = [outcome for outcome, _ in ends], [taken for _, taken in ends]
        ask(self.reads, self.paired, decisions, edits)
        left = []
        for number, decision in enumerate(decisions):
            group = [decision, decisions[number ^ 1]] if self.paired else [decision]
            taken = edits[number]
            if decision and any(own and own.rare for own in group):
                taken = {at: base for at, base in taken.items() if at not in decision.doubtful}
            left.append(taken)
        return Result(left, outcomes, dict(self.counts))

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


def independent(carriers: list[tuple[int, int, bool, int]]) -> int:
    """How many differ in their fragments, and in their ends."""
    return min(len({own[0] for own in carriers}), len({own[1:3] for own in carriers}))


def in_gap(gap: tuple[int, int, int], position: int) -> bool:
    """Whether a position is shifted or within eight bases of those that are."""
    first, end, shift = gap
    return shift != 0 and first - 8 <= position < end + 8
