"""Damaged databases on a GPU: noticed, or of no consequence, as on the CPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.classify.damage import build_healthy, classify, files_of, flip_all, garbled
from tests.support.classify.world import World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def healthy(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy")
    build_healthy(world, folder)
    return folder


@pytest.mark.timeout(300)
def test_a_changed_byte_of_a_database_is_noticed(
    world: World, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    (cpu := tmp_path / "cpu").mkdir()
    assert classify(world, tmp_path, cpu) == 0

    def run(folder: Path, out: Path) -> int:
        return classify(world, folder, out, backend="cuda")

    flip_all(tmp_path, files_of(tmp_path / "db", "*"), 240, run, capsys)
    for path in cpu.iterdir():
        assert (tmp_path / "right" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["directory", "entries", "locations"])
@pytest.mark.parametrize("share", [0.001, 0.1, 1])
def test_without_verification_no_look_up_leaves_its_arrays(
    world: World, healthy: Path, tmp_path: Path, name: str, share: float
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    path = tmp_path / "db" / "partition-0000-0001" / f"{name}.npy"
    np.save(path, garbled(np.load(path), share))
    for evidence in ("0", "0.4"):
        more = ("--no-verify", "--coverage-filter", "0.1", "--species-evidence", evidence)
        assert classify(world, tmp_path, tmp_path, *more, backend="cuda") == 0
    assert classify(world, tmp_path, tmp_path, backend="cuda") == 2
