"""Simulated mixtures of strains: where they differ, and that each has reads of its own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy import strains
from benchmarks.accuracy.depletion import Bases
from benchmarks.accuracy.simulated import strain_of
from benchmarks.accuracy.strains import Mixture, draw_mixture

GENOME = np.frombuffer(b"ACGT" * 2500, dtype=np.uint8)


def test_a_strain_differs_where_it_should() -> None:
    strain = strain_of(GENOME, 0.01, np.random.default_rng(1))
    assert 50 < np.count_nonzero(strain != GENOME) < 150
    assert set(strain.tobytes()) <= set(b"ACGT")
    assert np.array_equal(strain_of(GENOME, 0.01, np.random.default_rng(1)), strain)
    assert np.array_equal(strain_of(GENOME, 0, np.random.default_rng(1)), GENOME)


def test_reads_of_strains_are_drawn_with_seeds_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seeds = []

    def draw(
        given: argparse.Namespace, folder: Path, genome: Bases, name: str, coverage: float
    ) -> Any:
        seeds.append(given.seed)
        for mate in "12":
            (folder / f"{name}{mate}.fq").write_text(f"{name} {coverage}\n")
        return [genome[:1]], [genome[1:2]]

    monkeypatch.setattr(strains, "draw", draw)
    monkeypatch.setattr(strains, "genome_of", lambda path, bases: GENOME)
    mixture = Mixture("checked", "g", 4, 100, "HS20", 100, 60, ((10, 0), (5, 0)))
    truth = draw_mixture(mixture, tmp_path, tmp_path)
    assert len(set(seeds)) == 3
    assert (tmp_path / "r2.fq").read_text() == "s0 60\ns1 10\ns2 5\n"
    assert [own.tobytes() for own in truth] == [b"A"] * 3 + [b"C"] * 3
