"""The extension of pairs in plain Python, slowly, written from docs/extend.md.

Sequences are strings, a candidate is an object, thresholds are fractions. Nothing is shared with
the package but the parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import groupby

from ngsgpu.extend import ExtensionParameters
from tests.support.correct.alignment import ONE, Read
from tests.support.minhash.oracle import mix, number, reverse_complement

WORD = (1 << 64) - 1


@dataclass(frozen=True)
class End:
    """A read in one direction; ``number`` is twice the read's, plus 1 where turned."""

    number: int
    aligned_offset: Read

    @property
    def bases(self) -> str:
        return self.aligned_offset.bases


@dataclass(eq=False)
class Candidate:
    """An end that begins at a place in a sequence."""

    end: End
    start: int

    def base_at(self, column: int) -> str | None:
        inside = self.start <= column < self.start + len(self.end.bases)
        return self.end.bases[column - self.start] if inside else None

    def mismatches(self, sequence: str) -> int:
        """In the overlap with a sequence that it reaches beyond."""
        part = sequence[self.start :]
        return sum(a != b for a, b in zip(part, self.end.bases, strict=False))


@dataclass
class Task:
    """A sequence that grows."""

    first: End
    sequence: str = ""
    qualities: list[int] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    met: dict[int, bool] = field(default_factory=dict)
    scanned: int = -1
    tested: int = -1
    doubts: int = 0
    status: str = "running"
    found_at: int = -1

    @property
    def growth(self) -> int:
        return len(self.sequence) - len(self.first.bases)


@dataclass(frozen=True)
class Result:
    """What became of a pair: kind, length, and what lies before, between and behind the reads."""

    kind: str
    total: int = 0
    left: str = ""
    gap: str = ""
    right: str = ""
    gap_qualities: tuple[int, ...] = ()


class Extender:
    """The rules, the reads and the tables of their ends."""

    def __init__(
        self, reads: list[Read], parameters: ExtensionParameters, mean: float, sd: float
    ) -> None:
        self.p = parameters
        self.low, self.high = parameters.lengths(mean, sd)
        self.vary = self.high > 3 * self.low
        self.mean = round(mean)
        self.slack = 20 + min(200, math.ceil(4 * sd))
        self.ends = [
            End(
                2 * i + reverse_complemented,
                read.reverse_complemented() if reverse_complemented else read,
            )
            for i, read in enumerate(reads)
            for reverse_complemented in range(2)
        ]
        self.functions = range(
            256 * parameters.ends.seed, 256 * parameters.ends.seed + parameters.ends.hashes
        )
        self.tables: list[dict[int, list[tuple[int, int]]]] = []
        for function in self.functions:
            table: dict[int, list[tuple[int, int]]] = {}
            for end in self.ends:
                if len(end.bases) >= parameters.ends.window:
                    value, place = self.minimum(end.bases, 0, function)
                    table.setdefault(value, []).append((end.number, place))
            self.tables.append(table)

    # Step 1: which reads begin in a sequence.

    def minimum(self, bases: str, start: int, function: int) -> tuple[int, int]:
        """Smallest hash of the window at ``start`` and where its k-mer is, the first of equals."""
        k = self.p.ends.kmer
        places = range(start, start + self.p.ends.window - k + 1)
        value, place = min((mix(number(bases[i : i + k]) + function & WORD), i) for i in places)
        # Of the hash only as many bits are kept as tell all k-mers apart.
        return value % 4**k, place

    def find(self, task: Task, ratio: Fraction) -> None:
        anchor = len(task.first.bases)
        overlap = max(self.p.min_overlap, math.floor(fraction(self.p.min_overlap_ratio) * anchor))
        last = len(task.sequence) - overlap
        starts = range(task.scanned + 1, last + 1)
        task.scanned = max(task.scanned, last)
        found: list[Candidate] = []
        for function, table in zip(self.functions, self.tables, strict=True):
            minima = [(self.minimum(task.sequence, s, function), s) for s in starts]
            for (value, place), group in groupby(minima, key=lambda item: item[0]):
                within = [s for _, s in group]
                for end, offset in table.get(value, []):
                    start = place - offset
                    if start in within and end not in task.met:
                        task.met[end] = False
                        found.append(Candidate(self.ends[end], start))
        pair = task.first.number // 4
        for candidate in found:
            reach = candidate.start + len(candidate.end.bases)
            if candidate.end.number // 4 == pair or reach <= len(task.sequence):
                continue
            size = len(task.sequence) - candidate.start
            if candidate.mismatches(task.sequence) <= math.floor(ratio * size):
                task.candidates.append(candidate)
                task.met[candidate.end.number] = True

    # Step 2: the start read's errors.

    def begin(self, first: End) -> Task:
        task = Task(first, first.bases)
        self.find(task, max(Fraction(15, 100), fraction(self.p.max_mismatch_ratio)))
        corrected = ""
        for column, own in enumerate(first.bases):
            q20 = dict.fromkeys("ACGT", 0)
            agreeing = 0
            for candidate in task.candidates:
                base = candidate.base_at(column)
                if base == own:
                    agreeing += 1
                elif base is not None:
                    q20[base] += candidate.end.aligned_offset.q20[column - candidate.start]
            best = min(sorted(q20), key=lambda base: -q20[base])
            replace = q20[best] >= self.p.min_reads and 10 * agreeing <= q20[best]
            corrected += best if replace else own
        return Task(first, corrected)

    # Step 3: growing.

    def weight(self, task: Task, candidate: Candidate, column: int) -> int:
        overlap = len(task.sequence) - candidate.start
        mismatches = candidate.mismatches(task.sequence)
        alignment = alignment_weight(mismatches, overlap, self.p.max_mismatch_ratio)
        return max(
            1, alignment * candidate.end.aligned_offset.weights[column - candidate.start] // ONE
        )

    def advance(self, task: Task, partner: Task | None, ready: bool, limit: int) -> bool:
        """One iteration; False where the partner is needed first."""
        self.find(task, fraction(self.p.max_mismatch_ratio))
        length = len(task.sequence)
        doubtful: set[int] = set()
        while True:
            reaches = sorted(
                (c.start + len(c.end.bases) - length for c in task.candidates), reverse=True
            )
            enough = reaches[self.p.min_reads - 1] if len(reaches) >= self.p.min_reads else 0
            n = min(enough, self.p.step, limit - length)
            if n <= 0:
                task.status = "stopped"
                return True
            consensus = ""
            branch = None
            for column in range(length, length + n):
                best = self.heaviest(task, task.candidates, column)
                if self.is_branch(task, column, best):
                    branch = column
                    break
                consensus += best
            if branch is None:
                break
            if not ready:
                return False
            assert partner is not None
            best, certain = self.take_branch(task, partner, branch)
            if not certain:
                doubtful.add(branch)
            for candidate in list(task.candidates):
                if candidate.base_at(branch) not in (best, None):
                    task.candidates.remove(candidate)
                    task.met[candidate.end.number] = False
        for column, base in enumerate(consensus, length):
            votes = [c.base_at(column) for c in task.candidates if c.base_at(column) is not None]
            score = 12 * sum(1 if vote == base else -1 for vote in votes)
            task.qualities.append(2 if column in doubtful else max(2, min(40, score)))
            task.doubts += column in doubtful
        task.sequence += consensus
        task.candidates = [
            c
            for c in task.candidates
            if c.start + len(c.end.bases) > len(task.sequence)
            and c.mismatches(task.sequence)
            <= fraction(self.p.max_mismatch_ratio) * (len(task.sequence) - c.start)
        ]
        return True

    def heaviest(self, task: Task, candidates: list[Candidate], column: int) -> str:
        sums = self.sums(task, candidates, column)
        return min("ACGT", key=lambda base: (-sums[base], base))

    def sums(self, task: Task, candidates: list[Candidate], column: int) -> dict[str, int]:
        sums = dict.fromkeys("ACGT", 0)
        for candidate in candidates:
            base = candidate.base_at(column)
            if base is not None:
                sums[base] += self.weight(task, candidate, column)
        return sums

    @staticmethod
    def is_branch(task: Task, column: int, best: str) -> bool:
        q20 = dict.fromkeys("ACGT", 0)
        for candidate in task.candidates:
            base = candidate.base_at(column)
            if base is not None:
                q20[base] += candidate.end.aligned_offset.q20[column - candidate.start]
        return any(
            count >= 2 and 10 * count >= sum(q20.values())
            for base, count in q20.items()
            if base != best
        )

    def take_branch(self, task: Task, partner: Task, column: int) -> tuple[str, bool]:
        length, anchor = len(task.sequence), len(task.first.bases)
        covering = [c for c in task.candidates if c.base_at(column) is not None]
        paired = [c for c in covering if partner.met.get(c.end.number ^ 3, False)]
        others = [c for c in covering if c not in paired]
        count = {b: sum(c.base_at(column) == b for c in paired) for b in "ACGT"}
        best = min("ACGT", key=lambda base: (-count[base], base))
        if count[best] >= 2 and 4 * (len(paired) - count[best]) <= count[best]:
            return best, True
        decile = max(((length - c.start) * 10 // anchor for c in others), default=0)
        chosen = paired + [c for c in others if (length - c.start) * 10 // anchor >= decile]
        # A paired candidate counts once, however far it overlaps.
        sums = self.sums(task, chosen, column)
        best = min("ACGT", key=lambda base: (-sums[base], base))
        total = sum(sums.values())
        return best, 10 * (total - sums[best]) < total

    # Step 4: the mate.

    def look_for(self, task: Task, mate: End) -> bool:
        own = len(mate.bases)
        needed = min(own, 70)
        most = min(own * 60 // 1000, 10)
        last = min(len(task.sequence) - needed, self.high - own)
        first = max(task.tested + 1, self.low - own, 0)
        task.tested = max(task.tested, last)
        places = []
        for start in range(first, last + 1):
            part = task.sequence[start : start + own]
            different = sum(a != b for a, b in zip(part, mate.bases, strict=False))
            if different <= most:
                places.append((different, abs(start + own - self.mean), start))
        if not places:
            return False
        task.found_at = min(places)[2]
        task.status = "found"
        return True

    def run(self, first: End, mate: End) -> tuple[Task, Task | None]:
        task = self.begin(first)
        auxiliary: Task | None = None
        while task.status == "running" and not self.look_for(task, mate):
            if len(task.sequence) >= self.high:
                task.status = "stopped"
                break
            if not self.advance(task, auxiliary, ready=False, limit=self.high):
                auxiliary = self.grow(auxiliary, mate, task, task.growth + self.slack)
                self.advance(task, auxiliary, ready=True, limit=self.high)
        return task, auxiliary

    def grow(self, auxiliary: Task | None, first: End, partner: Task, grown: int) -> Task:
        auxiliary = auxiliary or self.begin(first)
        limit = len(first.bases) + grown
        while auxiliary.status == "running" and len(auxiliary.sequence) < limit:
            self.advance(auxiliary, partner, ready=True, limit=limit)
        return auxiliary

    # Step 5: joining.

    def extend(self, pair: int) -> Result:
        reverse_complemented = int(self.p.mate_pairs)
        first, second = (
            self.ends[4 * pair + reverse_complemented],
            self.ends[4 * pair + 2 + reverse_complemented],
        )
        mates = self.ends[second.number ^ 1], self.ends[first.number ^ 1]
        if min(len(first.bases), len(second.bases)) < self.p.ends.window:
            return Result("none")
        one, two = self.run(first, mates[0])
        three, four = self.run(second, mates[1])
        kind, total, sides = self.join(one, three)
        if kind == "none":
            return Result("none")
        begin, end = len(first.bases), total - len(second.bases)
        gap, qualities = "", []
        for i in range(begin, end):
            choices = []
            if "one" in sides and i < len(one.sequence):
                choices.append((one.qualities[i - begin], one.sequence[i]))
            back = total - 1 - i
            if "three" in sides and back < len(three.sequence):
                quality = three.qualities[back - len(second.bases)]
                choices.append((quality, reverse_complement(three.sequence[back])))
            quality, base = max(choices, key=lambda choice: choice[0])
            gap += base
            qualities.append(quality)
        left = right = ""
        if self.p.outward:
            two = self.grow(two, mates[0], one, total)
            four = self.grow(four, mates[1], three, total)
            right = two.sequence[len(second.bases) :][: self.high]
            left = reverse_complement(four.sequence[len(first.bases) :][: self.high])
        return Result(kind, total, left, gap, right, tuple(qualities))

    def join(self, one: Task, three: Task) -> tuple[str, int, tuple[str, ...]]:
        strict = self.p.strict
        begin, back = len(one.first.bases), len(three.first.bases)
        totals = one.found_at + back, three.found_at + begin
        doubts = one.doubts > 0, three.doubts > 0
        found = one.status == "found", three.status == "found"
        if all(found):
            gaps = one.sequence[begin : one.found_at], three.sequence[back : three.found_at]
            other = reverse_complement(gaps[1])
            equal = totals[0] == totals[1] and (
                sum(a != b for a, b in zip(gaps[0], other, strict=True)) <= self.p.gap_mismatches
                if begin < one.found_at
                else True
            )
            if equal:
                wide = self.high - self.low > 2 * self.p.min_overlap
                allowed = {0: 1 if self.vary else 2, 1: 1, 2: 0 if wide else 1}[strict]
                agreed = sum(doubts) <= allowed
                return ("both", totals[0], ("one", "three")) if agreed else ("none", 0, ())
            if strict == 0 and not self.vary and not all(doubts):
                far = [abs(total - self.mean) for total in totals]
                take = 1 if (doubts[1], far[1]) < (doubts[0], far[0]) else 0
                return "differ", totals[take], (("one",), ("three",))[take]
            return "none", 0, ()
        if any(found):
            side = 0 if found[0] else 1
            task, other_task = (one, three) if found[0] else (three, one)
            confirmed = self.confirmed(task, other_task, totals[side] - begin - back)
            name = (("one",), ("three",))[side]
            unsure = self.vary and all(doubts) if strict == 0 else any(doubts)
            if strict < 2 and confirmed and not unsure:
                return "confirmed", totals[side], name
            if strict == 0 and not doubts[side]:
                return "one", totals[side], name
            return "none", 0, ()
        if strict == 0 and not any(doubts):
            other = reverse_complement(three.sequence)
            both = len(one.sequence) + len(other)
            for overlap in range(min(len(one.sequence), len(other)), self.p.merge_overlap - 1, -1):
                if not self.low <= both - overlap <= self.high:
                    continue
                suffix = one.sequence[len(one.sequence) - overlap :]
                different = sum(a != b for a, b in zip(suffix, other[:overlap], strict=True))
                if different <= overlap * 50 // 1000:
                    return "merged", both - overlap, ("one", "three")
        return "none", 0, ()

    def confirmed(self, task: Task, other: Task, gap: int) -> bool:
        reached = min(gap, other.growth)
        if reached < fraction(self.p.confirm_ratio) * gap:
            return False
        if reached <= 0:
            return True
        begin = len(task.first.bases)
        end = begin + gap
        mine = task.sequence[end - reached : end]
        theirs = other.sequence[len(other.first.bases) :][:reached]
        equal = sum(a == b for a, b in zip(mine, reverse_complement(theirs), strict=True))
        return equal >= fraction(self.p.confirm_matches) * reached


@cache
def alignment_weight(mismatches: int, overlap: int, max_ratio: float) -> int:
    square = mismatches / (fraction(max_ratio) * overlap)
    return ONE - math.isqrt(math.floor(square * ONE * ONE))


@cache
def fraction(ratio: float) -> Fraction:
    """A ratio in thousandths."""
    return Fraction(round(1000 * ratio), 1000)
