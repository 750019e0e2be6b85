"""Sequences, genomes and taxa leave a database; what indexes hold is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.change.remove import remove_references
from ngsgpu.classify.database.contents import database_contents
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.info import verify_database
from ngsgpu.classify.index.index import keys_of_locations
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.cli import main
from ngsgpu.errors import InputError, UsageError
from tests.support.classify.world import SKETCH, TAXA, World


def build(world: World, references: list[Path], path: Path, **changes: Any) -> Database:
    parameters = DatabaseParameters(SKETCH, **changes.pop("limits", {}))
    build_database(
        references, path, parameters=parameters, taxonomy=world.taxonomy, maps=[world.map],
        **changes,
    )  # fmt: skip
    return open_database(path)


def content(database: Database, number: int) -> list[bytes]:
    index = database.load_partition(number).index
    return [array.tobytes() for array in (index.directory, index.entries, index.locations)]


def without(world: World, removed: set[int], folder: Path) -> list[Path]:
    """The references of a world without some sequences."""
    folder.mkdir()
    files = []
    at = 0
    for reference in world.references:
        records = reference.read_text().split(">")[1:]
        kept = [own for i, own in enumerate(records) if at + i not in removed]
        at += len(records)
        if kept:
            files.append(folder / reference.name)
            files[-1].write_text("".join(f">{own}" for own in kept))
    return files


@pytest.mark.parametrize(
    ("names", "taxids", "removed"),
    [
        (["NC_000002.1", "NC_000016.1"], [], {2, 16}),
        (["ref1.fna"], [], {3}),
        ([], [20, 40], {i for i, taxid in enumerate(TAXA) if taxid in (20, 21, 22, 40)}),
        (["NC_000000.1"], [31], {0} | {i for i, taxid in enumerate(TAXA) if taxid in (31, 32)}),
    ],
)
def test_the_result_is_a_database_of_the_others(
    world: World, tmp_path: Path, names: list[str], taxids: list[int], removed: set[int]
) -> None:
    path = tmp_path / "db"
    build(world, world.references, path)
    left = remove_references(path, names, taxids)
    whole = build(world, without(world, removed, tmp_path / "refs"), tmp_path / "whole")
    for database in (left, open_database(path)):
        assert database.digest == whole.digest
        assert content(database, 0) == content(whole, 0)
        files = [[Path(own).name for own in of.targets.files] for of in (database, whole)]
        assert files[0] == files[1]
    assert verify_database(path)[1] == []


def test_partitions(world: World, tmp_path: Path) -> None:
    """Those that lose nothing stay the same files, those that lose everything go."""
    path = tmp_path / "db"
    old = build(world, world.references, path, request=PartitionRequest(3))
    parts = [old.targets.partition == number for number in range(3)]
    names = np.array([name.decode() for name in old.targets.names()])
    kept = path / old.partitions[2].folder / "locations.npy"
    inode = kept.stat().st_ino
    old.close()
    new = remove_references(path, [*names[parts[0]], names[parts[1]][0]])
    assert len(new.partitions) == 2
    assert new.partitions[1] == old.partitions[2] and kept.stat().st_ino == inode
    assert not (path / old.partitions[0].folder).exists()
    assert [name.decode() for name in new.targets.names()] == [
        name for i, name in enumerate(names) if not parts[0][i] and name != names[parts[1]][0]
    ]
    assert verify_database(path)[1] == []


def test_removed_features_stay_removed(world: World, tmp_path: Path) -> None:
    path = tmp_path / "db"
    limits = {"max_locations": 3, "remove_overfull": True}
    before = database_contents(build(world, world.references, path, limits=limits))
    after = database_contents(remove_references(path, ["ref2.fna"]))
    assert after["partitions"][0]["removed_features"] == before["partitions"][0]["removed_features"]


@pytest.mark.parametrize(
    ("names", "taxids", "message"),
    [
        (["NC_9"], [], "there is no sequence or reference file NC_9; see"),
        ([], [777], "there is no sequence of the taxon 777"),
        ([], [1], "no sequence would be left"),
    ],
)
def test_refusals(
    world: World, tmp_path: Path, names: list[str], taxids: list[int], message: str
) -> None:
    path = tmp_path / "db"
    build(world, world.references[:2], path)
    before = sorted(file.stat().st_ino for file in path.rglob("*"))
    with pytest.raises((InputError, UsageError), match=message):
        remove_references(path, names, taxids)
    assert sorted(file.stat().st_ino for file in path.rglob("*")) == before


def test_commands(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "db"
    build(world, world.references, path, request=PartitionRequest(2))
    listed = tmp_path / "names.txt"
    listed.write_text("NC_000003.1\n\nNC_000004.1")
    command = ["db", "remove", "-d", str(path), "--list", str(listed), "--taxon", "40"]
    assert main([*command, "--dry-run"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split("\t")[0] for row in rows] == [f"NC_{i:06d}.1" for i in (3, 4, 6, 12)]
    assert len(open_database(path).targets) == 17
    assert main([*command, "-t1"]) == 0
    assert len(open_database(path).targets) == 13
    assert "partition\ttargets" in capsys.readouterr().err
    assert main(["db", "remove", "-d", str(path)]) == 2
    assert "name what to remove" in capsys.readouterr().err
    assert main(["db", "stats", "-d", str(path)]) == 0
    assert "\n1\t" in capsys.readouterr().out
    assert main(["db", "stats", "-d", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == database_contents(open_database(path))


def test_statistics_of_a_damaged_partition(copy: Path) -> None:
    """One without its manifest is none that was not built; sizes are those of the manifests."""
    database = open_database(copy)
    folder = copy / database.partitions[0].folder
    size = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    assert database_contents(database)["bytes"] == size
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match="there is no"):
        database_contents(open_database(copy))


def test_statistics(database: Database) -> None:
    found = database_contents(database)
    keys = keys_of_locations(database.load_partition(0).index)
    _, counts = np.unique(keys, return_counts=True)
    (partition,) = found["partitions"]
    assert partition["features"] == len(counts) and partition["locations"] == len(keys)
    assert partition["most_locations"] == counts.max()
    below = 0
    for own in found["features_by_locations"]:
        assert own["features"] == ((counts > below) & (counts <= own["most"])).sum()
        below = own["most"]
    assert found["bytes"] == sum(f.stat().st_size for f in database.path.rglob("*") if f.is_file())
