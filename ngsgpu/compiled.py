"""Files of compiled kernels, those for GPUs and those for CPUs: of the installation and of a user.

Names contain a hash of everything that the code depends on, so an entry is right wherever it is
found: installations, environments and checkouts share them, and nothing has to be cleared after
an update. An entry appears at once or not at all, and one that was damaged is not read.

Whoever can write such a file runs code as its reader. As ssh does with its keys, a user's folder is
therefore not used while others own it or may write to it. Those of the installation are trusted as
its modules beside them are.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import glob
import hashlib
import logging
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

PREBUILT: Final = Path(__file__).parent / "prebuilt"
"""Kernels that came with the installation, or were put there by ``ngsgpu compile --shared``."""

_DIGEST_BYTES: Final = 32
_UNUSED_SECONDS: Final = 90 * 24 * 3600
_MAY_BE_WRITTEN: Final = stat.S_IWGRP | stat.S_IWOTH
_NOBODY: Final = 65534
"""Who owns what root owns outside a container with separate users (user_namespaces(7))."""

_LOG = logging.getLogger("ngsgpu")


def cache_folder() -> Path | None:
    """Folder of compiled kernels, which may not exist yet.

    ``$NGSGPU_CACHE_DIR``, else ``ngsgpu`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``; None for
    a user without a home.
    """
    if own := os.environ.get("NGSGPU_CACHE_DIR"):
        return Path(own) / "kernels"
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "ngsgpu" / "kernels"
    try:
        home = Path.home()
    except RuntimeError:  # a user without an entry in passwd, as in some containers
        return None
    return home / ".cache" / "ngsgpu" / "kernels"


def has_compiled() -> bool:
    """Whether kernels for CPUs have been compiled; quicker than to count them."""
    folder = cache_folder()
    # A folder that cannot be read counts as empty.
    with contextlib.suppress(OSError):
        return folder is not None and any(True for _ in folder.glob("cpu.ngsgpu.*"))
    return False


def trusted_folder() -> Path | None:
    """``cache_folder``; None, with a warning, if others own it or may write to it."""
    folder = cache_folder()
    return folder if folder is not None and _is_trusted(folder) else None


@functools.cache
def _is_trusted(folder: Path) -> bool:
    problem = distrust(folder)
    if problem:
        _LOG.warning(
            "compiled kernels in %s are not used, and every start recompiles them (up to half a "
            "minute): %s, so others could have this program run theirs; let nobody else write "
            "there (chmod go-w), or set NGSGPU_CACHE_DIR to a directory of yours",
            folder,
            problem,
        )
    return problem is None


def distrust(folder: Path) -> str | None:
    """Why code in a folder may be that of others; None if it is ours or root's.

    The folder must belong to this user or root, and nobody else may write to it or replace it: to
    write to a folder above, unless that is sticky, as /tmp is.
    """
    try:
        whole = folder.resolve()
    except (OSError, RuntimeError) as error:  # symbolic links in a circle
        return f"{folder} cannot be examined ({error})"
    for one in (whole, *whole.parents):
        try:
            state = one.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"{one} cannot be examined ({os.strerror(error.errno or 0)})"
        if not stat.S_ISDIR(state.st_mode):  # nothing can lie there
            continue
        is_above = one != whole
        if not _is_ours(state, or_nobody=is_above):
            return f"{one} belongs to user {state.st_uid}"
        sticky = is_above and bool(state.st_mode & stat.S_ISVTX)
        if _others_write(state) and not sticky:
            return f"{one} may be written to by others (mode {stat.S_IMODE(state.st_mode):04o})"
    return None


def _is_ours(state: os.stat_result, or_nobody: bool = False) -> bool:
    return state.st_uid in (os.geteuid(), 0) or (or_nobody and state.st_uid == _NOBODY)


def _others_write(state: os.stat_result) -> bool:
    """Whether group or others may write; the group of a user alone counts as that user."""
    allowed = state.st_mode & _MAY_BE_WRITTEN
    return bool(allowed) and not (allowed == stat.S_IWGRP and _is_private(state.st_gid))


@functools.cache
def _is_private(group: int) -> bool:
    """Whether a group has one member, this user, as Debian's and Red Hat's users have theirs."""
    import grp
    import pwd

    try:
        user, named = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    alone = set(named.gr_mem) <= {user.pw_name}
    return user.pw_gid == group and named.gr_name == user.pw_name and alone


def read(path: Path) -> bytes | None:
    """An entry's content; None if there is none, or it is damaged or may be that of others."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if not _is_ours(state) or _others_write(state):
                _LOG.debug("others own %s or may write to it", path)
                return None
            content = file.read()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep(path: Path, code: bytes) -> None:
    """Write an entry at once or not at all.

    Raises:
        OSError: there is no place for it.
    """
    _make_folders(path.parent, 0o700)
    _write(path, hashlib.sha256(code).digest() + code, 0o600)


def prebuilt(name: str) -> bytes | None:
    """A kernel of the installation; None if there is none, or it is damaged."""
    try:
        packed = (PREBUILT / f"{name}.xz").read_bytes()
        import lzma
    except (OSError, ImportError):  # none, or a Python made without liblzma
        return None
    try:
        return lzma.decompress(packed)
    except lzma.LZMAError as error:
        _LOG.debug("%s of the installation is damaged: %s", name, error)
        return None


def keep_prebuilt(name: str, code: bytes) -> int:
    """Put a kernel into the installation, for all its users, and return its size there.

    Raises:
        OSError: this user may not.
    """
    import lzma

    packed = lzma.compress(code, preset=6)
    _make_folders(PREBUILT, 0o755)
    _write(PREBUILT / f"{name}.xz", packed, 0o644)
    return len(packed)


def _make_folders(folder: Path, mode: int) -> None:
    """Make a folder and those above it; a mask that lets the group write does not count."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=mode, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def _write(path: Path, content: bytes, mode: int) -> None:
    beginning = f".{path.name}."
    _remove_abandoned(path.parent, beginning)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=beginning, delete=False) as file:
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            with contextlib.suppress(FileNotFoundError):  # removed before it was locked
                Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _remove_abandoned(folder: Path, beginning: str) -> None:
    """Remove what processes that were killed left of an entry: files that nobody has locked."""
    for path in folder.glob(f"{glob.escape(beginning)}*"):
        with contextlib.suppress(OSError), path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def remove_old(folder: Path, beginning: str) -> None:
    """Remove what no version wrote in the last 90 days, of entries whose names begin alike."""
    oldest = time.time() - _UNUSED_SECONDS
    for path in folder.glob(f"{beginning}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
