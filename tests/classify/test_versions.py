"""A reader keeps the version of a database that it opened, whatever changes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.change.remove import remove_references
from ngsgpu.classify.database.contents import contents_lines, database_contents
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.folder import check_place, hold_version
from ngsgpu.classify.database.info import verify_database
from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import MANIFEST, parse_json, sealed
from tests.support.classify.world import World, more_references


def loaded(database: Database) -> list[bytes]:
    """The indexes of all partitions, opened now."""
    parts = [database.load_partition(number) for number in range(len(database.partitions))]
    return [part.index.locations.tobytes() for part in parts]


def folders(place: Path) -> set[str]:
    return {entry.name for entry in place.iterdir() if entry.is_dir()}


def named(place: Path) -> set[str]:
    values = parse_json((place / MANIFEST).read_text())
    parts = [values["targets"], values["taxonomy"], *values["partitions"]]
    return {part["folder"] for part in parts if part is not None}


def test_what_is_read_stays_and_goes_with_a_later_change(copy: Path, tmp_path: Path) -> None:
    first, second = more_references(tmp_path, 2)
    before = named(copy)
    with_first = open_database(copy)
    wanted = loaded(open_database(copy))
    add_references(copy, [first], into_last=True)
    assert before <= folders(copy) and before != named(copy)
    check_place(copy)  # hidden names of old manifests are a part of it
    middle = named(copy)
    with_second = open_database(copy)
    add_references(copy, [second], into_last=True)
    assert folders(copy) == before | middle | named(copy)
    assert loaded(with_first) == wanted
    assert verify_database(copy)[1] == []
    with_first.close()
    remove_references(copy, ["more1"])
    assert folders(copy) == middle | named(copy)
    assert with_second.targets.names()[-1] == b"more0"
    loaded(with_second)
    del with_second
    remove_references(copy, ["more0"])
    assert folders(copy) == named(copy)
    assert [path.name for path in copy.iterdir() if path.name.startswith(".")] == []


def test_a_failed_change_leaves_nothing_beside_readers(copy: Path, tmp_path: Path) -> None:
    reader = open_database(copy)
    before = {path.name for path in copy.iterdir()}
    (tmp_path / "empty.fna").write_text("no FASTA")
    with pytest.raises(InputError):
        add_references(copy, [tmp_path / "empty.fna"])
    assert {path.name for path in copy.iterdir()} == before
    reader.close()


def test_no_version_is_held_where_there_is_none(tmp_path: Path) -> None:
    assert hold_version(tmp_path) is None
    (tmp_path / MANIFEST).mkdir()
    assert hold_version(tmp_path) is None
    (tmp_path / MANIFEST).rmdir()
    (tmp_path / MANIFEST).symlink_to(MANIFEST)
    assert hold_version(tmp_path) is None


@pytest.mark.parametrize("name", ["directory", "entries", "locations"])
def test_statistics_of_a_damaged_index_are_refused(
    copy: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(copy.glob(f"partition-*/{name}.npy"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert main(["db", "stats", "-d", str(copy)]) == 2
    assert f"{path}: the content has changed" in capsys.readouterr().err


def test_statistics_are_of_the_database_alone(copy: Path, tmp_path: Path) -> None:
    wanted = contents_lines(database_contents(open_database(copy)))
    shutil.copytree(copy / "targets-0001", copy / "targets-0009")
    assert contents_lines(database_contents(open_database(copy), 2)) == wanted


def test_manifests_with_other_values_are_refused(world: World, copy: Path) -> None:
    manifest = copy / MANIFEST
    text = manifest.read_text()
    for part, field, value in (
        ("targets", "folder", "../db/targets-0001"), ("targets", "files", {}),
        ("targets", "references", [1]), ("parameters", "sketch", {"kmer": 99}),
        ("parameters", "max_locations", 0), ("taxonomy", "digest", None),
    ):  # fmt: skip
        values = json.loads(text)
        values[part][field] = value
        manifest.write_text(sealed(values))
        for command in ("verify", "stats", "info"):
            assert main(["db", command, "-d", str(copy)]) == 2
        with pytest.raises(InputError, match="the manifest is damaged"):
            open_database(copy)


@pytest.mark.parametrize("place", ["folder", "loop", "pipe"])
@pytest.mark.parametrize("name", ["manifest.json", "length.npy", "directory.npy"])
def test_what_stands_in_the_place_of_a_file_is_refused(
    world: World, copy: Path, place: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in list(copy.rglob(name)):
        path.unlink()
        if place == "folder":
            path.mkdir()
        elif place == "loop":
            path.symlink_to(path.name)
        else:
            os.mkfifo(path)
    for command in ("verify", "stats"):
        assert main(["db", command, "-d", str(copy)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("ngsgpu: error: ")
