"""Which bases other reads witness, in plain Python, from docs/correct.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.correct.alignment import Read, quality_weight
from tests.support.minhash.oracle import reverse_complement

Q20, Q30 = quality_weight(20), quality_weight(30)


def length_of_kmers(bases: int) -> int:
    """Odd, and 4 to 5 more than log4 of the number of all bases, at most 31."""
    shortest = 0
    while 4**shortest < max(bases, 2):
        shortest += 1
    return min(31, (shortest + 2 | 1) + 2)


def is_witnessed(reads: list[Read], paired: bool, read: int, position: int) -> bool:
    """Whether another fragment has the base of a read in one of three k-mers around it."""
    for kmer, place in _around(reads, reads[read].bases, position):
        shown = list(_shown(reads, kmer, place))
        is_rare = 0 < len(shown) <= 8 and any(weight >= Q30 for _, _, weight in shown)
        fragments = {other >> paired for other, _, _ in shown}
        if (
            is_rare
            and fragments != {read >> paired}
            and {e for _, e, _ in shown} != {(position, False)}
        ):
            return True
    return False


def is_contradicted(
    reads: list[Read], paired: bool, read: int, position: int, base: str, among: set[int]
) -> bool:
    """Whether another fragment among some reads has a base instead, in one of three k-mers."""
    bases = reads[read].bases
    instead = bases[:position] + base + bases[position + 1 :]
    return any(
        other in among and other >> paired != read >> paired
        for kmer, place in _around(reads, instead, position)
        for other, _, _ in _shown(reads, kmer, place)
    )


def _around(reads: list[Read], bases: str, position: int) -> Iterator[tuple[str, int]]:
    """The k-mers of a read that have a base last, in the middle and first; its place in each."""
    k = length_of_kmers(sum(len(own) for own in reads))
    for first in (position - k + 1, position - (k - 1) // 2, position):
        if first >= 0 and first + k <= len(bases):
            yield bases[first : first + k], position - first


def _shown(reads: list[Read], kmer: str, place: int) -> Iterator[tuple[int, tuple[int, bool], int]]:
    """Reads with a k-mer whose base at a place is of Q20: their end, and the base's weight."""
    for number, own in enumerate(reads):
        for text, at, turned in (
            (kmer, place, False), (reverse_complement(kmer), len(kmer) - 1 - place, True)
        ):  # fmt: skip
            first = own.bases.find(text)
            while first >= 0:
                known = own.ambiguous.isdisjoint(range(first, first + len(text)))
                if known and own.weights[first + at] >= Q20:
                    yield number, (first + at, turned), own.weights[first + at]
                first = own.bases.find(text, first + 1)
