"""Bases that no other read witnesses, in a sample of one rare strain."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters, RunOptions, correct_reads
from ngsgpu.correct.rules.one_strain import keep_of_one_strain
from ngsgpu.correct.workspace import (
    DOUBTFUL,
    GOOD,
    HIGH_QUALITY,
    OF_OTHERS,
    OF_RARE_STRAIN,
    OF_RARE_SURELY,
)
from tests.support.correct.bench import edits_of
from tests.support.correct.scenarios import Scenario
from tests.support.correct.whole import assert_equal

RARE, SURE = OF_RARE_STRAIN, OF_RARE_STRAIN | OF_RARE_SURELY
LENGTH = 100
ALLELES, VARIANT = (40, 130, 220), 310
"""Places of the genome that the strain has otherwise."""


def _decided(
    classes: list[int],
    edits: list[tuple[int, int, bool]],
    contradicted: set[int],
    *,
    witnessed: frozenset[int] = frozenset(),
    paired: bool = False,
) -> tuple[list[bool], list[bool]]:
    """Whether edits are doubtful then, and which reads are of a rare strain.

    Edits have a read, a quality, and whether they are doubtful before.
    """
    bits = np.array(
        [GOOD * (score >= 20) | DOUBTFUL * doubtful for _, score, doubtful in edits], np.uint32
    )
    own = np.array([HIGH_QUALITY | bit for bit in classes], np.uint8)
    numbers = np.arange(len(edits))
    keep_of_one_strain(
        np.array([read for read, _, _ in edits], np.uint32),
        numbers,
        np.array([score for _, score, _ in edits], np.uint8),
        np.isin(numbers, list(witnessed)),
        bits,
        own,
        paired,
        lambda some, _: some & np.isin(numbers, list(contradicted)),
    )
    return ((bits & DOUBTFUL) != 0).tolist(), ((own & OF_RARE_STRAIN) != 0).tolist()


def test_in_a_read_of_the_strain_what_its_reads_do_not_contradict_stays() -> None:
    edits = [(0, 30, False), (0, 29, False), (0, 19, True), (0, 30, True), (0, 30, True)]
    doubtful, _ = _decided([SURE], edits, {4})
    assert doubtful == [True, False, True, True, False]


def test_in_a_mate_too() -> None:
    assert _decided([SURE, 0], [(1, 20, False), (1, 19, False)], set(), paired=True)[0] == [
        True,
        False,
    ]
    assert _decided([SURE, 0], [(1, 20, False)], set(), paired=False)[0] == [False]


def test_elsewhere_the_best_stay_where_most_is_known() -> None:
    classes = [0, OF_OTHERS, 0, SURE, SURE]
    edits = [(0, 37, False), (1, 37, False), (2, 36, False)]
    assert _decided(classes, edits, set()) == (
        [True, False, False],
        [True, False, False, True, True],
    )
    assert _decided(classes, edits, {0})[0] == [False] * 3
    assert _decided([*classes, 0, 0], edits, set())[0] == [False] * 3


def test_what_is_witnessed_stays() -> None:
    edits = [(0, 30, True)] * 7
    assert _decided([SURE], edits, {0}, witnessed=frozenset(range(7)))[0] == [True] * 7


@pytest.mark.parametrize(("variants", "decides"), [(5, False), (6, True)])
def test_variants_that_are_contradicted_tell_of_several_strains(
    variants: int, decides: bool
) -> None:
    edits = [(0, 30, False), *((1, 30, True) for _ in range(variants))]
    doubtful, _ = _decided([SURE] * 2, edits, {1}, witnessed=frozenset(range(1, variants + 1)))
    assert doubtful[0] == decides


def _pairs(score: str, *, other: bool) -> Scenario:
    """Pairs of a genome and of a strain; the last but one has its variant, which no other shows.

    With ``other``, another read of the strain has the genome's base there.
    """
    random = Random(4)
    genome = "".join(random.choices("ACGT", k=460))
    strain = list(genome)
    for place in (*ALLELES, VARIANT):
        strain[place] = "CGTA"["ACGT".index(strain[place])]
    turn = str.maketrans("ACGT", "TGCA")
    letters: list[str] = []
    qualities: list[str] = []

    def add(own: str, start: int) -> None:
        letters.extend(
            (own[start : start + LENGTH], own[start + 160 : start + 260].translate(turn)[::-1])
        )
        qualities.extend(("I" * LENGTH, "I" * LENGTH))

    for start in range(0, 200, 4):
        add(genome, start)
    without = "".join(strain[:VARIANT]) + genome[VARIANT] + "".join(strain[VARIANT + 1 :])
    for start in (10, 25, 35):
        add(without, start)
    if other:
        add(without, 125)
    add("".join(strain), 135)
    at = LENGTH - 1 - (VARIANT - 135 - 160)
    qualities[-1] = qualities[-1][:at] + score + qualities[-1][at + 1 :]
    minhash = MinhashParameters(kmer=16)
    parameters = CorrectionParameters(coverage=20, minhash=minhash, model="none")
    return Scenario(letters, qualities, True, parameters)


@pytest.mark.parametrize(
    ("score", "other", "keeps"), [("5", False, True), ("4", False, False), ("I", True, False)]
)
def test_variant_of_a_single_read(backend: str, score: str, other: bool, keeps: bool) -> None:
    """Q20 in a mate of a read of the strain suffices, unless another one has the consensus."""
    scenario = _pairs(score, other=other)
    options = RunOptions(backend=backend)
    assert_equal(scenario, options)
    corrections, _ = correct_reads(scenario.read_set(), scenario.parameters, options)
    assert bool(edits_of(corrections, len(scenario.letters) - 1)) != keeps
