"""A database is brought up to date: new references are added, other changes need a new plan."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.change.update import update_database
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.cli import main
from ngsgpu.io.output.manifest import MANIFEST
from tests.support.classify.world import SKETCH, World

TWO = PartitionRequest(2)
PARAMETERS = DatabaseParameters(sketch=SKETCH)


def update(world: World, references: Sequence[Path], path: Path, **changes: Any) -> Database | None:
    settings: dict[str, Any] = {
        "parameters": PARAMETERS, "taxonomy": world.taxonomy, "maps": [world.map], "request": TWO,
    }  # fmt: skip
    return update_database(references, path, **settings | changes)


@pytest.fixture
def old(world: World, tmp_path: Path) -> Path:
    """A database of all references but the last, in two partitions."""
    assert len(world.references) > 2
    path = tmp_path / "db"
    build_database(
        world.references[:-1], path, parameters=PARAMETERS, taxonomy=world.taxonomy,
        maps=[world.map], request=TWO,
    )  # fmt: skip
    return path


def content(database: Database, number: int) -> list[bytes]:
    index = database.load_partition(number).index
    return [array.tobytes() for array in (index.directory, index.entries, index.locations)]


def test_nothing_new(world: World, old: Path) -> None:
    before = (old / MANIFEST).read_bytes()
    assert update(world, world.references[:-1], old) is not None
    assert (old / MANIFEST).read_bytes() == before


def test_new_references_go_into_the_last_partition(world: World, old: Path) -> None:
    before = open_database(old)
    first = content(before, 0)
    new = update(world, world.references, old)
    assert new is not None and len(new.partitions) == 2
    assert set(new.targets.files) == set(map(str, world.references))
    there = open_database(old)
    assert content(there, 0) == first
    assert there.partitions[0] == before.partitions[0]
    assert there.partitions[1].windows > before.partitions[1].windows
    # Once more: nothing is new.
    assert update(world, world.references, old) is not None
    assert open_database(old).digest == there.digest


def test_one_partition_equals_a_new_database(world: World, tmp_path: Path) -> None:
    """References that come last in the order of their paths are where a new plan has them."""
    one: dict[str, Any] = {"taxonomy": world.taxonomy, "maps": [world.map]}
    path = tmp_path / "db"
    build_database(world.references[:-1], path, parameters=PARAMETERS, **one)
    new = update(world, world.references, path, request=None)
    assert new is not None
    whole = build_database(world.references, tmp_path / "whole", parameters=PARAMETERS, **one)
    assert content(new, 0) == content(whole, 0)
    assert new.digest == whole.digest


def newer(path: Path, than: Path) -> None:
    time = than.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(time, time))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("gone", "is no longer among its references"),
        ("changed", "has changed"),
        ("options", "it was built with other options"),
        ("partitions", "it has 2 partitions"),
        ("unbuilt", "not all of its partitions were built"),
        ("taxonomy", "its taxonomy has changed"),
        ("taxa", "gives its sequences other taxa"),
    ],
)
def test_reasons_for_a_new_plan(
    world: World, old: Path, caplog: pytest.LogCaptureFixture, change: str, why: str
) -> None:
    references = list(world.references)
    changes: dict[str, Any] = {}
    if change == "gone":
        lost = old.parent / "lost.fna"
        lost.write_text(">lost\n" + "ACGTTGCA" * 40 + "\n")
        assert update(world, [*references, lost], old) is not None
        lost.unlink()
    elif change == "changed":
        os.utime(old / MANIFEST, (0, 0))
    elif change == "options":
        sketch = replace(SKETCH, smer=SKETCH.smer + 1)
        changes["parameters"] = DatabaseParameters(sketch=sketch)
    elif change == "partitions":
        changes["request"] = PartitionRequest(3)
    elif change == "unbuilt":
        folder = old / open_database(old).partitions[1].folder
        shutil.rmtree(folder)
    elif change == "taxonomy":
        changes |= {"taxonomy": None, "maps": []}
    else:
        first, *rest = world.map.read_text().splitlines()
        name, taxid = first.split("\t")
        another = next(own for own in (row.split("\t")[1] for row in rest) if own != taxid)
        other = old.parent / "other.tsv"
        other.write_text("\n".join([f"{name}\t{another}", *rest]) + "\n")
        newer(other, old / MANIFEST)
        changes["maps"] = [other]
    assert update(world, references, old, **changes) is None
    assert why in caplog.text


def test_new_map_with_the_same_taxa_is_no_reason(world: World, old: Path) -> None:
    same = old.parent / "same.tsv"
    same.write_text(world.map.read_text())
    newer(same, old / MANIFEST)
    assert update(world, world.references, old, maps=[same]) is not None


def test_no_database_yet(world: World, tmp_path: Path) -> None:
    assert update(world, world.references, tmp_path / "none") is None


def test_from_the_command_line(world: World, tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    plan = ["db", "plan", "--update", "-d", path]
    build = ["db", "build", "-d", path, "--only-partition", "0", "--if-missing", "-q"]
    first, second = map(str, world.references[:2])
    assert main([*plan, first]) == 0
    assert main(build) == 0
    manifest = tmp_path / "db" / "partition-0000-0001" / MANIFEST
    before = manifest.stat().st_mtime_ns
    assert main(build) == 0
    assert manifest.stat().st_mtime_ns == before
    assert main([*plan, first, second]) == 0
    assert open_database(path).built() == [0]
    assert len(open_database(path).targets.files) == 2
    assert main([*plan, first, "--dry-run"]) == 2
    assert main(["db", "build", first, "-d", path, "--if-missing"]) == 2
