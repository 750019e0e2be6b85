"""Which pieces are there once: near tandem repeats and between alternatives."""

from __future__ import annotations

import random

import pytest

from ngsgpu.assemble.contigs.joins.unique import unique_pieces
from tests.support.assemble import contigs as oracle
from tests.support.assemble.oracle import counted

K = 51
GENOME = "".join(random.Random(5).choices("ACGT", k=12_000))
REPEAT = GENOME[7000:7100]


def is_unique(kmers: dict[str, int], bases: str) -> bool:
    """Whether the piece is unique that has some bases."""
    pieces = oracle.graph(kmers, K)
    (row,) = (i for i in range(len(pieces)) if any(bases in own for own in two_of(pieces, i)))
    return bool(unique_pieces(pieces, 100)[row])


def two_of(pieces: oracle.Pieces, row: int) -> list[str]:
    return oracle.directions(pieces)[2 * row : 2 * row + 2]


@pytest.mark.parametrize(
    ("depth", "size", "unique"),
    [(20, 300, True), (24, 300, True), (28, 300, False), (20, 900, True), (29, 900, False)],
)
@pytest.mark.parametrize("goes_round", [False, True])
def test_depth_in_a_loop(depth: int, size: int, unique: bool, goes_round: bool) -> None:
    """What leads from a repeat back to it may be there more often, unless its depth says no."""
    kmers = dict.fromkeys(counted([GENOME[:5000], GENOME[9000:]], K), 20)
    inner = GENOME[6000 : 6000 + size]
    for text in (GENOME[4900:5000] + REPEAT, REPEAT + GENOME[9000:9100]):
        kmers |= dict.fromkeys(counted([text], K), 20)
    other = REPEAT if goes_round else GENOME[8000:8400]
    kmers |= dict.fromkeys(counted([REPEAT + inner + other], K), depth)
    kmers |= dict.fromkeys(counted([REPEAT], K), 60)
    assert is_unique(kmers, inner[60:-60]) == (unique or not goes_round)


@pytest.mark.parametrize(
    ("depth", "ways", "unique"),
    [(27, (18, 16), False), (22, (18, 16), True), (27, (11, 12), True), (27, (28, 5), True)],
)
def test_what_goes_on_in_two_ways(depth: int, ways: tuple[int, int], unique: bool) -> None:
    """It is there twice, unless both ways are alleles, or one an error, or it is not deeper."""
    own = GENOME[2000:2300]
    kmers = dict.fromkeys(counted([GENOME[4000:]], K), 20)
    kmers |= dict.fromkeys(counted([own + GENOME[:1000]], K), ways[0])
    kmers |= dict.fromkeys(counted([own + GENOME[1000:2000]], K), ways[1])
    kmers |= dict.fromkeys(counted([own], K), depth)
    assert is_unique(kmers, own[60:-60]) == unique


def test_a_plasmid_that_has_most_of_the_reads() -> None:
    """A repeat of the chromosome is one, though less deep than the plasmid."""
    inner = GENOME[2000:2300]
    chromosome = GENOME[:2000] + inner + GENOME[2300:3600] + inner + GENOME[3600:5000]
    kmers = {kmer: 20 * times for kmer, times in counted([chromosome], K).items()}
    kmers |= dict.fromkeys(counted([GENOME[7000:]], K), 300)
    assert not is_unique(kmers, inner[60:-60])
    assert is_unique(kmers, GENOME[500:700])
    assert is_unique(kmers, GENOME[8000:8200])
