"""Whether reads continue into adapters, from a sample of them; ``trimming`` says so if they do.

A read that is longer than its fragment continues into the adapter behind it, and on two-colour
instruments often into G's behind that. Such bases are no part of a genome, so stages that compare
reads treat the adapter as a sequence of enormous coverage. This finds

- pairs whose mates, one reversed, begin and end with each other: the overlap is the fragment, and
  what follows is adapter if it is the same in most such pairs (in repeats it is not);
- reads with the sequence of a known adapter, which single reads also show;
- reads that end in G's, as two-colour instruments write where there is no signal.

Genomes have such sequences by chance, but on both strands. So the reverse complements are counted
as well, and findings that are not far more frequent than these are not adapters.
``THRESHOLD`` and its checks: docs/adapters.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.sample import ReadSample
from ngsgpu.sequence.codec import AMBIGUOUS, CODES, encode

THRESHOLD: Final = 0.005
"""Share of the reads from which a warning is given."""
_FEWEST: Final = 10
"""Reads with an adapter, below which there is no warning, and adapters are not learned."""
_CONTROL_RATIO: Final = 4
"""How many times as frequent as its reverse complement a sequence must be."""

KNOWN: Final = {
    "Illumina TruSeq": (
        "AGATCGGAAGAGCACACGTCTGAACTCCAGTCA",
        "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT",
    ),
    "Nextera": ("CTGTCTCTTATACACATCTCCGAGCCCACGAGAC", "CTGTCTCTTATACACATCTGACGCTGCCGACGA"),
    "Illumina small RNA": (
        "TGGAATTCTCGGGTGCCAAGGAACTCCAGTCAC",
        "GATCGTCGGACTGTAGAACTCTGAACGTGTAGA",
    ),
    "BGI/MGI": ("AAGTCGGAGGCCAAGCGGTCTTAGGAAGACAA", "AAGTCGGATCGTAGCCATGTCGTTCTGTGAGCC"),
    "QIAseq miRNA": ("AACTGTAGGCACCATCAAT", "GATCGTCGGACTGTAGAACTCTGAACGTGTAGA"),
    "Illumina paired end, before TruSeq": (
        "AGATCGGAAGAGCGGTTCAGCAGGAATGCCGAG",
        "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT",
    ),
    "Illumina single end, before TruSeq": (
        "AGATCGGAAGAGCTCGTATGCCGTCTTCTGCTTG",
        "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT",
    ),
    "Nextera, first version": (
        "CTGTCTCTTATACACATCTCTGAGCGGGCTGGCAAGGC",
        "CTGTCTCTTATACACATCTCTGATGGCGCGAGGGAGGC",
    ),
}
"""Adapters behind the fragments of first and of second mates, as their makers publish them; of kits
that share one the first counts."""

_SEED: Final = 12
"""First bases of a known adapter, all of which must be right."""
_LEAST_SEEN: Final = 16
"""Bases of a known adapter that a read must have."""
_ANCHOR: Final = 16
"""First bases of a mate that must be found in the other one as they are."""
_TAIL: Final = 12
"""Bases behind the overlap that are compared; of these ``_LEAST_TAIL`` must be there."""
_LEAST_TAIL: Final = 8
_MISMATCHES: Final = 0.1
"""Most mismatches per base of an overlap, or of an adapter."""
_SHOWN: Final = 34
"""Most bases of an adapter that is learned."""
_AGREE: Final = 0.75
"""Share of the tails that agree on a base of an adapter that is learned."""
_MOST_PLACES: Final = 4
"""A mate's beginning that is at more places in the other one is a repeat."""
_RUN: Final = 12
"""G's that a read must end in."""

_Codes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Adapters:
    """What a sample says.

    Attributes:
        reads: that were looked at.
        pairs: of these with both mates.
        with_adapter: reads that continue into an adapter.
        by_overlap: reads of these that the overlap with their mates shows.
        poly_g: reads that end in G's, without as many as end in C's.
        sequences: beginnings of the adapters of first and second mates; empty if unknown.
        kit: whose adapters they are; empty if unknown.
    """

    reads: int
    pairs: int
    with_adapter: int
    by_overlap: int
    poly_g: int
    sequences: tuple[str, str]
    kit: str

    @property
    def many(self) -> bool:
        """Whether enough reads have adapters to warrant trimming."""
        return self.with_adapter >= max(_FEWEST, THRESHOLD * self.reads)

    @property
    def many_poly_g(self) -> bool:
        """Whether enough reads end in G's to warrant trimming."""
        return self.poly_g >= max(_FEWEST, THRESHOLD * self.reads)

    def for_statistics(self) -> dict[str, Any]:
        """As in the statistics of a run."""
        return {
            "sampled_reads": self.reads,
            "sampled_pairs": self.pairs,
            "with_adapter": self.with_adapter,
            "by_overlap": self.by_overlap,
            "poly_g": self.poly_g,
            "sequences": [sequence for sequence in self.sequences if sequence],
            "kit": self.kit,
            "trim_adapters": self.many,
            "trim_poly_g": self.many_poly_g,
        }


def find_adapters(sample: ReadSample) -> Adapters:
    """What the sample of a run says of adapters."""
    first, second = mates = [_Mates.of(letters) for letters in sample.reads()]
    overlapping, tails = _overlaps(first, second)
    found = [_with_known(mate) for mate in mates]
    known = np.stack([own for own, _, _ in found])
    counts = [own for _, _, own in found]
    if _CONTROL_RATIO * sum(reverse for _, reverse, _ in found) > int(known.sum()):
        known[:] = False
        counts = [Counter(), Counter()]
    poly_g, poly_c = (sum(int(_ends_in(mate, code).sum()) for mate in mates) for code in (2, 1))
    sequences, kit = _named([_consensus(own) for own in tails], counts)
    return Adapters(
        reads=sum(int((mate.lengths > 0).sum()) for mate in mates),
        pairs=int(((first.lengths > 0) & (second.lengths > 0)).sum()),
        with_adapter=int((overlapping | known).sum()),
        by_overlap=int(overlapping.sum()),
        poly_g=poly_g - poly_c if poly_g >= _CONTROL_RATIO * poly_c else 0,
        sequences=sequences,
        kit=kit,
    )


class _Mates(NamedTuple):
    """First or second mates: uint8[n, width] codes, AMBIGUOUS behind their ends, and lengths."""

    codes: _Codes
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, letters: NDArray[np.uint8]) -> _Mates:
        """The mates of a sample."""
        codes = np.minimum(np.asarray(CODES)[letters], AMBIGUOUS).astype(np.uint8)
        return cls(codes, (letters > 0).sum(axis=1))


def _kmers(codes: _Codes, k: int, *, reverse: bool = False) -> tuple[NDArray[np.uint32], Any]:
    """12-mers or 16-mers at all places, or their reverse complements, and which have no N."""
    known = codes < AMBIGUOUS
    values = np.where(known, 3 - codes if reverse else codes, 0).astype(np.uint32)
    size = 1
    parts: dict[int, tuple[NDArray[np.uint32], Any]] = {1: (values, known)}
    while size < k:
        step = min(size, k - size)
        width = max(0, codes.shape[1] - size - step + 1)
        left, right = parts[size][0][:, :width], parts[step][0][:, size : size + width]
        whole = parts[size][1][:, :width] & parts[step][1][:, size : size + width]
        if reverse:
            joined = left | right << np.uint32(2 * size)
        else:
            joined = left << np.uint32(2 * step) | right
        size += step
        parts[size] = joined, whole
    return parts[k]


def _overlaps(first: _Mates, second: _Mates) -> tuple[NDArray[np.bool_], tuple[_Codes, _Codes]]:
    """Mates with adapter by the overlap of pairs, bool[2, n]; and the tails of both mates."""
    fragment = _fragments(first, second)
    rows = np.flatnonzero(fragment)
    found = np.zeros((2, len(fragment)), dtype=np.bool_)
    tails = tuple(_behind(mate, rows, fragment[rows]) for mate in (first, second))
    for own, tail in zip(found, tails, strict=True):
        own[rows] = _alike(tail)
    # One mate may have too many errors behind the fragment to show what the other one shows.
    agreed = found.any(axis=0)
    for own, mate in zip(found, (first, second), strict=True):
        own[:] = agreed & (mate.lengths - fragment >= _LEAST_TAIL)
    return found, (tails[0], tails[1])


def _fragments(first: _Mates, second: _Mates) -> NDArray[np.int64]:
    """Lengths of fragments that are shorter than a mate, int64[n]; 0 for others."""
    fragment = np.zeros(len(first.codes), dtype=np.int64)
    for one, other in ((first, second), (second, first)):
        begin, begin_whole = _kmers(one.codes[:, :_ANCHOR], _ANCHOR)
        inside, whole = _kmers(other.codes, _ANCHOR, reverse=True)
        if not (begin.shape[1] and inside.shape[1]):
            continue
        same = (inside == begin) & whole & begin_whole
        same &= (same.sum(axis=1) <= _MOST_PLACES)[:, None]
        rows, places = np.nonzero(same)
        lengths = places + _ANCHOR
        columns = np.arange(one.codes.shape[1])
        mine = one.codes[rows]
        theirs = other.codes[rows[:, None], np.maximum(lengths[:, None] - 1 - columns, 0)]
        known = (columns < lengths[:, None]) & (mine < AMBIGUOUS) & (theirs < AMBIGUOUS)
        wrong = (known & (mine + theirs != 3)).sum(axis=1)
        good = (wrong <= _MISMATCHES * known.sum(axis=1)) & (lengths <= one.lengths[rows])
        # Of several places the one with the shortest fragment; places ascend.
        rows, lengths = rows[good][::-1], lengths[good][::-1]
        empty = fragment[rows] == 0
        fragment[rows[empty]] = lengths[empty]
    return fragment


def _behind(mates: _Mates, rows: NDArray[np.int64], fragment: NDArray[np.int64]) -> _Codes:
    """The bases of some mates behind their fragments."""
    width = mates.codes.shape[1]
    places = fragment[:, None] + np.arange(_SHOWN)
    inside = places < width
    codes = mates.codes[rows[:, None], np.where(inside, places, 0)]
    return np.where(inside, codes, AMBIGUOUS).astype(np.uint8)


def _alike(tails: _Codes) -> NDArray[np.bool_]:
    """Whether each tail is the one that most have."""
    begins = tails[:, :_TAIL]
    whole = (begins[:, :_LEAST_TAIL] < AMBIGUOUS).all(axis=1)
    if int(whole.sum()) < _FEWEST:
        return np.zeros(len(tails), dtype=np.bool_)
    usual = np.stack([(begins[whole] == code).sum(axis=0) for code in range(4)]).argmax(axis=0)
    known = begins < AMBIGUOUS
    wrong = (known & (begins != usual)).sum(axis=1)
    # With a base of all four 1 in 30,000 tails would pass.
    return whole & (wrong <= 0.2 * known.sum(axis=1))


def _consensus(tails: _Codes) -> str:
    """The beginning of the adapter, as far as the tails agree on it."""
    tails = tails[_alike(tails)]
    counts = np.stack([(tails == code).sum(axis=0) for code in range(4)])
    agreed = counts.max(axis=0) >= np.maximum(_FEWEST, _AGREE * counts.sum(axis=0))
    length = len(agreed) if agreed.all() else int(agreed.argmin())
    return "".join("ACGT"[code] for code in counts.argmax(axis=0)[:length])


def _with_known(mates: _Mates) -> tuple[NDArray[np.bool_], int, Counter[str]]:
    """Mask of reads with a known adapter, number with the reverse of one, numbers by adapter."""
    found = np.zeros(len(mates.codes), dtype=np.bool_)
    counts: Counter[str] = Counter()
    reverse = 0
    kmers, whole = _kmers(mates.codes, _SEED)
    known = dict.fromkeys(each for both in KNOWN.values() for each in both)
    seeds = [(each, *own) for each in known for own in _both(each)]
    values = [_value(sequence) for _, sequence, _ in seeds]
    rows, places = np.nonzero(whole & np.isin(kmers, np.array(values, dtype=np.uint32)))
    own = kmers[rows, places]
    for (adapter, sequence, is_reverse), value in zip(seeds, values, strict=True):
        here = own == value
        good = rows[here][_continues(mates.codes, rows[here], places[here], sequence)]
        if is_reverse:
            reverse += len(good)
        else:
            counts[adapter] += len(good)
            found[good] = True
    return found, reverse, counts


def _both(adapter: str) -> tuple[tuple[_Codes, bool], tuple[_Codes, bool]]:
    """Codes of an adapter, and the reverse complement of its beginning."""
    codes = encode(adapter)
    return (codes, False), ((3 - codes[: _LEAST_SEEN + _SEED // 2][::-1]).astype(np.uint8), True)


def _value(sequence: _Codes) -> int:
    """The first k-mer."""
    return int(_kmers(sequence[None, :_SEED], _SEED)[0][0, 0])


def _continues(
    codes: _Codes, rows: NDArray[np.int64], places: NDArray[np.int64], sequence: _Codes
) -> NDArray[np.bool_]:
    """Whether reads have the sequence at some places, as far as they go."""
    columns = places[:, None] + np.arange(len(sequence))
    inside = columns < codes.shape[1]
    seen = np.where(inside, codes[rows[:, None], np.where(inside, columns, 0)], AMBIGUOUS)
    known = seen < AMBIGUOUS
    wrong = (known & (seen != sequence)).sum(axis=1)
    enough: NDArray[np.bool_] = known.sum(axis=1) >= _LEAST_SEEN
    return enough & (wrong <= _MISMATCHES * known.sum(axis=1))


def _ends_in(mates: _Mates, code: int) -> NDArray[np.bool_]:
    """Whether each read ends in a run of a base."""
    if mates.codes.shape[1] == 0:
        return np.zeros(len(mates.codes), dtype=np.bool_)
    places = mates.lengths[:, None] - 1 - np.arange(_RUN)
    ends = mates.codes[np.arange(len(places))[:, None], np.maximum(places, 0)]
    return (places >= 0).all(axis=1) & (ends == code).all(axis=1)


def _named(learned: Sequence[str], counts: Sequence[Counter[str]]) -> tuple[tuple[str, str], str]:
    """Sequences of the adapters and their maker: as learned, else the known ones of most reads."""
    first, second = (own if len(set(own)) > 1 else "" for own in learned)
    begins = {own[:_SEED] for own in (first, second) if len(own) >= _SEED}
    ways = [(kit, way) for kit in KNOWN for way in (1, -1)]
    if begins:
        ways = [(kit, way) for kit, way in ways if begins & {own[:_SEED] for own in KNOWN[kit]}]

    def reads(own: tuple[str, int]) -> int:
        """How many have the adapters of a kit, or with -1 those of each other's mates."""
        kit, way = own
        return sum(map(Counter.__getitem__, counts, KNOWN[kit][::way]))

    kit, way = max(ways, key=reads, default=("", 1))
    if not kit or (not begins and reads((kit, way)) < _FEWEST):
        return (first, second), ""
    first, second = KNOWN[kit][::way]
    return (first, second), kit
