"""Counting the k-mers of a bucket in parts, against sorting all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ngsgpu.kmers.counted import counted_in_parts, in_order, parts_of, sorted_counts

BITS = 4
BUCKET = np.uint64(0b1010) << np.uint64(60)
ONE = (0,)


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
    expected, times = np.unique(kmers, return_counts=True)
    frequent = times >= min_count
    no_counts = np.empty(0, dtype=count_type)
    own, counts = counted_in_parts(
        kmers.reshape(-1, 1), *pieces(len(kmers), cuts), BITS, digit, min_count, no_counts, ONE, ONE
    )
    assert own[:, 0].tolist() == expected[frequent].tolist()
    assert counts.tolist() == times[frequent].tolist()
    assert counts.dtype == count_type


@given(
    words=st.integers(1, 4),
    sizes=st.lists(st.sampled_from([1, 2, 15, 17, 300]), min_size=1, max_size=6),
    shared=st.lists(st.integers(0, 60), min_size=6, max_size=6),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=3),
    seed=st.integers(0, 100),
)
@settings(max_examples=60)
def test_rows_with_counts_are_put_in_order(
    words: int, sizes: list[int], shared: list[int], cuts: list[int], seed: int
):
    """Rows whose first bits, or first words, are the same: of few and of many in a cell."""
    draw = np.random.default_rng(seed)
    groups = []
    for size, bits in zip(sizes, shared, strict=False):
        group = draw.integers(0, 1 << 60, (size, words), dtype=np.uint64)
        first = draw.integers(0, 1 << 60, dtype=np.uint64)
        group[:, 0] = (first >> np.uint64(60 - bits) << np.uint64(60 - bits)) | (
            group[:, 0] >> np.uint64(bits)
        )
        groups.append(group)
    kmers = np.unique(np.concatenate(groups), axis=0)
    kmers[:, 0] |= BUCKET
    counts = draw.integers(1, 100_000, len(kmers), dtype=np.uint64)
    rows = np.column_stack([kmers, counts])[draw.permutation(len(kmers))]
    no_counts = np.empty(0, dtype=np.uint16)
    own, their = in_order(rows, *pieces(len(rows), cuts), BITS, no_counts)
    assert np.array_equal(own, kmers)
    assert np.array_equal(their, np.minimum(counts, 65_535))
    table = np.zeros((2 * len(rows) + 1, words + 1), dtype=np.uint64)
    table[draw.permutation(len(table))[: len(rows)]] = rows
    own, their = sorted_counts(table, BITS, 50_000, no_counts)
    assert np.array_equal(own, kmers[counts >= 50_000])
    assert np.array_equal(their, np.minimum(counts, 65_535)[counts >= 50_000])


def pieces(size: int, cuts: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the pieces of an array begin, and end."""
    places = np.unique([0, size, *(cut % size for cut in cuts)]).astype(np.int64)
    return places[:-1], places[1:]


def test_the_highest_count_stands_for_higher_ones():
    kmers = np.full((70_000, 1), BUCKET)
    no_counts = np.empty(0, dtype=np.uint16)
    own, counts = counted_in_parts(kmers, *pieces(len(kmers), []), BITS, 1, 1, no_counts, ONE, ONE)
    assert own.tolist() == [[BUCKET]]
    assert counts.tolist() == [65_535]


@pytest.mark.parametrize(
    ("kmers", "bits"), [(0, 0), (1 << 13, 0), ((1 << 13) + 1, 1), (500_000, 6), (1 << 40, 10)]
)
def test_parts_are_about_as_large(kmers: int, bits: int):
    assert parts_of(kmers) == bits
