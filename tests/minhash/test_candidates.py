"""Reads that share a minimal k-mer, and how they would have to be laid."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.minhash import MinhashParameters, build_tables
from ngsgpu.minhash.cpu import FoundArrays, find_candidates
from ngsgpu.minhash.params import MAX_ENTRIES
from ngsgpu.minhash.tables import planned_bytes
from ngsgpu.readset import ReadSet
from tests.support.minhash import oracle
from tests.support.minhash.reads import make_reads, reads_with_much_in_common
from tests.support.properties import examples


class Search:
    """Candidates of all anchors, one after the other in the same workspace."""

    def __init__(self, letters: list[str], parameters: MinhashParameters) -> None:
        self.reads = ReadSet.from_sequences(letters)
        self.parameters = parameters
        self.tables = build_tables(self.reads, parameters)
        self.found = FoundArrays.allocate(self.reads.max_length)
        self.bounds = np.zeros((parameters.tables, 3), dtype=np.int64)

    def candidates(
        self, anchor: int, max_bucket_size: int, window: int
    ) -> tuple[list[oracle.Placement], bool]:
        count, crowded = find_candidates(
            self.reads.arrays,
            self.tables.arrays,
            anchor,
            self.parameters.k,
            max_bucket_size,
            window,
            self.found,
            self.bounds,
        )
        assert np.all(self.found.cells == -1), "the workspace is ready for the next anchor"
        keys = self.found.key[:count].tolist()
        placements = [
            oracle.Placement(key >> 17, bool(key & 1), (key >> 1 & 0xFFFF) - 32768) for key in keys
        ]
        return placements, bool(crowded)


@given(
    reads_with_much_in_common,
    st.sampled_from([8, 11, 20, 32]),
    st.integers(1, 8),
    st.integers(1, 30),
    st.integers(1, 30),
)
@examples(150)
def test_candidates_equal_the_oracle(
    pieces: list[tuple[int, int, bool, int]], k: int, hashes: int, max_bucket_size: int, window: int
) -> None:
    letters = make_reads(pieces)
    search = Search(letters, MinhashParameters(kmer=k, hashes=hashes))
    tables = oracle.make_tables(letters, k, hashes)
    window = min(window, max_bucket_size)
    for anchor in range(len(letters)):
        found, crowded = search.candidates(anchor, max_bucket_size, window)
        expected = oracle.candidates(letters, tables, anchor, k, max_bucket_size, window)
        assert len(found) == len(set(found))
        assert (set(found), crowded) == expected


def test_a_shared_kmer_says_how_a_read_lies() -> None:
    generator = np.random.default_rng(2)
    genome = "".join(generator.choice(list("ACGT"), 300))
    anchor = genome[100:200]
    for start in range(20, 181, 7):
        for size in (100, 64, 33):
            other = genome[start : start + size]
            for reverse_complemented in (False, True):
                read = oracle.reverse_complement(other) if reverse_complemented else other
                search = Search([anchor, read], MinhashParameters(kmer=16, hashes=32))
                found, crowded = search.candidates(0, 10, 10)
                assert not crowded
                assert set(found) <= {oracle.Placement(1, reverse_complemented, start - 100)}
                overlap = min(200, start + size) - max(100, start)
                assert found or overlap < 40


def test_reads_that_are_too_short_have_no_candidates() -> None:
    letters = ["ACGTTGCAAGGCTTAACCGGTACG"[:length] for length in (19, 20, 0, 20, 24, 19)]
    search = Search(letters, MinhashParameters())
    found = [
        sorted({placement.read for placement in search.candidates(anchor, 10, 10)[0]})
        for anchor in range(6)
    ]
    assert [found[0], found[2], found[5]] == [[], [], []]
    assert found[1][:1] == [3] and found[3][:1] == [1]


def test_long_reads_at_the_largest_shifts() -> None:
    generator = np.random.default_rng(3)
    longest = 32_767
    shared = "".join(generator.choice(list("ACGT"), 32))
    # Most shared k-mers are the one at the end of a read, which is another end in each.
    first, second = shared + "A" * (longest - 32), "A" * (longest - 32) + shared
    for reverse_complemented in (False, True):
        other = oracle.reverse_complement(second) if reverse_complemented else second
        search = Search([first, other], MinhashParameters(kmer=32, hashes=255))
        found, _ = search.candidates(0, 10, 10)
        assert oracle.Placement(1, reverse_complemented, 32 - longest) in found
        found, _ = search.candidates(1, 10, 10)
        shift = 32 - longest if reverse_complemented else longest - 32
        assert oracle.Placement(0, reverse_complemented, shift) in found


def test_no_more_entries_than_there_is_room_for() -> None:
    """255 tables whose buckets hold all reads, at any coverage."""
    letters = ["ACGTTGCAAGGCTTAACCGGTACGATTAGCCATGC"[i % 7 :] for i in range(400)]
    parameters = MinhashParameters(kmer=20, hashes=255)
    search = Search(letters, parameters)
    window = parameters.window(100_000)
    assert window * 255 <= MAX_ENTRIES
    found, crowded = search.candidates(200, parameters.max_bucket_size(100_000), window)
    assert not crowded
    nearest = {placement.read for placement in found}
    assert nearest and all(abs(read - 200) <= 7 * window for read in nearest)


def test_memory_of_the_tables() -> None:
    parameters = MinhashParameters()
    # 5 bytes an entry where the positions of k-mers take one, and a directory.
    million = planned_bytes(1_000_000, 100, parameters)
    assert 380e6 < million < 450e6
    assert planned_bytes(1_000_000, 150, parameters) - million == 1_000_000 * (48 + 16)
    # Of many reads, a function at a time.
    assert planned_bytes(1 << 30, 100, parameters) < (48 * 5.4 + 30) * (1 << 30)
    assert planned_bytes(0, 100, parameters) < 1000
