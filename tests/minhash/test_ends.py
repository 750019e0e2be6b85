"""Tables of read ends: what is found, and the set of ends that a sequence has met."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import UsageError
from ngsgpu.minhash import end_set, ends
from ngsgpu.readset import ReadSet
from ngsgpu.sequence.codec import bases_from, encode
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples


@given(st.integers(1, 200), st.booleans(), st.data())
@examples(200)
def test_64_bases_from_anywhere(
    length: int, reverse_complemented: bool, data: st.DataObject
) -> None:
    random = Random(data.draw(st.integers(0, 1 << 30)))
    offset = data.draw(st.integers(0, length - 1))
    read = "".join(random.choices("ACGT", k=length))
    around = "".join(random.choices("ACGT", k=70))
    arrays = ReadSet.from_sequences([around, read, around]).arrays
    start = int(arrays.plane_start[1]) if len(arrays.plane_start) else 4
    words = (length + 63) // 64
    low, high = bases_from(arrays.planes, start, words, length, int(reverse_complemented), offset)
    aligned_offset = reverse_complement(read) if reverse_complemented else read
    expected = aligned_offset[offset : offset + 64]
    found = "".join("ACGT"[(int(low) >> i & 1) | (int(high) >> i & 1) << 1] for i in range(64))
    assert found[: len(expected)] == expected


@given(st.integers(0, 1 << 30), st.integers(1, 4), st.sampled_from([15, 20, 30]))
@examples(40)
def test_every_read_without_errors_is_found(seed: int, hashes: int, window: int) -> None:
    random = Random(seed)
    genome = "".join(random.choices("ACGT", k=400))
    reads, expected = [], set()
    for number in range(60):
        start = random.randint(0, 340)
        reverse_complemented = random.random() < 0.5
        piece = genome[start : start + random.randint(window - 5, 60)]
        reads.append(reverse_complement(piece) if reverse_complemented else piece)
        if len(piece) >= window:
            expected.add((2 * number + reverse_complemented, start))
    parameters = ends.EndParameters(kmer=12, window=window, hashes=hashes)
    tables = ends.build_end_tables(ReadSet.from_sequences(reads), parameters, threads=2)
    codes = encode(genome)
    values = np.zeros((hashes, len(genome)), dtype=np.uint64)
    ends.hash_kmers(tables, codes, 0, len(genome), values)
    met = end_set.EndSet.allocate()
    end_set.empty_set(met)
    found = np.zeros(200, dtype=np.int64)
    starts = np.zeros(200, dtype=np.int64)
    everything = set()
    step = random.choice([7, 50, 400])
    last = len(genome) - window + 1
    for first in range(0, last, step):
        count = ends.find_begins(
            tables, values, first, min(last, first + step), 1024, met, found, starts
        )
        everything |= set(zip(found[:count].tolist(), starts[:count].tolist(), strict=True))
    assert expected <= everything


def test_set_of_ends() -> None:
    met = end_set.EndSet.allocate(4)
    for _ in range(3):
        end_set.empty_set(met)
        assert not end_set.has_flag(met, 9)
        assert end_set.add_end(met, 9)
        assert not end_set.add_end(met, 9)
        end_set.set_flag(met, 9, True)
        assert end_set.has_flag(met, 9)
        assert not end_set.has_flag(met, 8)
        end_set.set_flag(met, 9, False)
        assert not end_set.has_flag(met, 9)
        assert [end_set.add_end(met, end) for end in (1, 2, 3, 4)] == [True, True, True, False]


@pytest.mark.parametrize(
    "wrong", [{"kmer": 7}, {"hashes": 0}, {"window": 19}, {"window": 300}, {"seed": -1}]
)
def test_refused_parameters(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        ends.EndParameters(**wrong)
