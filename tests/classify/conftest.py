from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.run.options import RunOptions
from tests.support.classify.world import SKETCH, World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def database(world: World) -> Database:
    """A database of the world, in one partition."""
    logging.getLogger("ngsgpu").setLevel(logging.ERROR)
    build_database(
        world.references,
        world.folder / "db",
        parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy,
        maps=[world.map],
        options=RunOptions(threads=2),
    )
    return open_database(world.folder / "db")


@pytest.fixture
def copy(database: Database, tmp_path: Path) -> Path:
    shutil.copytree(database.path, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path
