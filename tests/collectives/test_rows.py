"""Ranges of keys of about the same size, as far as they are chosen on the host."""

from __future__ import annotations

import numpy as np
import pytest

from ngsgpu.collectives.rows import even_splitters


@pytest.mark.parametrize("ranges", [1, 2, 3, 16])
def test_ranges_are_even(ranges: int) -> None:
    """GPUs with many rows and few, of different keys, and one with none."""
    rng = np.random.default_rng(ranges)
    rows = [rng.integers(low, 1 << 40, size, dtype=np.uint64)
            for low, size in ((0, 80_000), (1 << 39, 20_000), (0, 0))]  # fmt: skip
    samples = [rng.choice(own, min(len(own), 10_000), replace=False) for own in rows]
    splitters = even_splitters(samples, [len(own) for own in rows], ranges)
    assert len(splitters) == ranges - 1
    sizes = np.diff(np.searchsorted(np.sort(np.concatenate(rows)), splitters), prepend=0)
    assert (abs(sizes - 100_000 / ranges) < 2000).all()


def test_equal_keys() -> None:
    same = np.full(100, 7, dtype=np.uint64)
    assert even_splitters([same, same[:1]], [1000, 1], 4).tolist() == [7, 7, 7]
