"""Coverage so deep that an anchor has hundreds or thousands of candidates."""

from __future__ import annotations

import random

import pytest

from ngsgpu.correct import CorrectionParameters, RunOptions, correct_reads
from ngsgpu.readset import ReadSet
from tests.support.correct.bench import edits_of
from tests.support.correct.gpu_cases import assert_equal

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def simulate(coverage: int, length: int, insert: int, bases: int) -> tuple[list[str], list[str]]:
    """Reads of a genome with 1 % of errors, mates in turn, and what they should be."""
    rng = random.Random(2)
    genome = "".join(rng.choices("ACGT", k=bases))
    reads, truth = [], []
    for _ in range(coverage * len(genome) // (2 * length)):
        begin = rng.randrange(len(genome) - insert)
        fragment = genome[begin : begin + insert]
        for mate in (fragment, fragment.translate(COMPLEMENT)[::-1]):
            truth.append(mate[:length])
            letters = [rng.choice("ACGT") if rng.random() < 0.01 else base for base in truth[-1]]
            reads.append("".join(letters))
    return reads, truth


def edited(read: str, edits: dict[int, str]) -> str:
    return "".join(edits.get(at, base) for at, base in enumerate(read))


@pytest.mark.parametrize(
    ("coverage", "length", "insert", "bases", "paired"),
    [(250, 100, 180, 600, False), (250, 100, 180, 600, True), (1000, 250, 300, 350, True)],
)
def test_beyond_two_hundredfold(
    backend: str, coverage: int, length: int, insert: int, bases: int, paired: bool
) -> None:
    """On a GPU all threads of a block insert thousands of candidates at once."""
    letters, truth = simulate(coverage, length, insert, bases)
    reads = ReadSet.from_sequences(letters, paired=paired)
    parameters = CorrectionParameters(coverage=coverage)
    options = RunOptions(threads=2, backend=backend)
    found, used = correct_reads(reads, parameters, options)
    assert used == coverage
    after = [edited(read, edits_of(found, number)) for number, read in enumerate(letters)]
    wrong = sum(one != right for one, right in zip(after, truth, strict=True))
    # Before, two reads of three or more have errors.
    assert wrong < 0.03 * len(letters)
    if backend == "cuda":
        expected, _ = correct_reads(reads, parameters, RunOptions(threads=2))
        assert_equal(found, expected)
