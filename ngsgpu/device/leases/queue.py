"""The queue of a lock directory: one ticket, a locked file, per waiting process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.device.leases.files import (
    NoLockFileError,
    make_file,
    open_file,
    read_document,
    try_lock,
)

_LIFE: Final = 30.0
"""Seconds after which a stopped waiting process (Ctrl-Z) loses its turn, but not its place."""

_MODE: Final = 0o644
_NAME: Final = re.compile(r"waiting-(\d{1,20})(-\d{1,20})?\.ticket")


@dataclass(frozen=True)
class Ticket:
    """A place in the queue, until ``leave``.

    Attributes:
        path: the file; its name encodes the place.
        place: sort key of the tickets.
        file: descriptor of the locked file.
    """

    path: Path
    place: tuple[int, str]
    file: int

    def refresh(self) -> None:
        """Signal that this process is still waiting."""
        os.utime(self.file)

    def leave(self) -> None:
        """Give up the place."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self.file)


def join_queue(folder: Path, names: Sequence[str], count: int) -> Ticket | None:
    """Take the last place, for ``count`` of ``names``; None if the directory takes no more files.

    Places are ordered by time, not by existing tickets, which others may have forged.
    """
    number = time.time_ns()
    path = folder / f"waiting-{number:020d}-{os.getpid()}.ticket"
    try:
        file = make_file(path, _MODE)
    except OSError:
        return None
    ticket = Ticket(path, (number, path.name), file)
    try:
        try_lock(file)
        os.write(file, json.dumps({"names": list(names), "count": count}).encode())
    except OSError:
        ticket.leave()
        return None
    return ticket


def set_apart(folder: Path, free: set[str], own: Ticket | None) -> set[str]:
    """The free names reserved for tickets before ``own``, or for all tickets.

    Args:
        folder: folder of the tickets.
        free: names that nobody holds.
        own: the caller's ticket; None without one.
    """
    apart: set[str] = set()
    places = (_place(path.name) for path in folder.iterdir())
    for place in sorted(filter(None, places)):
        if own is not None and place >= own.place:
            break
        names, count = _wanted(folder / place[1])
        apart.update([name for name in names if name in free - apart][:count])
    return apart


def _place(name: str) -> tuple[int, str] | None:
    """The place of this ticket; None for another file."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), name) if match else None


def _wanted(path: Path) -> tuple[list[str], int]:
    """Request of a waiting process; empty if it is gone or was stopped."""
    try:
        file = open_file(path, os.O_RDONLY)
    except (OSError, NoLockFileError):
        return [], 0
    try:
        if try_lock(file):  # nobody holds it: killed while waiting
            with contextlib.suppress(OSError):
                path.unlink()
            return [], 0
        if abs(time.time() - os.fstat(file).st_mtime) > _LIFE:
            return [], 0
        content = read_document(file)
        names, count = content.get("names"), content.get("count")
        if isinstance(names, list) and type(count) is int and count > 0:
            return [name for name in names if isinstance(name, str)], count
        return [], 0
    finally:
        os.close(file)
