"""Temporary files and folders beside their targets, locked while they are in use.

Each is named ``.NAME.ngsgpu-TOKEN.tmp`` and locked (flock) by the process that fills it. A lock
ends with its process, however that ends, so whatever bears such a name and is not locked is stale:
the next process that writes the same target removes it. Process numbers would not do: they are
used again, and differ between containers and machines that share a folder.

Names are noted before anything is made, and what is still noted when the process ends is removed,
so an exception between two lines (a signal) leaves nothing behind either.

What must never be lost, such as the old version of a target, has no place under such a name.
"""

from __future__ import annotations

import atexit
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

_in_use: dict[Path, int] = {}
"""Temporary files and folders of this process (of the process with this number: forks)."""


def temporary_name(target: Path) -> Path:
    """A new name for a temporary file or folder beside a target."""
    return target.with_name(f"{_beginning(target)}{secrets.token_hex(4)}{_ENDING}")


def temporary_file(target: Path) -> tuple[Path, int]:
    """Make a locked temporary file beside a target, after removing stale ones.

    Returns:
        Its path, and a file descriptor for reading and writing, which holds the lock. Call
        ``forget`` once the file has got its own name, or ``remove_temporary``.

    Raises:
        OSError: it cannot be made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return _made(target, lambda path: os.open(path, flags, 0o666))


def second_name(target: Path) -> Path | None:
    """A hard link to a file beside it, of a temporary name; None where there can be none."""
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
    """Make a locked temporary folder beside a target, after removing stale ones.

    It is removed in the end, unless it has been renamed by then. File systems that cannot lock
    folders (NFS) get an unlocked one, which is never taken for stale, nor removed as such.

    Raises:
        OSError: it cannot be made.
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
    """Remove temporary files and folders of a target that nobody has locked. Does not fail."""
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
    """Remove a file or folder that can be locked, because whoever made it is gone.

    It stays where that cannot be told: on file systems without locks, or without permission. Does
    not fail.
    """
    try:
        kind = path.lstat().st_mode
        if stat.S_ISDIR(kind):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        elif stat.S_ISREG(kind):
            # NFS locks only what is open for writing.
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            return
    except OSError:
        return
    try:
        # Removed under the lock, or it could be one that has just been made.
        if _locked(lock):
            _remove(path)
    finally:
        os.close(lock)


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is what stands under a name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _locked(descriptor: int) -> bool | None:
    """Lock a file; False if somebody else has, None if there are no locks here."""
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
