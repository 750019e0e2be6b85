"""Machine instructions and the hash function, against plain integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from ngsgpu.sequence import codec, hashing
from tests.support.minhash.oracle import mix
from tests.support.properties import examples

ALL_ONES = (1 << 64) - 1
words = st.one_of(
    st.integers(0, ALL_ONES),
    st.integers(0, 63).map(lambda bit: 1 << bit),
    st.sampled_from([0, ALL_ONES]),
)


@njit
def popcount(word):
    return codec.popcount(word)


@njit
def reverse_bits(word):
    return codec.reverse_bits(word)


@njit
def mix64(word):
    return hashing.mix64(word)


@njit
def unmix64(word):
    return hashing.unmix64(word)


@given(words)
@examples(200)
def test_population_count(word: int) -> None:
    assert popcount(np.uint64(word)) == word.bit_count()


@given(words)
@examples(200)
def test_bits_in_opposite_order(word: int) -> None:
    assert reverse_bits(np.uint64(word)) == int(f"{word:064b}"[::-1], 2)


@given(words)
@example(0)
@examples(200)
def test_hash_and_its_inverse(word: int) -> None:
    assert mix64(np.uint64(word)) == mix(word)
    assert unmix64(np.uint64(mix(word))) == word
    assert mix64(np.uint64(unmix64(np.uint64(word)))) == word


@pytest.mark.parametrize(
    ("word", "value"),
    # Published values of fmix64.
    [(0, 0), (1, 0xB456BCFC34C2CB2C), (2, 0x3ABF2A20650683E7)],
)
def test_known_hashes(word: int, value: int) -> None:
    assert mix64(np.uint64(word)) == value
