"""k-mers, their spectrum, and the coverage estimated from it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.readset import ReadSet
from ngsgpu.readset import kmers as module
from ngsgpu.readset.kmers import KmerSpectrum, canonical_kmers, count_kmers, estimate_coverage
from tests.support.minhash.oracle import canonical, mix, number
from tests.support.properties import examples
from tests.support.readset.simulation import random_genome, simulate

reads_of_few_letters = st.lists(st.text("ACGT", max_size=90), max_size=8)


def kmers_of(bases: str, k: int) -> list[str]:
    return [bases[i : i + k] for i in range(len(bases) - k + 1)]


def counted(reads: list[str], k: int) -> Counter[int]:
    return Counter(number(canonical(kmer)) for bases in reads for kmer in kmers_of(bases, k))


def histogram(spectrum: KmerSpectrum) -> dict[int, int]:
    pairs = zip(spectrum.multiplicity.tolist(), spectrum.count.tolist(), strict=True)
    return dict(pairs)


@given(st.text("ACGT", max_size=90), st.integers(1, 32))
@examples(100)
def test_kmers_of_a_read(bases: str, k: int) -> None:
    reads = ReadSet.from_sequences(["ACGTA", bases])
    found = np.zeros(91, dtype=np.uint64)
    forward = np.zeros(91, dtype=np.uint64)
    count = canonical_kmers(reads.arrays, 1, k, found, forward)
    expected = kmers_of(bases, k)
    assert count == len(expected)
    assert forward[:count].tolist() == [number(kmer) for kmer in expected]
    assert found[:count].tolist() == [number(canonical(kmer)) for kmer in expected]


@given(reads_of_few_letters, st.integers(1, 32), st.sampled_from([1, 3]))
@examples(100)
def test_spectrum_is_exact(reads: list[str], k: int, threads: int) -> None:
    spectrum = count_kmers(ReadSet.from_sequences(reads), k, threads=threads)
    expected = counted(reads, k)
    assert histogram(spectrum) == Counter(expected.values())
    assert (spectrum.k, spectrum.sampled) == (k, 1)
    bases = sum(map(len, reads))
    assert spectrum.kmers_per_base == expected.total() / max(1, bases)
    dense = spectrum.dense()
    assert dense[0] == 0
    assert {m: int(n) for m, n in enumerate(dense) if n} == histogram(spectrum)


@given(reads_of_few_letters, st.integers(1, 12), st.integers(1, 200))
@examples(100)
def test_sample_holds_all_occurrences_of_its_kmers(reads: list[str], k: int, least: int) -> None:
    full = counted(reads, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SAMPLED_KMERS", least)
        spectrum = count_kmers(ReadSet.from_sequences(reads), k)
        exact = count_kmers(ReadSet.from_sequences(reads), k, exact=True)
    assert histogram(exact) == Counter(full.values())
    in_sample = [n for kmer, n in full.items() if mix(kmer) % spectrum.sampled == 0]
    assert histogram(spectrum) == Counter(in_sample)
    assert spectrum.sampled == 1 or full.total() // spectrum.sampled >= least
    assert full.total() // (2 * spectrum.sampled) < least


@given(
    st.lists(st.text("ACGTNry", max_size=90), max_size=8),
    st.integers(1, 32),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 20, 1 << 22]),
)
@examples(200)
def test_kmers_of_unknown_letters_are_left_out(
    reads: list[str], k: int, threads: int, least: int
) -> None:
    known = [kmer for bases in reads for kmer in kmers_of(bases, k) if set(kmer) <= set("ACGT")]
    full = counted(known, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SAMPLED_KMERS", least)
        packed = ReadSet.from_sequences(reads)
        spectrum = count_kmers(packed, k, threads=threads, known_only=True)
        exact = count_kmers(packed, k, threads=threads, known_only=True, exact=True)
        every = count_kmers(packed, k, threads=threads, exact=True)
    assert histogram(exact) == Counter(full.values())
    in_sample = [n for kmer, n in full.items() if mix(kmer) % spectrum.sampled == 0]
    assert histogram(spectrum) == Counter(in_sample)
    assert spectrum.kmers_per_base == full.total() / max(1, sum(map(len, reads)))
    # The replacements count for correction, as they do on the GPU.
    assert sum(m * n for m, n in histogram(every).items()) == sum(
        len(kmers_of(bases, k)) for bases in reads
    )


def test_dense_is_cut_off() -> None:
    spectrum = KmerSpectrum(20, np.array([1, 7, 10**9]), np.array([5, 6, 7]), 1, 0.8)
    assert spectrum.dense(limit=100).tolist() == [0, 5, 0, 0, 0, 0, 0, 6]


def test_share_of_frequent_kmers() -> None:
    spectrum = KmerSpectrum(20, np.array([1, 7, 10]), np.array([10, 10, 2]), 1, 0.8)
    shares = [spectrum.share_above(multiplicity) for multiplicity in (0, 6, 7, 9, 10)]
    assert shares == [1.0, 0.9, 0.2, 0.2, 0.0]
    assert KmerSpectrum(20, np.zeros(0, int), np.zeros(0, int), 1, 0.0).share_above(0) == 0


def estimate(sequences: list[bytes], k: int = 20) -> float:
    return estimate_coverage(count_kmers(ReadSet.from_sequences(sequences), k, threads=2))


@pytest.mark.parametrize(
    ("coverage", "size"),
    [
        (2, 60_000),
        (5, 60_000),
        (10, 40_000),
        (30, 20_000),
        (60, 10_000),
        (150, 5_000),
        (560, 2_000),
    ],
)
@pytest.mark.parametrize(("shortest", "longest"), [(100, 100), (30, 150)])
def test_coverage_is_estimated(coverage: int, size: int, shortest: int, longest: int) -> None:
    generator = np.random.default_rng(coverage)
    genome = random_genome(generator, size)
    reads = simulate(generator, genome, coverage, shortest=shortest, longest=longest)
    real = sum(map(len, reads.codes)) / size
    assert estimate(reads.sequences()) == pytest.approx(real, rel=0.2 if coverage < 5 else 0.1)


@pytest.mark.parametrize("k", [12, 31])
def test_coverage_does_not_depend_on_k(k: int) -> None:
    generator = np.random.default_rng(k)
    genome = random_genome(generator, 20_000)
    reads = simulate(generator, genome, 30)
    assert estimate(reads.sequences(), k) == pytest.approx(30, rel=0.1)


def test_a_few_frequent_kmers_do_not_decide() -> None:
    """As when adapters or a phage are in reads of low coverage."""
    generator = np.random.default_rng(5)
    genome = random_genome(generator, 60_000)
    reads = simulate(generator, genome, 2).sequences()
    phage = simulate(generator, random_genome(generator, 200), 50).sequences()
    assert estimate(reads + phage) == pytest.approx(2, rel=0.3)


def test_repeats_do_not_decide() -> None:
    generator = np.random.default_rng(6)
    genome = random_genome(generator, 20_000)
    genome = np.concatenate([genome, genome[:2_000], genome[:2_000]])
    reads = simulate(generator, genome, 30)
    assert estimate(reads.sequences()) == pytest.approx(30, rel=0.1)


READ = b"ACGTTGCAAGGCTTAACCGGTACGATTAGCCATGCAATCG"


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([], 0),
        ([b""], 0),
        ([b"ACGT"], 0),
        ([b"", b"ACGT"], 0),
        ([READ], 1 / 0.525),
        ([READ[:20]], 20),
        ([READ] * 2, 2 / 0.525),
        ([READ] * 10, 10 / 0.525),
    ],
)
def test_coverage_of_hardly_any_reads(sequences: list[bytes], expected: float) -> None:
    assert estimate(sequences) == pytest.approx(expected)


@pytest.mark.parametrize(
    "sequences",
    [
        [b"N" * 100] * 50,
        [b"A" * 100] * 50,
        [b"AC" * 50],
        [READ, READ, READ[::-1]],
        [READ, READ[:-1] + b"A", READ[5:]],
        [READ[:30], READ[10:], b"A" * 40, b"C"],
    ],
)
def test_coverage_of_odd_reads_is_a_number(sequences: list[bytes]) -> None:
    value = estimate(sequences)
    assert 0 < value < 1_000_000


@given(
    st.dictionaries(st.integers(1, 300), st.integers(1, 10_000), min_size=1, max_size=12),
    st.floats(0.001, 1),
)
@examples(200)
def test_any_spectrum_gives_a_number(histogram: dict[int, int], kmers_per_base: float) -> None:
    multiplicity = np.array(sorted(histogram))
    count = np.array([histogram[m] for m in sorted(histogram)])
    spectrum = KmerSpectrum(20, multiplicity, count, 1, kmers_per_base)
    value = estimate_coverage(spectrum)
    assert 0 <= value * kmers_per_base <= 5 * max(histogram)
