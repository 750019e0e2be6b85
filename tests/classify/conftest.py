from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.jit import interpreted
from ngsgpu.run.options import RunOptions
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
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


@pytest.fixture(params=["compiled", "interpreted"])
def small_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small inputs are read by kernels that are not compiled."""
    with interpreted(request.param == "interpreted"):
        yield


@pytest.fixture(scope="session")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    """A small one."""
    return trees.small(tmp_path_factory.mktemp("dump"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path
