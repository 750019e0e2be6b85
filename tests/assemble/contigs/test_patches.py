"""What joins ends where the graph has no path: overlaps of any size, and reads around the ends."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins import Join
from ngsgpu.assemble.contigs.patches import exact_overlap, overlap, patched
from ngsgpu.assemble.contigs.pieces import Pieces, begin_of, end_of, letters
from ngsgpu.assemble.contigs.places import place_reads
from tests.support.assemble import contigs as oracle
from tests.support.assemble.oracle import counted
from tests.support.minhash.oracle import reverse_complement

GENOME = "".join(random.Random(4).choices("ACGT", k=900))
K = 51
LONGEST = 215


def codes(bases: str) -> NDArray[np.uint8]:
    return np.array(["ACGT".index(base) for base in bases], dtype=np.uint8)


def changed(bases: str, *places: int) -> str:
    """Some bases replaced by others."""
    own = list(bases)
    for at in places:
        own[at] = "ACGT"["ACGT".index(own[at]) - 1]
    return "".join(own)


@pytest.mark.parametrize("size", [5, 12, 40])
def test_ends_that_overlap(size: int) -> None:
    found = overlap(codes(GENOME[:100]), codes(GENOME[100 - size : 200]), 0, 45)
    assert found is not None
    assert (found.before, found.after, found.gap) == (size - size // 2, size // 2, -size)


def test_ends_with_errors() -> None:
    """Each end is right where it is far from its last base; foreign bases at an end are cut."""
    one, two = changed(GENOME[:100], 95), changed(GENOME[70:200], 3)
    found = overlap(codes(one), codes(two), 20, 40)
    assert found is not None
    assert one[: len(one) - found.before] + two[found.after :] == GENOME[:200]
    foreign = changed(GENOME[:100], 91, 93, 94, 96, 97, 98)
    found = overlap(codes(foreign), codes(GENOME[70:200]), 20, 40)
    assert found is not None
    assert foreign[: 100 - found.before] + GENOME[70 + found.after : 200] == GENOME[:200]


def test_ends_that_do_not_overlap() -> None:
    """Too few bases, beyond what pairs say, or two sizes that are as likely."""
    one, two = codes(GENOME[:100]), codes(GENOME[97:200])
    assert overlap(one, two, -10, 40) is None
    assert overlap(one, codes(GENOME[80:200]), -10, 19) is None
    assert overlap(codes("GATCGATC"), codes("GATCGATCGA"), 0, 8) is None
    assert exact_overlap(one, codes(GENOME[86:200]), 0, 40) is None
    found = exact_overlap(one, codes(GENOME[80:200]), 0, 40)
    assert found is not None
    assert (found.shared, found.gap) == (20, -20)


def graph_with_ends(*sequences: str) -> Pieces:
    kmers: dict[str, int] = {}
    for own in sequences:
        for kmer in counted([own], K):
            kmers[kmer] = 20
    return oracle.graph(kmers, K)


def direction_of(pieces: Pieces, bases: str) -> int:
    return oracle.directions(pieces).index(bases)


def spelled(pieces: Pieces, join: Join) -> str:
    """The bases of a join, from one end to the other."""
    own = oracle.directions(pieces)
    steps = [join.source, *join.between, join.target]
    for a, b in itertools.pairwise(steps):
        assert own[a][-(K - 1) :] == own[b][: K - 1]
        for d, e in ((a, b), (b ^ 1, a ^ 1)):
            assert e in pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]]
    return own[steps[0]] + "".join(own[step][K - 1 :] for step in steps[1:])


def read_pairs(genome: str, step: int) -> list[str]:
    """Pairs of 60 bases, one every few bases, of either strand."""
    found = []
    for begin in range(0, len(genome) - 199, step):
        mates = [genome[begin : begin + 60], reverse_complement(genome[begin : begin + 200])[:60]]
        found += mates if begin % (2 * step) else mates[::-1]
    return found


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("gap", [-20, 0, 70])
def test_reads_between(gap: int, is_turned: bool) -> None:
    """What the reads at two ends and their mates have between, in the graph and on other strands.

    Both ends have a link to elsewhere, so that no overlap alone is enough.
    """
    one, two = GENOME[:400], GENOME[400 + gap : 800]
    elsewhere = "".join(random.Random(9).choices("ACGT", k=200))
    pieces = graph_with_ends(
        one, one[-(K - 1) :] + elsewhere, two, elsewhere[::-1] + two[: K - 1],
        one[-(K - 1) :] + elsewhere[::-1][:99], elsewhere[:99] + two[: K - 1],
    )  # fmt: skip
    source, target = direction_of(pieces, one), direction_of(pieces, two)
    if is_turned:
        source, target = target ^ 1, source ^ 1
    reads = oracle.held(read_pairs(GENOME, 4), len(read_pairs(GENOME, 4)) // 2)
    places = place_reads(pieces, reads, len(reads), 1, sampled=0)
    join = Join(source, target, gap + 3, 1, (), False, 9)
    made, (found,) = patched(pieces, [join], reads, places, LONGEST)
    assert (found.closed, found.patched, found.gap) == (True, True, gap)
    text = spelled(made, found)
    assert (reverse_complement(text) if is_turned else text) == GENOME[:800]
    assert len(made) == len(pieces) + 1


def test_tandem_repeats_are_left_open() -> None:
    """Reads cannot tell how often a unit of a tandem repeat follows, longer than they are."""
    unit = "GATTACATTGACCTG"
    genome = GENOME[:300] + 8 * unit + GENOME[300:600]
    pieces = graph_with_ends(genome[:330], genome[390:])
    source = direction_of(pieces, genome[:330])
    target = direction_of(pieces, genome[390:])
    reads = oracle.held(read_pairs(genome, 4), len(read_pairs(genome, 4)) // 2)
    places = place_reads(pieces, reads, len(reads), 1, sampled=0)
    join = Join(source, target, 60, 1, (), False, 9)
    made, joins = patched(pieces, [join], reads, places, LONGEST)
    assert (made, joins) == (pieces, [join])


def test_ends_of_pieces() -> None:
    pieces = graph_with_ends(GENOME[:80])
    d = direction_of(pieces, GENOME[:80])
    for own, bases in ((d, GENOME[:80]), (d ^ 1, reverse_complement(GENOME[:80]))):
        for size in (5, 100):
            assert letters(begin_of(pieces, own, size)).tobytes().decode() == bases[:size]
            assert letters(end_of(pieces, own, size)).tobytes().decode() == bases[-size:]
