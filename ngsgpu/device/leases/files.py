"""The building blocks of locks: files in a world-writable directory, and names in the kernel.

Anything in such a directory may come from another user: a link, a FIFO, a file of gigabytes, or one
locked forever. So files are opened without following links and without blocking, must be regular
and have a single link; at most a few kilobytes are read, and only printable text is shown.

The directory's owner may also remove or rename a file we hold. An abstract socket name is in no
directory, and like a file lock it lasts until the last process that inherited it has ended.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ngsgpu.errors import without_control_characters

_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_MAX_BYTES: Final = 1 << 14
_LONGEST_TEXT: Final = 200
_LARGEST_NUMBER: Final = (1 << 31) - 1

# Errors from opening something that replaced the lock file.
_IN_THE_WAY: Final = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EAGAIN,
                      errno.EACCES, errno.EPERM, errno.ETXTBSY, errno.EOVERFLOW)  # fmt: skip


class NoLockFileError(Exception):
    """The lock's path is not a usable lock file; the message names it and the remedy."""


def open_file(path: Path, access: int = os.O_RDWR) -> int:
    """Open a lock's file; for reading only where no more is allowed.

    Args:
        path: the file.
        access: ``O_RDWR`` or ``O_RDONLY``.

    Raises:
        FileNotFoundError: there is nothing.
        NoLockFileError: there is something else, or this user may not open it.
        OSError: the folder is not for this user.
    """
    try:
        file = os.open(path, access | _FLAGS)
    except OSError as error:
        if access != os.O_RDONLY and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return open_file(path, os.O_RDONLY)
        if error.errno not in _IN_THE_WAY:
            raise
        path.lstat()  # raises where the folder is what cannot be entered
        raise _no_lock_file(path, f"cannot be opened ({error.strerror})") from error
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return file
    os.close(file)
    if not stat.S_ISREG(status.st_mode):
        raise _no_lock_file(path, "is not a file")
    if status.st_nlink == 0:
        raise FileNotFoundError(errno.ENOENT, "removed while it was opened", str(path))
    # It may be a file of ours elsewhere, which must not be written to.
    raise _no_lock_file(path, "is a hard link to another file")


def make_file(path: Path, mode: int) -> int:
    """Create a new file with this mode regardless of the umask.

    Raises:
        FileExistsError: it already exists.
        OSError: the directory does not permit it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, mode)
    allow(file, mode)
    return file


def allow(file: int, mode: int) -> None:
    """Give a file of this user a mode, if it has another: its maker may have been killed."""
    status = os.fstat(file)
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != mode:
        os.fchmod(file, mode)


def try_lock(file: int) -> bool:
    """Try to lock an open file; false when another has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(file: int, path: Path) -> bool:
    """Whether an open file still is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except OSError:
        return False


def read_document(file: int) -> dict[str, object]:
    """The content of a file if it is a short JSON object, otherwise nothing."""
    try:
        content = json.loads(os.pread(file, _MAX_BYTES, 0).decode(errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def readable(document: dict[str, object], keys: Sequence[str]) -> dict[str, object]:
    """The printable parts of a document: short text and process numbers."""
    shown: dict[str, object] = {}
    for key in keys:
        value = document.get(key)
        if isinstance(value, str):
            shown[key] = without_control_characters(value[:_LONGEST_TEXT])[:_LONGEST_TEXT]
        elif type(value) is int and 0 < value <= _LARGEST_NUMBER:
            shown[key] = value
    return shown


def hold_name(name: str) -> int | None:
    """Hold a name on this host (in this network namespace).

    Returns:
        A descriptor that holds it; None when another process does.

    Raises:
        OSError: the system has no such names.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
        try:
            held.bind(f"\0{name}")
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return None
            raise
        return held.detach()


def is_held(name: str) -> bool:
    """Whether any process holds a name."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.connect(f"\0{name}")
    except OSError:
        return False
    return True


def _no_lock_file(path: Path, what: str) -> NoLockFileError:
    return NoLockFileError(f"{path} {what}; its owner or root has to remove it")
