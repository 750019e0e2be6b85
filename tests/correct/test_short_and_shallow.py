"""Reads that leave each other few shifts, and reads that few others cover."""

from __future__ import annotations

from random import Random

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters, RunOptions, correct_reads
from tests.support.correct.bench import edits_of
from tests.support.correct.scenarios import Scenario
from tests.support.correct.whole import assert_equal


@pytest.mark.parametrize(("length", "coverage"), [(36, 36), (100, 5)])
def test_an_error_is_found(backend: str, length: int, coverage: int) -> None:
    """Before, single reads of 36 bases lacked neighbours, and one error showed another copy."""
    random = Random(1)
    genome = "".join(random.choices("ACGT", k=3 * length))
    starts = range(0, 2 * length + 1, max(1, length // coverage))
    letters = [genome[start : start + length] for start in starts]
    wrong, place = len(letters) // 2, length // 2
    right = letters[wrong]
    other = "CGTA"["ACGT".index(right[place])]
    letters[wrong] = right[:place] + other + right[place + 1 :]
    parameters = CorrectionParameters(
        coverage=coverage, minhash=MinhashParameters(kmer=16), model="none"
    )
    scenario = Scenario(letters, ["I" * length] * len(letters), False, parameters)
    options = RunOptions(backend=backend)
    assert_equal(scenario, options)
    corrections, _ = correct_reads(scenario.read_set(), parameters, options)
    assert edits_of(corrections, wrong) == {place: right[place]}
    assert corrections.edit_count.sum() == 1
