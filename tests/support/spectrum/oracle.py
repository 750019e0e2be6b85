"""Slow and obvious spectrum correction, with texts and dictionaries.

``U`` is an unknown base. A spectrum maps k-mers, and their reverse complements, to levels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, product

from ngsgpu.spectrum.params import SearchRules

_COMPLEMENT = str.maketrans("ACGT", "TGCA")
BASES = "ACGT"


def turned(text: str) -> str:
    """The reverse complement."""
    return text.translate(_COMPLEMENT)[::-1]


def kmers_of(text: str, k: int) -> list[str]:
    """All k-mers, in their order."""
    return [text[i : i + k] for i in range(len(text) - k + 1)]


def count(reads: list[str], k: int) -> Counter[str]:
    """Counts of canonical k-mers."""
    return Counter(
        min(kmer, turned(kmer))
        for read in reads
        for kmer in kmers_of(read, k)
        if set(kmer) <= set(BASES)
    )


def spectrum_of(counts: Counter[str], solid: int, strong: int) -> dict[str, int]:
    """Levels of both strands' k-mers that occur at least twice."""
    levels = {}
    for kmer, number in counts.items():
        if number > 1:
            levels[kmer] = levels[turned(kmer)] = 1 + (number >= solid) + (number >= strong)
    return levels


def levels_of(read: str, spectrum: dict[str, int], k: int) -> list[int]:
    """Levels of a read's k-mers."""
    return [spectrum.get(kmer, 0) for kmer in kmers_of(read, k)]


def solid_number(read: str, spectrum: dict[str, int], k: int) -> int:
    """How many k-mers are solid."""
    return sum(level >= 2 for level in levels_of(read, spectrum, k))


def changed(text: str, changes: dict[int, str]) -> str:
    """A text with other bases."""
    return "".join(changes.get(i, base) for i, base in enumerate(text))


def vote(read: str, spectrum: dict[str, int], k: int, mutations: int) -> tuple[str, bool]:
    """Shi and others (2010): the corrected read, and whether all of its k-mers are solid."""
    best = read
    for most in range(1, mutations + 1):
        votes: Counter[tuple[int, str]] = Counter()
        for start, kmer in enumerate(kmers_of(read, k)):
            if "U" in kmer or spectrum.get(kmer, 0) >= 2:
                continue
            for places in combinations(range(k), most):
                for bases in product(BASES, repeat=most):
                    changes = dict(zip(places, bases, strict=True))
                    if any(kmer[i] == base for i, base in changes.items()):
                        continue
                    if spectrum.get(changed(kmer, changes), 0) >= 2:
                        votes.update((start + i, base) for i, base in changes.items())
        best = read
        for _ in range(most):
            if not votes:
                break
            place, base = min(votes, key=lambda entry: (-votes[entry], entry))
            best = changed(best, {place: base})
            votes = Counter({entry: n for entry, n in votes.items() if entry[0] != place})
        if solid_number(best, spectrum, k) == len(read) - k + 1:
            return best, True
    return best, False


def try_all(read: str, spectrum: dict[str, int], k: int, mutations: int) -> tuple[str, bool]:
    """Mahmood (2012): the same."""
    for _ in range(mutations):
        mutants = [read] + [
            changed(read, {i: base}) for i in range(len(read)) for base in BASES if base != read[i]
        ]
        read = max(mutants, key=lambda mutant: solid_number(mutant, spectrum, k))
        if solid_number(read, spectrum, k) == len(read) - k + 1:
            return read, True
    return read, False


@dataclass
class Search:
    """The rule ``search`` for one read."""

    spectrum: dict[str, int]
    rules: SearchRules
    read: str
    scores: list[int]

    def __post_init__(self) -> None:
        self.k = self.rules.kmer
        self.before = levels_of(self.read, self.spectrum, self.k)

    def ways(self, start: int, last: int, stop: int) -> list[tuple[str, int]]:
        """All ways from the k-mer at ``start``, with their costs, the longest first."""
        found = []

        def go(at: int, text: str, cost: int, changes: list[int]) -> None:
            read = self.read[at] if at < stop else ""
            own = self.spectrum.get(text[-self.k + 1 :] + read, 0) if read else 0
            for base in [read, *BASES.replace(read, "")] if at < stop else []:
                more, now = cost, changes
                if base != read:
                    if at > last or (own >= 2 and self.scores[at] >= self.rules.low_quality):
                        continue
                    more += self.rules.change_cost + self.scores[at]
                    if read != "U":
                        now = [i for i in [*changes, at] if i > at - self.rules.window]
                        if len(now) > self.rules.max_changes:
                            continue
                if self.spectrum.get(text[-self.k + 1 :] + base, 0) >= 2:
                    go(at + 1, text + base, more, now)
            found.append((text, cost))

        kmer = self.read[start : start + self.k]
        seen: dict[str, int] = {}
        go(start + self.k, kmer, 0, [])
        for text, cost in found:
            seen.setdefault(text[self.k :], cost)
        return sorted(seen.items(), key=lambda item: -len(item[0]))

    def is_safe(self, first: int, at: int, end: int, way: str, start: int) -> bool:
        """Whether the k-mers of a change suffice."""
        checks = min(self.k, end - at)
        if self.scores[at] >= self.rules.end_quality:
            if checks < self.rules.end_checks:
                return False
            new = self.read[:first] + way
            if checks < self.rules.doubted_checks and any(
                new[i] == self.read[i] and self.scores[i] < self.rules.low_quality
                for i in range(at - self.k + 1, at)
            ):
                return False
        if self.scores[at] < self.rules.low_quality:
            return True
        text = self.read[start:first] + way
        new = levels_of(text, self.spectrum, self.k)
        rare = sum(self.before[i - self.k + 1] >= 1 for i in range(at, at + checks))
        strong = sum(new[i - self.k + 1 - start] == 3 for i in range(at, at + checks))
        return 2 * rare <= checks or 2 * strong > checks

    def one_way(self) -> None:
        """Correct what follows solid k-mers."""
        kmers = len(self.read) - self.k + 1
        at = 1
        while at < kmers:
            levels = levels_of(self.read, self.spectrum, self.k)
            if levels[at] >= 2 or levels[at - 1] < 2:
                at += 1
                continue
            weak = at
            while at < kmers and levels[at] < 2:
                at += 1
            last = len(self.read) - 1 if at == kmers else at - 1
            short = last < weak + self.k - 1
            run = weak - 1
            while run > 0 and levels[run - 1] >= 2:
                run -= 1
            low = [i for i in range(weak, weak + self.k - 1) if self.scores[i] < 20]
            start = max(run, low[0] - self.k) if low else weak - 1
            self.behind(start, max(last, weak + self.k - 1), short)

    def behind(self, start: int, last: int, short: bool) -> None:
        """Correct what follows the k-mer at ``start``."""
        first = start + self.k
        stop = min(len(self.read), last + self.k)
        ways = self.ways(start, last, stop)
        complete = sorted(cost for way, cost in ways if len(way) == stop - first)
        if complete:
            if len(complete) > 1 and complete[1] < complete[0] + self.rules.margin:
                return
            (way,) = [w for w, c in ways if len(w) == stop - first and c == complete[0]]
        else:
            way = max((w for w, _ in ways), key=len)
        end = first + len(way)
        changes: dict[int, str] = {}
        for at in range(first, end):
            base = way[at - first]
            if base == self.read[at]:
                continue
            if not complete and at + self.k > end:
                break
            if short and self.scores[at] >= self.rules.low_quality:
                break
            if not self.is_safe(first, at, end, way, start):
                break
            changes[at] = base
        self.read = changed(self.read, changes)

    def turn(self) -> None:
        """Go on with the reverse complement."""
        self.read = turned(self.read)
        self.scores.reverse()
        self.before.reverse()

    def both_ways(self) -> str:
        """Correct in both directions."""
        for _ in range(2):
            self.one_way()
            self.turn()
        return self.read


def search(read: str, scores: list[int], spectrum: dict[str, int], rules: SearchRules) -> str:
    """The corrected read."""
    k = rules.kmer
    if solid_number(read, spectrum, k):
        return Search(spectrum, rules, read, list(scores)).both_ways()
    for start in range(0, len(read) - k + 1, max(1, k // 4)):
        kmer = read[start : start + k]
        if "U" in kmer:
            continue
        mutants = [
            (i, base)
            for i in range(k)
            for base in BASES
            if base != kmer[i] and spectrum.get(changed(kmer, {i: base}), 0) >= 2
        ]
        if len(mutants) != 1:
            continue
        ((place, base),) = mutants
        trial = Search(spectrum, rules, read, list(scores))
        trial.read = changed(read, {start + place: base})
        new = trial.both_ways()
        changes = [i for i in range(len(read)) if new[i] != read[i] != "U"]
        crowded = any(
            sum(i - rules.window < j <= i for j in changes) > rules.max_changes for i in changes
        )
        if solid_number(new, spectrum, k) == len(read) - k + 1 and not crowded:
            return new
    return read
