"""The files of compiled kernels."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

import pytest

from ngsgpu import compiled
from ngsgpu.compiled import cache_folder, distrust, keep, prebuilt, read, trusted_folder


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NGSGPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/ngsgpu/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/ngsgpu/kernels")
    monkeypatch.setenv("NGSGPU_CACHE_DIR", "/fast")
    assert cache_folder() == Path("/fast/kernels")


def test_an_entry_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "kernels" / "name"
    assert read(path) is None
    keep(path, b"code")
    assert read(path) == b"code"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_bytes(path.read_bytes()[:-1])
    assert read(path) is None
    keep(path, b"other code")
    assert read(path) == b"other code"


def test_an_entry_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        keep(tmp_path / "file" / "name", b"code")
    (tmp_path / "name").mkdir()
    with pytest.raises(OSError):
        keep(tmp_path / "name", b"code")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "name"]


def test_what_a_killed_process_left_of_an_entry_is_removed(tmp_path: Path) -> None:
    left, held, other = (tmp_path / name for name in (".name.a", ".name.b", ".names.c"))
    for path in (left, held, other):
        path.touch()
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # somebody writes it now
        keep(tmp_path / "name", b"code")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".name.b", ".names.c", "name"]


def test_folders_are_made_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        keep(tmp_path / "one" / "two" / "name", b"code")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")] == [0o700, 0o700, 0o600]
    assert distrust(tmp_path / "one" / "two") is None


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777, 0o722])
def test_a_folder_that_others_may_write_to(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    assert distrust(folder) == f"{folder} may be written to by others (mode {mode:04o})"


def test_a_folder_above_that_others_may_write_to(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "kernels"
    folder.mkdir(parents=True)
    assert distrust(folder) is None
    assert distrust(folder / "not" / "there" / "yet") is None
    folder.parent.chmod(0o777)
    assert distrust(folder) == f"{folder.parent} may be written to by others (mode 0777)"
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert distrust(link) == f"{folder.parent} may be written to by others (mode 0777)"
    # As /tmp: nobody may rename or remove what others own.
    folder.parent.chmod(0o1777)
    assert distrust(folder) is None
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    assert "cannot be examined" in str(distrust(circle))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_others(tmp_path: Path) -> None:
    keep(tmp_path / "kernels" / "name", b"code")
    os.chown(tmp_path / "kernels" / "name", 12345, -1)
    assert read(tmp_path / "kernels" / "name") is None
    os.chown(tmp_path / "kernels", 12345, -1)
    assert distrust(tmp_path / "kernels") == f"{tmp_path}/kernels belongs to user 12345"


def test_what_belongs_to_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the cache in an image, for all who run it."""
    keep(tmp_path / "kernels" / "name", b"code")
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert (read(tmp_path / "kernels" / "name") == b"code") == (owner == 0)


def test_the_group_of_a_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(0o770)
    monkeypatch.setattr(compiled, "_is_private", lambda group: True)
    assert distrust(folder) is None
    folder.chmod(0o777)
    assert distrust(folder) is not None
    folder.chmod(0o770)
    monkeypatch.setattr(compiled, "_is_private", lambda group: False)
    assert distrust(folder) is not None


def test_one_warning_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    monkeypatch.setenv("NGSGPU_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.WARNING, "ngsgpu"):
        assert trusted_folder() is None
        assert trusted_folder() is None
    (message,) = caplog.messages
    assert "\n" not in message
    assert "chmod go-w" in message
    assert "NGSGPU_CACHE_DIR" in message


def test_kernels_of_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PREBUILT", tmp_path / "prebuilt")
    assert prebuilt("name") is None
    size = compiled.keep_prebuilt("name", b"code" * 1000)
    path = tmp_path / "prebuilt" / "name.xz"
    assert path.stat().st_size == size < 1000
    assert path.stat().st_mode & 0o777 == 0o644
    assert prebuilt("name") == b"code" * 1000
    content = path.read_bytes()
    for damaged in (content[:-1], content[:50] + b"?" + content[51:], b""):
        path.write_bytes(damaged)
        assert prebuilt("name") is None
