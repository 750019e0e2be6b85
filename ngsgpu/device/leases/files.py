"""What locks are made of: files in a folder where any user may write, and names in the kernel.

Whatever lies in such a folder may be another user's work: a link, a fifo, a file of gigabytes, or
one that is held for ever. So files are opened without following links and without waiting, must be
regular and have no second name, of what is in them a few kilobytes are read, and what is shown of
that is printable.

Who owns the folder may also remove or rename a file that we hold. A name of a socket, of Linux's
abstract kind, lies in no folder, and like a file's lock it lasts until the last process that
inherited it has ended.
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

_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_MAX_BYTES: Final = 1 << 14
_LONGEST_TEXT: Final = 200
_LARGEST_NUMBER: Final = (1 << 31) - 1

# What others may have put in the place of a file, so that opening it fails.
_IN_THE_WAY: Final = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EAGAIN,
                      errno.EACCES, errno.EPERM, errno.ETXTBSY, errno.EOVERFLOW)  # fmt: skip


class NoLockFileError(Exception):
    """What lies in the place of a lock's file is none; the message names it and the remedy."""


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
    """Make a file that is not there yet, with this mode whatever the umask is.

    Raises:
        FileExistsError: it is there.
        OSError: the folder does not take it.
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
    """What a file says, if that is a short JSON object; else nothing."""
    try:
        content = json.loads(os.pread(file, _MAX_BYTES, 0).decode(errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def readable(document: dict[str, object], keys: Sequence[str]) -> dict[str, object]:
    """Of a document, what may be shown: short printable text, and numbers of processes."""
    shown: dict[str, object] = {}
    for key in keys:
        value = document.get(key)
        if isinstance(value, str):
            text = value[:_LONGEST_TEXT]
            shown[key] = "".join(letter if letter.isprintable() else "?" for letter in text)
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
