"""Names that processes of one host take for themselves, several at once or none.

A name is taken by ``flock`` on a file of a folder that all users share. The kernel lets go of it
when the last process that inherited the open file has ended, however it ended, so nothing stale
is ever left. Names are taken and queues are read under one further lock, the gate, which is held
for moments only.

Who has to wait leaves a ticket, itself a locked file. What is free is set apart for those who
came earlier, so that who wants many is not passed by a stream of those who want one.

The folder must be on a file system of the host: NFS may not pass locks on to other hosts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_FIRST_PAUSE, _LAST_PAUSE = 0.05, 0.5
# A waiting process that was stopped (Ctrl-Z) loses its turn, not its place.
_TICKET_LIFE = 30.0
_GATE_PATIENCE = 5.0


class FolderUnusableError(Exception):
    """Locks cannot be had in a folder; the message says why."""


@dataclass(frozen=True)
class Taken:
    """A name that is held until ``file`` is closed here and in all children.

    Attributes:
        name: what was asked for.
        file: descriptor of the locked file.
    """

    name: str
    file: int


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
        on_wait: Callable[[], None] = lambda: None,
    ) -> list[Taken] | None:
        """Take ``count`` of ``names``, the first that are free, all or none.

        Args:
            names: what can be taken; of letters, digits, dots, ``-`` and ``_``.
            count: how many are wanted, at most ``len(names)``.
            wait: seconds to wait for them; None waits for ever.
            holder: written into the files, for ``holders``.
            on_wait: called once before waiting.

        Returns:
            What was taken; None when the time was up.

        Raises:
            FolderUnusableError: there are no locks to be had in the folder.
        """
        end = None if wait is None else time.monotonic() + wait
        with self._errors(), contextlib.ExitStack() as stack:
            self._make()
            ticket: _Ticket | None = None
            pause = _FIRST_PAUSE
            while True:
                # Even who does not want to wait gets past the gate, unless someone blocks it.
                patience = None if end is None else max(end - time.monotonic(), _GATE_PATIENCE)
                with self._gate(patience) as entered:
                    if entered and (taken := self._take_free(names, count, holder, ticket)):
                        stack.close()  # the ticket, before others count on it
                        return taken
                    now = time.monotonic()
                    if end is not None and now >= end:
                        return None
                    comes = ticket is None and entered
                    if comes:
                        ticket = stack.enter_context(self._ticket(names, count))
                if comes:
                    on_wait()
                if ticket is not None:
                    os.utime(ticket.file)
                time.sleep(pause if end is None else min(pause, max(0.0, end - now)))
                pause = min(_LAST_PAUSE, pause * 1.5)

    def holders(self, names: Sequence[str]) -> dict[str, dict[str, object]]:
        """Who holds which of some names; free ones are left out.

        Returns:
            What the holders wrote, by name; an empty dictionary for one that wrote nothing.

        Raises:
            FolderUnusableError: there are no locks to be had in the folder.
        """
        found: dict[str, dict[str, object]] = {}
        if not self.path.is_dir():
            return found
        with self._errors(), self._gate(_GATE_PATIENCE):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    file = os.open(self._path_of(name), os.O_RDONLY | os.O_NOFOLLOW)
                    try:
                        if not _lock(file):
                            found[name] = _read_json(file)
                    finally:
                        os.close(file)
        return found

    def release(self, taken: Sequence[Taken]) -> None:
        """Let go of names; children that inherited the files keep them until they end."""
        for one in taken:
            # Unlocking would take it from the children, too: only close.
            os.close(one.file)

    def forget(self, prefix: str) -> None:
        """Remove the files of names that nobody will ask for again."""
        with contextlib.suppress(OSError):
            for path in self.path.glob(f"{prefix}*.lock"):
                path.unlink(missing_ok=True)

    def _take_free(
        self,
        names: Sequence[str],
        count: int,
        holder: dict[str, object],
        ticket: _Ticket | None,
    ) -> list[Taken] | None:
        free: list[Taken] = []
        try:
            for name in names:
                if (file := self._try(name)) is not None:
                    free.append(Taken(name, file))
        except BaseException:
            self.release(free)
            raise
        apart = self._set_apart({one.name for one in free}, ticket) if free else set()
        kept = [one for one in free if one.name not in apart][:count]
        if len(kept) < count:
            kept = []
        self.release([one for one in free if one not in kept])
        for one in kept:
            os.set_inheritable(one.file, True)
            # A file of another user may be open for reading only; it is locked all the same.
            with contextlib.suppress(OSError):
                os.ftruncate(one.file, 0)
                os.pwrite(one.file, json.dumps(holder).encode(), 0)
        return kept or None

    def _set_apart(self, free: set[str], own: _Ticket | None) -> set[str]:
        """What of the free names goes to those who came before."""
        apart: set[str] = set()
        for path in sorted(self.path.glob("waiting-*.ticket")):
            if own is not None and path.name >= own.path.name:
                break
            wanted = _live_ticket(path)
            if wanted is None:
                continue
            names, count = wanted
            apart.update([name for name in names if name in free - apart][:count])
        return apart

    @contextlib.contextmanager
    def _ticket(self, names: Sequence[str], count: int) -> Iterator[_Ticket]:
        """Stand in the queue; call it inside of the gate."""
        last = max((path.name for path in self.path.glob("waiting-*.ticket")), default="")
        number = 1 + int((re.search(r"\d+", last) or [0])[0])
        path = self.path / f"waiting-{number:012d}.ticket"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(path, flags, 0o644)
        try:
            _lock(file)
            os.write(file, json.dumps({"names": list(names), "count": count}).encode())
            yield _Ticket(path, file)
        finally:
            path.unlink(missing_ok=True)
            os.close(file)

    @contextlib.contextmanager
    def _gate(self, patience: float | None) -> Iterator[bool]:
        """Be alone in the folder; False when others did not let us in for ``patience`` seconds."""
        end = None if patience is None else time.monotonic() + patience
        file = self._open("gate")
        try:
            entered = _lock(file)
            while not entered and (end is None or time.monotonic() < end):
                time.sleep(0.01)
                entered = _lock(file)
            yield entered
        finally:
            os.close(file)

    def _try(self, name: str) -> int | None:
        file = self._open(name)
        if _lock(file):
            return file
        os.close(file)
        return None

    def _open(self, name: str) -> int:
        """Open a lock's file, for writing if possible, making it only if it is not there.

        Linux refuses ``O_CREAT`` on a file of another user in a folder such as /tmp
        (fs.protected_regular), even if the file exists and anyone may write it.
        """
        path = self._path_of(name)
        for _ in range(100):
            try:
                return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            except PermissionError:
                return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, 0o666)
                    os.fchmod(file, 0o666)  # whatever the umask is
                    return file
        raise FolderUnusableError(f"{path} vanishes again and again")

    def _path_of(self, name: str) -> Path:
        if not re.fullmatch(r"[\w.-]+", name):
            raise ValueError(f"{name!r} cannot be the name of a lock")
        return self.path / f"{name}.lock"

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
        # A link that someone laid in /tmp may lead anywhere.
        if not stat.S_ISDIR(self.path.lstat().st_mode):
            raise FolderUnusableError(f"{self.path} is not a folder")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FolderUnusableError(str(error)) from error


@dataclass(frozen=True)
class _Ticket:
    path: Path
    file: int


def _lock(file: int) -> bool:
    """Try to lock an open file; false when another has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _live_ticket(path: Path) -> tuple[list[str], int] | None:
    """What a waiting process wants; None when it is no longer there or was stopped."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if _lock(file):  # nobody holds it: killed while waiting
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        if time.time() - os.fstat(file).st_mtime > _TICKET_LIFE:
            return None
        content = _read_json(file)
        names, count = content.get("names"), content.get("count")
        if isinstance(names, list) and isinstance(count, int):
            return [str(name) for name in names], count
        return None
    finally:
        os.close(file)


def _read_json(file: int) -> dict[str, object]:
    try:
        content = json.loads(os.pread(file, 1 << 16, 0))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
