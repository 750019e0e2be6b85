"""Parameters, and the integers that the kernels compare with."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.errors import UsageError
from tests.support.correct.alignment import ONE, TOLERANCE, WHOLE, exact, units

COVERAGES = [0.3, 1, 1.5, 2, 3.3, 5, 9.99, 10, 10.1, 16.6667, 29.9, 30, 33.3, 60, 150.5, 1e6]


@pytest.mark.parametrize("coverage", COVERAGES)
def test_numbers_of_reads(coverage: float) -> None:
    rules = CorrectionParameters().rules(coverage, paired=False)
    c = exact(coverage)
    # Counts are compared with these by >=, as ratios would be with a tolerance.
    # An anchor sees no more reads of a place than a window holds; CARE asks for more all the same.
    assert rules.bin_reads == math.ceil(Fraction(6, 10) * min(c, 16_384 // 48) - TOLERANCE)
    classic = CorrectionParameters(classic=True).rules(coverage, paired=False)
    assert classic.bin_reads == math.ceil(Fraction(6, 10) * c - TOLERANCE)
    assert rules.min_coverage == math.ceil(c / 10 - TOLERANCE)
    copy = math.floor(Fraction(3, 10) * math.floor(c) + TOLERANCE)
    assert (rules.refine_reads, classic.refine_reads) == (max(2, copy), max(1, copy))
    assert rules.max_bucket_size == max(10, math.floor(Fraction(5, 2) * c))
    assert rules.window == min(rules.max_bucket_size, 16_384 // 48)


def test_thresholds_of_the_description() -> None:
    for paired in (False, True):
        rules = CorrectionParameters().rules(30, paired=paired)
        assert rules.paired == paired
        assert rules.kmer == 20
        assert (rules.min_overlap, rules.min_overlap_permille) == (30, 300)
        assert (rules.max_mismatch_permille, rules.pair_mismatch_permille) == (200, 60)
        assert rules.bin_permille == (120, 180, 240)
        assert (rules.refine_rounds, rules.position_max_reads, rules.margin) == (5, 2, 15)
        assert rules.refine_keep_weight == math.ceil((Fraction(9, 10) - TOLERANCE) * ONE)
        supports = {
            "mean_support": "0.94",
            "min_support": "0.82",
            "high_mean_support": "0.97",
            "high_min_support": "0.91",
            "position_support": "0.90",
        }
        for name, value in supports.items():
            assert getattr(rules, name) == units(Fraction(value)), name
            assert getattr(rules, name) < Fraction(value) * WHOLE


def test_length_of_kmers() -> None:
    def chosen(**given: Any) -> int | None:
        return CorrectionParameters(**given).for_reads(1, 1 << 30).minhash.kmer

    assert chosen() == 17
    assert chosen(classic=True) == 20, "as CARE"
    assert chosen(minhash=MinhashParameters(kmer=31), classic=True) == 31


def test_error_rate_moves_the_thresholds() -> None:
    rules = CorrectionParameters(error_rate=0.05).rules(30, paired=False)
    assert rules.bin_permille == (100, 150, 200)
    assert rules.mean_support == units(Fraction("0.95"))
    assert rules.min_support == units(Fraction("0.85"))
    # Half of 5 %, in whole percent: 2 %.
    assert rules.high_mean_support == units(Fraction("0.98"))
    assert rules.high_min_support == units(Fraction("0.94"))


@pytest.mark.parametrize("coverage", [0, -1, float("nan"), float("inf"), 1_000_001])
def test_wrong_coverage(coverage: float) -> None:
    with pytest.raises(UsageError, match="`coverage` must be auto or above 0 and at most 1"):
        CorrectionParameters(coverage=coverage)


@pytest.mark.parametrize("bits", [3, 4, -1, 16])
def test_wrong_quality_bits(bits: int) -> None:
    with pytest.raises(UsageError, match=f"`quality_bits` must be 8, 2, 1 or 0, not {bits}"):
        CorrectionParameters(quality_bits=bits)


@pytest.mark.parametrize(
    ("length", "overlap", "factor"),
    [(36, 20, 0.6 * (1 - 20 / 36) / 0.7), (50, 25, 0.6 * 0.5 / 0.7), (60, 30, 0.6), (20, 30, 0.6)],
)
def test_least_overlap_of_short_reads(length: int, overlap: int, factor: float) -> None:
    rules = CorrectionParameters().for_reads(1000, 1000 * length)
    assert rules.min_overlap == overlap
    assert rules.coverage_factor == pytest.approx(factor)
    classic = CorrectionParameters(classic=True).for_reads(1000, 1000 * length)
    assert (classic.min_overlap, classic.coverage_factor) == (30, 0.6)
