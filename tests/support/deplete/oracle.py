"""Which reads are the host's, in plain Python: k-mers as strings, the host's in a set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from ngsgpu.deplete import DepletionParameters, IndexParameters
from tests.support.minhash.oracle import reverse_complement

CENTRE = 16
CODE = {"A": 0, "C": 1, "G": 2, "T": 3}
MASK_32 = (1 << 32) - 1


def number(bases: str) -> tuple[int, int]:
    """The high and the low bits of the codes, base 0 lowest."""
    low = sum((CODE[base] & 1) << i for i, base in enumerate(bases))
    high = sum((CODE[base] >> 1) << i for i, base in enumerate(bases))
    return high, low


def mix32(word: int) -> int:
    for _ in range(2):
        word = ((word >> 16 ^ word) * 0x45D9F3B) & MASK_32
    return word >> 16 ^ word


def is_sampled(kmer: str, one_in: int) -> bool:
    offset = (len(kmer) - CENTRE) // 2
    centre = kmer[offset : offset + CENTRE]
    high, low = min(number(centre), number(reverse_complement(centre)))
    return mix32(high << CENTRE | low) <= (1 << 32) // one_in - 1


def sampled(bases: str, parameters: IndexParameters) -> Iterator[tuple[int, str]]:
    """Where each sampled k-mer begins, and the smaller of it and its reverse complement."""
    for i in range(len(bases) - parameters.kmer + 1):
        kmer = bases[i : i + parameters.kmer].upper()
        if set(kmer) <= set(CODE) and is_sampled(kmer, parameters.one_in):
            yield i, min(kmer, reverse_complement(kmer), key=number)


def repeats(kmer: str) -> int:
    triplets = Counter(kmer[i : i + 3] for i in range(len(kmer) - 2))
    return sum(math.comb(count, 2) for count in triplets.values())


def kmers_of(sequences: Iterable[str], parameters: IndexParameters) -> set[str]:
    """Those that an index keeps."""
    found = {kmer for bases in sequences for _, kmer in sampled(bases, parameters)}
    return {kmer for kmer in found if repeats(kmer) <= parameters.max_repeats}


def places_of(
    mates: Sequence[str], host: set[str], parameters: IndexParameters
) -> tuple[set[tuple[int, int]], bool]:
    """Mates and places of bases that the host's k-mers cover; whether all sampled ones are its."""
    places = set()
    are_all = True
    for mate, bases in enumerate(mates):
        for i, kmer in sampled(bases, parameters):
            if kmer in host:
                places.update((mate, at) for at in range(i, i + parameters.kmer))
            else:
                are_all = False
    return places, are_all


def replaced(mates: Sequence[str], covered: set[tuple[int, int]]) -> Iterator[list[str]]:
    """The mates with another base in a place that is not covered."""
    for mate, bases in enumerate(mates):
        for at in range(len(bases)):
            if (mate, at) not in covered:
                for base in CODE:
                    other = list(mates)
                    other[mate] = bases[:at] + base + bases[at + 1 :]
                    yield other


def is_host(
    mates: Sequence[str],
    host: set[str],
    parameters: IndexParameters,
    depletion: DepletionParameters,
) -> bool:
    covered, are_all = places_of(mates, host, parameters)
    total = sum(map(len, mates))
    by_share = math.ceil(Fraction(depletion.millionths * total, 10**6))
    if depletion.min_bases is not None:
        return len(covered) >= max(depletion.min_bases, by_share)
    enough = max(parameters.kmer + 1, min(36, total // 2), by_share)
    if len(covered) >= enough:
        return True
    if not covered or total > 120:
        return False
    if are_all and len(covered) >= by_share:
        return True
    enough = max(enough, 2 * total // 3)
    return any(
        len(places_of(other, host, parameters)[0]) >= enough for other in replaced(mates, covered)
    )
