"""What joins ends where the graph has no path: overlaps of any size, and reads around the ends."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.around import Around
from ngsgpu.assemble.contigs.joins.join import Join
from ngsgpu.assemble.contigs.joins.patches import exact_overlap, overlap, patched
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


def joined(one: str, two: str, reads: list[str], gap: int, error: int, pairs: int) -> str | None:
    """What a patch makes of two dead ends; None if there is none."""
    pieces = graph_with_ends(one, two)
    source, target = direction_of(pieces, one), direction_of(pieces, two)
    reads = reads + [GENOME[820:880]] * (len(reads) % 2)
    held = oracle.held(reads, len(reads) // 2)
    places = place_reads(pieces, held, len(held), 1, sampled=0)
    join = Join(source, target, gap, error, (), False, pairs, said=gap)
    made, (found,) = patched(pieces, [join], held, places, LONGEST)
    return spelled(made, found) if found.closed else None


def test_reads_that_go_past_ends() -> None:
    """Ends 20 bases apart, which reads go past by 12 and by 16 bases: these have 8 in common."""
    reads = [GENOME[at : at + 60] for at in range(308, 353, 4)]
    reads += [reverse_complement(GENOME[at : at + 60]) for at in range(404, 440, 4)]
    assert joined(GENOME[:400], GENOME[420:800], reads, 18, 2, 9) == GENOME[:800]
    # One read has another base where both overlap: it is outvoted, or in doubt.
    wrong = changed(GENOME, 398)[352:412]
    assert joined(GENOME[:400], GENOME[420:800], [wrong, *reads], 18, 2, 9) == GENOME[:800]
    assert joined(GENOME[:400], GENOME[420:800], reads[:9], 18, 2, 9) is None


@pytest.mark.parametrize(
    ("size", "pairs", "closed"),
    [(10, 1, False), (10, 2, True), (13, 1, True), (3, 4, False), (3, 5, True), (2, 9, False)],
)
def test_an_overlap_says_as_much_as_pairs(size: int, pairs: int, closed: bool) -> None:
    one, two = GENOME[:400], GENOME[400 - size : 800]
    found = joined(one, two, [GENOME[100:160], GENOME[600:660]], 2 - size, 3, pairs)
    assert found == (GENOME[:800] if closed else None)


@pytest.mark.parametrize(("said", "closed"), [(6, True), (7, False)])
def test_three_bases_are_too_few_where_pairs_say_more(said: int, closed: bool) -> None:
    """Ends 24 bases apart have three in common: beyond a standard error, that is chance."""
    one = GENOME[:400]
    two = one[-3:] + GENOME[424:800]
    found = joined(one, two, [GENOME[100:160], GENOME[600:660]], said, 9, 7)
    assert (found is not None) == closed


def test_three_bases_are_too_few_where_reads_where_reads_go_on() -> None:
    reads = [GENOME[343:403], GENOME[600:660]]
    assert joined(GENOME[:400], GENOME[400:800], reads, 0, 3, 9) is None


@pytest.mark.parametrize(("error", "closed"), [(4, True), (9, False)])
def test_units_of_a_tandem_repeat(error: int, closed: bool) -> None:
    """Pairs tell the number of units, where one more or less is four standard errors off."""
    unit = GENOME[800:830]
    one, two = GENOME[:300] + unit + unit[:16], unit + GENOME[300:600]
    genome = GENOME[:300] + 2 * unit + GENOME[300:600]
    found = joined(one, two, [genome[100:160], genome[500:560]], -16, error, 9)
    assert found == (genome if closed else None)


def test_a_path_of_another_copy() -> None:
    """Of two copies of a repeat that differ, the graph has one; the other one's reads say so."""
    unit = GENOME[800:880]
    other = changed(unit, 35, 40, 45)
    one, two = GENOME[:400], GENOME[450:800]
    pieces = graph_with_ends(one + unit, unit + two, GENOME[99::-1] + unit + GENOME[299:199:-1])
    source = next(d for d, own in enumerate(oracle.directions(pieces)) if own.startswith(one[:K]))
    target = next(d for d, own in enumerate(oracle.directions(pieces)) if own.endswith(two[-K:]))
    middle = next(d for d, own in enumerate(oracle.directions(pieces)) if own == unit)
    join = Join(source, target, 80 - 2 * (K - 1), 5, (middle,), True, 9)
    for copy, stays in ((unit, True), (other, False)):
        genome = one + copy + two
        pairs = [genome[at : at + 200] for at in range(0, len(genome) - 199, 7)]
        reads = [read for own in pairs for read in (own[:100], reverse_complement(own[100:]))]
        held = oracle.held(reads, len(pairs))
        places = place_reads(pieces, held, len(held), 1, sampled=0)
        assert patched(pieces, [join], held, places, LONGEST)[1] == [join]
        found = patched(pieces, [join], held, places, LONGEST, doubted=True)[1]
        assert found == ([join] if stays else [])


def test_chains_around_ends() -> None:
    """What joins put behind an end, of either strand; a circle goes on."""
    parts = [GENOME[at : at + 200] for at in (0, 150, 300)]
    pieces = Pieces(
        K, codes("".join(parts)), np.array([0, 200, 400, 600]), np.full(3, 20),
        np.zeros(7, dtype=np.int64), np.empty(0, dtype=np.int64),
    )  # fmt: skip
    joins = [Join(0, 2, -50, 5, (), True, 9), Join(2, 4, -50, 5, (), True, 9)]
    around = Around(pieces, joins)
    assert letters(around.behind(0, 420)).tobytes().decode() == GENOME[:420]
    assert letters(around.before(4, 900)).tobytes().decode() == GENOME[:500]
    assert letters(around.behind(5, 900)).tobytes().decode() == reverse_complement(GENOME[:500])
    circle = Around(pieces, [*joins, Join(4, 0, -50, 5, (), True, 9)])
    assert len(circle.behind(0, 2000)) == 2000


def test_ends_of_pieces() -> None:
    pieces = graph_with_ends(GENOME[:80])
    d = direction_of(pieces, GENOME[:80])
    for own, bases in ((d, GENOME[:80]), (d ^ 1, reverse_complement(GENOME[:80]))):
        for size in (5, 100):
            assert letters(begin_of(pieces, own, size)).tobytes().decode() == bases[:size]
            assert letters(end_of(pieces, own, size)).tobytes().decode() == bases[-size:]
