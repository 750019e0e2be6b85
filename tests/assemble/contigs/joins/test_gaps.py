"""Gaps by pairs, joins that pass each other's ends, and votes of reads."""

from __future__ import annotations

import random
from unittest.mock import patch

import numpy as np
import pytest

from ngsgpu.assemble.contigs.joins.bridges import find_joins
from ngsgpu.assemble.contigs.joins.copies import Copies
from ngsgpu.assemble.contigs.joins.gaps import Links, libraries_of, linked
from ngsgpu.assemble.contigs.joins.join import Join, bridged, split
from ngsgpu.assemble.contigs.joins.local import LocalReads
from ngsgpu.assemble.contigs.joins.paths import Path, paths_between
from ngsgpu.assemble.contigs.joins.search import Support
from ngsgpu.assemble.contigs.joins.unique import unique_pieces
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Pieces, without_ends
from ngsgpu.assemble.contigs.places import place_reads
from ngsgpu.assemble.contigs.votes import corrected, lone_ends, votes_on
from ngsgpu.assemble.contigs.walks import unsure_links
from tests.support.assemble import contigs as oracle
from tests.support.assemble.oracle import counted
from tests.support.minhash.oracle import reverse_complement

K = 51
GENOME = "".join(random.Random(5).choices("ACGT", k=9000))


def graph_of(*sequences: str) -> Pieces:
    kmers = {kmer: 20 for own in sequences for kmer in counted([own], K)}
    return oracle.graph(kmers, K)


def pairs_of(genome: str, number: int, seed: int) -> list[str]:
    """Pairs of 100 bases with inserts of about 300, of either strand."""
    rng = random.Random(seed)
    found = []
    for _ in range(number):
        size = max(100, int(rng.gauss(300, 30)))
        begin = rng.randrange(len(genome) - size + 1)
        own = genome[begin : begin + size]
        own = own if rng.random() < 0.5 else reverse_complement(own)
        found += [own[:100], reverse_complement(own)[:100]]
    return found


@pytest.mark.parametrize("gap", [-40, 60, 180])
def test_fragments_that_show(gap: int) -> None:
    """Short fragments do not show over a wide gap: the mean of all would make it too small."""
    one, two = GENOME[:4500], GENOME[4500 + gap :]
    pieces = graph_of(one, two)
    source, target = (oracle.directions(pieces).index(own) for own in (one, two))
    misses = []
    for seed in range(10):
        reads = oracle.held(pairs_of(GENOME, 900, seed), 900)
        places = place_reads(pieces, reads, len(reads), 1)
        libraries = libraries_of(pieces, places, [900])
        assert abs(libraries.inserts[0].median - 300) < 6
        links = linked(pieces, places, libraries, np.ones(2, dtype=np.bool_), 3)
        rows = {
            (int(a), int(b)): i for i, (a, b) in enumerate(zip(links[0], links[1], strict=True))
        }
        if (source, target) not in rows:
            continue
        row, back = rows[source, target], rows[target ^ 1, source ^ 1]
        assert links.gaps[row] == links.gaps[back]
        assert abs(links.gaps[row] - gap) <= 3 * links.errors[row] + 2
        misses.append(int(links.gaps[row]) - gap)
    assert len(misses) >= 9
    assert abs(sum(misses)) < 7 * len(misses)


def test_libraries() -> None:
    """Each file has its own insert size; two with few pairs share one; mate pairs have none."""
    pieces = graph_of(GENOME)
    rng = random.Random(3)

    def mates(number: int, size: int, *, turned: bool = False) -> list[str]:
        found = []
        for _ in range(number):
            begin = rng.randrange(len(GENOME) - size)
            own = [
                GENOME[begin : begin + 100],
                reverse_complement(GENOME[begin : begin + size])[:100],
            ]
            found += [reverse_complement(read) if turned else read for read in own]
        return found

    files = [
        mates(200, 300),
        mates(60, 500),
        mates(300, 2000),
        mates(70, 500),
        mates(150, 900, turned=True),
    ]
    reads = [read for own in files for read in own]
    ends = np.cumsum([len(own) // 2 for own in files]).tolist()
    held = oracle.held(reads, len(reads) // 2)
    libraries = libraries_of(pieces, place_reads(pieces, held, len(held), 1, sampled=0), ends)
    assert [insert.median for insert in libraries.inserts] == [300, 2000, 500]
    assert libraries.of_pair[[0, 200, 260, 560, 630]].tolist() == [0, 2, 1, 2, -1]
    assert (libraries.outward, libraries.longest) == ((4,), 2000)
    assert libraries.main == libraries.inserts[1]


def pieces_of_lengths(*lengths: int) -> Pieces:
    """Pieces without links."""
    none = np.empty(0, dtype=np.int64)
    starts = np.cumsum([0, *lengths])
    depths = np.full(len(lengths), 20 * DEPTH_UNIT)
    bases = np.zeros(int(starts[-1]), dtype=np.uint8)
    return Pieces(K, bases, starts, depths, np.zeros(2 * len(lengths) + 1, dtype=np.int64), none)


def test_joins_that_pass_ends() -> None:
    """Pieces 0, 1, 2, 3 follow each other over 4 and 5; pairs see only the next but one."""
    pieces = pieces_of_lengths(2000, 150, 150, 2000, 80, 80)
    unique = np.array([1, 1, 1, 1, 0, 0], dtype=np.bool_)
    joins = [
        Join(0, 4, 20, 5, (8, 2, 10), True, 9),
        Join(2, 6, 20, 5, (10, 4), True, 9),
    ]
    found = split(pieces, joins, unique)
    assert [(join.source, join.between, join.target) for join in found] == [
        (0, (8,), 2), (2, (10,), 4), (4, (), 6)
    ]  # fmt: skip
    assert [join.gap for join in found] == [80 - 2 * (K - 1), 80 - 2 * (K - 1), 1 - K]
    # Two paths go through piece 1 from different pieces to different ones: it is a repeat.
    joins = [Join(0, 4, 20, 5, (8, 2, 10), True, 9), Join(7, 5, 20, 5, (2, 8), True, 9)]
    assert [join.between for join in split(pieces, joins, unique)] == [(8, 2, 10), (2, 8)]


def test_an_open_join_gives_way_to_a_path() -> None:
    pieces = pieces_of_lengths(2000, 150, 2000)
    unique = np.ones(3, dtype=np.bool_)
    joins = [Join(0, 4, 20, 5, (2,), True, 9), Join(2, 5, 20, 5, (), False, 9)]
    assert [join.steps for join in split(pieces, joins, unique)] == [(0, 2), (2, 4)]


def test_a_circle_over_a_repeat() -> None:
    pieces = pieces_of_lengths(2000, 80)
    paths = bridged(pieces, [Join(0, 0, 20, 5, (2,), True, 9)])
    assert (paths.steps.tolist(), paths.circles) == ([0, 2], frozenset([0]))


ONE, TWO, UNIT, SPACER = GENOME[:400], GENOME[1000:1400], GENOME[4200:4300], GENOME[5200:5300]


def tandem_paths(depth: int, elsewhere: str) -> tuple[Pieces, int, int, list[Path]]:
    """Two ends, between which a unit follows itself after a spacer; and the paths between them.

    Args:
        depth: of the spacer; that of the ends is 20, and that of the unit 20 more.
        elsewhere: what is also there.
    """
    kmers = {kmer: 20 for own in (ONE + UNIT, UNIT + TWO) for kmer in counted([own], K)}
    kmers |= dict.fromkeys(counted([UNIT + SPACER + UNIT], K), depth)
    kmers |= dict.fromkeys(counted([UNIT], K), depth + 20)
    kmers |= {kmer: 20 for kmer in counted([elsewhere], K) if kmer not in kmers}
    pieces = oracle.graph(kmers, K)
    own = oracle.directions(pieces)
    source = next(d for d, bases in enumerate(own) if bases.startswith(ONE[:K]))
    target = next(d for d, bases in enumerate(own) if bases.endswith(TWO[-K:]))
    ends = np.zeros(len(pieces), dtype=np.bool_)
    ends[[source >> 1, target >> 1]] = True
    number, sizes, starts, steps = paths_between(pieces.arrays, ends, source, target, -50, 800, 8)
    paths = [
        (int(sizes[i]), tuple(steps[starts[i] : starts[i + 1]].tolist())) for i in range(number)
    ]
    return pieces, source, target, sorted(paths)


@pytest.mark.parametrize(
    ("depth", "error", "units"),
    [(20, 60, 2), (20, 15, 2), (40, 60, None), (40, 20, 2), (20, 400, None)],
)
def test_paths_by_gap_and_depth(depth: int, error: int, units: int | None) -> None:
    """Where pairs leave a doubt about the number of units, the depth of the spacer tells."""
    pieces, source, target, paths = tandem_paths(depth, GENOME[6000:8000])
    sizes = [size for size, _ in paths]
    assert len(paths) >= 3
    chosen = Copies(pieces, paths[:3], source, target, 20 * DEPTH_UNIT).chosen(
        paths[:3], sizes[1] + 10, error
    )
    assert [size for size, _ in chosen] == ([] if units is None else [sizes[units - 1]])


def test_depth_tells_less_of_what_is_elsewhere() -> None:
    """A spacer that goes on elsewhere may be there for that: that no path passes it is possible."""
    pieces, source, target, paths = tandem_paths(20, SPACER[-80:] + GENOME[6000:8000])
    gap = paths[1][0] - 30
    assert (
        Copies(pieces, paths[:2], source, target, 20 * DEPTH_UNIT).chosen(paths[:2], gap, 60) == []
    )
    pieces, source, target, paths = tandem_paths(20, GENOME[6000:8000])
    assert (
        Copies(pieces, paths[:2], source, target, 20 * DEPTH_UNIT).chosen(paths[:2], gap, 60)
        == paths[1:2]
    )


@pytest.mark.parametrize(("depths", "single"), [((30, 14), True), ((30, 40), False)])
def test_alternatives_are_one_copy_each(depths: tuple[int, int], single: bool) -> None:
    """Of two copies that differ, one may be deeper by chance; both together are not."""
    other = GENOME[:300] + GENOME[800] + GENOME[301:600]
    other = other if other != GENOME[:600] else GENOME[:300] + GENOME[801] + GENOME[301:600]
    kmers = {kmer: sum(depths) for kmer in counted([GENOME[:600]], K)}
    window = slice(300 - K + 1, 300 + K)
    kmers |= dict.fromkeys(counted([GENOME[window]], K), depths[0])
    kmers |= dict.fromkeys(counted([other[window]], K), depths[1])
    kmers |= dict.fromkeys(counted([GENOME[3000:6000]], K), 20)
    pieces = oracle.graph(kmers, K)
    unique = unique_pieces(pieces, 100)
    rows = [i for i, own in enumerate(oracle.sequences(pieces)) if len(own) == 2 * K - 1]
    assert len(rows) == 2
    assert all(unique[rows]) == single


@pytest.mark.parametrize(("size", "unique"), [(2500, True), (1200, False)])
def test_plasmids(size: int, unique: bool) -> None:
    """What is not linked to the rest and deep is a plasmid, if it is long; else it is a repeat."""
    ring, repeat = GENOME[5000 : 5000 + size], GENOME[5600:5680]
    chromosome = "".join(random.Random(6).choices("ACGT", k=12_000))
    kmers = dict.fromkeys(counted([chromosome], K), 20)
    kmers |= dict.fromkeys(counted([ring, ring[-100:] + ring[:100]], K), 60)
    kmers |= dict.fromkeys(counted([ring[-90:-40] + repeat + ring[90:140]], K), 60)
    kmers |= dict.fromkeys(counted([repeat], K), 120)
    pieces = oracle.graph(kmers, K)
    found = unique_pieces(pieces, 100)
    depths = pieces.depths // DEPTH_UNIT
    assert found[depths <= 20].all()
    assert found[(depths == 60) & (pieces.lengths > 250)].all() == unique
    assert not found[depths > 100].any()


def test_one_pair_joins_for_a_patch_only() -> None:
    """One pair makes an open join, where so few are wanted; a path needs more."""
    repeat = GENOME[2980:3060]
    kmers = dict.fromkeys(counted([GENOME[7000:7100] + repeat + GENOME[7200:7300]], K), 20)
    kmers |= dict.fromkeys(counted([GENOME[:6000]], K), 20)
    kmers |= dict.fromkeys(counted([repeat], K), 40)
    pieces = oracle.graph(kmers, K)
    reads = pairs_of(GENOME[:2900], 150, 1) + pairs_of(GENOME[3200:6000], 150, 2)
    joins = []
    for number in (1, 2):
        across = [GENOME[2870:2970], reverse_complement(GENOME[3070:3170])] * number
        held = oracle.held(reads + across, 300 + number)
        places = place_reads(pieces, held, len(held), 1, sampled=0)
        libraries = libraries_of(pieces, places, [300 + number])
        unique = unique_pieces(pieces, 100)
        assert number > 1 or not find_joins(pieces, places, libraries, unique, 5, 2)
        joins += find_joins(pieces, places, libraries, unique, 5, 2, lone=True)
    assert [(join.closed, join.pairs) for join in joins] == [(False, 1), (True, 2)]


def test_votes() -> None:
    """Wrong bases give way, but for those shared with a neighbour; lone ends are found."""
    right = GENOME[:600]
    wrong = right[:300] + {"A": "C"}.get(right[300], "A") + right[301:]
    pieces = graph_of(wrong)
    reads = oracle.held([right[at : at + 100] for at in range(0, 501, 20)])
    places = place_reads(pieces, reads, len(reads), 1)
    votes = votes_on(pieces, reads, places, 2)
    made = corrected(pieces, votes)
    assert oracle.sequences(made)[0] in (right, reverse_complement(right))
    cuts = lone_ends(made, votes)
    assert cuts.tolist() == [[20, 20]]
    assert oracle.sequences(without_ends(made, cuts))[0] in (
        right[20:-20], reverse_complement(right[20:-20])
    )  # fmt: skip
    forked = graph_of(wrong, wrong[-(K + 5) : -6] + GENOME[700:800])
    at = next(i for i, own in enumerate(oracle.sequences(forked)) if len(own) > 400)
    assert (np.diff(forked.link_starts)[2 * at : 2 * at + 2] > 0).sum() == 1
    assert lone_ends(forked, votes_on(forked, reads, places, 1))[at].min() == 0


@pytest.mark.parametrize("turned", [False, True])
def test_an_end_that_two_reads_leave_open(turned: bool) -> None:
    """The only two reads of an end differ at its fourth base from behind: there it is cut."""
    right = GENOME[:600]
    other = right[:596] + {"A": "C"}.get(right[596], "A") + right[597:]
    reads = [right[at : at + 100] for at in range(0, 481, 20)] + [right[490:600], other[495:]]
    if turned:
        right, reads = reverse_complement(right), [reverse_complement(read) for read in reads]
    pieces = graph_of(right)
    held = oracle.held(reads)
    votes = votes_on(pieces, held, place_reads(pieces, held, len(held), 1, sampled=0), 1)
    assert sorted(lone_ends(pieces, votes)[0].tolist()) == [4, 20]


def test_a_link_that_no_two_reads_cross() -> None:
    """What an end shares with a neighbour is foreign to it, if no two reads have both."""
    one, other = GENOME[:600], GENOME[2000:2300]
    both, shared = one[-50:] + other, K - 1
    pieces = graph_of(one, GENOME[1000:1300] + both)
    source = next(d for d, own in enumerate(oracle.directions(pieces)) if own.startswith(one[:K]))
    ends = [one[at : at + 100] for at in range(0, 501, 10)]
    reads = ends + [both[at : at + 100] for at in range(0, 251, 10)]
    for crossing, cut in ((0, True), (1, True), (2, False)):
        across = [(one + other)[540 + at : 640 + at] for at in range(crossing)]
        # Of reads that end there, none has the last window.
        kept = [read for read in reads if one[-K:] not in read] + across
        held = oracle.held(kept)
        unsure = unsure_links(pieces, held, 1)
        assert unsure[source] == cut
        places = place_reads(pieces, held, len(held), 1, sampled=0)
        cuts = lone_ends(pieces, votes_on(pieces, held, places, 1), unsure)
        found = int(cuts[source >> 1, 1 - (source & 1)])
        assert (found >= shared) == cut
        assert cut or found == 0


@pytest.mark.parametrize(("gap", "chosen"), [(-45, True), (60, False)])
def test_pairs_choose_a_path_of_their_distance(gap: int, chosen: bool) -> None:
    """A piece that pairs put farther away is behind the path, as in a tandem repeat, not on it."""
    pieces = pieces_of_lengths(1000, 150, 1000, 160)
    own = (np.array(each) for each in ([0], [2], [4], [gap], [5]))
    with patch("ngsgpu.assemble.contigs.joins.search.linked", lambda *_: Links(*own)):
        support = Support(pieces, None, None)  # type: ignore[arg-type]
    paths: list[Path] = [(50, (2,)), (60, (6,))]
    assert support.chosen(paths, 0, 4, 3) == (paths[:1] if chosen else [])


@pytest.mark.parametrize(("number", "closed"), [(2, False), (3, True)])
def test_how_often_a_path_goes_round_is_a_choice(number: int, closed: bool) -> None:
    """Two pairs take the only path, but none that goes round in a tandem repeat."""
    one, two, unit = GENOME[:3000], GENOME[3200:6000], GENOME[7000:7080]
    kmers = {kmer: 20 for own in (one + unit, unit + two) for kmer in counted([own], K)}
    kmers |= dict.fromkeys(counted([unit + unit[:30] + unit], K), 20)
    kmers |= dict.fromkeys(counted([unit], K), 60)
    pieces = oracle.graph(kmers, K)
    reads = pairs_of(one[:2900], 150, 1) + pairs_of(two[100:], 150, 2)
    across = [one[-130:-30], reverse_complement(two[30:130])] * number
    held = oracle.held(reads + across, 300 + number)
    places = place_reads(pieces, held, len(held), 1, sampled=0)
    libraries = libraries_of(pieces, places, [300 + number])
    unique = unique_pieces(pieces, 100)
    turns = next(p for p, size in enumerate(pieces.lengths.tolist()) if size < 200)
    path = -20, (2 * turns, 2 * turns)
    with patch("ngsgpu.assemble.contigs.joins.search.Search.path", lambda *_: path):
        (join,) = find_joins(pieces, places, libraries, unique, 5, 2, lone=True)
    assert join.closed == closed


def test_reads_contradict_what_is_left_out() -> None:
    text = GENOME[:1300]
    pieces = graph_of(text[:600], text[680:])
    source, target = (oracle.directions(pieces).index(own) for own in (text[:600], text[680:]))
    reads = oracle.held(pairs_of(text, 400, 1), 400)
    places = place_reads(pieces, reads, len(reads), 1, sampled=0)
    join = Join(source, target, 60, 10, (), False, 9)
    local = LocalReads(pieces, [join], reads, places, 400)
    codes = np.array(["ACGT".index(base) for base in text], dtype=np.uint8)
    sizes = 600, len(text) - 680
    assert not local.contradict(join, codes, sizes)
    assert local.contradict(join, np.concatenate([codes[:610], codes[650:]]), sizes)
    codes[640] = 3 - codes[640]
    assert not local.contradict(join, codes, sizes)


@pytest.mark.parametrize("turned", [False, True])
def test_reads_do_not_contradict_what_ends_before_them(turned: bool) -> None:
    """Reads of one end go on behind the other, a short piece: what follows there is not known."""
    text = GENOME[:1300]
    reads = [text[at : at + 200] for at in range(0, 1101, 7)]
    one, two = text[:600], text[620:680]
    if turned:
        text, one, two = (reverse_complement(own) for own in (text[:680], two, one))
    pieces = graph_of(one, two)
    source, target = (oracle.directions(pieces).index(own) for own in (one, two))
    held = oracle.held(reads, len(reads))
    places = place_reads(pieces, held, len(held), 1, sampled=0)
    join = Join(source, target, 20, 10, (), False, 9)
    local = LocalReads(pieces, [join], held, places, 400)
    codes = np.array(["ACGT".index(base) for base in text[:680]], dtype=np.uint8)
    sizes = len(one), len(two)
    assert not local.contradict(join, codes, sizes)
    assert local.contradict(join, np.delete(codes, slice(len(one) - 20, len(one) + 20)), sizes)
