"""The kernels against the oracle, on small random read sets with repeats, errors and N."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.extend import EndParameters, ExtensionParameters, RunOptions, extend_reads
from ngsgpu.extend.records import KIND_WORDS
from ngsgpu.readset import ReadSet
from tests.support.correct.alignment import make_reads
from tests.support.correct.scenarios import make_genome, sequence
from tests.support.extend.oracle import Extender, Result
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples


def simulated(
    random: Random, *, length: int, copies: int, pairs: int, insert: int, sd: int, error: float
) -> tuple[list[str], list[str]]:
    """Letters and qualities of pairs, mates in turn."""
    genome = make_genome(random, length // copies, copies, random.choice([0.0, 0.02, 0.08]))
    letters, qualities = [], []
    for _ in range(pairs):
        size = max(30, min(len(genome), round(random.gauss(insert, sd))))
        start = random.randint(0, len(genome) - size)
        fragment = genome[start : start + size]
        if random.random() < 0.5:
            fragment = reverse_complement(fragment)
        ends = fragment, reverse_complement(fragment)
        for piece in ends:
            bases, scores = sequence(random, piece[: random.randint(35, 45)], error, error / 4)
            letters.append(bases)
            qualities.append(scores)
    return letters, qualities


@st.composite
def parameters(draw: st.DrawFn) -> ExtensionParameters:
    kmer = draw(st.sampled_from([8, 9, 11]))
    window = draw(st.sampled_from([kmer, 15, 18]))
    low, high = draw(st.sampled_from([(60, 180), (None, None), (50, 200), (100, 200)]))
    return ExtensionParameters(
        ends=EndParameters(kmer=kmer, window=max(kmer, window), hashes=draw(st.integers(1, 4))),
        quality_bits=draw(st.sampled_from([8, 8, 2, 1, 0])),
        strict=draw(st.sampled_from([0, 0, 0, 1, 2])),
        insert_mean=120.0,
        insert_sd=draw(st.sampled_from([3.0, 10.0])),
        min_length=low,
        max_length=high,
        step=draw(st.sampled_from([20, 20, 7, 64])),
        min_reads=draw(st.sampled_from([3, 3, 2, 1])),
        min_overlap=draw(st.sampled_from([18, 20, 25])),
        min_overlap_ratio=draw(st.sampled_from([0.5, 0.3])),
        max_mismatch_ratio=draw(st.sampled_from([0.05, 0.1])),
        gap_mismatches=draw(st.sampled_from([0, 0, 2])),
        merge_overlap=draw(st.sampled_from([40, 15])),
        outward=draw(st.booleans()),
        mate_pairs=draw(st.sampled_from([False, False, False, True])),
    )


def results_of(reads: ReadSet, wanted: ExtensionParameters, backend: str) -> list[Result]:
    """The kernels' results as the oracle's objects."""
    found, _ = extend_reads(reads, wanted, RunOptions(threads=1, backend=backend))
    results = []
    lengths = np.array(
        [reads.arrays.uniform_length] * reads.reads
        if reads.arrays.uniform_length >= 0
        else reads.arrays.lengths
    )
    for pair, kind in enumerate(found.kind.tolist()):
        if kind == 0:
            results.append(Result("none"))
            continue
        total, left = int(found.total[pair]), int(found.left[pair])
        gap = max(0, total - int(lengths[2 * pair]) - int(lengths[2 * pair + 1]))
        right = int(found.right[pair])
        own = slice(found.start[pair], found.start[pair] + left + gap + right)
        text = "".join("ACGT"[code] for code in found.codes[own])
        results.append(
            Result(
                KIND_WORDS[kind],
                total,
                text[:left],
                text[left : left + gap],
                text[left + gap :],
                tuple(found.qualities[own][left : left + gap].tolist()),
            )
        )
    return results


def test_kernels_equal_the_oracle(backend: str) -> None:
    seen: Counter[str] = Counter()

    @given(
        st.integers(0, 1 << 30),
        parameters(),
        st.sampled_from([1, 1, 2, 3]),
        st.sampled_from([0.0, 0.01, 0.03]),
        st.sampled_from([40, 80]),
    )
    @examples(40)
    def compare(
        seed: int, wanted: ExtensionParameters, copies: int, error: float, pairs: int
    ) -> None:
        letters, qualities = simulated(
            Random(seed), length=450, copies=copies, pairs=pairs, insert=120, sd=6, error=error
        )
        bits = wanted.quality_bits
        reads = ReadSet.from_sequences(letters, qualities, paired=True, quality_bits=bits)
        assert wanted.insert_mean is not None
        assert wanted.insert_sd is not None
        oracle = Extender(
            make_reads(letters, qualities, bits), wanted, wanted.insert_mean, wanted.insert_sd
        )
        found = results_of(reads, wanted, backend)
        for pair in range(seed % 5, pairs, 5):
            expected = oracle.extend(pair)
            seen[expected.kind] += 1
            assert found[pair] == expected, pair

    compare()
    assert set(seen) >= {"none", "both", "confirmed", "one", "merged"}, seen


@pytest.mark.parametrize(("shortest", "accepted"), [(60, True), (59, False)])
def test_different_gaps_count_where_lengths_are_close(
    backend: str, shortest: int, accepted: bool
) -> None:
    wanted = ExtensionParameters(
        ends=EndParameters(kmer=9, window=15),
        insert_mean=120.0,
        insert_sd=10.0,
        min_length=shortest,
        max_length=180,
        min_overlap=18,
        min_overlap_ratio=0.3,
        min_reads=2,
    )
    letters, qualities = simulated(
        Random(9), length=450, copies=2, pairs=80, insert=120, sd=6, error=0.01
    )
    reads = ReadSet.from_sequences(letters, qualities, paired=True, quality_bits=8)
    oracle = Extender(make_reads(letters, qualities, 8), wanted, 120.0, 10.0)
    found = results_of(reads, wanted, backend)
    for pair in (3, 5, 9, 25, 26, 29):
        assert found[pair] == oracle.extend(pair)
        assert (found[pair].kind == "differ") == accepted
