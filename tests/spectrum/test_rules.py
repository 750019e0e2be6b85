"""The kernels against the oracle."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ngsgpu.readset import ReadSet
from ngsgpu.spectrum import SpectrumParameters
from ngsgpu.spectrum.cpu_run import SpectrumCorrections, correct_on_cpu
from ngsgpu.spectrum.kmers.counts import count_reads, find_thresholds
from ngsgpu.spectrum.kmers.solid import level_of, make_solid
from tests.support.spectrum import oracle
from tests.support.spectrum.samples import sample

K = 11


def _text(kmer: int) -> str:
    return "".join("ACGT"[(kmer >> 2 * i) & 3] for i in reversed(range(K)))


def _corrected(texts: list[str], found: SpectrumCorrections) -> list[str]:
    starts, counts, values = found.edits
    return [
        oracle.changed(
            text,
            {int(v >> 2): "ACGT"[v & 3] for v in values[starts[i] : starts[i] + counts[i]]},
        )
        for i, text in enumerate(texts)
    ]


@pytest.mark.parametrize("part_bits", [0, 2])
def test_counts_are_those_of_a_dictionary(part_bits: int) -> None:
    _, texts, qualities = sample(1, 400, 0.02)
    expected = oracle.count(texts, K)
    found = count_reads(ReadSet.from_sequences(texts, qualities), K, part_bits=part_bits, threads=2)
    numbers = dict(zip(map(_text, found.kmers.tolist()), found.counts.tolist(), strict=True))
    assert numbers == {kmer: number for kmer, number in expected.items() if number > 1}
    present = np.flatnonzero(found.histogram)
    assert dict(zip(present.tolist(), found.histogram[present].tolist(), strict=True)) == Counter(
        expected.values()
    )


def test_sets_know_their_kmers() -> None:
    rng = np.random.default_rng(1)
    kmers = np.unique(rng.integers(0, 1 << 62, 5000, dtype=np.uint64))
    counts = rng.integers(2, 12, len(kmers)).astype(np.uint16)
    table = make_solid(kmers, counts, 4, 8, bloom=False)
    bloom = make_solid(kmers, counts, 4, 8, bloom=True)
    levels = [level_of(table, kmer) for kmer in kmers]
    assert levels == (1 + (counts >= 4) + (counts >= 8)).tolist()
    assert all(level_of(bloom, kmer) == 2 for kmer in kmers[counts >= 4])
    others = np.setdiff1d(rng.integers(0, 1 << 62, 20_000, dtype=np.uint64), kmers)
    assert not any(level_of(table, kmer) for kmer in others)
    assert not any(level_of(bloom, kmer) for kmer in others)


@pytest.mark.parametrize("bloom", [False, True])
@pytest.mark.parametrize("rule", ["voting", "exhaustive"])
def test_rules_of_the_papers(rule: str, bloom: bool) -> None:
    _, texts, qualities = sample(2, 160, 0.03)
    reads = ReadSet.from_sequences(texts, qualities)
    counted = count_reads(reads, K)
    solid = make_solid(counted.kmers, counted.counts, 4, 8, bloom=bloom)
    parameters = SpectrumParameters(kmer=K, rule=rule)  # type: ignore[arg-type]
    found = correct_on_cpu(reads, solid, K, parameters, bases_per_task=500, threads=2)
    spectrum = oracle.spectrum_of(oracle.count(texts, K), 4, 8)
    slow = oracle.vote if rule == "voting" else oracle.try_all
    for i, (text, new) in enumerate(zip(texts, _corrected(texts, found), strict=True)):
        read = text.replace("N", "U")
        kmers = len(read) - K + 1
        if kmers < 1 or oracle.solid_number(read, spectrum, K) == kmers:
            assert (new, found.classes[i]) == (text, 0)
            continue
        expected, fixed = slow(read, spectrum, K, 2)
        assert new == (expected if fixed else text)
        solid_now = oracle.solid_number(expected, spectrum, K)
        assert found.classes[i] == (1 if fixed else 2 if solid_now else 3)
        if not fixed:
            part = expected[found.begin[i] : found.end[i]]
            assert oracle.solid_number(part, spectrum, K) == max(0, len(part) - K + 1)
            runs = "".join("01"[n >= 2] for n in oracle.levels_of(expected, spectrum, K)).split("0")
            assert max(0, len(part) - K + 1) == max(map(len, runs))


@pytest.mark.parametrize("seed", range(3))
def test_search(seed: int) -> None:
    _, texts, qualities = sample(10 + seed, 400, 0.02 + 0.01 * seed, (2, 12, 25, 37))
    reads = ReadSet.from_sequences(texts, qualities)
    counted = count_reads(reads, K)
    solid = make_solid(counted.kmers, counted.counts, 4, 12, bloom=False)
    parameters = SpectrumParameters(kmer=K, max_changes=2, window=8)
    found = correct_on_cpu(reads, solid, K, parameters, bases_per_task=700, threads=2)
    spectrum = oracle.spectrum_of(oracle.count(texts, K), 4, 12)
    rules = parameters.search_rules(K)
    for text, quality, new in zip(texts, qualities, _corrected(texts, found), strict=True):
        read = text.replace("N", "U")
        if len(read) < K:
            assert new == text
            continue
        scores = [0 if b == "U" else ord(q) - 33 for b, q in zip(read, quality, strict=True)]
        assert new.replace("N", "U") == oracle.search(read, scores, spectrum, rules)


def test_errors_are_corrected() -> None:
    rng = random.Random(4)
    genome = "".join(rng.choices("ACGT", k=3000))
    truths = [genome[i : i + 80] for i in (rng.randrange(2920) for _ in range(1500))]
    texts = [
        oracle.changed(text, {i: rng.choice("ACGT") for i in range(80) if rng.random() < 0.01})
        for text in truths
    ]
    qualities = [
        "".join("I-"[a != b] for a, b in zip(text, truth, strict=True))
        for text, truth in zip(texts, truths, strict=True)
    ]
    reads = ReadSet.from_sequences(texts, qualities)
    counted = count_reads(reads, 15)
    limits = find_thresholds(counted.histogram)
    assert 20 < limits.depth < 40
    assert abs(limits.genome_size - 3000) < 300
    solid = make_solid(counted.kmers, counted.counts, limits.solid, limits.strong, bloom=False)
    new = _corrected(texts, correct_on_cpu(reads, solid, 15, SpectrumParameters()))
    before, after = (
        sum(a != b for a, b in zip("".join(some), "".join(truths), strict=True))
        for some in (texts, new)
    )
    assert after < before / 50


def _thresholds(*counts: int) -> tuple[int, int]:
    """Solid count and depth of k-mers that occur 1, 2, ... times, and a genome's 30,000 at 50."""
    histogram = np.zeros(1 << 16, dtype=np.int64)
    histogram[1 : len(counts) + 1] = counts
    histogram[50] = 30_000
    found = find_thresholds(histogram)
    return found.solid, found.depth


def test_strains_lower_the_threshold() -> None:
    """Each line is of simulated pairs of 100 or 150 bases: a genome, with strains, with repeats."""
    assert _thresholds(337_742, 19_274, 846, 37, 2) == (6, 50)
    assert _thresholds(330_030, 21_784, 2775, 1423, 1133, 663, 471) == (3, 50)
    assert _thresholds(455_577, 38_343, 3470, 1323, 1175, 982, 682) == (4, 50)
    assert _thresholds(274_642, 12_965, 678, 104, 45, 15, 4) == (7, 50)
    # Errors that meet thrice are none of a strain, whose k-mers grow rarer slowly.
    assert _thresholds(66_267, 8397, 5560, 663, 433, 370, 317, 256, 220, 153) == (4, 50)


def test_good_bases_of_a_rare_strain_stay() -> None:
    rng = random.Random(5)
    genome = "".join(rng.choices("ACGT", k=3000))
    strain = oracle.changed(
        genome, {i: "CGTA"["ACGT".index(genome[i])] for i in range(50, 3000, 100)}
    )
    texts = [
        source[i : i + 80]
        for source, number in ((genome, 2000), (strain, 200))
        for i in (rng.randrange(2920) for _ in range(number))
    ]
    reads = ReadSet.from_sequences(texts, ["I" * 80] * len(texts))
    counted = count_reads(reads, 15)
    solid = make_solid(counted.kmers, counted.counts, 12, 24, bloom=False)
    new = _corrected(texts, correct_on_cpu(reads, solid, 15, SpectrumParameters()))
    assert new[:2000] == texts[:2000]
    lost = sum(a != b for a, b in zip("".join(new), "".join(texts), strict=True))
    assert lost <= 5  # where the other reads of the strain have most k-mers no more
