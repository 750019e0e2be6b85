"""The files of compiled kernels."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from ngsgpu.compiled import cache_folder, keep, read


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
