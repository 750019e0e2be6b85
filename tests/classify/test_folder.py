"""Where databases may go, and what they may replace."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.folder import LOCK, atomic_directory, check_place
from ngsgpu.classify.database.info import verify_database
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.cli import main
from ngsgpu.errors import InputError, OutputError
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.manifest import MANIFEST
from tests.support import content
from tests.support.classify.world import SKETCH, World, more_references

PARAMETERS = DatabaseParameters(SKETCH)
SMALL = ["--kmer", "10", "--sketch", "8", "--window", "60", "-q", "-t1"]


@pytest.fixture
def project(world: World, tmp_path: Path) -> Path:
    """A folder with references, and the notes of their owner."""
    folder = tmp_path / "project"
    (folder / "genomes").mkdir(parents=True)
    for path in world.references:
        shutil.copy(path, folder / "genomes")
    (folder / "NOTES.md").write_text("years of work\n")
    (folder / "other").mkdir()
    (folder / "file").write_text("something\n")
    shutil.copytree(world.taxonomy, folder / "tax")
    shutil.copy(world.map, folder / "tax/map.tsv")
    (folder / "link").symlink_to("genomes")
    (folder / "manifest").mkdir()
    (folder / "manifest/manifest.json").write_text('{"name": "an app"}')
    return folder


@pytest.mark.parametrize("command", ["build", "plan"])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("genomes", "is this very folder"),
        ("genomes/", "is this very folder"),
        ("link", "is this very folder"),
        ("other/../genomes", "is this very folder"),
        (".", "lies in this folder"),
        ("..", "lies in this folder"),
        ("tax", "is this very folder"),
        ("/", "lies in this folder"),
        ("file", "is a file, but a database is a directory"),
        ("NOTES.md", "is a file"),
        ("manifest", "holds manifest.json, which is not part of a database"),
    ],
)
def test_what_is_not_ours_is_never_replaced(
    command: str,
    where: str,
    message: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(project)
    before = content(project)
    inputs = ["genomes", "--taxonomy", "tax", "--map", "tax/map.tsv"]
    assert main(["db", command, *inputs, "-d", where, *SMALL]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert content(project) == before


def test_folders_with_anything_else_are_refused(project: Path, copy: Path, tmp_path: Path):
    check_place(copy)
    check_place(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    check_place(tmp_path / "empty")
    for name in ("NOTES", "partition-0000-0001/mine.fa", "targets-0001/.hidden", "targets-0001/x/"):
        foreign = copy / name
        foreign.mkdir() if name.endswith("/") else foreign.write_text("mine")
        with pytest.raises(InputError, match=f"holds {name.rstrip('/')}, which is not part"):
            build_database([project / "genomes"], copy, parameters=PARAMETERS)
        foreign.rmdir() if name.endswith("/") else foreign.unlink()
    (copy / "partition-0000-0001").rename(tmp_path / "elsewhere")
    (copy / "partition-0000-0001").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="holds partition-0000-0001"):
        check_place(copy)
    with pytest.raises(InputError, match="holds copy"):
        check_place(tmp_path)


def test_inputs_in_a_database_are_refused(world: World, copy: Path, project: Path):
    (project / "genomes/ref0.fna").unlink()
    (project / "genomes/ref0.fna").symlink_to(copy / "ref.fna")
    (copy / "ref.fna").write_text(">new\n" + "ACGTTGCAAC" * 20 + "\n")
    for references in (project / "genomes", copy / "ref.fna"):
        with pytest.raises(InputError, match="lies in this folder"):
            build_database([references], copy, parameters=PARAMETERS)
        with pytest.raises(InputError, match="lies in this folder"):
            add_references(copy, [references])
    assert (copy / "ref.fna").exists()


def test_statistics_in_a_database_are_refused(world: World, copy: Path):
    build = ["db", "build", "-d", str(copy), "-q", "--stats", str(copy / MANIFEST)]
    before = content(copy)
    for words in ([str(world.references[0])], ["--only-partition", "0"]):
        assert main([*build, *words]) == 2
        assert content(copy) == before


@pytest.mark.parametrize("where", [".", "new", "new/deep", "empty"])
def test_empty_folders_become_databases(
    where: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "here/empty").mkdir(parents=True)
    folder = tmp_path / "here/empty" if where == "." else tmp_path / "here"
    monkeypatch.chdir(folder)
    assert main(["db", "build", *map(str, world.references), "-d", where, *SMALL]) == 0
    assert verify_database(folder / where)[1] == []
    assert sorted(path.name for path in (folder / where).iterdir()) == [
        "manifest.json", "partition-0000-0001", "targets-0001",
    ]  # fmt: skip


def test_a_failed_build_leaves_the_folder_as_it_was(
    world: World, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "empty").mkdir()
    before = content(copy)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ngsgpu.io.output.store.os.pwrite", full)
    for path in (copy, tmp_path / "empty", tmp_path / "new"):
        with pytest.raises(OutputError, match="the disk is full"):
            build_database(world.references[:1], path, parameters=PARAMETERS)
    assert content(copy) == before
    assert list((tmp_path / "empty").iterdir()) == []
    assert not (tmp_path / "new").exists()


def test_an_old_database_is_readable_until_the_new_one_is_there(
    world: World, copy: Path, monkeypatch: pytest.MonkeyPatch
):
    targets = len(open_database(copy).targets)
    seen = []
    write = write_manifest

    def written(database: Database, also: Sequence[AtomicFile]) -> None:
        seen.append(len(open_database(copy, load=None).targets))
        write(database, also)
        seen.append(len(open_database(copy, load=None).targets))

    monkeypatch.setattr("ngsgpu.classify.database.build.write_manifest", written)
    build_database(world.references[:1], copy, parameters=PARAMETERS)
    assert seen == [targets, 3]
    assert verify_database(copy)[1] == []
    assert [path.name for path in sorted(copy.iterdir())] == [
        "manifest.json", "partition-0000-0002", "targets-0002",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["manifest", "no manifest", "killed", "version"])
def test_damaged_databases_can_be_built_again(damage: str, world: World, copy: Path):
    if damage == "manifest":
        (copy / "manifest.json").write_bytes(b"\0" * 50)
    if damage == "version":
        values = json.loads((copy / "manifest.json").read_text())
        (copy / "manifest.json").write_text(json.dumps(values | {"version": 99}))
    if damage == "no manifest":  # as Snakemake leaves it before it runs a rule again
        (copy / "manifest.json").unlink()
    if damage == "killed":
        (copy / ".partition-0000-0002.ngsgpu-77.tmp").mkdir()
        (copy / ".partition-0000-0002.ngsgpu-77.tmp/entries.npy").write_text("half")
        (copy / LOCK).touch()
    build_database(world.references[:1], copy, parameters=PARAMETERS)
    assert verify_database(copy)[1] == []
    generation = 1 if damage == "no manifest" else 2
    assert [path.name for path in sorted(copy.iterdir())] == [
        "manifest.json", f"partition-0000-{generation:04d}", f"targets-{generation:04d}",
    ]  # fmt: skip


def test_parts_that_hold_something_else_are_not_replaced(tmp_path: Path):
    (tmp_path / "partition-0000-0001").mkdir()
    (tmp_path / "partition-0000-0001/reads.fq").touch()
    with (
        pytest.raises(InputError, match=r"holds reads\.fq"),
        atomic_directory(tmp_path / "partition-0000-0001"),
    ):
        pass
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "partition-0000-0001", "partition-0000-0001/reads.fq",
    ]  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_databases_that_may_not_be_written_are_read(copy: Path, tmp_path: Path):
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert verify_database(copy)[1] == []
        assert open_database(copy, load=None).built() == [0]
        with pytest.raises(OutputError, match="no permission to write"):
            add_references(copy, more_references(tmp_path, 1))
    finally:
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize("into_last", [False, True])
def test_damage_is_noticed_before_it_gets_new_checksums(
    into_last: bool, copy: Path, tmp_path: Path
):
    more = more_references(tmp_path, 1)
    paths = [*copy.glob("targets-*/*.npy"), *copy.glob("taxonomy-*/*.npy")]
    if into_last:
        paths += copy.glob("partition-*/*.npy")
    for path in paths:
        whole = path.read_bytes()
        if len(whole) > 128:
            path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 0x10]))
            with pytest.raises(InputError):
                add_references(copy, more, into_last=into_last)
            assert len(verify_database(copy)[1]) == 1
            path.write_bytes(whole)
    add_references(copy, more, into_last=into_last)
    assert verify_database(copy)[1] == []


@pytest.mark.parametrize(
    "command",
    [
        ["db", "build", "{references}"],
        ["db", "plan", "{references}"],
        ["db", "add", "{references}"],
        ["db", "info"],
        ["db", "verify"],
        ["classify", "-i", "{references}", "-o", "-"],
        ["classify-merge", "{references}", "-o", "-"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_foreign_folder_is_no_database(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
):
    """Somebody's project, given as -d by mistake: refused in one line, and not touched."""
    foreign = tmp_path / "study"
    (foreign / "results").mkdir(parents=True)
    (foreign / "results" / "table.tsv").write_text("precious\n")
    (foreign / "notes.txt").write_text("mine\n")
    before = content(foreign)
    reference = next((project / "genomes").iterdir())
    arguments = [part.format(references=reference) for part in command]
    assert main([*arguments, "-d", str(foreign)]) == 2
    error = capsys.readouterr().err
    assert str(foreign) in error and "Traceback" not in error
    assert len([line for line in error.splitlines() if "error: " in line]) == 1
    assert content(foreign) == before
