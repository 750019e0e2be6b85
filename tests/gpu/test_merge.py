"""Merging within the limits of a GPU's memories."""

from __future__ import annotations

from pathlib import Path

from ngsgpu.merge import MergeParameters, RunOptions
from tests.support.merge.data import assert_same, simulated_pairs, write_pairs


def test_longest_reads(tmp_path: Path) -> None:
    """Planes that fill the shared memory."""
    pairs = simulated_pairs(2, 20, lengths=(32_767, 32_000), inserts=(31_000, 33_000))
    parameters = MergeParameters(min_overlap=1000, max_overlap=None, allow_outies=True)
    files = write_pairs(tmp_path, pairs)
    assert_same("cuda", tmp_path, files[:1], files[1:], parameters)


def test_little_memory(tmp_path: Path) -> None:
    files = write_pairs(tmp_path, simulated_pairs(4, 3000))
    options = RunOptions(threads=2, gpu_memory=64 << 20)
    assert_same("cuda", tmp_path, files[:1], files[1:], MergeParameters(), options=options)
