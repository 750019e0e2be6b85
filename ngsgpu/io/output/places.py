"""Names beside a target, what lies there, and whether a running process still uses it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Final

_MARK: Final = ".ngsgpu-"
_ENDING: Final = ".tmp"
_LONGEST_NAME: Final = 200
_EXCHANGE: Final = 2  # of renameat2(2)
_HERE: Final = -100


def temporary_name(target: Path) -> Path:
    """A new name for a temporary file or directory next to a target."""
    return target.with_name(f"{_beginning(target)}{secrets.token_hex(4)}{_ENDING}")


def is_temporary_of(name: str, target: Path) -> bool:
    """Whether a name is one that ``temporary_name`` gives for a target."""
    return bool(re.fullmatch(f"{re.escape(_beginning(target))}[0-9a-f]+{_ENDING}", name))


def _beginning(target: Path) -> str:
    name = os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])
    return f".{name}{_MARK}"


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one under a name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def try_lock(descriptor: int) -> bool | None:
    """Lock a file; False if another process has locked it, None if locks are unsupported."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


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
            remove(old)
        except BaseException:
            if path.exists():
                remove(old)
            else:
                old.rename(path)
            raise


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it. Does not fail."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    except OSError:
        pass
