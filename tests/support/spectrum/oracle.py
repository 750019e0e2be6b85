"""Slow and obvious spectrum correction, with texts and dictionaries.

``U`` is an unknown base. A spectrum maps k-mers, and their reverse complements, to levels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, groupby, product

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

    def ways(self, start: int, last: int, stop: int, kept: int) -> tuple[str, int, bool] | None:
        """The best way from the k-mer at ``start``, how many bases are sure, and if it is whole.

        None if too many bases were tried. Of ways that are nearly as cheap as the best, only the
        bases in front of their first difference are sure.
        """
        whole: list[tuple[int, str]] = []
        sure = 0
        longest = ""
        nodes = 0

        def go(at: int, text: str, cost: int, changes: list[int]) -> None:
            nonlocal sure, longest, nodes
            way = text[self.k :]
            if at == stop:
                same = 0
                while whole and same < len(way) and way[same] == whole[0][1][same]:
                    same += 1
                if not whole or cost < whole[0][0]:
                    near = whole and whole[0][0] < cost + self.rules.margin
                    sure = min(sure, same) if near else len(way)
                    whole[:] = [(cost, way)]
                else:
                    sure = min(sure, same)
                return
            read = self.read[at]
            own = self.spectrum.get(text[-self.k + 1 :] + read, 0)
            for base in [read, *BASES.replace(read, "")]:
                more, now = cost, changes
                if base != read:
                    if at > last or (own >= 2 and self.scores[at] >= kept):
                        continue
                    more += self.rules.change_cost + self.scores[at]
                    if whole and more >= whole[0][0] + self.rules.margin:
                        continue
                    if read != "U":
                        now = [i for i in [*changes, at] if i > at - self.rules.window]
                        if len(now) > self.rules.max_changes:
                            continue
                nodes += base != "U"
                if nodes > self.rules.max_nodes:
                    return
                if self.spectrum.get(text[-self.k + 1 :] + base, 0) >= 2:
                    go(at + 1, text + base, more, now)
            if not whole and len(way) > len(longest):
                longest = way

        go(start + self.k, self.read[start : start + self.k], 0, [])
        if nodes > self.rules.max_nodes:
            return None
        return (whole[0][1], sure, True) if whole else (longest, len(longest), False)

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
        levels = levels_of(text, self.spectrum, self.k)
        rare = sum(self.before[i - self.k + 1] >= 1 for i in range(at, at + checks))
        strong = sum(levels[i - self.k + 1 - start] == 3 for i in range(at, at + checks))
        is_good = self.scores[at] >= self.rules.end_quality
        return 2 * rare <= checks or (not is_good and 2 * strong > checks)

    def one_way(self, trusted: list[bool], low_only: bool) -> None:
        """Correct what follows trusted k-mers."""
        kmers = len(self.read) - self.k + 1
        low = self.rules.low_quality
        at = 1
        while at < kmers:
            if trusted[at] or not trusted[at - 1]:
                at += 1
                continue
            weak = at
            while at < kmers and not trusted[at]:
                at += 1
            last = len(self.read) - 1 if at == kmers else at - 1
            short = last < weak + self.k - 1
            last = max(last, weak + self.k - 1)
            run = weak - 1
            while run > 0 and trusted[run - 1]:
                run -= 1
            doubted = [i for i in range(weak, weak + self.k - 1) if self.scores[i] < low]
            start = max(run, doubted[0] - self.k) if doubted else weak - 1
            stop = min(len(self.read), last + self.k)
            found = self.ways(start, last, stop, low)
            if found and any(
                base != self.read[start + self.k + i] and self.scores[start + self.k + i] >= low
                for i, base in enumerate(found[0])
            ):
                start = max(run, weak - self.k)
                last = last if short else min(len(self.read) - 1, last + self.k - 1)
                stop = min(len(self.read), last + self.k)
                found = self.ways(start, last, stop, 1000)
            if found:
                self.take(start, *found, short or low_only, trusted)

    def take(
        self, start: int, way: str, sure: int, whole: bool, low_only: bool, trusted: list[bool]
    ) -> None:
        """Change what is safe."""
        first = start + self.k
        end = first + len(way)
        changes: dict[int, str] = {}
        at = first
        for at in range(first, first + sure + 1):
            if at == first + sure:
                break
            base = way[at - first]
            if base == self.read[at]:
                continue
            if not whole and at + self.k > end:
                break
            if low_only and self.scores[at] >= self.rules.low_quality:
                break
            if not self.is_safe(first, at, end, way, start):
                break
            changes[at] = base
        if changes:
            self.read = changed(self.read, changes)
            joined = max(start + 1, at - self.k + 1)
            trusted[start + 1 : joined] = [True] * (joined - start - 1)
            if max(changes) >= joined:
                n = min(max(changes) + 1, len(trusted)) - joined
                trusted[joined : joined + n] = [False] * n

    def turn(self) -> None:
        """Go on with the reverse complement."""
        self.read = turned(self.read)
        self.scores.reverse()
        self.before.reverse()

    def both_ways(self, trusted: list[bool], low_only: bool = False) -> str:
        """Correct in both directions."""
        for _ in range(2):
            self.one_way(trusted, low_only)
            self.turn()
            trusted.reverse()
        return self.read

    def trusted(self) -> list[tuple[int, int, bool]]:
        """Runs of solid k-mers, and whether they can be trusted."""
        runs = []
        for solid, group in groupby(enumerate(self.before), lambda entry: entry[1] >= 2):
            places = [i for i, _ in group]
            common = self.scores[places[-1] : places[0] + self.k]
            sure = all(score >= self.rules.low_quality for score in common)
            if solid:
                sure &= len(places) >= self.rules.min_run
                runs.append((places[0], places[-1] + 1, sure))
        return runs


def search(read: str, scores: list[int], spectrum: dict[str, int], rules: SearchRules) -> str:
    """The corrected read."""
    k = rules.kmer
    kmers = len(read) - k + 1
    levels = levels_of(read, spectrum, k)
    if min(levels[:: max(1, k // 4)] + levels[-1:]) >= 2:
        return read
    begun = Search(spectrum, rules, read, list(scores))
    runs = begun.trusted()
    if any(sure for *_, sure in runs):
        return begun.both_ways(
            [any(begin <= i < end and sure for begin, end, sure in runs) for i in range(kmers)]
        )
    results = []
    for begin, end, _ in runs:
        for low_only in (False, True):
            trial = Search(spectrum, rules, read, list(scores))
            new = trial.both_ways([begin <= i < end for i in range(kmers)], low_only)
            weak = kmers - solid_number(new, spectrum, k)
            if weak == 0:
                break
        cost = rules.weak_cost * weak + sum(
            rules.change_cost + score
            for a, b, score in zip(read, new, scores, strict=True)
            if a != b
        )
        results.append((cost, new))
    if results:
        return min(results, key=lambda result: result[0])[1]
    for start in range(0, kmers, max(1, k // 4)):
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
        new = trial.both_ways([level >= 2 for level in levels_of(trial.read, spectrum, k)])
        changes = [i for i in range(len(read)) if new[i] != read[i] != "U"]
        crowded = any(
            sum(i - rules.window < j <= i for j in changes) > rules.max_changes for i in changes
        )
        if solid_number(new, spectrum, k) == kmers and not crowded:
            return new
    return read
