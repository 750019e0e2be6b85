"""A folder of locks where another user writes what they like: we wait at most, with a message."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.device.gpus import gpus_of_driver
from ngsgpu.device.leases import LockFolder, folder, holders, lease_gpus, pool
from ngsgpu.errors import DeviceError

UUIDS = tuple(f"GPU-{letter * 8}-0000" for letter in "abc")
FIRST = f"{UUIDS[0]}.lock"
JUNK = {
    "brackets": b"[" * (1 << 20),
    "deep objects": b'{"a":' * 100_000,
    "large number": b'{"pid": 1' + b"0" * 30 + b', "user": "x", "host": "HOST"}',
    "larger number": b'{"pid": 1' + b"0" * 5000 + b"}",
    "negative number": b'{"pid": -1, "user": "x", "host": "HOST"}',
    "no number": b'{"pid": "7", "user": 7, "host": ["HOST"], "command": null}',
    "infinity": b'{"pid": Infinity}',
    "list": b"[1, 2, 3]",
    "not text": bytes(range(128, 256)),
    "zeros": bytes(1 << 20),
    "escapes": b'{"pid": 1, "user": "\\u001b[2J\\u202e\\n", "command": "\\u0007"}',
    "long": b'{"pid": 1, "user": "' + b"x" * 10_000 + b'"}',
}


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three GPUs without a driver, and a folder for locks."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(UUIDS))
    monkeypatch.setenv("NGSGPU_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.delenv("NGSGPU_LEASE", raising=False)
    monkeypatch.setattr(folder, "_GATE_PATIENCE", 0.2)
    gpus_of_driver.cache_clear()
    (tmp_path / "locks").mkdir(mode=0o1777)
    yield tmp_path / "locks"
    gpus_of_driver.cache_clear()


@contextlib.contextmanager
def held(path: Path, content: bytes = b"") -> Iterator[None]:
    """A file that someone else holds."""
    path.write_bytes(content)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ticket(count: int = 3, names: object = UUIDS) -> bytes:
    return json.dumps({"names": names, "count": count}).encode()


@pytest.mark.parametrize("count", [3, 10**100])
@pytest.mark.parametrize("number", ["0", "999999999999", "18446744073709551615"])
def test_numbers_of_tickets(locks, number, count, caplog):
    """Who pretends to have come first is waited for, and nobody goes without a lease."""
    caplog.set_level(logging.INFO, "ngsgpu")
    with held(locks / f"waiting-{number}.ticket", ticket(count)):
        with pytest.raises(DeviceError, match=r"others came before, by their tickets in .*locks"):
            lease_gpus(1, wait=0)
        if number.startswith("18"):  # who waits came before that
            lease_gpus(3, wait=5).release()
        else:
            with pytest.raises(DeviceError):
                lease_gpus(1, wait=0.2)
    assert "lease: waiting for" in caplog.text
    assert "no locks in" not in caplog.text
    lease_gpus(3, wait=0).release()


@pytest.mark.parametrize("name", ["waiting-" + "9" * 40, "waiting-x", "waiting--1", "waiting-\n1"])
def test_names_that_are_no_tickets(locks, name):
    with held(locks / f"{name}.ticket", ticket()):
        lease_gpus(3, wait=0).release()


@pytest.mark.parametrize(
    "content",
    [*JUNK.values(), ticket(-1), ticket(3, 7), ticket(3, [1, None, {}]),
     ticket(3, ["../x", "\0"]), ticket(True), b""],
)  # fmt: skip
def test_tickets_of_junk(locks, content):
    with held(locks / "waiting-000000000001.ticket", content):
        lease_gpus(3, wait=0).release()


@pytest.mark.parametrize("kind", JUNK)
def test_locks_of_junk(locks, kind, capsys):
    """Of what holders write, short printable text is shown, and process numbers that can be."""
    content = JUNK[kind].replace(b"HOST", socket.gethostname().encode())
    with held(locks / FIRST, content):
        with pytest.raises(DeviceError) as caught:
            lease_gpus(3, wait=0)
        assert main(["gpu", "list"]) == 0
        shown = str(caught.value) + capsys.readouterr().out.replace("\n", "")
        assert shown.isprintable()
        assert len(shown) < 2000
        lease = lease_gpus(2, wait=0)
        assert [device.uuid for device in lease.devices] == list(UUIDS[1:])
        lease.release()
    lease_gpus(3, wait=0).release()


def place(kind: str, path: Path, other: Path) -> None:
    """Put something in the place of a lock's file."""
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        # The path of a socket is short.
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{os.open(path.parent, os.O_RDONLY)}/{path.name}")
    elif kind == "hard link":
        other.write_bytes(b"precious")
        path.hardlink_to(other)
    elif kind == "link":
        other.write_bytes(b"precious")
        path.symlink_to(other)
    elif kind == "broken link":
        path.symlink_to(other)
    elif kind == "device":
        path.symlink_to("/dev/tty")


PLACED = ("folder", "fifo", "socket", "hard link", "link", "broken link", "device")


@pytest.mark.parametrize("kind", PLACED)
def test_no_file_in_the_place_of_a_lock(locks, tmp_path, kind, capsys):
    """It counts as held, and nothing is written through it."""
    other = tmp_path / "other"
    place(kind, locks / FIRST, other)
    lease = lease_gpus(2, wait=0)
    assert [device.uuid for device in lease.devices] == list(UUIDS[1:])
    lease.release()
    with pytest.raises(DeviceError, match=rf"{FIRST} .*; its owner or root has to remove it"):
        lease_gpus(3, wait=0)
    assert main(["gpu", "list"]) == 0
    assert "has to remove it" in capsys.readouterr().out
    assert not other.exists() or other.read_bytes() == b"precious"


@pytest.mark.parametrize("kind", PLACED)
def test_no_file_in_the_place_of_the_gate_or_of_tickets(locks, tmp_path, kind):
    place(kind, locks / "waiting-000000000001.ticket", tmp_path / "ticket")
    lease_gpus(3, wait=0).release()
    (locks / "gate.lock").unlink()
    place(kind, locks / "gate.lock", tmp_path / "gate")
    with pytest.raises(DeviceError):
        lease_gpus(1, wait=0)
    assert holders(pool()) == [None] * 3


def test_a_held_gate_is_told_and_waited_for(locks, caplog):
    caplog.set_level(logging.INFO, "ngsgpu")
    with held(locks / "gate.lock"):
        with pytest.raises(DeviceError):
            lease_gpus(1, wait=0)
        leases = []
        waiter = threading.Thread(target=lambda: leases.append(lease_gpus(1)))
        waiter.start()
        end = time.monotonic() + 30
        while "gate.lock and does not let go" not in caplog.text:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert not leases
    waiter.join(30)
    leases[0].release()


def test_files_that_may_not_be_opened(locks, monkeypatch):
    real = os.open

    def refused(path, flags, *rest):
        if Path(path).name == FIRST:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *rest)

    (locks / FIRST).touch(0o600)
    monkeypatch.setattr(os, "open", refused)
    lease = lease_gpus(2, wait=0)
    assert [device.uuid for device in lease.devices] == list(UUIDS[1:])
    with pytest.raises(DeviceError, match=rf"{FIRST} cannot be opened \(Permission denied\)"):
        lease_gpus(1, wait=0)
    lease.release()


def test_modes_left_by_a_killed_maker_are_mended(locks):
    (locks / FIRST).touch(0o600)
    lease_gpus(3, wait=0).release()
    assert (locks / FIRST).stat().st_mode & 0o777 == 0o666


def test_tickets_can_be_read_by_all(locks):
    lease = lease_gpus(3)
    old = os.umask(0o077)
    seen: list[int] = []

    def look(why: str) -> None:
        seen.extend(path.stat().st_mode & 0o777 for path in locks.glob("*.ticket"))

    try:
        waiting = LockFolder(locks).take(UUIDS, 1, wait=0.1, holder={}, on_wait=look)
    finally:
        os.umask(old)
    assert waiting is None
    assert seen == [0o644]
    lease.release()


@pytest.mark.parametrize("change", ["removed", "renamed", "replaced", "all removed"])
def test_files_taken_away_while_held(locks, tmp_path, change):
    """Who owns the folder can do that; the kernel still knows who holds what."""
    lease = lease_gpus(2)
    if change == "renamed":
        (locks / FIRST).rename(locks / "x")
    elif change == "all removed":
        locks.rename(tmp_path / "gone")
    else:
        (locks / FIRST).unlink()
        if change == "replaced":
            (locks / FIRST).touch()
    with pytest.raises(DeviceError):
        lease_gpus(2, wait=0)
    assert [bool(one) for one in holders(pool())][:1] == [change != "all removed" or locks.exists()]
    lease.release()
    lease_gpus(3, wait=0).release()


def test_a_folder_removed_while_waiting_is_made_again(locks, tmp_path):
    lease = lease_gpus(3)
    leases = []
    waiter = threading.Thread(target=lambda: leases.append(lease_gpus(1)))
    waiter.start()
    end = time.monotonic() + 30
    while not list(locks.glob("*.ticket")):
        assert time.monotonic() < end
        time.sleep(0.02)
    locks.rename(tmp_path / "gone")
    time.sleep(0.2)
    assert not leases
    lease.release()
    waiter.join(30)
    assert leases[0].locked
    leases[0].release()


def test_a_full_disk(locks, monkeypatch, caplog):
    """Who cannot leave a ticket, or a name, waits without."""
    for name in (*UUIDS, "gate"):
        (locks / f"{name}.lock").touch(0o666)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "pwrite", full)
    lease = lease_gpus(3)
    with pytest.raises(DeviceError, match="someone who left no name"):
        lease_gpus(1, wait=0.2)
    assert not list(locks.glob("*.ticket"))
    assert "no locks in" not in caplog.text
    lease.release()
    lease_gpus(3, wait=0).release()


def test_a_disk_without_room_for_locks(locks, monkeypatch, caplog):
    real = os.open

    def full(path, flags, *rest):
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", full)
    lease = lease_gpus(2)
    assert "No space left on device" in caplog.text
    with pytest.raises(DeviceError):
        lease_gpus(2, wait=0)
    lease.release()
