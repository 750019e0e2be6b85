"""The rule that tells reads with insertions and deletions from reads with many errors."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.evaluate import evaluate_arrays
from ngsgpu.evaluate.truth import indels
from tests.support.evaluate import oracle

bases = st.text("ACGT", min_size=1, max_size=24)


def codes(text: str) -> np.ndarray:
    return np.array(["ACGTN".index(c) for c in text], dtype=np.uint8)


def kernel_says(read: str, truth: str) -> bool:
    length = len(read)
    return bool(
        indels.has_indel(
            codes(read),
            codes(truth),
            length,
            oracle.differences(read, truth),
            np.empty((2, length), dtype=np.uint8),
            np.empty((6, 2 * indels.BAND + 1), dtype=np.int64),
        )
    )


@settings(max_examples=120, deadline=None)
@given(bases, st.data())
def test_equals_the_oracle(truth: str, data: st.DataObject) -> None:
    read = list(truth)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(read)))
        kind = data.draw(st.sampled_from(["insert", "delete", "replace", "unknown"]))
        if kind == "insert":
            read.insert(at, data.draw(st.sampled_from("ACGT")))
        elif kind == "delete" and len(read) > 1:
            del read[min(at, len(read) - 1)]
        elif kind == "replace":
            read[min(at, len(read) - 1)] = data.draw(st.sampled_from("ACGTN"))
        else:
            at = min(at, len(truth) - 1)
            truth = f"{truth[:at]}N{truth[at + 1 :]}"
    filled = ("".join(read) + data.draw(bases) * len(truth))[: len(truth)]
    assert kernel_says(filled, truth) == oracle.has_indel(filled, truth)


@settings(max_examples=60, deadline=None)
@given(bases, bases, st.booleans())
def test_cost_equals_the_oracle(first: str, second: str, free_start: bool) -> None:
    length = min(len(first), len(second))
    read, truth = first[:length], second[:length]
    rows = np.empty((6, 2 * indels.BAND + 1), dtype=np.int64)
    found = indels.gapped_mismatches(codes(read), codes(truth), length, rows, free_start)
    assert found == oracle.gapped(read, truth, free_start=free_start)


@pytest.mark.parametrize("at", [8, 92])
@pytest.mark.parametrize("kind", ["insertion", "deletion"])
def test_a_read_made_a_piece_of_the_genome_is_nearer(kind: str, at: int) -> None:
    """Base by base it agrees with the truth of one end and not of the other."""
    generator = random.Random(at)
    genome = "".join(generator.choice("ACGT") for _ in range(140))
    if kind == "insertion":
        extra = "ACGT".replace(genome[20 + at], "")[0]
        read = genome[20 : 20 + at] + extra + genome[20 + at : 119]
        ends = (genome[20:120], genome[19:119])
    else:
        read = genome[20 : 20 + at] + genome[21 + at : 121]
        ends = (genome[20:120], genome[21:121])
    # The short side is fitted to the long one.
    fitted = ends[0] if at > 50 else ends[1]
    base_by_base = []
    for truth in ends:
        arguments = [[text.encode()] for text in (read, fitted, truth)]
        result = evaluate_arrays(*arguments, with_indel=np.array([True]))
        assert (result.indel_aligned.nearer, result.indel_aligned.farther) == (1, 0)
        assert result.indel_aligned.cost_after == 0
        base_by_base.append(result.indel_read_counts.made_worse)
        left_alone = evaluate_arrays(arguments[0], arguments[0], arguments[2])
        assert left_alone.indel_aligned.nearer == left_alone.indel_aligned.farther == 0
    assert sorted(base_by_base) == [0, 1]


def test_a_read_that_is_spoilt_is_farther() -> None:
    generator = random.Random(5)
    genome = "".join(generator.choice("ACGT") for _ in range(101))
    read = genome[:50] + genome[51:]
    spoilt = read[:20] + "ACGT".replace(read[20], "")[0] + read[21:]
    result = evaluate_arrays([read.encode()], [spoilt.encode()], [genome[:100].encode()])
    assert result.indel_aligned.document() == {
        "cost_before": 3,
        "cost_after": 4,
        "nearer": 0,
        "as_near": 0,
        "farther": 1,
    }


@pytest.mark.parametrize("strand", ["forward", "reverse"])
@pytest.mark.parametrize("kind", ["insertion", "deletion"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_planted_indels_are_found(kind: str, size: int, strand: str) -> None:
    generator = random.Random(size)
    genome = "".join(generator.choice("ACGT") for _ in range(120))
    truth = genome[:100]
    at = 50
    if kind == "insertion":
        extra = "".join(generator.choice("ACGT") for _ in range(size))
        read = (truth[:at] + extra + truth[at:])[:100]
    else:
        read = (truth[:at] + genome[at + size :])[:100]
    if strand == "reverse":
        read, truth = read[::-1], truth[::-1]
    result = evaluate_arrays([read.encode()], [read.encode()], [truth.encode()])
    assert result.indel_read_counts.total == 1


def test_many_errors_are_no_indel() -> None:
    generator = random.Random(3)
    reads, truths = [], []
    for _ in range(300):
        truth = [generator.choice("ACGT") for _ in range(100)]
        read = list(truth)
        for position in generator.sample(range(100), 8):
            read[position] = generator.choice("ACGT".replace(truth[position], ""))
        reads.append("".join(read).encode())
        truths.append("".join(truth).encode())
    result = evaluate_arrays(reads, reads, truths)
    assert result.indel_read_counts.total == 0
