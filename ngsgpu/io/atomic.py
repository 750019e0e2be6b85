"""Files that appear under their name whole or not at all.

Everything is written to a temporary file beside the target, ``.NAME.ngsgpu-PID.tmp``, and renamed
at the end. A process that is killed leaves only such a file; the next one that writes the same
target removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import stat
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import OutputError, UsageError

_MARK: Final = ".ngsgpu-"
_ENDING: Final = ".tmp"
_LONGEST_NAME: Final = 200
_TMPFS: Final = 0x01021994  # of statfs(2)

_open_here: set[Path] = set()
_lock = threading.Lock()

_CAUSES: Final = {
    errno.ENOSPC: ("the disk is full", "free some space or write elsewhere"),
    errno.EDQUOT: ("the disk quota is used up", "free some space or write elsewhere"),
    errno.EFBIG: ("the file grew beyond the largest size allowed", "raise the limit (ulimit -f)"),
    errno.EACCES: ("there is no permission to write here", "choose another directory"),
    errno.EPERM: ("there is no permission to write here", "choose another directory"),
    errno.EROFS: ("the file system is read-only", "choose another directory"),
    errno.ENOENT: ("the directory does not exist", "create it with mkdir -p"),
    errno.ENOTDIR: ("a part of the path is not a directory", "check the path"),
    errno.EISDIR: ("this is a directory", "give the name of a file"),
    errno.EPIPE: ("the program that reads the output has ended", "check that program"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
}


def output_error(path: str | Path, error: OSError) -> OutputError:
    """The one-line error for a failed write: path, cause, remedy."""
    unknown = (os.strerror(error.errno) if error.errno else str(error), "check the disk")
    cause, remedy = _CAUSES.get(error.errno or 0, unknown)
    return OutputError(f"{_shown(path)}: {cause}; {remedy}")


class AtomicFile:
    """A file opened for writing that takes its name only when it is committed.

    A symbolic link is followed: its target is replaced, not the link. What is not a regular file
    (``/dev/null``, a named pipe) cannot be renamed and is written directly, as is ``-``, standard
    output. An existing file gives its permissions to the new one.

    Args:
        path: the target.

    Raises:
        OutputError: the target cannot be written: it is a directory, its directory does not exist
            or may not be written, the file is write-protected.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._target = Path(os.path.realpath(path))
        self._temporary: Path | None = None
        if str(path) == "-":
            self._fd = os.dup(1)
            return
        try:
            self._fd = self._open()
        except OSError as error:
            raise output_error(path, error) from error

    def _open(self) -> int:
        mode = _mode(self._target)
        if str(self.path).endswith("/") or (mode is not None and stat.S_ISDIR(mode)):
            raise OSError(errno.EISDIR, "")
        if mode is not None and not stat.S_ISREG(mode):
            return os.open(self._target, os.O_WRONLY | os.O_CLOEXEC)
        if mode is not None and not os.access(self._target, os.W_OK, effective_ids=True):
            remedy = "choose another name or chmod +w it"
            raise OutputError(f"{_shown(self.path)}: the file is write-protected; {remedy}")
        remove_stale(self._target)
        temporary = temporary_path(self._target, os.getpid())
        with _lock:
            if temporary in _open_here:
                raise UsageError(f"{_shown(self.path)}: is being written already; name it once")
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o666)
            _open_here.add(temporary)
        self._temporary = temporary
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if mode is not None:
            with contextlib.suppress(OSError):
                os.fchmod(fd, stat.S_IMODE(mode))
        return fd

    def write(self, data: bytes | memoryview) -> None:
        """Write all of ``data``.

        Raises:
            OutputError: the disk is full, or fails otherwise.
        """
        view = memoryview(data)
        try:
            while len(view) > 0:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise output_error(self.path, error) from error

    @property
    def takes_offsets(self) -> bool:
        """Whether parts may be written in any order: not to what is no regular file."""
        return self._temporary is not None

    def write_at(self, data: bytes | memoryview, offset: int) -> None:
        """Write all of ``data`` at a place in the file; threads may write at the same time.

        Raises:
            OutputError: the disk is full, or fails otherwise.
        """
        view = memoryview(data)
        try:
            while len(view) > 0:
                done = os.pwrite(self._fd, view, offset)
                view = view[done:]
                offset += done
        except OSError as error:
            raise output_error(self.path, error) from error

    @cached_property
    def is_in_memory(self) -> bool:
        """Whether the file lies in memory (tmpfs), not on a disk."""
        if not self.takes_offsets:
            return False
        info = (ctypes.c_long * 64)()
        return ctypes.CDLL(None).fstatfs(self._fd, info) == 0 and info[0] == _TMPFS

    def reserve(self, begin: int, end: int) -> None:
        """Make the file so long, and make sure that there is room for these bytes of it.

        Only for files in memory: what a disk cannot do is emulated by writing.

        Raises:
            OutputError: the disk is full.
        """
        try:
            os.posix_fallocate(self._fd, begin, end - begin)
        except OSError as error:
            raise output_error(self.path, error) from error

    def cut(self, size: int) -> None:
        """Make the file so short.

        Raises:
            OutputError: the disk fails.
        """
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise output_error(self.path, error) from error

    def mapped(self, size: int, offset: int = 0) -> NDArray[np.uint8]:
        """Some of the file's bytes, uint8[size], to be changed in place; where ``takes_offsets``.

        The file must have these bytes already. Let go of the array before the file is committed.
        """
        first = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        pages = mmap.mmap(self._fd, offset + size - first, offset=first)
        return np.frombuffer(pages, dtype=np.uint8)[offset - first :]

    def free_space(self) -> int:
        """Bytes that the file's disk has left for this user."""
        info = os.fstatvfs(self._fd)
        return info.f_bavail * info.f_frsize

    def close(self) -> None:
        """Close the file; its content is complete but not yet under its name.

        Raises:
            OutputError: the disk is full, or fails otherwise.
        """
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            os.close(fd)
        except OSError as error:
            raise output_error(self.path, error) from error

    def commit(self) -> None:
        """Rename the temporary file to the target; closes it first.

        Raises:
            OutputError: the file cannot be closed or renamed.
        """
        self.close()
        if self._temporary is None:
            return
        try:
            self._temporary.replace(self._target)
        except OSError as error:
            raise output_error(self.path, error) from error
        with _lock:
            _open_here.discard(self._temporary)
        self._temporary = None

    def discard(self) -> None:
        """Remove the temporary file; the target stays as it was. Does not fail."""
        with contextlib.suppress(OutputError):
            self.close()
        if self._temporary is None:
            return
        with contextlib.suppress(OSError):
            self._temporary.unlink()
        with _lock:
            _open_here.discard(self._temporary)
        self._temporary = None


def temporary_path(target: Path, pid: int) -> Path:
    """Name of the temporary file that a process writes beside a target."""
    return target.with_name(f".{target.name[:_LONGEST_NAME]}{_MARK}{pid}{_ENDING}")


def remove_stale(target: Path) -> None:
    """Remove temporary files of the target whose processes are gone.

    On a file system shared by several machines a process of another machine seems dead here, so
    the file must also be free of the lock that its writer holds.
    """
    beginning = f".{target.name[:_LONGEST_NAME]}{_MARK}"
    try:
        names = [entry.name for entry in os.scandir(target.parent)]
    except OSError:
        return
    for name in names:
        pid = name[len(beginning) : -len(_ENDING)]
        if name.startswith(beginning) and name.endswith(_ENDING) and pid.isdecimal():
            with contextlib.suppress(OSError):
                _remove_if_stale(target.with_name(name), int(pid))


def _remove_if_stale(temporary: Path, pid: int) -> None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        fd = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()
        finally:
            os.close(fd)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write a small text file (UTF-8) so that it is there whole or not at all.

    Args:
        path: the file; ``-`` is standard output.
        text: its content.

    Raises:
        OutputError: it cannot be written; an existing file stays as it was.
    """
    file = AtomicFile(path)
    try:
        file.write(text.encode())
        file.commit()
    except BaseException:
        file.discard()
        raise


def check_distinct(inputs: Sequence[str | Path], outputs: Sequence[str | Path] = ()) -> None:
    """Check that no file is named twice among the inputs and outputs of a run.

    Links count as the files that they lead to. ``/dev/null`` and other special files may be named
    as often as one likes; ``-`` once as an input and once as an output.

    Raises:
        UsageError: a file is named twice; says in which roles.
    """
    seen: dict[object, tuple[str, str]] = {}
    roles = [("input", path) for path in inputs] + [("output", path) for path in outputs]
    for role, path in roles:
        key = _identity(path, role)
        if key is None:
            continue
        if key in seen:
            earlier_role, earlier = seen[key]
            what = f"{role} twice" if role == earlier_role else f"{earlier_role} and {role}"
            also = f" (also as {earlier})" if earlier != str(path) else ""
            raise UsageError(f"{_shown(path)}: is named as {what}{also}; give different files")
        seen[key] = (role, str(path))


def _identity(path: str | Path, role: str) -> object | None:
    """Something that is equal for two names of the same file; None if it need not differ."""
    if str(path) == "-":
        return ("-", role)
    try:
        info = Path(path).stat()
    except OSError:
        return os.path.realpath(path)
    if not stat.S_ISREG(info.st_mode):
        return None
    return (info.st_dev, info.st_ino)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _shown(path: str | Path) -> str:
    return "standard output" if str(path) == "-" else str(path)
