"""Classification in plain Python, from the description in docs/classify.md; slow and obvious."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ngsgpu.classify.params import QueryParameters, SketchParameters

RANKS = [
    "sequence",
    "form",
    "variety",
    "subspecies",
    "species",
    "subgenus",
    "genus",
    "subtribe",
    "tribe",
    "subfamily",
    "family",
    "suborder",
    "order",
    "subclass",
    "class",
    "subphylum",
    "phylum",
    "subkingdom",
    "kingdom",
    "domain",
    "root",
]


def hash32(x: int) -> int:
    for _ in range(2):
        x = (((x >> 16) ^ x) * 0x45D9F3B) & 0xFFFFFFFF
    return (x >> 16) ^ x


def windows(sequence: str, parameters: SketchParameters) -> list[str]:
    if len(sequence) <= parameters.window:
        found = [sequence]
    else:
        found = []
        start = 0
        while start + parameters.window <= len(sequence):
            found.append(sequence[start : start + parameters.window])
            start += parameters.stride
        found.append(sequence[start:])
    return [window for window in found if len(window) >= parameters.kmer]


def canonical(kmer: str) -> int:
    turned = kmer[::-1].translate(str.maketrans("ACGT", "TGCA"))
    return min(int("".join(str("ACGT".index(base)) for base in text), 4) for text in (kmer, turned))


def is_syncmer(kmer: str, smer: int) -> bool:
    ranks = [hash32(canonical(kmer[start : start + smer])) for start in range(len(kmer) - smer + 1)]
    return ranks[0] < min(ranks[1:]) or ranks[-1] < min(ranks[:-1])


@lru_cache(maxsize=1 << 16)
def sketch(window: str, parameters: SketchParameters) -> tuple[int, ...]:
    """The features of a window, each once."""
    hashes = {}
    for start in range(len(window) - parameters.kmer + 1):
        kmer = window[start : start + parameters.kmer].upper()
        if set(kmer) <= set("ACGT") and (
            parameters.sketch is not None or is_syncmer(kmer, parameters.smer)
        ):
            hashes[hash32(canonical(kmer))] = None
    chosen = list(hashes)
    if parameters.sketch is not None:
        chosen = sorted(hashes.keys() - {0xFFFFFFFF})[: parameters.sketch]
    kept = Fraction(parameters.fraction) * (1 << 16)
    return tuple(feature for feature in chosen if hash32(feature) % (1 << 16) < kept)


def is_end_of_run(place: tuple[int, int], places: list[tuple[int, int]], span: int) -> bool:
    """Whether a feature is not found in the windows before a place, or in those after it."""
    window, number = place
    others = [at for at, other in places if other == number]
    before = any(window - span < at < window for at in others)
    return not (before and any(window < at < window + span for at in others))


@dataclass
class Oracle:
    """A database of named sequences, and the lineage (rank to taxid) of each."""

    sequences: list[str]
    lineages: list[dict[str, int]]
    sketch: SketchParameters
    max_locations: int = 254

    def __post_init__(self) -> None:
        self.locations: dict[int, list[tuple[int, int]]] = {}
        for target, sequence in enumerate(self.sequences):
            for number, window in enumerate(windows(sequence, self.sketch)):
                for feature in sketch(window, self.sketch):
                    self.locations.setdefault(feature, []).append((target, number))
        for feature, found in self.locations.items():
            self.locations[feature] = found[: self.max_locations]

    def features(self, mates: list[str]) -> list[int]:
        if self.sketch.sketch is None:
            return list(dict.fromkeys(each for mate in mates for each in sketch(mate, self.sketch)))
        return [
            feature
            for mate in mates
            for window in windows(mate, self.sketch)
            for feature in sketch(window, self.sketch)
        ]

    def shared(self, mates: list[str], hits: int) -> Fraction:
        """The fraction of k-mers shared with a reference sequence that is hit so often."""
        kmers = sum(max(len(mate) - self.sketch.kmer + 1, 0) for mate in mates)
        if self.sketch.sketch is None:
            density = Fraction(2, self.sketch.kmer - self.sketch.smer + 1)
        else:
            in_window = min(self.sketch.sketch, self.sketch.window - self.sketch.kmer + 1)
            density = Fraction(in_window, self.sketch.stride)
        fraction = Fraction(self.sketch.fraction)
        expected = fraction * kmers * density
        return (hits - fraction) / max(expected - fraction, fraction)

    def span(self, bases: int) -> int:
        """Windows in which this many bases can begin, wherever they are."""
        if self.sketch.sketch is not None:
            return 2 + bases // self.sketch.stride
        starts = range(self.sketch.stride)
        kmers = max(bases - self.sketch.kmer + 1, 1)
        return max((start + kmers - 1) // self.sketch.stride + 1 for start in starts)

    def candidates(
        self, mates: list[str], parameters: QueryParameters
    ) -> list[tuple[int, int, int, int]]:
        """(target, hits, first window, last window) of the best ones, best first."""
        found: dict[int, list[tuple[int, int]]] = {}
        for number, feature in enumerate(self.features(mates)):
            for target, window in self.locations.get(feature, []):
                found.setdefault(target, []).append((window, number))
        insert = parameters.insert_size if len(mates) == 2 else 0
        span = self.span(max(sum(map(len, mates)), insert))
        best = []
        for target in sorted(found):
            own = sorted(found[target])
            top = (0, 0, 0)
            shown = [each for each in own if self.sketch.sketch or is_end_of_run(each, own, span)]
            for last, _ in own:
                inside = [each for each in own if last - span < each[0] <= last]
                hits = len(inside)
                if self.sketch.sketch is None:
                    hits = len({number for _, number in inside})
                if hits > top[0]:
                    first = min(window for window, _ in shown if last - span < window)
                    top = (hits, first, last)
            best.append((target, *top))
        best.sort(key=lambda candidate: (-candidate[1], candidate[0]))
        if parameters.lowest == "sequence":
            return best[: parameters.candidates]
        kept, taxa = [], set()
        for candidate in best:
            taxon = self.at_or_above(candidate[0], parameters.lowest)
            if taxon is not None and taxon not in taxa:
                taxa.add(taxon)
                kept.append(candidate)
        return kept[: parameters.candidates]

    def at_or_above(self, target: int, rank: str) -> tuple[str, int] | None:
        for other in RANKS[RANKS.index(rank) :]:
            if other in self.lineages[target]:
                return other, self.lineages[target][other]
        return None

    def call(self, mates: list[str], parameters: QueryParameters) -> tuple[str, int] | None:
        """Rank and taxid (or number of the sequence) of the call."""
        best = self.candidates(mates, parameters)
        needed = parameters.hits_needed(self.sketch)
        if not best or best[0][1] < needed:
            return None
        part = self.shared(mates, best[0][1])
        if part < Fraction(str(parameters.least_share(self.sketch))):
            return None
        top = best[0][0]
        call: tuple[str, int] | None = ("sequence", top)
        if parameters.lowest != "sequence":
            call = self.at_or_above(top, parameters.lowest)
        assert call is not None
        near = parameters.hits_near(self.sketch)
        if best[0][1] <= math.floor(parameters.few_hits * Fraction(self.sketch.fraction)):
            near += 1
        if best[0][1] >= parameters.hits_many(self.sketch):
            near -= 1
        threshold = (best[0][1] - near) * parameters.hit_difference
        taxonomy = any(self.lineages)
        for other, hits, _, _ in best[1:] if taxonomy or parameters.ties == "ambiguous" else []:
            if hits > threshold:
                for rank in RANKS[max(1, RANKS.index(call[0])) :]:
                    taxon = self.lineages[top].get(rank)
                    if taxon is not None and taxon == self.lineages[other].get(rank):
                        call = (rank, taxon)
                        break
                else:
                    return None
        if call[0] in RANKS[:5] and part < Fraction(str(parameters.species_confidence)):
            call = self.at_or_above(top, RANKS[5])
        if call is None:
            return None
        return call if RANKS.index(call[0]) <= RANKS.index(parameters.highest) else None
