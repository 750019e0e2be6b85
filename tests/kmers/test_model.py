"""The model of the histogram against simulated genomes, and real counts of k-mers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.kmers import CountParameters, count_files, open_database
from ngsgpu.kmers.model import Ploidy, fit_genome
from tests.support.io.records import write

LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)
LENGTH = 100


class Genome(NamedTuple):
    """A genome and its reads; ``duplicated`` is the share of its bases that are there twice."""

    size: int
    ploidy: Ploidy
    coverage: int
    heterozygosity: float
    duplicated: float
    errors: float

    def reads(self, seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        unique = LETTERS[rng.integers(0, 4, round(self.size * (1 - self.duplicated / 2)))]
        one = np.concatenate((unique, unique[: self.size - len(unique)]))
        sets = [one]
        if self.ploidy == 2:
            two = one.copy()
            changed = np.flatnonzero(rng.random(len(two)) < self.heterozygosity)
            two[changed] = _others(rng, two[changed])
            sets.append(two)
        reads = []
        for own in sets:
            count = len(own) * self.coverage // self.ploidy // LENGTH
            starts = rng.integers(0, len(own) - LENGTH, count)
            reads.append(own[starts[:, None] + np.arange(LENGTH)])
        bases = np.concatenate(reads)
        wrong = rng.random(bases.shape) < self.errors
        bases[wrong] = _others(rng, bases[wrong])
        return b"".join(b">\n" + read.tobytes() + b"\n" for read in bases)


def _others(rng: np.random.Generator, bases: np.ndarray) -> np.ndarray:
    codes = np.searchsorted(LETTERS, bases)
    return LETTERS[(codes + rng.integers(1, 4, len(codes))) % 4]


@pytest.mark.parametrize(
    "genome",
    [
        Genome(300_000, 1, 40, 0.0, 0.05, 0.004),
        Genome(300_000, 2, 60, 0.01, 0.05, 0.004),
        Genome(300_000, 2, 50, 0.002, 0.02, 0.01),
        Genome(200_000, 2, 80, 0.03, 0.0, 0.001),
    ],
)
def test_simulated_genomes(tmp_path: Path, genome: Genome) -> None:
    path = write(tmp_path / "reads.fa", genome.reads(1))
    count_files([path], tmp_path / "db", CountParameters(21))
    found = fit_genome(open_database(tmp_path / "db").histogram(), 21, genome.ploidy)
    depth = genome.coverage / genome.ploidy * (LENGTH - 20) / LENGTH * (1 - genome.errors) ** 21
    assert found.depth == pytest.approx(depth, rel=0.03)
    assert found.genome_size == pytest.approx(genome.size, rel=0.03)
    assert found.heterozygosity == pytest.approx(genome.heterozygosity, rel=0.1, abs=0.0002)
    assert found.error_rate == pytest.approx(genome.errors, rel=0.1)


def test_no_peak() -> None:
    histogram = np.zeros(65_536, dtype=np.int64)
    histogram[1:4] = (1000, 300, 50)
    with pytest.raises(InputError, match="has no peak of the genome's k-mers"):
        fit_genome(histogram, 21)
