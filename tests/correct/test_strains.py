"""A read of a rare strain: others that share one of its alleles decide on its other bases."""

from __future__ import annotations

from random import Random

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters, RunOptions, correct_reads
from tests.support.correct.bench import edits_of
from tests.support.correct.scenarios import Scenario
from tests.support.correct.whole import assert_equal

LENGTH = 100
ALLELE, VARIANT = 60, 105
"""Places of the genome that the strain has otherwise."""


def _reads(relative: int, *, differs: bool, own: str, theirs: str) -> Scenario:
    """Reads of a genome, and at last two of a strain.

    The last begins at 20 and has the allele at Q40 and the variant at the quality ``own``; the one
    before it begins at ``relative``, and has the variant, at ``theirs``, if it ``differs``.
    """
    random = Random(3)
    genome = "".join(random.choices("ACGT", k=180))
    letters = [genome[start : start + LENGTH] for start in range(0, 80, 4)]
    qualities = ["I" * LENGTH] * len(letters)
    for start, places, quality in (
        (relative, (ALLELE, VARIANT) if differs else (ALLELE,), theirs),
        (20, (ALLELE, VARIANT), own),
    ):
        bases, scores = list(genome[start : start + LENGTH]), ["I"] * LENGTH
        for place in places:
            if start <= place < start + LENGTH:
                bases[place - start] = "CGTA"["ACGT".index(bases[place - start])]
        if start <= VARIANT < start + LENGTH:
            scores[VARIANT - start] = quality
        letters.append("".join(bases))
        qualities.append("".join(scores))
    minhash = MinhashParameters(kmer=16)
    parameters = CorrectionParameters(coverage=15, minhash=minhash, model="none")
    return Scenario(letters, qualities, False, parameters)


def _keeps_variant(scenario: Scenario, backend: str) -> bool:
    """Whether the last read keeps its variant; all is as the oracle has it."""
    options = RunOptions(backend=backend)
    assert_equal(scenario, options)
    corrections, _ = correct_reads(scenario.read_set(), scenario.parameters, options)
    edits = edits_of(corrections, len(scenario.letters) - 1)
    assert edits.keys() <= {VARIANT - 20}
    return not edits


@pytest.mark.parametrize(("own", "keeps"), [("I", True), ("5", True), ("4", False)])
def test_without_others_a_base_of_q20_stays(backend: str, own: str, keeps: bool) -> None:
    """The other read of the strain ends before the variant."""
    scenario = _reads(0, differs=False, own=own, theirs="I")
    assert _keeps_variant(scenario, backend) == keeps


def test_consensus_in_another_read_of_the_strain(backend: str) -> None:
    assert not _keeps_variant(_reads(30, differs=False, own="I", theirs="I"), backend)


@pytest.mark.parametrize("own", ["I", "+"])
def test_the_same_base_in_another_read_of_the_strain(backend: str, own: str) -> None:
    """Neither is an allele by its quality."""
    assert _keeps_variant(_reads(30, differs=True, own=own, theirs="+"), backend)


def test_a_number_of_reads_is_taken_literally(backend: str) -> None:
    minhash = MinhashParameters(kmer=16)
    scenario = _reads(30, differs=True, own="+", theirs="+")
    parameters = CorrectionParameters(coverage=15, minhash=minhash, model="none", keep_variants=2)
    given = Scenario(scenario.letters, scenario.qualities, False, parameters)
    assert not _keeps_variant(given, backend)
