"""Disks that fill up: outputs are whole or not there, and the message says why."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.attack.arena import Arena, Case, Verdict
from tests.attack.world import COMMANDS, lay_out

_NEW_MOUNTS: Final = 0x00020000  # CLONE_NEWNS
_NEW_USER: Final = 0x10000000  # CLONE_NEWUSER
_PRIVATE: Final = 1 << 18 | 1 << 14  # MS_PRIVATE | MS_REC
_PAGE: Final = 4096


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Run a command whose outputs, or temporary files, go to a disk that is too small."""
    command = source.choice(COMMANDS)
    alone = arena.alone[command.name]
    place = source.choice(("out", "out", "tmp"))
    folder = arena.root / name
    for part in ("in", "out", "tmp"):
        (folder / part).mkdir(parents=True)
    held = sum(len(data) for data in alone.files.values()) if place == "out" else 60_000
    if command.before:
        held += sum(path.stat().st_size for path in (arena.world / "db").rglob("*.*"))
    pages = 1 + source.randrange(int(1.2 * held / _PAGE) + 4)
    what = f"{command.name}: {pages * _PAGE} bytes for {place}/"

    def try_it() -> str:
        _mount(folder / place, pages * _PAGE)
        case = Case(command, folder, alone)
        try:
            lay_out(arena.world, command, folder, exist_ok=True)
        except OSError:
            return "too small"
        case.note_files()
        ending = case.run()
        if ending.status == 0:
            return f"fitted|{case.succeeded()}"
        problem = case.refused(ending, (1, 2) if place == "tmp" else (1,))
        return f"full|{problem and problem + ': ' + ending.stderr[-300:]}"

    outcome, _, problem = _elsewhere(try_it).partition("|")
    return Verdict(what, outcome, problem)


def _elsewhere(work: Callable[[], str]) -> str:
    """The result of a function that is called in a fork."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = work()
        except BaseException as error:
            text = f"broken|{error!r}"
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def _mount(folder: Path, size: int) -> None:
    """Mount a small disk that only this process and its children see."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _NEW_MOUNTS if os.geteuid() == 0 else _NEW_MOUNTS | _NEW_USER
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if flags & _NEW_USER:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    options = f"size={size},mode=0755".encode()
    if libc.mount(b"none", b"/", None, _PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "mount /")
    if libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
