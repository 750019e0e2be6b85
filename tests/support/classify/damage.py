"""Databases with changed bytes: made, classified with, and judged."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.cli import main
from tests.support.classify.world import SKETCH, World

Run = Callable[[Path, Path], int]


def build_healthy(world: World, folder: Path) -> None:
    build_database(
        world.references,
        folder / "db",
        parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy,
        maps=[world.map],
        request=PartitionRequest(number=2),
    )


def reads_of(world: World, backend: str = "cpu") -> list[str]:
    path = world.folder / "damage.fq"
    if not path.exists():
        world.fastq("damage.fq", world.reads)
    return ["-i", str(path), "-t", "1", "--backend", backend]


def classify(world: World, folder: Path, out: Path, *more: str, backend: str = "cpu") -> int:
    outputs = ["-o", str(out / "calls.tsv"), "--report", str(out / "report.txt")]
    outputs += ["--coverage", str(out / "coverage.tsv")]
    reads = reads_of(world, backend)
    return main(["classify", "-d", str(folder / "db"), *reads, *outputs, "-q", *more])


@contextmanager
def flipped(path: Path, at: int, bits: int) -> Iterator[None]:
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])
    yield
    path.write_bytes(whole)


def flip_all(
    folder: Path, files: list[Path], flips: int, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Change a byte of each file in turn: whole outputs, or one line that names it and none."""
    source = random.Random(20261121)
    right = folder / "right"
    right.mkdir()
    assert run(folder, right) == 0
    noticed = 0
    for number in range(flips):
        path = files[number % len(files)]
        at, bits = source.randrange(path.stat().st_size), source.randrange(1, 256)
        what = f"{path.relative_to(folder)}: byte {at} ^ {bits}"
        out = folder / "out"
        out.mkdir()
        capsys.readouterr()
        with flipped(path, at, bits):
            status = run(folder, out)
        said = capsys.readouterr().err
        if status == 0:
            for wanted in right.iterdir():
                assert (out / wanted.name).read_bytes() == wanted.read_bytes(), what
        else:
            noticed += 1
            assert (status, said.count("\n")) == (2, 1), (what, said)
            assert str(path.parent) in said, (what, said)
            assert list(out.iterdir()) == [], what
        shutil.rmtree(out)
    assert noticed > 0.6 * flips


def files_of(folder: Path, pattern: str) -> list[Path]:
    return [path for path in sorted(folder.rglob(pattern)) if path.is_file()]


def garbled(whole: NDArray[np.uint32], share: float) -> NDArray[np.uint32]:
    """An array of an index with any numbers in a share of its places, but first and last lines."""
    array = whole.copy()
    inner = array[1:-1] if array.ndim == 2 else array
    source = np.random.default_rng(5)
    hit = source.random(inner.shape) < share
    inner[hit] = source.integers(0, 1 << 32, int(hit.sum()), dtype=np.uint32)
    return array
