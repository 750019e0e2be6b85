"""Temporary files and folders are locked while in use, and removed when nobody has them locked."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ngsgpu
from ngsgpu.io.output import places
from ngsgpu.io.output.atomic import AtomicFile, write_texts
from ngsgpu.io.output.folder import AtomicFolder
from ngsgpu.io.output.places import take_place, temporary_name
from ngsgpu.io.output.store import ArrayFile
from ngsgpu.io.output.temporary import open_private, remove_stale, temporary_file, temporary_folder
from ngsgpu.io.output.writer import OutputSet
from tests.support.interruption import interrupted_everywhere


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_removed_unless_it_was_renamed(tmp_path: Path) -> None:
    target = tmp_path / "new" / "db"
    with temporary_folder(target) as folder:
        (folder / "inside").touch()
        assert folder.parent == target.parent
        remove_stale(target)
        assert names(folder) == ["inside"]
    assert names(tmp_path) == []  # nor is the folder that was made for it left
    with temporary_folder(target) as folder:
        folder.rename(target)
    assert names(target.parent) == ["db"]


HOLD = """
import sys, time
from pathlib import Path
from ngsgpu.io.output.temporary import temporary_file, temporary_folder
target = Path(sys.argv[1])
_, lock = temporary_file(target)
with temporary_folder(target) as folder:
    (folder / "inside").touch()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_what_another_process_has_locked_stays_until_that_is_gone(tmp_path: Path) -> None:
    target = tmp_path / "db"
    command = [sys.executable, "-c", HOLD, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        held = names(tmp_path)
        assert len(held) == 2
        remove_stale(target)
        assert names(tmp_path) == held
        # The number of a process says nothing: this one is alive, and has no lock on it.
        (tmp_path / f".db.ngsgpu-{process.pid}.tmp").mkdir()
        remove_stale(target)
        assert names(tmp_path) == held
        process.kill()
    remove_stale(target)
    assert names(tmp_path) == []


def test_other_things_stay(tmp_path: Path) -> None:
    target = tmp_path / "db"
    (tmp_path / "elsewhere").touch()
    for name in (".db.ngsgpu-x.tmp", ".db.ngsgpu-12", ".db2.ngsgpu-12.tmp", "db"):
        (tmp_path / name).touch()
    (tmp_path / ".db.ngsgpu-11.tmp").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / ".db.ngsgpu-12.tmp")
    before = names(tmp_path)
    remove_stale(target)
    assert names(tmp_path) == before


def test_a_file_that_was_taken_for_stale_before_it_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making and locking, another process may lock, or even remove it."""
    target = tmp_path / "out"
    made: list[Path] = []
    flock = fcntl.flock

    def interfere(descriptor: int, operation: int) -> None:
        made.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        if len(made) == 1:
            made[0].unlink()
        if len(made) == 2:
            raise BlockingIOError
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", interfere)
    path, descriptor = temporary_file(target)
    os.close(descriptor)
    assert path == made[2]
    assert names(tmp_path) == [path.name]


def test_names_of_any_length(tmp_path: Path) -> None:
    assert len(os.fsencode(temporary_name(tmp_path / ("é" * 127)).name)) <= 255


INTERRUPT = """
import os, signal, sys
from ngsgpu.cli import main
from ngsgpu.io.output import temporary

count = int(sys.argv.pop(1))
made = temporary._made
def signalled(*arguments):
    global count
    result = made(*arguments)
    count -= 1
    if count == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    return result
temporary._made = signalled
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_signal_right_after_a_temporary_file_was_made(tmp_path: Path, count: int) -> None:
    reads = tmp_path / "reads.fq"
    reads.write_text("@a\nACGTACGTACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIIIIIIIIIII\n")
    options = ["-i", str(reads), "-o", "1", "--hist", "2", "--stats", "3"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, str(count), "merge", "-q", "--interleaved-in", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (143, "ngsgpu: terminated\n")
    assert names(tmp_path) == ["reads.fq"]


KILLED = """
import os, signal, sys
from ngsgpu.io.output.writer import OutputSet
with OutputSet([sys.argv[1], sys.argv[2]]) as outputs:
    outputs.write(0, b"x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    done = subprocess.run([sys.executable, "-c", KILLED, *paths])
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    with OutputSet(paths):
        pass
    assert names(tmp_path) == ["a", "b"]


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


interrupted_anywhere = pytest.mark.filterwarnings(  # what is open then is closed with the process
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@interrupted_anywhere
@pytest.mark.parametrize(
    "older", [{}, {"a": "old"}, {"a": "old", "c": "also old"}], ids=["new", "one", "two"]
)
@pytest.mark.parametrize("count", [1, 3])
def test_a_signal_at_any_moment_leaves_all_old_files_or_all_new_ones(
    tmp_path: Path, older: dict[str, str], count: int
) -> None:
    new = dict.fromkeys("abc"[:count], "new")

    def prepare(folder: Path) -> None:
        for name, text in older.items():
            (folder / name).write_text(text)

    def replace(folder: Path) -> None:
        write_texts({folder / name: text for name, text in new.items()})

    outcomes = set()
    for folder in interrupted_everywhere(tmp_path, prepare, replace):
        found = contents(folder)
        assert found in (older, older | new), folder
        outcomes.add(found == older)
    assert outcomes == {True, False}


@interrupted_anywhere
@pytest.mark.parametrize("exchanges", [True, False])
def test_a_signal_at_any_moment_leaves_the_old_folder_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:  # as on NFS
        monkeypatch.setattr(places, "_EXCHANGE", 1 << 20)

    def prepare(folder: Path) -> None:
        (folder / "place").mkdir()
        (folder / "place/file").write_text("old")

    def replace(folder: Path) -> None:
        with temporary_folder(folder / "place") as new:
            (new / "file").write_text("new")
            take_place(new, folder / "place")

    outcomes = set()
    for folder in interrupted_everywhere(tmp_path, prepare, replace):
        found = contents(folder)
        assert found in ({"place/file": "old"}, {"place/file": "new"}), folder
        outcomes.add(found["place/file"])
    assert outcomes == {"old", "new"}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def no_mask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_mask")
def test_what_is_temporary_is_its_users_alone(tmp_path: Path) -> None:
    """Folders and files, arrays and what functions return; not what lies beside."""
    with temporary_folder(tmp_path / "place") as folder:
        write_texts({folder / "text": "a"})
        with AtomicFolder(folder / "inside") as inside:
            ArrayFile(inside.place, "array", np.uint8, (3,)).put(0, np.zeros(3, np.uint8))
            found = [folder, folder / "text", inside.place / "array.npy"]
            with open(folder / "own", "wb", opener=open_private):
                found.append(folder / "own")
            assert {path: mode(path) & 0o077 for path in found} == dict.fromkeys(found, 0)
    write_texts({tmp_path / "text": "a"})
    assert mode(tmp_path / "text") == 0o666
    records = [ngsgpu.Record("a", "ACGT" * 9, "IIII" * 9)] * 3
    with ngsgpu.trim(records, backend="cpu") as result:
        place = result._folder.path
        found = [place, *place.rglob("*")]
        assert {path: mode(path) & 0o077 for path in found} == dict.fromkeys(found, 0)


@pytest.mark.usefixtures("no_mask")
def test_outputs_have_no_more_rights_than_what_they_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first moment: who has opened a file reads what is written later."""
    target = tmp_path / "secret"
    target.touch(0o600)
    monkeypatch.setattr(os, "fchmod", lambda *_: None)
    with AtomicFile(target) as file:
        assert [mode(path) for path in tmp_path.iterdir()] == [0o600, 0o600]
        file.commit()
    (tmp_path / "folder").mkdir(0o700)
    with AtomicFolder(tmp_path / "folder") as folder:
        assert mode(folder.place) == 0o700
