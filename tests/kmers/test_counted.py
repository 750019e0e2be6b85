"""Counting the k-mers of a bucket in parts, against sorting all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.kmers.counted import counted_in_parts, parts_of

BITS = 4
BUCKET = np.uint64(0b1010) << np.uint64(60)


@given(
    values=st.lists(st.integers(0, (1 << 60) - 1), min_size=1, max_size=60),
    copies=st.lists(st.sampled_from([1, 2, 3, 40, 2000]), min_size=60, max_size=60),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=3),
    digit=st.integers(1, 6),
    min_count=st.integers(1, 3),
    count_type=st.sampled_from(["uint16", "uint32"]),
)
@settings(max_examples=60)
def test_parts_have_the_counts_of_all(
    values: list[int],
    copies: list[int],
    cuts: list[int],
    digit: int,
    min_count: int,
    count_type: str,
):
    """Of few and of many copies, so that cells are sorted or counted in a table."""
    kmers = np.repeat(np.array(values, dtype=np.uint64), copies[: len(values)]) | BUCKET
    np.random.default_rng(len(kmers)).shuffle(kmers)
    places = np.unique([0, len(kmers), *(cut % len(kmers) for cut in cuts)]).astype(np.int64)
    expected, times = np.unique(kmers, return_counts=True)
    frequent = times >= min_count
    own, counts = counted_in_parts(
        kmers, places[:-1], places[1:], BITS, digit, min_count, np.empty(0, dtype=count_type),
        (0,), (0,),
    )  # fmt: skip
    assert own[:, 0].tolist() == expected[frequent].tolist()
    assert counts.tolist() == times[frequent].tolist()
    assert counts.dtype == count_type


def test_the_highest_count_stands_for_higher_ones():
    kmers = np.full(70_000, BUCKET)
    whole = np.array([0]), np.array([len(kmers)])
    own, counts = counted_in_parts(kmers, *whole, BITS, 1, 1, np.empty(0, dtype=np.uint16), (0,), (0,))
    assert own.tolist() == [[BUCKET]]
    assert counts.tolist() == [65_535]


@pytest.mark.parametrize(
    ("kmers", "bits"), [(0, 0), (1 << 13, 0), ((1 << 13) + 1, 1), (500_000, 6), (1 << 40, 10)]
)
def test_parts_are_about_as_large(kmers: int, bits: int):
    assert parts_of(kmers) == bits
