"""All outputs of a run get their names, or none, whenever the process ends."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from ngsgpu.errors import OutputError
from ngsgpu.io.output import places
from ngsgpu.io.output.atomic import AtomicFile, write_texts
from ngsgpu.io.output.commit import commit_all, finish_commits
from ngsgpu.io.output.folder import AtomicFolder, write_tree
from tests.support.interruption import interrupted_everywhere, killed_everywhere

interrupted_anywhere = pytest.mark.filterwarnings(  # what is open then is closed with the process
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def begin_again(target: Path) -> None:
    """What the next run of an output does: it opens it, and here finds nothing to write."""
    with AtomicFile(target):
        pass


@pytest.mark.parametrize("next_one", [0, 1, 2])
@pytest.mark.parametrize("is_new", [False, True])
def test_files_of_a_killed_run_are_finished_by_the_next_one(
    tmp_path: Path, next_one: int, is_new: bool
) -> None:
    names = ("one/a", "one/b", "two/c")
    older = {} if is_new else dict.fromkeys(names, "older")

    def prepare(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            if not is_new:
                (folder / name).write_text("older")

    outcomes = set()
    for folder in killed_everywhere(
        tmp_path,
        prepare,
        lambda folder: write_texts({folder / name: "new" for name in names}),
    ):
        begin_again(folder / names[next_one])
        found = {own: text for own, text in contents(folder).items() if "/." not in own}
        assert found in (older, dict.fromkeys(names, "new")), folder
        outcomes.add(found == older)
        for name in names:  # what was for another output is removed by its next run
            begin_again(folder / name)
        assert contents(folder) == found, folder
    assert outcomes == {True, False}


@interrupted_anywhere
@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_and_its_file_are_committed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:  # as on NFS
        monkeypatch.setattr(places, "_EXCHANGE", 1 << 20)
    older = {"db/x": "older", "db/y": "older", "table": "older"}
    new = {"db/x": "new", "table": "new"}

    def prepare(folder: Path) -> None:
        for name, text in older.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    def replace(folder: Path) -> None:
        with AtomicFolder(folder / "db") as database, AtomicFile(folder / "table") as table:
            (database.place / "x").write_text("new")
            table.write(b"new")
            commit_all([database, table])

    outcomes = set()
    for folder in killed_everywhere(tmp_path, prepare, replace):
        begin_again(folder / "table")
        with AtomicFolder(folder / "db"):
            pass
        assert contents(folder) in (older, new), folder
        outcomes.add(contents(folder) == older)
    assert outcomes == {True, False}
    place = tmp_path / "signals"
    place.mkdir()
    for folder in interrupted_everywhere(place, prepare, replace):
        assert contents(folder) in (older, new), folder


@interrupted_anywhere
@pytest.mark.parametrize("there", ["nothing", "a file", "a folder"])
def test_a_tree_appears_whole(tmp_path: Path, there: str) -> None:
    # A file and a folder beside each other, in the tree and in a folder that may be there.
    texts = {"config/a": "1", "config/deep/b": "2", "d": "3"}

    def prepare(folder: Path) -> None:
        if there == "a file":
            (folder / "study").mkdir()
            (folder / "study/reads.fq").write_text("mine")
        if there == "a folder":
            (folder / "study/config").mkdir(parents=True)
            (folder / "study/config/mine").write_text("mine")

    older = {
        "nothing": {},
        "a file": {"reads.fq": "mine"},
        "a folder": {"config/mine": "mine"},
    }[there]
    for folder in killed_everywhere(
        tmp_path, prepare, lambda folder: write_tree(folder / "study", texts)
    ):
        write_tree(folder / "study", texts)
        assert contents(folder) == {f"study/{n}": t for n, t in (older | texts).items()}, folder
    place = tmp_path / "signals"
    place.mkdir()
    for folder in interrupted_everywhere(
        place, prepare, lambda folder: write_tree(folder / "study", texts)
    ):
        found = {name.removeprefix("study/"): text for name, text in contents(folder).items()}
        assert found in (older, older | texts), folder
        if found == {}:
            assert list(folder.iterdir()) == []


def test_a_failure_brings_back_what_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db/x").write_text("older")
    (tmp_path / "table").write_text("older")

    def fail(file: AtomicFile) -> None:
        raise OutputError(f"{file.path}: cannot be renamed")

    monkeypatch.setattr(AtomicFile, "rename", fail)
    with pytest.raises(OutputError, match="cannot be renamed"), ExitStack() as opened:
        database = opened.enter_context(AtomicFolder(tmp_path / "db"))
        other = opened.enter_context(AtomicFolder(tmp_path / "new"))
        table = opened.enter_context(AtomicFile(tmp_path / "table"))
        (database.place / "x").write_text("new")
        commit_all([database, other, table])
    assert contents(tmp_path) == {"db/x": "older", "table": "older"}
    assert not (tmp_path / "new").exists()


def left_journal(folder: Path, target: str, temporary: str, **changes: object) -> Path:
    """A journal of a process that is gone, with the file it would rename."""
    new = folder / temporary
    new.write_text("new")
    place = folder / target
    info, old = new.lstat(), place.lstat() if place.exists() else None
    row = {
        "temporary": temporary,
        "target": target,
        "new": [info.st_dev, info.st_ino, info.st_mtime_ns],
        "old": None if old is None else [old.st_dev, old.st_ino, old.st_mtime_ns],
    }
    journal = folder / ".ngsgpu-0123456789abcdef.commit"
    values = {"decided_by": journal.name, "renamings": [row | changes]}
    journal.write_text(json.dumps(values))
    return journal


def test_a_journal_is_finished(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("older")
    left_journal(tmp_path, "out", ".out.ngsgpu-0123.tmp")
    assert finish_commits(tmp_path) == set()
    assert contents(tmp_path) == {"out": "new"}


def test_what_was_written_since_is_kept(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("older")
    left_journal(tmp_path, "out", ".out.ngsgpu-0123.tmp")
    (tmp_path / "other").write_text("of somebody else")
    (tmp_path / "other").replace(tmp_path / "out")
    begin_again(tmp_path / "out")
    assert contents(tmp_path) == {"out": "of somebody else"}


@pytest.mark.parametrize(
    ("target", "temporary"),
    [("out", "evil"), ("out", ".other.ngsgpu-0123.tmp"), ("../out", ".out.ngsgpu-0123.tmp")],
)
def test_a_journal_cannot_rename_anything_else(tmp_path: Path, target: str, temporary: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    left_journal(folder, target, temporary)
    finish_commits(folder)
    assert contents(tmp_path) == {f"folder/{temporary}": "new"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_journal_of_another_user_is_left_alone(tmp_path: Path) -> None:
    journal = left_journal(tmp_path, "out", ".out.ngsgpu-0123.tmp")
    os.chown(journal, 12345, 12345)
    finish_commits(tmp_path)
    assert not (tmp_path / "out").exists()
    assert journal.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"renamings": 1}', "[" * 100_000])
def test_a_journal_that_was_not_finished_is_removed(tmp_path: Path, text: str) -> None:
    left_journal(tmp_path, "out", ".out.ngsgpu-0123.tmp").write_text(text)
    begin_again(tmp_path / "out")
    assert contents(tmp_path) == {}
