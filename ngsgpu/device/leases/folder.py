"""The folder of locks, and taking names in it; see the package."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.device.leases.files import (
    NoLockFileError,
    allow,
    hold_name,
    is_at,
    is_held,
    make_file,
    open_file,
    read_document,
    readable,
    try_lock,
)
from ngsgpu.device.leases.queue import Ticket, join_queue, set_apart

_FIRST_PAUSE, _LAST_PAUSE = 0.05, 0.5
_GATE_PATIENCE = 5.0
_FILE_MODE: Final = 0o666
_HOLDER: Final = ("pid", "user", "host", "command")
_MAX_TRIES: Final = 100


class FolderUnusableError(Exception):
    """A directory cannot hold locks; the message says why."""


@dataclass(frozen=True)
class Taken:
    """A name, held until ``files`` are closed here and in all children.

    Attributes:
        name: the requested name.
        files: descriptors of the locked file and of the name in the kernel.
    """

    name: str
    files: tuple[int, ...]


class LockFolder:
    """A folder of locks; it is made, for all users to write in, when first used.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def take(
        self,
        names: Sequence[str],
        count: int,
        *,
        wait: float | None,
        holder: dict[str, object],
        on_wait: Callable[[str], None] = lambda why: None,
    ) -> list[Taken] | None:
        """Take ``count`` of ``names``, the first free ones, all or none.

        Args:
            names: the candidates; of letters, digits, dots, ``-`` and ``_``.
            count: number wanted, at most ``len(names)``.
            wait: seconds to wait for them; None: no limit.
            holder: written into the files, for ``holders``.
            on_wait: called before waiting, once per reason: the gate is blocked, with its holder;
                or none, if names are held.

        Returns:
            The names taken; None if the time ran out.

        Raises:
            FolderUnusableError: the directory cannot hold locks.
        """
        end = None if wait is None else time.monotonic() + wait
        told: set[str] = set()
        with self._errors(), contextlib.ExitStack() as stack:
            ticket: Ticket | None = None
            pause = _FIRST_PAUSE
            while True:
                self._make()
                with self._gate(_GATE_PATIENCE) as blocked:
                    if not blocked and (taken := self._take_free(names, count, holder, ticket)):
                        stack.close()  # the ticket, before others count on it
                        return taken
                    now = time.monotonic()
                    if end is not None and now >= end:
                        return None
                    if ticket is None and not blocked:
                        ticket = join_queue(self.path, names, count)
                        if ticket is not None:
                            stack.callback(ticket.leave)
                if blocked not in told:
                    told.add(blocked)
                    on_wait(blocked)
                if ticket is not None:
                    ticket.refresh()
                time.sleep(pause if end is None else min(pause, max(0.0, end - now)))
                pause = min(_LAST_PAUSE, pause * 1.5)

    def take_in_kernel(
        self,
        names: Sequence[str],
        count: int,
        *,
        wait: float | None,
        on_wait: Callable[[str], None] = lambda why: None,
    ) -> list[Taken] | None:
        """``take`` for an unusable directory: first come, first served.

        Args:
            names: names of the GPUs.
            count: how many to take.
            wait: seconds to wait; None: for ever.
            on_wait: called with the reason before waiting.

        Raises:
            OSError: the kernel cannot hold names either.
        """
        end = None if wait is None else time.monotonic() + wait
        told = False
        while True:
            taken: list[Taken] = []
            for name in names:
                if len(taken) < count and (file := hold_name(self._kernel_name(name))) is not None:
                    taken.append(Taken(name, (file,)))
            if len(taken) == count:
                return _inheritable(taken)
            self.release(taken)
            if end is not None and time.monotonic() >= end:
                return None
            if not told:
                told = True
                on_wait("")
            time.sleep(_LAST_PAUSE if end is None else min(_LAST_PAUSE, max(0.0, wait or 0.0)))

    def holders(self, names: Sequence[str]) -> dict[str, dict[str, object]]:
        """The holders of the given names; free names are omitted.

        Returns:
            For each name the ``pid``, ``user``, ``host`` and ``command`` written by its holder; an
            empty dictionary if there are none, or ``trouble`` with the reason why nobody can take
            the name.

        Raises:
            FolderUnusableError: the directory cannot hold locks.
        """
        found: dict[str, dict[str, object]] = {}
        if not self.path.is_dir():
            return found
        with self._errors(), self._gate(_GATE_PATIENCE):
            for name in names:
                if (holder := self._holder(name)) is not None:
                    found[name] = holder
        return found

    def _holder(self, name: str) -> dict[str, object] | None:
        """The note of a name's holder; None if it is free."""
        free: dict[str, object] | None = {} if is_held(self._kernel_name(name)) else None
        try:
            file = open_file(self._path_of(name), os.O_RDONLY)
        except FileNotFoundError:
            return free
        except NoLockFileError as error:
            return {"trouble": str(error)}
        try:
            return free if try_lock(file) else readable(read_document(file), _HOLDER)
        finally:
            os.close(file)

    def release(self, taken: Sequence[Taken]) -> None:
        """Release names; children that inherited the files keep them until they end."""
        for one in taken:
            for file in one.files:
                # Unlocking would also release the children's lock: only close.
                os.close(file)

    def forget(self, prefix: str) -> None:
        """Remove the files of names that will not be requested again."""
        with contextlib.suppress(OSError):
            for path in self.path.glob(f"{prefix}*.lock"):
                path.unlink(missing_ok=True)

    def _take_free(
        self,
        names: Sequence[str],
        count: int,
        holder: dict[str, object],
        ticket: Ticket | None,
    ) -> list[Taken] | None:
        free: list[Taken] = []
        try:
            for name in names:
                if (taken := self._try(name)) is not None:
                    free.append(taken)
            apart = set_apart(self.path, {one.name for one in free}, ticket) if free else set()
        except BaseException:
            self.release(free)
            raise
        kept = [one for one in free if one.name not in apart][:count]
        if len(kept) < count:
            kept = []
        self.release([one for one in free if one not in kept])
        for one in kept:
            # Another user's file may be read-only; it can still be locked.
            with contextlib.suppress(OSError):
                os.ftruncate(one.files[0], 0)
                os.pwrite(one.files[0], json.dumps(holder).encode(), 0)
        return _inheritable(kept) or None

    @contextlib.contextmanager
    def _gate(self, patience: float) -> Iterator[str]:
        """Be alone in the folder; what keeps us out after ``patience`` seconds, or nothing."""
        end = time.monotonic() + patience
        file: int | None = None
        try:
            while True:
                file, blocked = self._enter()
                if not blocked or time.monotonic() >= end:
                    break
                time.sleep(0.01)
            yield blocked
        finally:
            if file is not None:
                os.close(file)

    def _enter(self) -> tuple[int | None, str]:
        """Try the gate: its locked file, or what keeps us out."""
        path = self._path_of("gate")
        try:
            file = self._open("gate")
        except NoLockFileError as error:
            return None, str(error)
        if try_lock(file) and is_at(file, path):
            return file, ""
        os.close(file)
        return None, f"another process holds {path} and does not let go"

    def _try(self, name: str) -> Taken | None:
        """Take a name if it is free."""
        try:
            file = self._open(name)
        except NoLockFileError:
            return None
        files = [file]
        try:
            if try_lock(file) and is_at(file, self._path_of(name)):
                with contextlib.suppress(OSError):  # a system without such names
                    guard = hold_name(self._kernel_name(name))
                    if guard is None:
                        os.close(file)
                        return None
                    files.append(guard)
                return Taken(name, tuple(files))
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        return None

    def _open(self, name: str) -> int:
        """Open a lock's file, for writing if possible, making it only if it is not there.

        Linux refuses ``O_CREAT`` on a file of another user in a folder such as /tmp
        (fs.protected_regular), even if the file exists and anyone may write it.
        """
        path = self._path_of(name)
        for _ in range(_MAX_TRIES):
            try:
                file = open_file(path)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    return make_file(path, _FILE_MODE)
            else:
                allow(file, _FILE_MODE)
                return file
        raise NoLockFileError(f"{path} vanishes again and again")

    def _path_of(self, name: str) -> Path:
        if not re.fullmatch(r"[\w.-]+", name):
            raise ValueError(f"{name!r} is not a valid lock name")
        return self.path / f"{name}.lock"

    def _kernel_name(self, name: str) -> str:
        """The kernel's name for a name; they are short, and shared by all that runs."""
        whole = f"{os.path.realpath(self.path)}/{name}"
        return f"ngsgpu-{hashlib.sha256(whole.encode()).hexdigest()[:32]}"

    def _make(self) -> None:
        """Make the folder, writable by all from the moment it has its name."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(dir=self.path.parent, prefix=f".{self.path.name}-"))
            new.chmod(0o1777)
            try:
                new.rename(self.path)
            except OSError:  # someone else was first
                new.rmdir()
        # A link in /tmp may point anywhere.
        if not stat.S_ISDIR(self.path.lstat().st_mode):
            raise FolderUnusableError(f"{self.path} is not a directory")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FolderUnusableError(str(error)) from error


def _inheritable(taken: list[Taken]) -> list[Taken]:
    """Let children have the files."""
    for one in taken:
        for file in one.files:
            os.set_inheritable(file, True)
    return taken
