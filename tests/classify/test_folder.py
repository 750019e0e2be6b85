"""Where databases may go, and who may change them at the same time."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ngsgpu.classify.database.add import add_references
from ngsgpu.classify.database.build import build_database, build_partition
from ngsgpu.classify.database.cpu_build import index_partition
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.folder import (
    LOCK,
    MANIFEST,
    atomic_directory,
    changed,
    check_place,
    locked,
)
from ngsgpu.classify.database.info import verify_database
from ngsgpu.classify.database.plan import PartitionRequest, plan_database
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.cli import main
from ngsgpu.errors import InputError, OutputError
from ngsgpu.io.output.store import write_json
from tests.support import copies
from tests.support.classify.world import SKETCH, World
from tests.support.interruption import interrupted_everywhere

PARAMETERS = DatabaseParameters(SKETCH)
SMALL = ["--kmer", "10", "--sketch", "8", "--window", "60", "-q", "-t1"]


@pytest.fixture
def copy(database: Database, tmp_path: Path) -> Path:
    shutil.copytree(database.path, tmp_path / "copy")
    return tmp_path / "copy"


def content(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


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

    def written(database: Database) -> None:
        seen.append(len(open_database(copy, load=None).targets))
        write(database)
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


def references(folder: Path, count: int) -> list[Path]:
    paths = []
    for number in range(count):
        paths.append(folder / f"more{number}.fa")
        text = "".join("ACGT"[(at * at + at // 7 * number) % 7 % 4] for at in range(600))
        paths[-1].write_text(f">more{number}\n{text}\n")
    return paths


def test_references_added_at_the_same_time_are_all_there(copy: Path, tmp_path: Path):
    before = len(open_database(copy).targets)
    more = references(tmp_path, 4)
    runs = [
        subprocess.Popen(
            [copies.ngsgpu(), "db", "add", str(path), "-d", str(copy), "-q", "-t1"],
            stderr=subprocess.PIPE, text=True,
        )
        for path in more
    ]  # fmt: skip
    ended = [(run.communicate()[1], run.returncode) for run in runs]
    assert [status for _, status in ended] == [0] * 4
    assert verify_database(copy)[1] == []
    names = open_database(copy).targets.names()[before:]
    assert sorted(names) == [b"more0", b"more1", b"more2", b"more3"]
    assert not (copy / LOCK).exists()


def test_who_waits_says_so(copy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (path,) = references(tmp_path, 1)
    caplog.set_level(logging.INFO, "ngsgpu")  # tests of quiet commands lower it
    with locked(copy):
        adding = threading.Thread(target=add_references, args=(copy, [path]))
        adding.start()
        deadline = time.monotonic() + 8
        while "waiting for another run" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "waiting for another run to finish changing it" in caplog.text
        assert open_database(copy, load=None).targets.names()[-1] != b"more0"
    adding.join()
    assert open_database(copy).targets.names()[-1] == b"more0"


def bare_database(place: Path, generation: int) -> None:
    """Write parts of a generation, and a manifest that names them."""
    names = [f"targets-{generation:04d}", f"partition-0000-{generation:04d}"]
    for name in names:
        with atomic_directory(place / name) as folder:
            (folder / "length.npy").write_bytes(b"values")
    parts = [{"folder": name} for name in names]
    write_json(place / MANIFEST, {"targets": parts[0], "taxonomy": None, "partitions": parts[1:]})


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_signal_at_any_moment_leaves_the_old_database_or_the_new_one(tmp_path: Path):
    def change(place: Path) -> None:
        with changed(place) as generation:
            bare_database(place, generation)

    outcomes = []
    for generation in (1, 2):
        (tmp_path / f"of {generation}").mkdir()
        bare_database(tmp_path / f"of {generation}", generation)
        outcomes.append(content(tmp_path / f"of {generation}"))
    found = []
    for place in interrupted_everywhere(tmp_path, lambda own: bare_database(own, 1), change):
        found.append(content(place))
        assert found[-1] in outcomes, place
    assert [found[0], found[-1]] == outcomes


def test_the_lock_goes_with_the_process(copy: Path, tmp_path: Path):
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from ngsgpu.classify.database.folder import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(copy)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        holder.wait()
    assert (copy / LOCK).exists()
    add_references(copy, references(tmp_path, 1))
    assert not (copy / LOCK).exists()


def test_partitions_are_built_side_by_side(world: World, tmp_path: Path):
    planned = plan_database(
        world.references, tmp_path / "db", parameters=PARAMETERS, request=PartitionRequest(2)
    )
    write_manifest(planned)
    with locked(tmp_path / "db", shared=True):  # somebody else's partition
        build_partition(planned, 0)
        assert (tmp_path / "db" / LOCK).exists()
        build_partition(planned, 1)
    assert verify_database(tmp_path / "db")[1] == []
    assert not (tmp_path / "db" / LOCK).exists()


def test_a_plan_waits_for_partitions_that_are_being_built(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    planned = plan_database(world.references, tmp_path / "db", parameters=PARAMETERS)
    write_manifest(planned)
    seen = []

    def indexed(*arguments: object, **options: object) -> object:
        with subprocess.Popen(
            ["flock", "--nonblock", str(tmp_path / "db" / LOCK), "true"]
        ) as other:
            seen.append(other.wait())
        return index_partition(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("ngsgpu.classify.database.cpu_build.index_partition", indexed)
    build_partition(planned, 0)
    assert seen == [1]


def test_readers_see_the_old_or_the_new_one(world: World, copy: Path, tmp_path: Path):
    """Databases of as many sequences of the same lengths, so that only a mix would differ."""
    turned = []
    for path in world.references:
        turned.append(tmp_path / path.name)
        names = str.maketrans("0123456789", "9876543210")
        turned[-1].write_text(
            "".join(
                line.translate(names) if line[0] == ">" else line
                for line in path.read_text().splitlines(keepends=True)
            )
        )
    build_database(world.references, copy, parameters=PARAMETERS)
    known = {tuple(open_database(copy).targets.names())}
    build_database(turned, copy, parameters=PARAMETERS)
    known.add(tuple(open_database(copy).targets.names()))
    assert len(known) == 2
    done = threading.Event()

    def change() -> None:
        for number in range(12):
            build_database(turned if number % 2 else world.references, copy, parameters=PARAMETERS)
        done.set()

    changing = threading.Thread(target=change)
    changing.start()
    opened = 0
    while not done.is_set():
        database = open_database(copy, load=None)
        assert tuple(database.targets.names()) in known
        partition = database.load_partition(0)
        assert int(partition.index.locations.max()) < int(partition.first_window[-1])
        opened += 1
    changing.join()
    assert opened > 12


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_databases_that_may_not_be_written_are_read(copy: Path, tmp_path: Path):
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert verify_database(copy)[1] == []
        assert open_database(copy, load=None).built() == [0]
        with pytest.raises(OutputError, match="no permission to write"):
            add_references(copy, references(tmp_path, 1))
    finally:
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize("into_last", [False, True])
def test_damage_is_noticed_before_it_gets_new_checksums(
    into_last: bool, copy: Path, tmp_path: Path
):
    more = references(tmp_path, 1)
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
