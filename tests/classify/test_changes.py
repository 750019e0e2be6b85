"""Who may change a database, and read it, at the same time."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database, build_partition
from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.cpu_build import index_partition
from ngsgpu.classify.database.database import open_database
from ngsgpu.classify.database.folder import LOCK, atomic_directory, changed, locked
from ngsgpu.classify.database.info import verify_database
from ngsgpu.classify.database.plan import plan_database
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.io.output.manifest import MANIFEST, save_manifest
from tests.support import content, copies
from tests.support.beside import beside
from tests.support.classify.world import SKETCH, World, more_references
from tests.support.interruption import interrupted_everywhere

PARAMETERS = DatabaseParameters(SKETCH)


def test_references_added_at_the_same_time_are_all_there(copy: Path, tmp_path: Path):
    before = len(open_database(copy).targets)
    more = more_references(tmp_path, 4)
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
    (path,) = more_references(tmp_path, 1)
    caplog.set_level(logging.INFO, "ngsgpu")  # tests of quiet commands lower it
    with locked(copy):
        adding = threading.Thread(target=add_references, args=(copy, [path]))
        adding.start()
        deadline = time.monotonic() + 60
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
    save_manifest(
        place / MANIFEST, {"targets": parts[0], "taxonomy": None, "partitions": parts[1:]}
    )


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
    add_references(copy, more_references(tmp_path, 1))
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


class TwoVersions:
    """Databases of as many sequences of the same lengths, so that only a mix would differ.

    Args:
        references: the sequences.
        database: where the databases are built.
        folder: for the sequences of the second version.
    """

    def __init__(self, references: list[Path], database: Path, folder: Path) -> None:
        names = str.maketrans("0123456789", "9876543210")
        turned = [folder / path.name for path in references]
        for path, copied in zip(references, turned, strict=True):
            lines = path.read_text().splitlines(keepends=True)
            copied.write_text("".join(s.translate(names) if s[0] == ">" else s for s in lines))
        self.references = references, turned
        self.database = database
        self.names = []
        for version in 0, 1:
            self.build(version)
            self.names.append(tuple(open_database(database).targets.names()))
        assert self.names[0] != self.names[1]

    def build(self, version: int) -> None:
        build_database(self.references[version], self.database, parameters=PARAMETERS)

    def read(self) -> int:
        """Open the database and use it; returns its version."""
        database = open_database(self.database, load=None)
        partition = database.load_partition(0)
        assert int(partition.index.locations.max()) < int(partition.first_window[-1])
        return self.names.index(tuple(database.targets.names()))


@pytest.fixture
def versions(world: World, copy: Path, tmp_path: Path) -> TwoVersions:
    return TwoVersions(world.references, copy, tmp_path)


def test_readers_see_the_old_or_the_new_one_at_each_moment_of_a_change(versions: TwoVersions):
    read: list[int] = []
    calls = beside(lambda: versions.build(0), lambda _: read.append(versions.read()))
    assert read == sorted(read, reverse=True)
    assert set(read) == {0, 1}
    assert len(read) == calls > 20


def test_readers_see_the_old_or_the_new_one_whenever_it_changes(versions: TwoVersions):
    read: list[int] = []
    for moment in itertools.count():
        versions.build(0)
        calls = beside(
            lambda: read.append(versions.read()),
            lambda call, moment=moment: call != moment or versions.build(1),
        )
        if moment >= calls:
            break
    assert (read[0], read[-1]) == (1, 0)
    assert len(read) > 20
