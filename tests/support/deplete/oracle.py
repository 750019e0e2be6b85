"""Which reads are the host's, in plain Python: k-mers as strings, the host's in a set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

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


def is_host(
    mates: Iterable[str],
    host: set[str],
    parameters: IndexParameters,
    depletion: DepletionParameters,
) -> bool:
    covered = total = 0
    for bases in mates:
        total += len(bases)
        places = set()
        for i, kmer in sampled(bases, parameters):
            if kmer in host:
                places.update(range(i, i + parameters.kmer))
        covered += len(places)
    enough = depletion.min_bases
    if enough is None:
        longest = depletion.bounds(parameters, len(host)).longest
        enough = min(36, total // 2) + parameters.kmer * sum(total > bases for bases in longest)
        enough = max(parameters.kmer + 1, enough)
    return covered >= enough and covered * 10**6 >= depletion.millionths * total
