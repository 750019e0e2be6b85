"""Coverage of contigs in plain Python, written from docs/assemble.md."""

from __future__ import annotations

from collections import Counter

from ngsgpu.assemble.contigs.files import Contig
from tests.support.minhash.oracle import canonical


def words_at(contig: Contig, size: int) -> list[str]:
    """The word that begins at each base, around a circle too."""
    bases = contig.bases.decode()
    if not contig.circular:
        return [bases[i : i + size] for i in range(len(bases) - size + 1)]
    return ["".join(bases[(i + j) % len(bases)] for j in range(size)) for i in range(len(bases))]


def coverage(contigs: list[Contig], reads: list[str], size: int) -> list[list[int]]:
    """Reads over each base, each where its first word lies that occurs once in all contigs."""
    places: dict[str, tuple[int, int, str]] = {}
    counts: Counter[str] = Counter()
    for number, contig in enumerate(contigs):
        for at, word in enumerate(words_at(contig, size)):
            counts[canonical(word)] += 1
            places[canonical(word)] = number, at, word
    depths = [[0] * len(contig.bases) for contig in contigs]
    for read in reads:
        words = [read[i : i + size] for i in range(len(read) - size + 1)]
        first = next((i for i, word in enumerate(words) if counts[canonical(word)] == 1), None)
        if first is None:
            continue
        number, at, word = places[canonical(words[first])]
        before = first if word == words[first] else len(read) - size - first
        own, is_circular = depths[number], contigs[number].circular
        for base in range(at - before, at - before + len(read)):
            if is_circular:
                own[base % len(own)] += 1
            elif 0 <= base < len(own):
                own[base] += 1
    return depths
