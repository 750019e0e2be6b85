"""Letters to bit planes and back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.readset import ReadSet
from ngsgpu.sequence.codec import (
    AMBIGUOUS,
    CODES,
    base_at,
    decode,
    encode,
    reverse_complement_plane,
    set_base,
    words_for,
)
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples

bases = st.text("ACGT", max_size=200)


def planes_of(sequence: str) -> np.ndarray:
    """Two planes, bit by bit, as the module's docstring says."""
    words = [0] * (2 * words_for(len(sequence)))
    for position, letter in enumerate(sequence):
        code = "ACGT".index(letter)
        words[position // 64] |= (code & 1) << position % 64
        words[words_for(len(sequence)) + position // 64] |= (code >> 1) << position % 64
    return np.array(words, dtype=np.uint64)


def letters_of(planes: np.ndarray, length: int, start: int = 0) -> str:
    words = words_for(length)
    return "".join("ACGT"[base_at(planes, start, words, i)] for i in range(length))


def reverse_complemented(planes: np.ndarray, length: int, start: int = 0) -> np.ndarray:
    words = words_for(length)
    result = np.full(2 * words + 1, 12345, dtype=np.uint64)
    reverse_complement_plane(planes, start, length, result, 0)
    reverse_complement_plane(planes, start + words, length, result, words)
    assert result[2 * words] == 12345, "written beyond the end"
    return result[: 2 * words]


def test_every_byte_has_a_code() -> None:
    for byte in range(256):
        letter = chr(byte).upper()
        expected = "ACGT".index(letter) if letter in "ACGT" else AMBIGUOUS
        assert CODES[byte] == expected


@given(st.binary(max_size=300))
@examples(100)
def test_encode_and_decode(raw: bytes) -> None:
    codes = encode(raw)
    assert codes.dtype == np.uint8
    known = codes < AMBIGUOUS
    letters = np.frombuffer(raw.upper(), dtype=np.uint8)
    assert decode(codes[known]) == letters[known].tobytes()
    assert all(letter not in b"ACGT" for letter in letters[~known])


def test_encode_takes_text() -> None:
    assert encode("acgtN").tolist() == [0, 1, 2, 3, AMBIGUOUS]
    assert decode(encode("ACGT")) == b"ACGT"
    assert decode(encode("")) == b""


def test_words() -> None:
    assert [words_for(length) for length in (0, 1, 63, 64, 65, 128, 129)] == [0, 1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("uniform", [True, False])
def test_packing_and_unpacking_lengths_0_to_200(uniform: bool) -> None:
    random = Random(3)
    for length in range(201):
        lengths = [length] * 3 if uniform else [length, random.randint(0, 200), length]
        sequences = ["".join(random.choices("ACGT", k=size)) for size in lengths]
        arrays = ReadSet.from_sequences(sequences).arrays
        start = 0
        for sequence in sequences:
            assert letters_of(arrays.planes, len(sequence), start) == sequence
            start += 2 * words_for(len(sequence))
        assert start == len(arrays.planes)
        expected = np.concatenate([planes_of(sequence) for sequence in sequences])
        assert np.array_equal(arrays.planes, expected), "bits past the end are 0"


def test_reverse_complement_of_lengths_0_to_200() -> None:
    random = Random(4)
    for length in range(201):
        sequence = "".join(random.choices("ACGT", k=length))
        # The planes lie among those of other reads.
        around = np.full(3, ~np.uint64(0))
        planes = np.concatenate([around, planes_of(sequence), around])
        once = reverse_complemented(planes, length, start=3)
        assert np.array_equal(once, planes_of(reverse_complement(sequence)))
        assert np.array_equal(reverse_complemented(once, length), planes_of(sequence))


@given(bases.filter(len), st.data())
@examples(100)
def test_a_base_is_set_and_no_other(sequence: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(sequence) - 1))
    letter = data.draw(st.sampled_from("ACGT"))
    planes = planes_of(sequence)
    set_base(planes, 0, words_for(len(sequence)), position, "ACGT".index(letter))
    changed = sequence[:position] + letter + sequence[position + 1 :]
    assert np.array_equal(planes, planes_of(changed))
