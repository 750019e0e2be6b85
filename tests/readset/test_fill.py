"""Unknown bases take the letters that other reads have in their place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.readset import ReadSet, fill
from ngsgpu.readset.fill import fill_unknown, kmer_length
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples
from tests.support.readset.fill import fill_by_strings


def random_genome(random: np.random.Generator, length: int) -> str:
    return "".join("ACGT"[code] for code in random.integers(0, 4, length))


def filled(reads: list[str], backend: str, threads: int = 1) -> list[str]:
    """The reads as a backend fills them; N where it gives no letter."""
    host = ReadSet.from_sequences(reads)
    before = letters_of(host)
    if backend == "cpu":
        count = fill_unknown(host, threads=threads)
    else:
        from ngsgpu.readset.gpu import DeviceReadSet
        from ngsgpu.readset.gpu_fill import fill_unknown_on_gpu

        there = DeviceReadSet.from_host(host)
        count = fill_unknown_on_gpu(there)
        host = there.to_host()
    after = letters_of(host)
    known = fill_by_strings(reads)
    assert count == sum(
        old.count("N") - new.count("N") for old, new in zip(reads, known, strict=True)
    )
    # What is not filled stays the base that it was.
    for random, found, expected in zip(before, after, known, strict=True):
        assert found == "".join(
            old if letter == "N" else letter for letter, old in zip(expected, random, strict=True)
        )
    return known


def letters_of(reads: ReadSet) -> list[str]:
    """The reads, with the letters that stand for unknown bases."""
    planes = np.unpackbits(reads.arrays.planes.view(np.uint8), bitorder="little")
    texts, at = [], 0
    lengths = reads.arrays.lengths.tolist() or [reads.arrays.uniform_length] * reads.reads
    for length in lengths:
        size = 64 * ((length + 63) // 64)
        codes = planes[at : at + length] + 2 * planes[at + size : at + size + length]
        texts.append("".join("ACGT"[code] for code in codes))
        at += 2 * size
    return texts


def with_unknown(random: np.random.Generator, read: str, most: int) -> str:
    letters = list(read)
    for position in random.integers(0, len(read), random.integers(0, most + 1)).tolist():
        letters[position] = "N"
    return "".join(letters)


def test_a_letter_that_other_reads_have(backend: str) -> None:
    genome = random_genome(np.random.default_rng(1), 120)
    hidden = genome[:60] + "N" + genome[61:]
    assert filled([hidden, genome, genome], backend)[0] == genome
    other = reverse_complement(genome)
    assert filled([hidden, other, genome, genome[:10] + hidden[10:]], backend)[0] == genome


def test_near_an_end_one_side_is_asked(backend: str) -> None:
    genome = random_genome(np.random.default_rng(2), 100)
    for position in (0, 3, 96, 99):
        hidden = genome[:position] + "N" + genome[position + 1 :]
        assert filled([hidden, genome, genome], backend)[0] == genome


def test_neighbours_of_unknown_bases_are_asked_when_they_are_known(backend: str) -> None:
    genome = random_genome(np.random.default_rng(3), 100)
    hidden = genome[:50] + "NNN" + genome[53:]
    assert filled([hidden, genome, genome], backend)[0] == genome


@pytest.mark.parametrize("length", [8, 11, 14, 40, 64, 70])
def test_runs_are_filled_from_both_ends(backend: str, length: int) -> None:
    """Also one of them among many single unknown bases; of 70, the innermost stay."""
    random = np.random.default_rng(5)
    genome = random_genome(random, 200)
    hidden = genome[:60] + "N" * length + genome[60 + length :]
    singles = [genome[:at] + "N" + genome[at + 1 :] for at in range(40, 160)]
    (known, *others) = filled([hidden, genome, genome, *singles], backend)
    left = max(0, length - 64)
    assert known == genome[:92] + "N" * left + genome[92 + left :] if left else known == genome
    assert others == [genome] * 122


@pytest.mark.parametrize(
    ("agree", "differ", "is_filled"), [(1, 0, False), (2, 0, True), (4, 1, True), (3, 1, False)]
)
def test_enough_reads_agree(backend: str, agree: int, differ: int, is_filled: bool) -> None:
    genome = random_genome(np.random.default_rng(4), 100)
    changed = genome[:99] + ("A" if genome[99] != "A" else "C")
    reads = [genome[:99] + "N"] + [genome] * agree + [changed] * differ
    assert filled(reads, backend)[0][99] == (genome[99] if is_filled else "N")


def test_without_unknown_bases_nothing_happens(backend: str) -> None:
    assert filled(["ACGT" * 20, "ACGA" * 20], backend) == ["ACGT" * 20, "ACGA" * 20]
    assert filled(["N" * 70, "N", ""], backend) == ["N" * 70, "N", ""]


@pytest.mark.parametrize("seed", range(6))
def test_as_by_strings(backend: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    genome = random_genome(random, 400)
    reads = []
    for _ in range(80):
        start, length = int(random.integers(0, 320)), int(random.integers(20, 80))
        read = genome[start : start + (70 if seed % 2 else length)]
        read = read if random.random() < 0.5 else reverse_complement(read)
        reads.append(with_unknown(random, read, 1 + seed))
    known = filled(reads, backend, threads=2)
    assert sum(read.count("N") for read in known) < sum(read.count("N") for read in reads)


@given(st.lists(st.text("ACN", max_size=40), max_size=8))
@examples(60)
def test_any_reads(reads: list[str]) -> None:
    filled(reads, "cpu")


def test_few_kmers_at_a_time_give_the_same(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "KMERS_AT_A_TIME", 3)
    monkeypatch.setattr(fill, "_BASES_PER_TASK", 100)
    test_as_by_strings(backend, 3)


def test_length_of_kmers() -> None:
    assert [kmer_length(bases) for bases in (0, 15_000_000, 3_060_000_000, 10**11, 10**30)] == [
        3, 15, 19, 21, 31,
    ]  # fmt: skip
