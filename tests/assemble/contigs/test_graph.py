"""Every step on assembly graphs against naive ones, on graphs full of repeats and turns."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.assemble.contigs import walks
from ngsgpu.assemble.contigs.cleaning import (
    Cleaned,
    CleaningParameters,
    alleles,
    cleaned,
    has_alleles,
    mark,
)
from ngsgpu.assemble.contigs.joins.paths import paths_between
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Pieces, compacted
from ngsgpu.assemble.contigs.raising import raise_k
from tests.support.assemble import contigs as oracle
from tests.support.assemble.oracle import counted
from tests.support.assemble.worlds import world
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples

SEEDS = st.integers(0, 10**6)
SIZES = st.sampled_from([5, 7, 11])
GENOME = "".join(random.Random(1).choices("ACGT", k=120))
LONG = "".join(random.Random(2).choices("ACGT", k=1500))


@given(seed=SEEDS, k=SIZES)
@examples(60)
def test_compacted(seed: int, k: int) -> None:
    """Without some pieces, the graph is that of the k-mers that are left."""
    rng = random.Random(seed)
    kmers = dict(counted(world(seed, k), k))
    pieces = oracle.graph(kmers, k)
    oracle.check_is_compacted(pieces, kmers)
    alive = np.array([rng.random() < 0.7 for _ in range(len(pieces))], dtype=np.bool_)
    left = counted([s for s, a in zip(oracle.sequences(pieces), alive, strict=True) if a], k)
    oracle.check_is_compacted(compacted(pieces, alive), {kmer: kmers[kmer] for kmer in left})


@given(
    seed=SEEDS,
    k=SIZES,
    step=st.sampled_from([2, 4, 10]),
    threads=st.sampled_from([1, 3]),
    keeps_only=st.booleans(),
)
@examples(60)
def test_raised(seed: int, k: int, step: int, threads: int, keeps_only: bool) -> None:
    rng = random.Random(seed)
    reads = []
    for own in world(seed, k):
        for _ in range(6):
            begin = rng.randrange(len(own))
            reads.append(own[begin : begin + rng.randrange(1, 6 * k)])
    pieces = oracle.graph(dict(counted(reads, k)), k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "_PART", 5)
        patch.setattr(walks, "_ROOM", 64)
        made = raise_k(pieces, oracle.held(reads), k + step, (1, 1), threads, keeps_only=keeps_only)
    expected = oracle.raise_k(pieces, reads, k + step, keeps_only=keeps_only)
    oracle.check_is_compacted(made, expected, depths=False)
    for bases, depth in zip(oracle.sequences(made), made.depths.tolist(), strict=True):
        nodes = list(counted([bases], k + step))
        counts = [expected[node] for node in nodes]
        if all(counts):
            mean = sum(counts) * DEPTH_UNIT / len(nodes)
            assert mean - len(nodes) <= depth <= mean


@given(
    seed=SEEDS,
    k=SIZES,
    tips=st.sampled_from([2, 4]),
    ratio=st.sampled_from([1, 2, 4]),
    bubbles=st.sampled_from([0, 1, 3]),
    sure=st.sampled_from([0, 2, 5]),
)
@examples(60)
def test_marks(seed: int, k: int, tips: int, ratio: int, bubbles: int, sure: int) -> None:
    rng = random.Random(seed)
    kmers = {kmer: rng.choice([1, 1, 3, 9]) for kmer in counted(world(seed, k), k)}
    pieces = oracle.graph(kmers, k)
    typical = rng.choice([0, 1000, 5000])
    whole = typical * rng.choice([1, 2])
    marks = np.zeros(len(pieces), dtype=np.uint8)
    mark(
        pieces.arrays, tips, 5 - ratio, ratio, bubbles, sure, 3 * k, typical, whole, marks,
    )  # fmt: skip
    assert marks.tolist() == oracle.marks(
        pieces, tips, 5 - ratio, ratio, bubbles, sure, 3 * k, typical, whole
    )


@given(
    seed=SEEDS,
    k=SIZES,
    low=st.integers(-10, 12),
    wide=st.integers(0, 8),
    most=st.sampled_from([1, 2, 8]),
)
@examples(60)
def test_paths(seed: int, k: int, low: int, wide: int, most: int) -> None:
    rng = random.Random(seed)
    pieces = oracle.graph(dict(counted([GENOME[:30], *world(seed, k)], k)), k)
    unique = np.array([rng.random() < 0.2 for _ in range(len(pieces))], dtype=np.bool_)
    source, target = (rng.randrange(2 * len(pieces)) for _ in range(2))
    lengths = pieces.lengths.tolist()
    found: list[tuple[int, ...]] = []

    def extend(d: int, gap: int, path: tuple[int, ...]) -> None:
        for e in pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist():
            if e == target and low <= gap <= low + wide:
                found.append(path)
            after = gap + lengths[e >> 1] - (k - 1)
            if not unique[e >> 1] and after <= low + wide and len(found) <= most and len(path) < 50:
                extend(e, after, (*path, e))

    extend(source, 1 - k, ())
    number, sizes, starts, steps = paths_between(
        pieces.arrays, unique, source, target, low, low + wide, most
    )
    assert (number > most) == (len(found) > most)
    if number > most:
        return
    assert number == len(found)
    for i, path in enumerate(found):
        assert tuple(steps[starts[i] : starts[i + 1]].tolist()) == path
        assert sizes[i] == sum(lengths[e >> 1] - (k - 1) for e in path) - (k - 1)


def graph_of_text(*sequences: tuple[str, int], k: int = 11) -> Pieces:
    kmers: dict[str, int] = {}
    for bases, times in sequences:
        for kmer in counted([bases], k):
            kmers[kmer] = kmers.get(kmer, 0) + times
    return oracle.graph(kmers, k)


@pytest.mark.parametrize(
    ("other", "times", "reason"),
    [
        (GENOME[30:54] + "A" + GENOME[55:57], 2, "tips"),
        (GENOME[30:54] + "A" + GENOME[55:80], 2, "weak"),
        (GENOME[30:54] + "A" + GENOME[55:80], 12, "bubbles"),
        ("GATTACATTGA", 2, "scraps"),
    ],
)
def test_cleaning_restores_the_genome(other: str, times: int, reason: str) -> None:
    pieces = graph_of_text((GENOME, 40), (other, times))
    counts = Cleaned()
    left = cleaned(pieces, CleaningParameters(scrap_bases=20), counts)
    assert oracle.sequences(left) in ([GENOME], [reverse_complement(GENOME)])
    assert {name: getattr(counts, name) for name in ("tips", "weak", "bubbles", "scraps")} == {
        "tips": 0, "weak": 0, "bubbles": 0, "scraps": 0, reason: 1
    }  # fmt: skip


def test_copies_that_differ_are_no_alleles() -> None:
    """What is as deep as two copies in all stays, though it lies between the same neighbours."""
    other = GENOME[:54] + "A" + GENOME[55:]
    pieces = graph_of_text((GENOME, 21), (other, 19), (LONG, 20), k=17)
    assert alleles(pieces.arrays, 20 * DEPTH_UNIT) == 0
    assert alleles(pieces.arrays, 40 * DEPTH_UNIT) == 1
    assert len(cleaned(pieces, CleaningParameters(bubble_ratio=1), Cleaned())) == 5


@pytest.mark.parametrize(("flank", "pieces"), [(700, 2), (40, 5)])
def test_alleles_where_coverage_is_high(flank: int, pieces: int) -> None:
    """Between long pieces of one copy, alleles merge though both are deeper than one by chance."""
    window = slice(734, 767)
    other = LONG[:750] + "ACGT"["ACGT".index(LONG[750]) - 1] + LONG[751:]
    graph = graph_of_text(
        (LONG[750 - flank : 750], 20), (LONG[751 : 751 + flank], 20),
        (LONG[window], 18), (other[window], 16),
        ("".join(random.Random(4).choices("ACGT", k=1000)), 20), k=17,
    )  # fmt: skip
    assert len(cleaned(graph, CleaningParameters(bubble_ratio=1), Cleaned())) == pieces


@pytest.mark.parametrize(("sure", "stays"), [(0, False), (10, False), (16, True)])
def test_what_three_reads_have(sure: int, stays: bool) -> None:
    """Beside a repeat ten times as deep, a rare piece stays where coverage is low."""
    rare = LONG[:60] + LONG[100:108] + LONG[200:260]
    often = LONG[:60] + LONG[300:308] + LONG[200:260]
    pieces = graph_of_text((rare, 4), (often, 40), (LONG[400:], 9), k=11)
    left = cleaned(pieces, CleaningParameters(sure_ratio=sure, bubble_ratio=0), Cleaned())
    assert any(rare[52:76] in own for own in oracle.directions(left)) == stays


def test_a_round_in_a_tandem_repeat_is_no_tip() -> None:
    """Without a window of its round, a long tandem repeat does not seem to be a short one."""
    unit, k = "GATTACCTGACA", 41
    genome = LONG[:300] + 10 * unit + LONG[300:600]
    kmers = dict(counted([genome], k))
    around = set(counted([10 * unit], k))
    kmers = {kmer: 2 if kmer in around else 8 for kmer in kmers}
    del kmers[min(around)]
    left = cleaned(oracle.graph(kmers, k), CleaningParameters(), Cleaned())
    for own in oracle.directions(left):
        assert not (LONG[250:300] in own and LONG[300:350] in own)


UNIT = LONG[300:420]


def kmers_of_two_units(k: int, junction: int) -> dict[str, int]:
    """K-mers of two equal units between flanks; those across both occur ``junction`` times."""
    kmers = {kmer: 8 for own in (LONG[:420], UNIT + LONG[420:]) for kmer in counted([own], k)}
    kmers |= dict.fromkeys(counted([UNIT + UNIT], k) - counted([UNIT], k), junction)
    return kmers | dict.fromkeys(counted([UNIT], k), 16)


@pytest.mark.parametrize(("sure", "stays"), [(0, False), (16, True)])
def test_a_loop_is_no_error(sure: int, stays: bool) -> None:
    """Where coverage is low, one read is enough for the way from a repeat's end to its begin."""
    graph = oracle.graph(kmers_of_two_units(21, 1), 21)
    left = cleaned(graph, CleaningParameters(sure_ratio=sure), Cleaned())
    across = UNIT[-15:] + UNIT[:15]
    assert any(across in own for own in oracle.directions(left)) == stays
    assert (len(left) == 1) != stays


@pytest.mark.parametrize("k", [41, 81])
def test_a_loop_stays_if_no_window_goes_across(k: int) -> None:
    """Without it, two units would be one; it is longer than the new k, or shorter."""
    genome = LONG[:300] + 2 * UNIT + LONG[420:]
    pieces = oracle.graph({kmer: 8 * n for kmer, n in counted([genome], 31).items()}, 31)
    begins = [own for own in range(0, len(genome) - 90, 3) if abs(own + 45 - 300 - len(UNIT)) > 45]
    reads = oracle.held([genome[own : own + 90] for own in begins for _ in range(2)])
    made = raise_k(pieces, reads, k, (1, 1), 1, keeps_only=True)
    whole = [own for own in oracle.directions(made) if LONG[250:300] in own]
    assert not any(LONG[420:470] in own and 2 * UNIT not in own for own in whole)
    across = UNIT[-(k // 2) :] + UNIT[: k // 2]
    (d,) = (d for d, own in enumerate(oracle.directions(made)) if across in own)
    assert np.diff(made.link_starts)[[d, d ^ 1]].all()


@pytest.mark.parametrize("number", [0, 30])
def test_a_diploid_is_seen(number: int) -> None:
    text = list("".join(random.Random(3).choices("ACGT", k=3000)))
    one = "".join(text)
    for at in range(50, 50 + 90 * number, 90):
        text[at] = "ACGT"["ACGT".index(text[at]) - 1]
    assert has_alleles(graph_of_text((one, 20), ("".join(text), 20))) == bool(number)


@pytest.mark.parametrize(("ratio", "pieces"), [(3, 4), (1, 1), (0, 4)])
def test_alleles(ratio: int, pieces: int) -> None:
    """Alleles of like depth stay, unless they are to be merged."""
    other = GENOME[:54] + "A" + GENOME[55:]
    left = cleaned(
        graph_of_text((GENOME, 21), (other, 19)),
        CleaningParameters(bubble_ratio=ratio),
        Cleaned(),
    )
    assert len(left) == pieces
    if pieces == 1:
        assert oracle.sequences(left)[0] in (GENOME, reverse_complement(GENOME))
