"""Cleaning of an assembly graph: tips, weak connections, bubbles, and lone scraps.

Cleaning goes in rounds. All marks of a round are made on the graph as it is at its beginning, and
a piece is marked only if stronger rivals stay: of two pieces the deeper one is stronger, then the
longer one, then the first. The result is the same for any order of work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, GraphArrays, Pieces, base_of, compacted
from ngsgpu.declared.options import value
from ngsgpu.declared.values import parameters
from ngsgpu.jit import Integer, njit

TIP: Final = 1
WEAK: Final = 2
BUBBLE: Final = 3
SCRAP: Final = 4

_ROUNDS: Final = 30
_SEEN_TWICE: Final = 2 * DEPTH_UNIT
"""Depth below which a piece is what a single read says. Where coverage is low, what is right beside
an error may be in two reads, or in one as well: the ratios of a deep genome would leave both."""

_SEEN_THRICE: Final = 3 * DEPTH_UNIT
"""Depth from which on ``sure_ratio`` holds."""

_WEAK_ONCE: Final = 2
_CLEARLY: Final = 3
_LONG: Final = 4
"""Pieces of this number of k-mer lengths and more are as deep as the genome is there."""

_LEAST_UNIT: Final = 9
_PERIODIC: Final = 21
"""The shortest unit of a tandem repeat, and bases that have to agree with those a unit before."""

_LEAST_ALLELES: Final = 20
_ALLELE_BASES: Final = 20_000
"""Alleles from which on a sample has two: in all, and one for this number of bases. Haploid genomes
have none to three in a million bases, a human some hundred."""


@parameters
class CleaningParameters:
    """What is taken out of a graph."""

    tip_kmers: int = value(2, "A dead end of fewer bases than k times this is a tip,", least=0)
    tip_ratio: int = value(
        3,
        "if it is this many times less deep than its rivals; or less deep at all, and less than a "
        "quarter as deep as most of the genome.",
        least=0,
    )
    weak_ratio: int = value(
        4,
        "A connection this many times less deep than its rivals at both ends is weak; twice, if "
        "only one read has it.",
        least=0,
    )
    bubble_ratio: int = value(
        3,
        "Of two pieces between the same neighbours and of like length, one goes if it is less than "
        "half as deep as most of the genome, and this many times less than the other, or just less "
        "if only one read has it; 1 leaves one piece in any case; 0 keeps both.",
        least=0,
    )
    sure_ratio: int = value(
        0,
        "Where coverage is low: what three reads have goes only beside pieces this many times as "
        "deep; 0: it is like everything else. Errors are there three times in deep repeats alone.",
        least=0,
    )
    scrap_bases: int = value(
        0,
        "Pieces without links that are shorter go, and those as short as tips and less than a "
        "quarter as deep as most of the genome, and single reads.",
        least=0,
    )
    alleles: int = value(
        1, "Alleles that share the depth of most of the genome: each is as deep as a part.", least=1
    )


@dataclass(slots=True)
class Cleaned:
    """How many pieces were taken out."""

    tips: int = 0
    weak: int = 0
    bubbles: int = 0
    scraps: int = 0


def cleaned(pieces: Pieces, parameters: CleaningParameters, counts: Cleaned) -> Pieces:
    """Clean a graph until nothing changes.

    Args:
        pieces: the graph.
        parameters: what is taken out.
        counts: is added to.
    """
    whole = pieces.typical_depth()
    typical = whole // parameters.alleles
    for _ in range(_ROUNDS):
        marks = np.zeros(len(pieces), dtype=np.uint8)
        mark(
            pieces.arrays, parameters.tip_kmers, parameters.tip_ratio, parameters.weak_ratio,
            parameters.bubble_ratio, parameters.sure_ratio, parameters.scrap_bases, typical, whole,
            marks,
        )  # fmt: skip
        found = np.bincount(marks, minlength=5)
        counts.tips += int(found[TIP])
        counts.weak += int(found[WEAK])
        counts.bubbles += int(found[BUBBLE])
        counts.scraps += int(found[SCRAP])
        if found[0] == len(pieces):
            break
        pieces = compacted(pieces, marks == 0)
    return pieces


def has_alleles(pieces: Pieces) -> bool:
    """Whether a cleaned graph is that of a diploid, or of strains.

    Args:
        pieces: the graph, of which bubbles of like depth have been kept.
    """
    found = alleles(pieces.arrays, pieces.typical_depth())
    return found >= _LEAST_ALLELES and found * _ALLELE_BASES >= int(pieces.lengths.sum())


@njit(nogil=True, cache=True)
def is_stronger(
    lengths: NDArray[np.int64], depths: NDArray[np.int64], one: Integer, other: Integer
) -> bool:
    """Whether a piece is stronger than another one."""
    if depths[one] != depths[other]:
        return bool(depths[one] > depths[other])
    if lengths[one] != lengths[other]:
        return bool(lengths[one] > lengths[other])
    return bool(one < other)


@njit(nogil=True, cache=True)
def has_stronger_predecessors(graph: GraphArrays, d: Integer, ratio: int) -> bool:
    """Whether all that follows ``d`` has another, stronger predecessor, ``ratio`` times as deep."""
    lengths, depths = graph.lengths, graph.depths
    link_starts, links = graph.link_starts, graph.links
    piece = d >> 1
    for i in range(link_starts[d], link_starts[d + 1]):
        back = links[i] ^ 1
        outdone = False
        for j in range(link_starts[back], link_starts[back + 1]):
            rival = links[j] >> 1
            if (
                rival != piece
                and depths[rival] >= ratio * depths[piece]
                and is_stronger(lengths, depths, rival, piece)
            ):
                outdone = True
        if not outdone:
            return False
    return True


@njit(nogil=True, cache=True)
def has_better_twin(
    graph: GraphArrays, piece: Integer, ratio: int, slack: int, most: Integer
) -> bool:
    """Whether a stronger piece, ``ratio`` times as deep, lies between the same two neighbours.

    Args:
        graph: the graph.
        piece: the piece.
        ratio: how much deeper the other one is.
        slack: bases by which the lengths may differ.
        most: depth of both, at most, unless one is ``_CLEARLY`` times as deep as the other, or both
            neighbours are long and not deeper.
    """
    lengths, depths = graph.lengths, graph.depths
    link_starts, links = graph.link_starts, graph.links
    d = 2 * piece
    if link_starts[d + 1] - link_starts[d] != 1 or link_starts[d + 2] - link_starts[d + 1] != 1:
        return False
    after = links[link_starts[d]]
    back = links[link_starts[d + 1]] ^ 1
    # Of a short piece the depth is left to chance; what lies beside copies of a repeat is one too.
    in_one_copy = (
        min(lengths[after >> 1], lengths[back >> 1]) >= _LONG * graph.k
        and max(depths[after >> 1], depths[back >> 1]) <= most
    )
    for i in range(link_starts[back], link_starts[back + 1]):
        twin = links[i]
        if (
            twin >> 1 != piece
            and link_starts[twin + 1] - link_starts[twin] == 1
            and links[link_starts[twin]] == after
            and link_starts[(twin ^ 1) + 1] - link_starts[twin ^ 1] == 1
            and abs(lengths[twin >> 1] - lengths[piece]) <= slack
            and depths[twin >> 1] >= ratio * depths[piece]
            and is_stronger(lengths, depths, twin >> 1, piece)
            and (
                in_one_copy
                or depths[twin >> 1] + depths[piece] <= most
                or depths[twin >> 1] >= _CLEARLY * depths[piece]
            )
        ):
            return True
    return False


@njit(nogil=True, cache=True)
def goes_on_in_tandem(graph: GraphArrays, d: int) -> bool:
    """Whether the first k bases of a direction end in a tandem repeat.

    Where a tandem repeat is longer than reads, the graph goes round in it. If a window is in no
    read, the round looks like a tip; and without it, the repeat would seem to be k bases long.
    """
    k, bases, starts = graph.k, graph.bases, graph.starts
    for unit in range(_LEAST_UNIT, k - _PERIODIC + 1):
        i = k - 1
        while i >= k - _PERIODIC and base_of(bases, starts, d, i) == base_of(
            bases, starts, d, i - unit
        ):
            i -= 1
        if i < k - _PERIODIC:
            return True
    return False


@njit(nogil=True, cache=True)
def closes_loop(graph: GraphArrays, piece: int, whole: int) -> bool:
    """Whether a piece is the only way from a repeat's end back to its begin: a tandem repeat.

    An error leads back to where its read goes on, or nowhere. Where it may lead into another copy
    of a repeat whose copies differ, that repeat is no deeper than one copy.

    Args:
        graph: the graph.
        piece: the piece.
        whole: depth of most of the genome.
    """
    lengths, depths = graph.lengths, graph.depths
    link_starts, links = graph.link_starts, graph.links
    d = 2 * piece
    if link_starts[d + 1] - link_starts[d] != 1 or link_starts[d + 2] - link_starts[d + 1] != 1:
        return False
    repeat = links[link_starts[d]]
    if links[link_starts[d + 1]] ^ 1 != repeat or (
        2 * depths[repeat >> 1] < 3 * whole and depths[piece] < _SEEN_TWICE
    ):
        return False
    for i in range(link_starts[repeat], link_starts[repeat + 1]):
        other = links[i]
        if other == repeat:
            return False
        for j in range(link_starts[other], link_starts[other + 1]):
            if links[j] == repeat and is_stronger(lengths, depths, other >> 1, piece):
                return False
    return repeat >> 1 != piece


@njit(nogil=True, cache=True)
def find_loops(graph: GraphArrays, whole: int, loops: NDArray[np.bool_]) -> None:
    """Mark all pieces that close loops; see ``closes_loop``."""
    for piece in range(len(loops)):
        loops[piece] = closes_loop(graph, piece, whole)


@njit(nogil=True, cache=True)
def alleles(graph: GraphArrays, typical: int) -> int:
    """Number of places at which two pieces of like length share the depth of most of the genome.

    So do alleles and strains. Where two copies of a repeat differ, each is as deep as the genome.

    Args:
        graph: the graph, cleaned.
        typical: depth of most of the genome.
    """
    lengths, depths = graph.lengths, graph.depths
    link_starts, links = graph.link_starts, graph.links
    found = 0
    for piece in range(len(lengths)):
        d = 2 * piece
        if link_starts[d + 1] - link_starts[d] != 1 or link_starts[d + 2] - link_starts[d + 1] != 1:
            continue
        after, back = links[link_starts[d]], links[link_starts[d + 1]] ^ 1
        if link_starts[back + 1] - link_starts[back] != 2:
            continue
        for i in range(link_starts[back], link_starts[back + 1]):
            twin = links[i]
            if (
                twin >> 1 > piece
                and link_starts[twin + 1] - link_starts[twin] == 1
                and links[link_starts[twin]] == after
                and abs(lengths[twin >> 1] - lengths[piece]) <= max(8, lengths[piece] // 20)
                and 2 * (depths[twin >> 1] + depths[piece]) <= 3 * typical
            ):
                found += 1
    return found


@njit(nogil=True, cache=True)
def mark(
    graph: GraphArrays,
    tip_kmers: int,
    tip_ratio: int,
    weak_ratio: int,
    bubble_ratio: int,
    sure_ratio: int,
    scrap_bases: int,
    typical: int,
    whole: int,
    marks: NDArray[np.uint8],
) -> None:
    """Mark the pieces that go, with ``TIP``, ``WEAK``, ``BUBBLE`` or ``SCRAP``.

    Args:
        graph: the graph.
        tip_kmers: see ``CleaningParameters``.
        tip_ratio: see ``CleaningParameters``.
        weak_ratio: see ``CleaningParameters``.
        bubble_ratio: see ``CleaningParameters``.
        sure_ratio: see ``CleaningParameters``.
        scrap_bases: see ``CleaningParameters``.
        typical: depth of what is no error; at half of it and more, no piece is as rare as errors.
        whole: depth of most of the genome; alternatives deeper than 1.5 times this in all are of
            copies of a repeat.
        marks: uint8[n], zeros.
    """
    most = 3 * whole // 2
    k, lengths, depths, link_starts = graph.k, graph.lengths, graph.depths, graph.link_starts
    for piece in range(len(lengths)):
        d = 2 * piece
        ahead = link_starts[d + 1] - link_starts[d]
        behind = link_starts[d + 2] - link_starts[d + 1]
        scarce = 4 * depths[piece] < typical
        if ahead + behind == 0:
            alone = depths[piece] <= DEPTH_UNIT
            if alone or lengths[piece] < scrap_bases or (scarce and lengths[piece] < tip_kmers * k):
                marks[piece] = SCRAP
            continue
        sure = sure_ratio if depths[piece] >= _SEEN_THRICE else 0
        if ahead == 0 or behind == 0:
            linked = d if ahead > 0 else d + 1
            if (
                lengths[piece] < tip_kmers * k
                and has_stronger_predecessors(graph, linked, max(sure, 1 if scarce else tip_ratio))
                and not goes_on_in_tandem(graph, linked ^ 1)
            ):
                marks[piece] = TIP
            continue
        rare = 2 * depths[piece] < typical
        once = depths[piece] < _SEEN_TWICE
        weak = max(sure, min(_WEAK_ONCE, weak_ratio) if once else weak_ratio)
        if (
            rare
            and lengths[piece] <= 3 * k
            and has_stronger_predecessors(graph, d, weak)
            and has_stronger_predecessors(graph, d + 1, weak)
            and not (sure_ratio > 0 and closes_loop(graph, piece, whole))
        ):
            marks[piece] = WEAK
        elif (bubble_ratio == 1 or (bubble_ratio > 1 and rare)) and has_better_twin(
            graph, piece,
            1 if once or bubble_ratio == 1 else max(sure, bubble_ratio),
            max(8, lengths[piece] // 20), most,
        ):  # fmt: skip
            marks[piece] = BUBBLE
