"""Unitigs in plain Python, slowly, on strings, written from docs/unitigs.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from tests.support.minhash.oracle import canonical, reverse_complement


class Unitig(NamedTuple):
    """A unitig: its letters, and its canonical k-mers in order."""

    bases: str
    nodes: list[str]


def counted(sequences: list[str], k: int) -> Counter[str]:
    """Every canonical k-mer of sequences and how often it occurs."""
    return Counter(canonical(own[i : i + k]) for own in sequences for i in range(len(own) - k + 1))


def successors(kmers: Mapping[str, int], kmer: str) -> list[str]:
    """The k-mers that follow one, as they are read after it."""
    return [kmer[1:] + base for base in "ACGT" if canonical(kmer[1:] + base) in kmers]


def predecessors(kmers: Mapping[str, int], kmer: str) -> list[str]:
    return [base + kmer[:-1] for base in "ACGT" if canonical(base + kmer[:-1]) in kmers]


def path_from(kmers: Mapping[str, int], kmer: str) -> tuple[list[str], bool]:
    """The path that begins with a k-mer as long as there is no alternative; whether it is closed.

    No k-mer is on a path twice, on either strand.
    """
    path = [kmer]
    used = {canonical(kmer)}
    while True:
        after = successors(kmers, path[-1])
        if len(after) != 1 or len(predecessors(kmers, after[0])) != 1:
            return path, False
        if canonical(after[0]) in used:
            return path, after[0] == kmer and len(path) > 1
        path.append(after[0])
        used.add(canonical(after[0]))


def spelled(path: list[str]) -> str:
    return path[0] + "".join(kmer[-1] for kmer in path[1:])


def unitigs(kmers: Mapping[str, int]) -> list[Unitig]:
    """All unitigs, each on its strand, in their order."""
    found: dict[str, Unitig] = {}
    done: set[str] = set()
    for kmer in sorted(kmers):
        if kmer in done:
            continue
        path, closed = path_from(kmers, kmer)
        if not closed:
            backward, _ = path_from(kmers, reverse_complement(kmer))
            path, _ = path_from(kmers, reverse_complement(backward[-1]))
        nodes = [canonical(own) for own in path]
        assert kmer in nodes
        done.update(nodes)
        bases = spelled(path)
        if closed:
            # The smallest k-mer comes first in the loop above.
            assert kmer == min(nodes)
            found[kmer] = Unitig(bases, nodes)
            continue
        if reverse_complement(bases) < bases:
            bases, nodes = reverse_complement(bases), nodes[::-1]
        found[min(nodes[0], nodes[-1])] = Unitig(bases, nodes)
    assert sorted(done) == sorted(kmers)
    return [found[node] for node in sorted(found)]


def links(kmers: Mapping[str, int], found: list[Unitig], k: int) -> list[list[tuple[int, int]]]:
    """What follows each unitig (2u) and its reverse complement (2u + 1)."""
    begins: dict[str, tuple[int, int]] = {}
    for number, unitig in enumerate(found):
        begins[unitig.bases[:k]] = number, 0
        begins[reverse_complement(unitig.bases[-k:])] = number, 1
    return [
        [begins[kmer] for kmer in successors(kmers, bases[-k:])]
        for unitig in found
        for bases in (unitig.bases, reverse_complement(unitig.bases))
    ]


def texts(kmers: Mapping[str, int], k: int) -> tuple[str, str]:
    """FASTA and GFA."""
    found = unitigs(kmers)
    linked = links(kmers, found, k)
    fasta, segments = [], ["H\tVN:Z:1.0"]
    lines = []
    for number, unitig in enumerate(found):
        total = sum(kmers[node] for node in unitig.nodes)
        mean = round(Fraction(total, len(unitig.nodes)) * 10)
        shown = f"{mean // 10}.{mean % 10}"
        header = [f">{number}", f"LN:i:{len(unitig.bases)}", f"KC:i:{total}", f"km:f:{shown}"]
        for strand in (0, 1):
            for other, turned in linked[2 * number + strand]:
                header.append(f"L:{'+-'[strand]}:{other}:{'+-'[turned]}")
                if (number, strand) <= (other, 1 - turned):
                    lines.append(f"L\t{number}\t{'+-'[strand]}\t{other}\t{'+-'[turned]}\t{k - 1}M")
        fasta += [" ".join(header), unitig.bases]
        segments.append(
            f"S\t{number}\t{unitig.bases}\tLN:i:{len(unitig.bases)}\tKC:i:{total}\tDP:f:{shown}"
        )
    return "".join(f"{line}\n" for line in fasta), "".join(f"{line}\n" for line in segments + lines)
