"""The rule that tells reads with insertions and deletions from reads with many errors."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.evaluate import cpu, evaluate_arrays
from tests.evaluate import oracle

bases = st.text("ACGT", min_size=1, max_size=24)


def codes(text: str) -> np.ndarray:
    return np.array(["ACGTN".index(c) for c in text], dtype=np.uint8)


def kernel_says(read: str, truth: str) -> bool:
    length = len(read)
    return bool(
        cpu.has_indel(
            codes(read),
            codes(truth),
            length,
            oracle.differences(read, truth),
            np.empty((2, length), dtype=np.uint8),
            np.empty((6, 2 * cpu.BAND + 1), dtype=np.int64),
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
@given(bases, bases)
def test_cost_equals_the_oracle(first: str, second: str) -> None:
    length = min(len(first), len(second))
    read, truth = first[:length], second[:length]
    rows = np.empty((6, 2 * cpu.BAND + 1), dtype=np.int64)
    found = cpu.gapped_mismatches(codes(read), codes(truth), length, rows)
    assert found == oracle.gapped(read, truth)


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
