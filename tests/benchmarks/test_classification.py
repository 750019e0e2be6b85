"""Draws and judgements of the benchmark of calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy.classification.food import FAMILIES, make_library
from benchmarks.accuracy.classification.genomes import (
    CHANGED,
    Library,
    deal,
    drawn_bases,
    read_library,
)
from benchmarks.accuracy.classification.judging import Judge, Truth, distance, rates
from benchmarks.accuracy.classification.programs import calls_of, scaled
from benchmarks.accuracy.classification.reads import KINDS, Drawn, coverage_reads, write_reads


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return make_library(4000, 1, tmp_path_factory.mktemp("food"))


def test_libraries_are_read_as_they_were_written(library: Library) -> None:
    folder = library.genomes[0].path.parent
    again = read_library(folder, library.taxonomy, library.map)
    assert again.genomes == library.genomes
    assert len(again.genomes) == sum(FAMILIES) == 31


@pytest.mark.parametrize("kind", ["75", "2 x 150"])
def test_reads_are_of_their_genomes(library: Library, tmp_path: Path, kind: str) -> None:
    """On either strand, with as many errors as stated, and the same for the same seed."""
    bases = drawn_bases(library.genomes[0], "stays", np.random.default_rng(1))
    number = coverage_reads(bases, 5.0, KINDS[kind])
    one, two = (
        write_reads([Drawn("g0", bases, number)], KINDS[kind], 7, tmp_path / name)
        for name in ("a", "b")
    )
    assert len(one) == (2 if KINDS[kind].mate else 1)
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    text = one[0].read_text().splitlines()
    assert len(text) == 4 * number
    assert text[0] == "@g0_0"
    genome = bases[0].tobytes().decode()
    strands = genome + genome[::-1].translate(str.maketrans("ACGT", "TGCA"))
    pieces = [read[at : at + 25] for read in text[1::4] for at in range(0, 75, 25)]
    assert 0.85 < sum(piece in strands for piece in pieces) / len(pieces) < 1


def test_changed_genomes_have_other_bases(library: Library) -> None:
    genome = library.genomes[0]
    (own,) = drawn_bases(genome, "stays", np.random.default_rng(1))
    (other,) = drawn_bases(genome, CHANGED[0], np.random.default_rng(1))
    assert 0 < np.count_nonzero(own != other) < 0.05 * len(own)


def test_roles_keep_to_what_the_database_has(library: Library) -> None:
    roles, there = deal(library.genomes, 3)
    for i, role in roles.items():
        own = library.genomes[i]
        assert (own in there) == (role == "stays" or role in CHANGED)
        if role == "genus":
            assert own.genus not in {genome.genus for genome in there}


def test_calls_are_judged(library: Library) -> None:
    first, second, third = library.genomes[0], library.genomes[1], library.genomes[5]
    truth = {
        "g0": Truth(first.species, first.genus),
        "g1": Truth(third.species, third.genus, has_species=False),
    }
    lines = [
        *[f"C\tg0_{i}\t{first.species}\t100" for i in range(60)],
        f"C\tg0_60\t{second.species}\t100",
        f"C\tg0_61\t{first.genus}\t100",
        *[f"U\tg1_{i}\t0\t100" for i in range(38)],
    ]
    judge, calls = Judge(library.tree), calls_of("\n".join(lines))
    tally = judge.tally(calls, truth)
    assert tally == {"species": [60, 61, 62], "genus": [62, 62, 100]}
    assert rates([tally])["species"] == [round(60 / 61, 4), round(60 / 62, 4)]
    assert judge.species(calls, truth) == {
        "false": [second.species],
        "missing": [],
        "expected": [first.species],
    }


def test_distances_of_shares() -> None:
    found = distance(scaled({1: 2.0, 2: 1.0, 3: 1.0}), scaled({1: 3.0, 4: 1.0}))
    assert found == {"l1": 1.0, "false": 2, "missing": 1, "species": 2}
