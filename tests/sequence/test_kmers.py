"""K-mers as numbers and as rows of numbers, and tables of them, against strings of letters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from ngsgpu.sequence import hashing, kmers
from ngsgpu.sequence.codec import encode
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples

texts = st.text("ACGT", min_size=128, max_size=140)


def number(text: str) -> int:
    value = 0
    for code in encode(text):
        value = value << 2 | int(code)
    return value


def row(text: str) -> list[int]:
    words = -(-len(text) // 32)
    value = number(text) << (64 * words - 2 * len(text))
    return [value >> 64 * (words - 1 - j) & (1 << 64) - 1 for j in range(words)]


@njit
def rolled(codes, k):
    forward = backward = np.uint64(0)
    for code in codes:
        forward, backward = kmers.roll(forward, backward, np.uint64(code), k)
    return forward, backward, kmers.reverse_complement(forward, k)


@given(texts, st.integers(1, 32))
@examples(100)
def test_number(text: str, k: int) -> None:
    forward, backward, turned = rolled(encode(text), k)
    assert forward == number(text[-k:])
    assert backward == turned == number(reverse_complement(text[-k:]))


@given(texts, st.integers(1, 127))
@examples(100)
def test_rows(text: str, k: int) -> None:
    both = np.zeros((3, -(-k // 32)), dtype=np.uint64)
    for code in encode(text):
        kmers.roll_words(both[0], both[1], np.uint64(code), k)
    kmers.turn(both, 0, k, both, 2)
    own, turned = text[-k:], reverse_complement(text[-k:])
    assert both.tolist() == [row(own), row(turned), row(turned)]
    assert kmers.is_less(both, 1, both, 0, both.shape[1]) == (turned < own)


@pytest.mark.parametrize("k", [20, 40])
def test_rows_are_found(k: int) -> None:
    codes = np.random.default_rng(1).integers(0, 4, (300, k))
    known = sorted({"".join("ACGT"[code] for code in own) for own in codes})
    rows = np.array([row(text) for text in known], dtype=np.uint64)
    for place in range(len(known)):
        assert kmers.find_row(rows, 0, len(rows), rows, place) == place
    left = np.delete(rows, [0, 7, len(rows) - 1], axis=0)
    assert all(kmers.find_row(left, 0, len(left), rows, i) == -1 for i in (0, 7, len(rows) - 1))


def test_table_that_is_nearly_full() -> None:
    keys, values = np.zeros(64, dtype=np.uint64), np.zeros(64, dtype=np.int64)
    wanted = np.random.default_rng(2).integers(0, 1 << 62, 63).astype(np.uint64)
    for count, key in enumerate(wanted, 1):
        slot = hashing.find_slot(keys, values, key, key)
        assert values[slot] == 0
        assert slot == hashing.free_slot(values, key)
        keys[slot], values[slot] = key, count
    found = [values[hashing.find_slot(keys, values, key, key)] for key in wanted]
    assert found == list(range(1, 64))


def test_table_of_indices() -> None:
    cells, keys = np.full(256, -1, dtype=np.int32), np.arange(63, dtype=np.int64) * 1000
    for index, key in enumerate(keys):
        cell = hashing.find_cell(cells, 64, keys, key)
        assert cells[cell] == -1
        cells[cell] = index
    assert [cells[hashing.find_cell(cells, 64, keys, key)] for key in keys] == list(range(63))


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9)))
def test_distinct(values: list[int]) -> None:
    found = kmers.distinct(np.array(values, dtype=np.uint64))
    assert found.tolist() == sorted(set(values))
