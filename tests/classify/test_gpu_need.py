"""How many GPUs a build of a database keeps of those it leased, and what it takes of each."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ngsgpu.classify.database import build
from ngsgpu.classify.database import gpu_build as gpu_build_run
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.run.options import RunOptions
from tests.support.device import GIB, four_gpus

MEMORY = 1 << 20


@pytest.mark.parametrize(
    ("bases", "asked", "kept"),
    [([10], 4, 1), ([10], 1, 1), ([400_000, 900_000], 4, 2), ([9_000_000], 4, 4), ([], 2, 1)],
)
def test_gpus_that_are_kept(tmp_path: Path, monkeypatch, bases, asked, kept):
    """As many as hold the features of the largest build in half of their memory."""
    said: list[int] = []
    monkeypatch.setattr(build, "keep_gpus", said.append)
    budget = SimpleNamespace(budget=MEMORY)
    monkeypatch.setattr(gpu_build_run, "gpu_memory", lambda limit: budget)
    files = []
    for number, size in enumerate(bases):
        files.append(tmp_path / f"{number}.fa")
        files[-1].write_bytes(b">x\n" + b"A" * size)
    options = RunOptions(backend="cuda", gpus=asked)
    parameters = DatabaseParameters()
    chosen = build.with_needed_gpus(options, parameters, [[str(file)] for file in files])
    assert chosen.gpus == kept
    assert said == ([kept] if asked > 1 else [])
    cpu = RunOptions(gpus=3)
    assert build.with_needed_gpus(cpu, parameters, [[str(file)] for file in files]) is cpu


@pytest.mark.parametrize("limit", [3 * GIB, None])
def test_limit_holds_on_every_gpu_that_joins(monkeypatch, limit):
    """A build begins with one GPU and takes others when it knows how many features there are."""
    prepared: list[tuple[int, int]] = []
    monkeypatch.setattr(
        gpu_build_run, "prepare_cuda", lambda gpus, *modules, first: prepared.append((first, gpus))
    )
    pools = four_gpus(monkeypatch).pools
    options = RunOptions(backend="cuda", gpus=3, gpu_memory=limit)
    with gpu_build_run.GpuBuilder(DatabaseParameters(), options) as builder:
        own = limit or 0
        assert [pool.limit for pool in pools] == [0, own, 0, 0]
        builder._take_gpus(3)
        builder._take_gpus(2)
        assert [pool.limit for pool in pools] == [0, own, own, own]
    assert [pool.limit for pool in pools] == [0, 0, 0, 0]
    assert prepared == [(1, 3)]
