"""The GPU extends pairs to the same bytes as the CPU, on random configurations."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.extend import EndParameters, ExtensionParameters
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.cpu_run import Extender
from ngsgpu.extend.rules import Rules
from ngsgpu.extend.tasks.joining import NOT_CONNECTED
from ngsgpu.minhash.ends import EndTables, build_end_tables
from ngsgpu.readset import ReadSet

pytestmark = pytest.mark.gpu

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def genome_with_repeats(rng: random.Random) -> str:
    """A random genome with copies of its parts, some of them changed, and perhaps a tandem."""
    genome = "".join(rng.choices("ACGT", k=rng.randrange(300, 5000)))
    for _ in range(rng.randrange(4)):
        unit = genome[rng.randrange(len(genome) // 2) :][: rng.randrange(50, 900)]
        changed = rng.choice([0, 0.005, 0.03])
        for _ in range(rng.choice([1, 2, 8])):
            genome += "".join(
                rng.choice("ACGT") if rng.random() < changed else base for base in unit
            )
            genome += "".join(rng.choices("ACGT", k=rng.randrange(300)))
    if rng.random() < 0.3:
        genome += rng.choice(["A", "AC", "AAT", "ACGTTGCA"]) * rng.randrange(20, 200)
    return genome


def simulate(
    rng: random.Random, genome: str, pairs: int, *, insert: int, sd: int, longest: int, mixed: bool
) -> tuple[list[str], list[str]]:
    """Letters and qualities of pairs, mates in turn."""
    error = rng.choice([0.001, 0.005, 0.01, 0.03])
    sequences, qualities = [], []
    for _ in range(pairs):
        size = min(len(genome), max(longest, round(rng.gauss(insert, sd))))
        begin = rng.randrange(len(genome) - size + 1)
        fragment = genome[begin : begin + size]
        if rng.random() < 0.5:
            fragment = fragment.translate(COMPLEMENT)[::-1]
        for mate in (fragment, fragment.translate(COMPLEMENT)[::-1]):
            letters, scores = [], []
            for base in mate[: rng.randrange(10, longest + 1) if mixed else longest]:
                wrong = rng.random() < error
                letters.append(rng.choice("ACGTN") if wrong else base)
                scores.append(chr(33 + rng.choice([2, 8, 15, 30] if wrong else [12, 25, 38, 38])))
            sequences.append("".join(letters))
            qualities.append("".join(scores))
    return sequences, qualities


def random_parameters(rng: random.Random, insert: int, sd: int) -> ExtensionParameters:
    kmer = rng.choice([8, 11, 16, 20, 20, 31, 32])
    window = max(kmer, rng.choice([kmer, 50, 50, kmer + 31, kmer + 32, kmer + 100]))
    return ExtensionParameters(
        ends=EndParameters(
            kmer, window, hashes=rng.choice([1, 2, 4, 4, 9]), seed=rng.choice([0, 5])
        ),
        quality_bits=rng.choice([8, 8, 2, 1, 0]),
        strict=rng.choice([0, 0, 1, 2]),
        insert_mean=float(insert),
        insert_sd=float(sd),
        min_length=rng.choice([None, None, 1]),
        max_length=rng.choice([None, None, 600, 1200]),
        step=rng.choice([20, 20, 7, 64, 1]),
        min_reads=rng.choice([3, 3, 2, 1, 6]),
        min_overlap=max(window, rng.choice([50, 30, 70])),
        min_overlap_ratio=rng.choice([0.5, 0.3, 0.7, 0.0]),
        max_mismatch_ratio=rng.choice([0.05, 0.05, 0.1, 0.2, 0.01]),
        gap_mismatches=rng.choice([0, 0, 2]),
        merge_overlap=rng.choice([40, 15]),
        outward=rng.random() < 0.35,
        mate_pairs=rng.random() < 0.15,
        confirm_ratio=rng.choice([0.5, 1.0, 0.0]),
    )


def bases_of(reads: ReadSet, found: Extensions, row: int, pair: int) -> tuple[list[int], list[int]]:
    """Codes and scores that a pair's result adds."""
    if found.kind[row] == NOT_CONNECTED:
        return [], []
    arrays = reads.arrays
    own = [arrays.uniform_length] * 2
    if arrays.uniform_length < 0:
        own = arrays.lengths[2 * pair : 2 * pair + 2].tolist()
    gap = max(0, int(found.total[row]) - sum(own))
    count = int(found.left[row]) + gap + int(found.right[row])
    at = slice(found.start[row], found.start[row] + count)
    return found.codes[at].tolist(), found.qualities[at].tolist()


def assert_same(
    reads: ReadSet, pairs: NDArray[np.int64], found: Extensions, expected: Extensions
) -> None:
    for field in ("kind", "total", "left", "right"):
        assert np.array_equal(getattr(found, field), getattr(expected, field)), field
    for row, pair in enumerate(pairs.tolist()):
        assert bases_of(reads, found, row, pair) == bases_of(reads, expected, row, pair), pair


def compare(
    reads: ReadSet, tables: EndTables, rules: Rules, pairs: NDArray[np.int64]
) -> Extensions:
    """Extend on both; returns the result."""
    import cupy

    from ngsgpu.device.pinned import mapped_copy
    from ngsgpu.extend.gpu import DeviceExtender
    from ngsgpu.minhash.ends_gpu import DeviceEndTables
    from ngsgpu.readset.gpu import DeviceReadSet

    host = Extender(reads, tables, rules, 1)
    expected = host.extend(pairs)
    # Half of the tables, rounded up, are on the host.
    there = len(tables.entries) // 2
    arrays = (
        cupy.asarray(tables.entries[:there]),
        mapped_copy(tables.entries[there:]),
        cupy.asarray(tables.cells),
    )
    device = DeviceExtender(
        DeviceReadSet.from_host(reads), DeviceEndTables(*arrays, *tables[2:]), rules
    )
    found = device.extend(pairs)
    assert_same(reads, pairs, found, expected)
    assert device.counters.tolist() == host.counters.tolist()
    assert 0 < device.utilisation <= 1
    # In parts, and a part of the pairs: each pair has the same result.
    half = len(pairs) // 2
    parts = [device.extend(pairs[:half]), device.extend(pairs[half:])]
    assert_same(reads, pairs, Extensions.concatenate(parts), expected)
    some = pairs[::3]
    assert_same(reads, some, device.extend(some), host.extend(some))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_equals_the_cpu(seed: int) -> None:
    rng = random.Random(seed)
    longest = rng.choice([60, 64, 76, 100, 100, 128, 150, 250, 300])
    insert, sd = (
        max(longest, rng.choice([longest, 3 * longest // 2, 300, 500])),
        rng.choice([2, 10, 30]),
    )
    sequences, qualities = simulate(
        rng,
        genome_with_repeats(rng),
        rng.choice([100, 300, 600]),
        insert=insert,
        sd=sd,
        longest=longest,
        mixed=rng.random() < 0.35,
    )
    parameters = random_parameters(rng, insert, sd)
    bits = parameters.quality_bits
    reads = ReadSet.from_sequences(
        sequences, qualities if bits else None, paired=True, quality_bits=bits
    )
    tables = build_end_tables(reads, parameters.ends)
    pairs = np.arange(reads.reads // 2, dtype=np.int64)
    compare(reads, tables, parameters.rules(insert, sd), pairs)


def test_limits_are_the_same() -> None:
    """More entries, candidates and ends than are looked at, on both."""
    rng = random.Random(3)
    genome = "".join(rng.choices("ACGT", k=450))
    sequences, qualities = simulate(rng, genome, 6000, insert=200, sd=20, longest=100, mixed=False)
    reads = ReadSet.from_sequences(sequences, qualities, paired=True, quality_bits=2)
    parameters = ExtensionParameters(quality_bits=2, insert_mean=200.0, insert_sd=20.0)
    tables = build_end_tables(reads, parameters.ends)
    rules = parameters.rules(200.0, 20.0)
    pairs = np.arange(0, reads.reads // 2, 60, dtype=np.int64)
    found = compare(reads, tables, rules, pairs)
    assert np.count_nonzero(found.kind)
    compare(reads, tables, rules._replace(bucket_entries=5), pairs)


def test_nothing_to_extend() -> None:
    reads = ReadSet.from_sequences(["ACGT" * 30] * 4, None, paired=True, quality_bits=0)
    parameters = ExtensionParameters(quality_bits=0, insert_mean=300.0, insert_sd=10.0)
    tables = build_end_tables(reads, parameters.ends)
    compare(reads, tables, parameters.rules(300.0, 10.0), np.arange(2, dtype=np.int64))
    short = ReadSet.from_sequences(["ACGT"] * 4, None, paired=True, quality_bits=0)
    tables = build_end_tables(short, parameters.ends)
    compare(short, tables, parameters.rules(300.0, 10.0), np.arange(2, dtype=np.int64))
