"""From counted k-mers to the final graph, k by k."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from typing import Final

from ngsgpu.assemble.contigs.cleaning import Cleaned, CleaningParameters, cleaned, has_alleles
from ngsgpu.assemble.contigs.params import MAX_KMER, AssemblyParameters
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Pieces
from ngsgpu.assemble.contigs.raising import raise_k
from ngsgpu.assemble.contigs.reads import Reads
from ngsgpu.assemble.stats import n50_of

_LOG = logging.getLogger("ngsgpu")
_STEP: Final = 20
LOW_DEPTH: Final = 18
"""Depth of the first graph below which coverage is low: about 27-fold, with reads of 100 bases and
k = 31. Of a k-mer's true copies then more than a few in a million are single, so that those seen
once count, and k begins at 21, which the ends of more reads share. This, the windows and the pairs
below were chosen on parts of E. coli K-12 MG1655 and S. aureus USA300 (2 x 100, 10- to 40-fold) and
checked on others. How contigs are joined at low coverage was chosen on four more, too, and checked
on parts of ten others: see docs/assemble.md."""

_LOW_KMER: Final = 21
_LEAST_DEPTH: Final = 8
_LEAST_LOW_DEPTH: Final = 3
"""Reads per window up to which k goes on growing: with fewer, windows across links are missing, and
pairs bridge what a longer k would resolve. Where coverage is low, there are too few pairs for many
short repeats, and patches put back what windows lack."""

_SURE_RATIO: Final = 16
"""Where coverage is low: what three reads have is an error only beside what is this much deeper. Of
E. coli and S. aureus, as of S. enterica and M. tuberculosis, on which it was checked, every piece
that cleaning took and three reads have was right."""

BUBBLE_RATIOS: Final = {"auto": 3, "errors": 3, "merge": 1, "keep": 0}


_OUTCOMES: Final = {
    "auto": "contigs have the more frequent one; with `bubbles='errors'` they end at each of them",
    "errors": "contigs end at each of them; `bubbles='merge'` keeps the more frequent one",
}


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


def low_start(kmer: int, least: int, parameters: AssemblyParameters) -> tuple[int, int]:
    """The first k and the lowest count of a k-mer where coverage is low.

    Args:
        kmer: the first k of usual coverage.
        least: the lowest count of usual coverage.
        parameters: of the assembly; what they give holds.
    """
    return (
        kmer if parameters.kmers else min(kmer, _LOW_KMER),
        least if parameters.min_abundance else 1,
    )


def grow(
    pieces: Pieces, reads: Reads, parameters: AssemblyParameters, threads: int, *, is_low: bool
) -> tuple[Pieces, list[Round]]:
    """Clean the first graph, and grow k.

    Args:
        pieces: the first graph.
        reads: the reads.
        parameters: of the assembly.
        threads: number of threads; does not affect the result.
        is_low: whether coverage is low.
    """
    rounds: list[Round] = []
    cleaning = CleaningParameters(
        bubble_ratio=BUBBLE_RATIOS[parameters.bubbles],
        sure_ratio=_SURE_RATIO if is_low else 0,
        scrap_bases=parameters.min_contig,
    )
    if _is_mixed(pieces, parameters):
        merges = parameters.bubbles == "auto"
        ratio = BUBBLE_RATIOS["merge"] if merges else cleaning.bubble_ratio
        cleaning = replace(cleaning, alleles=2, bubble_ratio=ratio)

    def clean(graph: Pieces) -> Pieces:
        counts = Cleaned()
        graph = cleaned(graph, cleaning, counts)
        lengths = graph.lengths
        rounds.append(
            Round(graph.k, len(graph), int(lengths.sum()), n50_of(lengths), asdict(counts))
        )
        return graph

    first = pieces.k
    pieces = clean(pieces)
    least = _LEAST_LOW_DEPTH if is_low else _LEAST_DEPTH
    for k in parameters.kmers[1:] if parameters.kmers else _kmers(pieces, reads, least):
        if reads.windows(k):
            scale = reads.windows(first), reads.windows(k)
            pieces = clean(raise_k(pieces, reads, k, scale, threads, keeps_only=is_low))
    return pieces, rounds


def _is_mixed(pieces: Pieces, parameters: AssemblyParameters) -> bool:
    """Whether the reads are of a diploid, or of strains; says what that does to contigs."""
    usual = CleaningParameters(scrap_bases=parameters.min_contig)
    if not has_alleles(cleaned(pieces, usual, Cleaned())):
        return False
    if parameters.bubbles in _OUTCOMES:
        _LOG.warning(
            "many places have two alternatives that share the coverage, as of a diploid or of two "
            "strains, and %s", _OUTCOMES[parameters.bubbles],
        )  # fmt: skip
    return True


def _kmers(pieces: Pieces, reads: Reads, least: int) -> list[int]:
    """Further k-mer lengths: as long as a place has as many windows, the last one closest."""
    depth = pieces.typical_depth()
    first = reads.windows(pieces.k)

    def enough(k: int) -> bool:
        return depth * reads.windows(k) >= least * DEPTH_UNIT * max(1, first)

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
