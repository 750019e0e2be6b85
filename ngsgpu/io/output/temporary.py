"""Temporary files and directories next to their targets, locked while in use.

Each is named ``.NAME.ngsgpu-TOKEN.tmp`` and locked (flock) by the process that fills it. A lock
ends with its process, so an unlocked file with such a name is stale: the next process that writes
the same target removes it. Process numbers would not work: they are reused, and differ between
containers and machines that share a directory.

Names are recorded before anything is created, and whatever is still recorded when the process ends
is removed, so an exception between two lines (a signal) leaves nothing behind either.

Anything that must never be lost, such as the old version of a target, must not have such a name.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ngsgpu.ending import before_ending

_MARK: Final = ".ngsgpu-"
_ENDING: Final = ".tmp"
_LONGEST_NAME: Final = 200
_TRIES: Final = 100
_EXCHANGE: Final = 2  # of renameat2(2)
_HERE: Final = -100

_in_use: dict[Path, int] = {}
"""Temporary files and folders of this process (of the process with this number: forks)."""


def temporary_name(target: Path) -> Path:
    """A new name for a temporary file or directory next to a target."""
    return target.with_name(f"{_beginning(target)}{secrets.token_hex(4)}{_ENDING}")


def temporary_file(target: Path) -> tuple[Path, int]:
    """Create a locked temporary file next to a target, after removing stale ones.

    Returns:
        Its path, and a file descriptor for reading and writing, which holds the lock. Call
        ``forget`` once the file has its final name, or ``remove_temporary``.

    Raises:
        OSError: it cannot be created.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return _made(target, lambda path: os.open(path, flags, 0o666))


def second_name(target: Path) -> Path | None:
    """A temporary hard link to a file, in the same directory; None if that is not possible."""
    path = temporary_name(target)
    _in_use[path] = os.getpid()
    try:
        path.hardlink_to(target)
    except OSError:
        forget(path)
        return None
    return path


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Create a locked temporary directory next to a target, after removing stale ones.

    It is removed in the end, unless it has been renamed by then. On file systems that cannot lock
    directories (NFS) it is unlocked, and never considered stale.

    Raises:
        OSError: it cannot be created.
    """

    def make(path: Path) -> int:
        path.mkdir()
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    target.parent.mkdir(parents=True, exist_ok=True)
    path, lock = _made(target, make)
    try:
        yield path
    finally:
        remove_temporary(path)
        os.close(lock)


def take_place(temporary: Path, path: Path) -> None:
    """Rename a directory; an existing one is exchanged atomically if the system supports it."""
    if not path.exists():
        temporary.rename(path)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = getattr(libc, "renameat2", None)
    names = os.fsencode(temporary), os.fsencode(path)
    if exchange is None or exchange(_HERE, names[0], _HERE, names[1], _EXCHANGE) != 0:
        old = temporary_name(path)
        try:
            path.rename(old)
            temporary.rename(path)
            remove_temporary(old)
        except BaseException:
            if path.exists():
                remove_temporary(old)
            else:
                old.rename(path)
            raise


def _made(target: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    remove_stale(target)
    for _ in range(_TRIES):
        path = temporary_name(target)
        _in_use[path] = os.getpid()
        try:
            lock = make(path)
        except FileExistsError:
            forget(path)
            continue
        except BaseException:
            remove_temporary(path)
            raise
        # Until it was locked, another process may have taken it for stale.
        if _locked(lock) is not False and is_at(lock, path):
            return path, lock
        os.close(lock)
        remove_temporary(path)
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))


def forget(path: Path) -> None:
    """Note that a temporary file or folder has got another name, or is gone."""
    _in_use.pop(path, None)


def remove_temporary(path: Path) -> None:
    """Remove a temporary file or folder with all that is in it. Does not fail."""
    _remove(path)
    forget(path)


def remove_all() -> None:
    """Remove all temporary files and folders of this process. Does not fail."""
    for path, process in list(_in_use.items()):
        if process == os.getpid():
            remove_temporary(path)


atexit.register(remove_all)
before_ending(remove_all)


def remove_stale(target: Path) -> None:
    """Remove unlocked temporary files and directories of a target. Never fails."""
    pattern = re.compile(re.escape(_beginning(target)) + "[0-9a-f]+" + re.escape(_ENDING))
    try:
        names = [entry.name for entry in os.scandir(target.parent) if pattern.fullmatch(entry.name)]
    except OSError:
        return
    for name in names:
        path = target.with_name(name)
        if path not in _in_use:
            remove_if_stale(path)


def remove_if_stale(path: Path) -> None:
    """Remove a file or directory that can be locked, because its owner is gone.

    It is kept if that is uncertain: on file systems without locks, or without permission. Never
    fails.
    """
    try:
        kind = path.lstat().st_mode
        if stat.S_ISDIR(kind):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        elif stat.S_ISREG(kind):
            # NFS only locks files opened for writing.
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            return
    except OSError:
        return
    try:
        # Removed under the lock, or it could be one that has just been made.
        if _locked(lock) and is_at(lock, path):
            _remove(path)
    finally:
        os.close(lock)


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one under a name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _locked(descriptor: int) -> bool | None:
    """Lock a file; False if another process has locked it, None if locks are unsupported."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    except OSError:
        pass


def _beginning(target: Path) -> str:
    name = os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])
    return f".{name}{_MARK}"
