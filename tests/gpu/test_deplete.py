"""Depletion within the limits of a GPU's memory, and of the longest reads."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ngsgpu.deplete import DepletionParameters, IndexParameters, RunOptions
from ngsgpu.errors import DeviceMemoryError
from tests.support.deplete.world import World, depleted, index_of, read_from, texts
from tests.support.io.records import Record


def test_long_reads(tmp_path: Path) -> None:
    """Reads of which one k-mer in many is the host's, up to the longest that are read."""
    world = World.of(3, 50, paired=False)
    rng = random.Random(3)
    long = "".join(rng.choices("ACGT", k=32_000))
    for number, part in enumerate((40, 100, 330)):
        bases = read_from(rng, world.host[1], part, 0) + long.encode()
        world.units.append(
            (Record(b"long%d" % number, bases[:32_767], b"F" * len(bases[:32_767])),)
        )
    parameters, depletion = IndexParameters(), DepletionParameters()
    index = index_of(tmp_path, world, parameters)
    inputs = texts(world.units, interleaved=False)
    found = depleted("cuda", tmp_path, index, inputs, depletion)
    assert found == depleted("cpu", tmp_path, index, inputs, depletion)
    assert found == texts(world.kept(parameters, depletion), interleaved=False)


def test_many_batches(tmp_path: Path) -> None:
    """Chunks that a small budget makes small; both backends write the same."""
    world = World.of(4, 3000, paired=True)
    index = index_of(tmp_path, world, IndexParameters(one_in=2))
    inputs = texts(world.units * 4, interleaved=False)
    options = RunOptions(threads=4, gpu_memory=64 << 20)
    depletion = DepletionParameters()
    found = depleted("cuda", tmp_path, index, inputs, depletion, options=options)
    assert found == depleted("cpu", tmp_path, index, inputs, depletion)


def test_too_little_memory(tmp_path: Path) -> None:
    world = World.of(5, 10, paired=False)
    index = index_of(tmp_path, world, IndexParameters())
    inputs = texts(world.units, interleaved=False)
    with pytest.raises(DeviceMemoryError, match=r"depletion takes .* 1\.0 MiB may be used"):
        depleted(
            "cuda", tmp_path, index, inputs, DepletionParameters(),
            options=RunOptions(gpu_memory=1 << 20),
        )  # fmt: skip
