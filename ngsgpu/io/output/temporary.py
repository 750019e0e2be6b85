"""Temporary files and directories next to their targets, locked while in use.

Each is named ``.NAME.ngsgpu-TOKEN.tmp`` and locked (flock) by the process that fills it. A lock
ends with its process, so an unlocked file with such a name is stale: the next process that writes
the same target removes it. Process numbers would not work: they are reused, and differ between
containers and machines that share a directory.

Names are recorded before anything is created, and whatever is still recorded when the process ends
is removed, so an exception between two lines (a signal) leaves nothing behind either.

Anything that must never be lost, such as the old version of a target, must not have such a name.

Folders of data that are only needed for a while, and all that is in them, are for the user alone,
whatever the mask: others may enter the folders that they lie in. What becomes an output has the
rights of one from its beginning.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ngsgpu.declared.outputs import declare_output
from ngsgpu.ending import before_ending
from ngsgpu.io.output.commit import finish_commits
from ngsgpu.io.output.places import is_at, is_temporary_of, remove, temporary_name, try_lock

_TRIES: Final = 100

_in_use: dict[Path, int] = {}
"""Temporary files and folders of this process (of the process with this number: forks)."""

_private: set[Path] = set()
"""Folders of this process that only its user can enter, without links."""

_made_folders: dict[Path, int] = {}
"""Likewise the folders made for them that have nothing else in them so far."""


def temporary_file(target: Path, mode: int = 0o666) -> tuple[Path, int]:
    """Create a locked temporary file next to a target, after removing stale ones.

    Args:
        target: the target.
        mode: rights, less those that the mask takes; in a private folder the user's alone.

    Returns:
        Its path, and a file descriptor for reading and writing, which holds the lock. Call
        ``forget`` once the file has its final name, or ``remove_temporary``.

    Raises:
        OSError: it cannot be created.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    own = mode & rights(target)
    return _made(target, lambda path: os.open(path, flags, own))


def rights(path: Path) -> int:
    """Mode of a new file, before the mask."""
    is_private = bool(_private) and not _private.isdisjoint(path.resolve().parents)
    return 0o600 if is_private else 0o666


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Opener (see ``open``) of a file that only the user can read."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


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
    """Create a locked, private directory next to a target, after removing stale ones.

    It is removed in the end. On file systems that cannot lock directories (NFS) it is unlocked, and
    never considered stale.

    Raises:
        OSError: it cannot be created.
    """
    path, lock = open_folder(target, None)
    try:
        yield path
    finally:
        close_folder(path, lock)


def open_folder(target: Path, mode: int | None) -> tuple[Path, int]:
    """Begin a ``temporary_folder``, or one that becomes an output.

    Args:
        target: the target.
        mode: rights, less those that the mask takes; None: the folder is private.

    Returns:
        Its path, and the descriptor with its lock.

    Raises:
        OSError: it cannot be created.
    """

    def make(path: Path) -> int:
        path.mkdir(0o700 if mode is None else mode)
        if mode is None:
            keep_private(path)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    try:
        for parent in reversed([own for own in target.parents if not own.exists()]):
            _made_folders[parent] = os.getpid()
            parent.mkdir(exist_ok=True)
        path, lock = _made(target, make)
    except BaseException:
        _remove_made_folders(target.parents)
        raise
    declare_output(path)
    return path, lock


def close_folder(path: Path, lock: int) -> None:
    """End a ``temporary_folder``: remove it, unless it has another name. Does not fail."""
    remove_temporary(path)
    _private.discard(path.resolve())
    _remove_made_folders(path.parents)
    os.close(lock)


def _remove_made_folders(folders: Iterable[Path]) -> None:
    """Remove those of the folders, from the lowest up, that were made here and are empty."""
    for folder in folders:
        if _made_folders.get(folder) == os.getpid():
            with contextlib.suppress(OSError):  # there is something in it
                folder.rmdir()
                del _made_folders[folder]


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
        if try_lock(lock) is not False and is_at(lock, path):
            return path, lock
        os.close(lock)
        remove_temporary(path)
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))


def keep_private(folder: Path) -> None:
    """Have files in a folder, and in those below it, be for the user alone."""
    _private.add(folder.resolve())


def forget(path: Path) -> None:
    """Note that a temporary file or folder has got another name, or is gone."""
    _in_use.pop(path, None)


def remove_temporary(path: Path) -> None:
    """Remove a temporary file or folder with all that is in it. Does not fail."""
    remove(path)
    forget(path)


def remove_all() -> None:
    """Remove all temporary files and folders of this process. Does not fail."""
    for path, process in list(_in_use.items()):
        if process == os.getpid():
            remove_temporary(path)
    _remove_made_folders(reversed(list(_made_folders)))


atexit.register(remove_all)
before_ending(remove_all)


def remove_stale(target: Path) -> None:
    """Finish what killed runs left to be renamed, and remove unlocked temporary files of a target.

    Never fails.
    """
    pending = finish_commits(target.parent)
    try:
        names = [own.name for own in os.scandir(target.parent) if is_temporary_of(own.name, target)]
    except OSError:
        return
    for name in names:
        path = target.with_name(name)
        if path not in _in_use and path not in pending:
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
        if try_lock(lock) and is_at(lock, path):
            remove(path)
    finally:
        os.close(lock)
