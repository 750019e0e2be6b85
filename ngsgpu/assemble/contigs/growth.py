"""From counted k-mers to the final graph, k by k."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from ngsgpu.assemble.contigs.cleaning import Cleaned, CleaningParameters, cleaned
from ngsgpu.assemble.contigs.params import MAX_KMER, AssemblyParameters
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Pieces
from ngsgpu.assemble.contigs.raising import raise_k
from ngsgpu.assemble.contigs.reads import Reads
from ngsgpu.assemble.stats import n50_of

_STEP: Final = 20
_LEAST_DEPTH: Final = 8
"""Reads per window up to which k goes on growing: with fewer, windows across links are missing, and
pairs bridge what a longer k would resolve."""

BUBBLE_RATIOS: Final = {"errors": 3, "merge": 1, "keep": 0}


@dataclass(frozen=True, slots=True)
class Round:
    """The graph of a k, cleaned.

    Attributes:
        kmer: k.
        pieces: their number.
        bases: their bases.
        n50: pieces of this length and more have half of the bases.
        removed: pieces that were taken out, by reason.
    """

    kmer: int
    pieces: int
    bases: int
    n50: int
    removed: dict[str, int]


def first_kmer(reads_bases: int, reads: int) -> int:
    """The k of the first graph, by the mean length of reads."""
    return 31 if reads_bases >= 60 * reads else 21


def grow(
    pieces: Pieces, reads: Reads, parameters: AssemblyParameters, threads: int
) -> tuple[Pieces, list[Round]]:
    """Clean the first graph, and grow k.

    Args:
        pieces: the first graph.
        reads: the reads.
        parameters: of the assembly.
        threads: number of threads; does not affect the result.
    """
    rounds: list[Round] = []

    def clean(graph: Pieces) -> Pieces:
        counts = Cleaned()
        cleaning = CleaningParameters(
            bubble_ratio=BUBBLE_RATIOS[parameters.bubbles],
            scrap_bases=parameters.min_contig,
        )
        graph = cleaned(graph, cleaning, counts)
        lengths = graph.lengths
        rounds.append(
            Round(graph.k, len(graph), int(lengths.sum()), n50_of(lengths), asdict(counts))
        )
        return graph

    first = pieces.k
    pieces = clean(pieces)
    for k in parameters.kmers[1:] if parameters.kmers else _kmers(pieces, reads):
        if reads.windows(k):
            scale = reads.windows(first), reads.windows(k)
            pieces = clean(raise_k(pieces, reads, k, scale, threads))
    return pieces, rounds


def _kmers(pieces: Pieces, reads: Reads) -> list[int]:
    """Further k-mer lengths: as long as the reads have enough windows, the last one closest."""
    depth = pieces.typical_depth()
    first = reads.windows(pieces.k)

    def enough(k: int) -> bool:
        return depth * reads.windows(k) >= _LEAST_DEPTH * DEPTH_UNIT * max(1, first)

    found = []
    k = pieces.k
    while k < MAX_KMER:
        step = min(_STEP, MAX_KMER - k)
        while step > 0 and not enough(k + step):
            step -= 2
        if step <= 0:
            break
        k += step
        found.append(k)
    return found
