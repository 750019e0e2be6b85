"""Overlaps by likelihood: what is found, what is not, and what the first pairs teach."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.merge import MergeOutputs, MergeParameters, MergeStatistics, RunOptions, merge_files
from ngsgpu.merge.qualities import CYCLES, SCORES, UNIT, calibrate, evidence
from ngsgpu.merge.sample import prior_of
from tests.support.io.records import Record
from tests.support.merge.data import simulated_pairs, write_pairs
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples


def pair_of(
    fragment: str,
    lengths: tuple[int, int],
    rng: random.Random,
    error: float = 0.002,
    score: int = 30,
) -> tuple[Record, Record]:
    """Mates of a fragment, followed by adapters."""
    mates = []
    for strand, length in zip((fragment, reverse_complement(fragment)), lengths, strict=True):
        bases = (strand + "".join(rng.choices("ACGT", k=length)))[:length]
        called = "".join(rng.choice("ACGT") if rng.random() < error else base for base in bases)
        mates.append(Record(b"r", called.encode(), bytes([33 + score]) * length))
    return mates[0], mates[1]


def fragments(rng: random.Random, lengths: list[int]) -> list[str]:
    return ["".join(rng.choices("ACGT", k=length)) for length in lengths]


def merge(
    folder: Path, pairs: list[tuple[Record, Record]], **parameters: object
) -> tuple[MergeStatistics, list[int]]:
    """Statistics, and the lengths of merged reads."""
    first, second = write_pairs(folder, pairs)
    out = folder / "merged.fq"
    statistics = merge_files(
        [first],
        [second],
        MergeOutputs(out),
        parameters=MergeParameters(**parameters),  # type: ignore[arg-type]
        phred_offset=33,
        options=RunOptions(threads=1, backend="cpu"),
    )
    return statistics, [len(line) for line in out.read_bytes().split(b"\n")[1::4]]


def test_evidence_is_that_of_the_probabilities() -> None:
    frequencies = np.array([0.3, 0.2, 0.2, 0.3])
    match, mismatch, alike, unlike, base = evidence(frequencies)
    for first, second in ((2, 40), (20, 20), (41, 37), (0, 30)):
        x, y = (min(0.75, 10 ** (-score / 10)) for score in (first, second))
        agree = (1 - x) * (1 - y) + x * y / 3
        differ = max(1 - agree, 5e-4)
        copies = 0.9 * (1 - agree) + 0.1 * (1 - (1 - agree) / 3)
        cell = first * SCORES + second
        assert abs(match[cell] - UNIT * math.log2(agree)) <= 1
        assert abs(mismatch[cell] - UNIT * math.log2(4 / 3 * differ)) <= 1
        assert abs(alike[cell] - UNIT * math.log2(agree / (1 - copies))) <= 1
        assert abs(unlike[cell] - UNIT * min(0, math.log2(differ / copies))) <= 1
    assert base.tolist() == [round(UNIT * math.log2(1 / share)) for share in frequencies]


@pytest.mark.parametrize("length", [36, 75, 100, 150, 250, 300])
def test_fragments_get_their_lengths(tmp_path: Path, length: int) -> None:
    """From a tenth of the reads' length to all but a few bases of both, adapters away."""
    rng = random.Random(length)
    wanted = [rng.randint(25, 2 * length - 14) for _ in range(400)]
    pairs = [pair_of(own, (length, length), rng) for own in fragments(rng, wanted)]
    _, found = merge(tmp_path, pairs)
    assert len(found) > 0.95 * len(wanted)
    # Lengths come in the order of the pairs, some of which are left out.
    following = iter(wanted)
    assert all(any(own == length for own in following) for length in found)


def test_trimmed_reads_within_their_mates(tmp_path: Path) -> None:
    """A read of a short fragment that was trimmed lies within its mate, which has the adapter."""
    rng = random.Random(2)
    wanted = [rng.randint(60, 90) for _ in range(300)]
    pairs = []
    for own in fragments(rng, wanted):
        lengths = [100, rng.randint(40, 55)]
        rng.shuffle(lengths)
        pairs.append(pair_of(own, (lengths[0], lengths[1]), rng))
    statistics, found = merge(tmp_path, pairs)
    assert len(found) > 290
    following = iter(wanted)
    assert all(any(own == length for own in following) for length in found)
    assert statistics.trimmed["bases"] > 20 * 290


def test_pairs_that_do_not_overlap_stay_pairs(tmp_path: Path) -> None:
    rng = random.Random(3)
    genome = "".join(rng.choices("ACGT", weights=[3, 2, 2, 3], k=50_000))
    starts = [rng.randrange(len(genome) - 400) for _ in range(4000)]
    pairs = [pair_of(genome[at : at + 400], (100, 100), rng) for at in starts]
    statistics, _ = merge(tmp_path, pairs)
    assert statistics.pairs["merged"] <= 2
    assert statistics.pairs["dissimilar"] >= 3990


def test_pairs_whose_reads_both_end_in_a_repeat_stay_pairs(tmp_path: Path) -> None:
    """However many copies lie between them; fragments with the whole repeat are merged."""
    rng = random.Random(8)
    apart, merged = [], []
    for period in range(3, 40):
        unit = "".join(rng.choices("ACGT", k=period))
        for left, between, right in ((2 * period + 5, 30, 2 * period + 3), (95, 9, 60)):
            before, after = fragments(rng, [100 - left, 100 - right])
            repeat = (unit * 100)[: left + between + right]
            apart.append(pair_of(before + repeat + after, (100, 100), rng, 0))
        before, after = fragments(rng, [50, 50])
        merged.append(pair_of(before + (unit * 20)[:40] + after, (100, 100), rng, 0))
    usual = [pair_of(own, (100, 100), rng) for own in fragments(rng, [250, 160] * 200)]
    alone, _ = merge(tmp_path, [*usual, *apart])
    both, _ = merge(tmp_path, [*usual, *merged])
    assert alone.pairs["merged"] == 200
    assert both.pairs["merged"] - 200 == len(merged)


def test_pairs_of_low_complexity_stay_pairs(tmp_path: Path) -> None:
    """What is equal where most bases are the same one is equal by chance."""
    rng = random.Random(9)
    usual = [pair_of(own, (100, 100), rng) for own in fragments(rng, [250, 160] * 200)]
    low = ["".join(rng.choices("ACGT", weights=[85, 10, 3, 2], k=300)) for _ in range(400)]
    statistics, _ = merge(tmp_path, [*usual, *(pair_of(own, (100, 100), rng) for own in low)])
    assert statistics.pairs["merged"] == 200


def test_repeats_are_left_alone(tmp_path: Path) -> None:
    """Short tandem repeats fit at many places, copies of a repeat differ."""
    rng = random.Random(4)
    tandem = [pair_of("ACGTT" * 24, (100, 100), rng, 0) for _ in range(100)]
    copies = []
    for own in fragments(rng, [150] * 100):
        copy = "".join(rng.choice("ACGT") if rng.random() < 0.25 else base for base in own)
        first, second = pair_of(own, (100, 100), rng, 0)[0], pair_of(copy, (100, 100), rng, 0)[1]
        copies.append((first, second))
    others = [pair_of(own, (100, 100), rng) for own in fragments(rng, [150] * 100)]
    statistics, _ = merge(tmp_path, tandem + copies + others)
    assert 95 <= statistics.pairs["merged"] <= 103
    assert statistics.pairs["undecided"] > 140
    assert statistics.learned["related"] > 20


@pytest.mark.parametrize("divergence", [0, 0.04])
def test_overlaps_of_tandem_repeats_are_not_guessed(tmp_path: Path, divergence: float) -> None:
    """Where copies are alike several lengths fit as well; where they differ one fits."""
    rng = random.Random(9)
    wanted, pairs = [], []
    for _ in range(1500):
        unit = rng.choices("ACGT", k=rng.randint(2, 40))
        repeat = [unit[i % len(unit)] for i in range(rng.randint(40, 150))]
        repeat = [rng.choice("ACGT") if rng.random() < divergence else base for base in repeat]
        ends = ["".join(rng.choices("ACGT", k=rng.randint(10, 80))) for _ in range(2)]
        own = ends[0] + "".join(repeat) + ends[1]
        wanted.append(own[: rng.randint(110, 190)])
        pairs.append(pair_of(wanted[-1], (100, 100), rng, score=37, error=0.0005))
    numbered = [
        tuple(mate._replace(header=b"%d" % number) for mate in pair)
        for number, pair in enumerate(pairs)
    ]
    merge(tmp_path, numbered)  # type: ignore[arg-type]
    lines = (tmp_path / "merged.fq").read_bytes().split(b"\n")
    found = {
        int(name[1:]): len(bases) for name, bases in zip(lines[:-1:4], lines[1::4], strict=True)
    }
    wrong = sum(length != len(wanted[number]) for number, length in found.items())
    assert wrong <= 1
    assert len(found) > (0.75 if divergence else 0.55) * len(pairs)


def test_different_molecules_are_no_errors(tmp_path: Path) -> None:
    """A mutational library: each molecule has bases that no other one has."""
    rng = random.Random(10)
    gene = "".join(rng.choices("ACGT", k=150))
    pairs = []
    for _ in range(1500):
        molecule = list(gene)
        for place in rng.sample(range(150), 3):
            molecule[place] = rng.choice("ACGT")
        pairs.append(pair_of("".join(molecule), (100, 100), rng, error=0.001, score=30))
    merge(tmp_path, pairs)
    lines = (tmp_path / "merged.fq").read_bytes().split(b"\n")
    scores = np.array([list(line) for line in lines[3::4]]) - 33
    assert np.median(scores[:, 60:90]) == 41
    assert 28 <= np.median(scores[:, :40]) <= 33


def test_unknown_bases_say_nothing(tmp_path: Path) -> None:
    rng = random.Random(5)
    pairs = []
    for own in fragments(rng, [140] * 200):
        mates = []
        for record in pair_of(own, (100, 100), rng):
            bases = bytes(78 if rng.random() < 0.3 else base for base in record.bases)
            mates.append(record._replace(bases=bases))
        pairs.append((mates[0], mates[1]))
    statistics, found = merge(tmp_path, pairs)
    assert found == [140] * len(found) and len(found) > 190
    hidden = [(Record(b"n", b"N" * 60, b"#" * 60),) * 2] * 3
    statistics, found = merge(tmp_path, [(one, two) for one, two in hidden])
    assert found == [] and statistics.pairs["too_short"] == 3


def test_one_quality_for_all(tmp_path: Path) -> None:
    """Stated as Q40, but one base in a hundred is wrong: found without a reference."""
    rng = random.Random(6)
    lengths = [rng.randint(110, 170) for _ in range(2000)]
    pairs = [
        pair_of(own, (100, 100), rng, error=0.04 / 3, score=40) for own in fragments(rng, lengths)
    ]
    statistics, _ = merge(tmp_path, pairs)
    for row in statistics.learned["qualities"]:
        assert row["stated"] == 40 and 19 < row["estimated"] < 21


@examples(40)
@given(seed=st.integers(0, 10_000))
def test_swapped_mates_overlap_alike(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """The other mate first: the same fragments, from the other strand."""
    folder = tmp_path_factory.mktemp("swapped")
    rng = random.Random(seed)
    pairs = simulated_pairs(seed, 30, inserts=(12, 190), mixed=rng.random() < 0.5, ambiguous=0.01)
    quality = rng.choice(["edgar", "flash"])
    one, lengths = merge(folder, pairs, quality=quality)
    other, swapped = merge(folder, [(second, first) for first, second in pairs], quality=quality)
    assert one.pairs["merged"] == other.pairs["merged"]
    assert one.histograms == other.histograms
    assert sorted(lengths) == sorted(swapped)


def test_calibration_finds_the_error_rates() -> None:
    """Columns as two mates of known error rates make them."""
    rng = np.random.default_rng(7)
    # Next to none for one quality: a rate that one mate has more, and the other less, is not seen.
    rates = {(0, 37): 1e-4, (0, 12): 0.1, (1, 37): 2e-4, (1, 12): 0.3}
    columns = np.zeros((2, CYCLES * SCORES, CYCLES * SCORES), dtype=np.int32)
    for first in (37, 12):
        for second in (37, 12):
            x, y = rates[0, first], rates[1, second]
            count = 100_000
            differ = rng.binomial(count, x * (1 - y) + y * (1 - x) + 2 * x * y / 3)
            columns[:, first, second] = count - differ, differ
    found = calibrate(columns)
    for (mate, score), rate in rates.items():
        assert found.rates[mate, 0, score] == pytest.approx(rate, rel=0.15, abs=2e-4)
    # Nothing was seen of others, which are as stated.
    assert found.rates[0, 3, 30] == pytest.approx(1e-3)


def test_prior_is_that_of_the_lengths() -> None:
    """An amplicon's length is expected, one next to it much less, and any other a little."""
    counts = np.zeros(301, dtype=np.int64)
    counts[253] = 900
    prior, usual = prior_of(counts, 1000)
    assert prior[253] > UNIT and prior[253] > prior[254] + UNIT > prior[200] + 3 * UNIT
    assert usual.min() == 0 and usual[253] > 5 * UNIT
    nothing, flat = prior_of(np.zeros(301, dtype=np.int64), 1000)
    assert np.unique(nothing).size == 1 and nothing[0] < -15 * UNIT and not flat.any()
