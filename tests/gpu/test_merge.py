"""Merging within the limits of a GPU's memories, and of its overlaps by likelihood."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ngsgpu.merge import MergeParameters, RunOptions
from tests.support.merge.data import assert_same, simulated_pairs, write_pairs


@pytest.mark.parametrize("overlap", ["likelihood", "flash"])
def test_longest_reads(tmp_path: Path, overlap: str) -> None:
    """Planes that fill the shared memory."""
    # By likelihood the CPU takes seconds for one such pair.
    count = 5 if overlap == "likelihood" else 20
    pairs = simulated_pairs(2, count, lengths=(32_767, 32_000), inserts=(31_000, 33_000))
    parameters = MergeParameters(
        overlap=overlap,  # type: ignore[arg-type]
        min_overlap=1000,
        allow_outies=True,
    )
    files = write_pairs(tmp_path, pairs)
    assert_same("cuda", tmp_path, files[:1], files[1:], parameters)


def test_little_memory(tmp_path: Path) -> None:
    files = write_pairs(tmp_path, simulated_pairs(4, 3000))
    options = RunOptions(threads=2, gpu_memory=64 << 20)
    assert_same("cuda", tmp_path, files[:1], files[1:], MergeParameters(), options=options)


@pytest.mark.parametrize("seed", range(24))
def test_likelihood_of_all_kinds_of_reads(tmp_path: Path, seed: int) -> None:
    """Reads trimmed to any length, adapters, repeats, N, one quality for all, or wrong ones."""
    rng = random.Random(seed)
    pairs = simulated_pairs(
        seed,
        rng.choice([33, 2000, 12_000]),
        lengths=(rng.choice([36, 100, 151, 300]), rng.choice([36, 100, 250])),
        inserts=(12, rng.choice([90, 220, 500])),
        mixed=rng.random() < 0.5,
        ambiguous=rng.choice([0, 0.02, 0.2]),
        errors=rng.choice([0, 0.01, 0.05]),
        scores=rng.choice([(2, 41), (37, 37), (0, 3), (0, 62)]),
    )
    parameters = MergeParameters(
        min_overlap=rng.choice([1, 10, 30]),
        quality=rng.choice(["calibrated", "edgar", "flash"]),  # type: ignore[arg-type]
        allow_outies=rng.random() < 0.2,
        correct_only=rng.random() < 0.3,
    )
    files = write_pairs(tmp_path, pairs)
    options = RunOptions(threads=4, chunk_bytes=rng.choice([1 << 16, 1 << 18, 1 << 24]))
    assert_same("cuda", tmp_path, files[:1], files[1:], parameters, options=options)
