"""Atomic files: complete under their name, or absent.

Everything is written to a temporary file next to the target (see ``temporary``) and renamed at the
end. A killed process leaves only such a file; the next process that writes the same target removes
it.
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
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.outputs import check_declared
from ngsgpu.errors import OutputError, UsageError, output_error, shown_output
from ngsgpu.io.output.commit import Renaming, commit_all
from ngsgpu.io.output.places import is_at
from ngsgpu.io.output.temporary import forget, remove_temporary, second_name, temporary_file
from ngsgpu.io.paths import check_distinct, own_descriptor

__all__ = [
    "AtomicFile",
    "check_distinct",
    "commit_all",
    "output_error",
    "write_text_atomically",
    "write_texts",
]

_TMPFS: Final = 0x01021994  # of statfs(2)

_targets: set[Path] = set()
"""Targets being written by this process."""
_lock = threading.Lock()


class AtomicFile:
    """A file opened for writing that gets its name only when it is committed; a context manager.

    At the end of its block it is gone unless it was committed.

    A symbolic link is followed: its target is replaced, not the link. A replaced file passes on its
    permissions. Streams cannot be renamed and are written directly: ``-`` (standard output),
    descriptors of this process (``/dev/stdout``, ``/dev/fd/N``), and special files (``/dev/null``,
    a named pipe).

    Args:
        path: the target.

    Raises:
        OutputError: the target cannot be written: it is a directory, its directory is missing or
            not writable, or the file is write-protected.
    """

    def __init__(self, path: str | Path) -> None:
        check_declared(path)
        self.path = path
        self._target = Path(os.path.realpath(path))
        self._temporary: Path | None = None
        self._old: Path | None = None
        self._goes_back = False
        self._fd = -1
        try:
            self._fd = self._open()
        except OSError as error:
            raise output_error(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    def _open(self) -> int:
        number = own_descriptor(self.path, standard=1)
        if number is not None:
            return _for_writing(number)
        mode = _mode(self._target)
        if str(self.path).endswith("/") or (mode is not None and stat.S_ISDIR(mode)):
            raise OSError(errno.EISDIR, "")
        if mode is not None and not stat.S_ISREG(mode):
            return os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        if mode is not None and not os.access(self._target, os.W_OK, effective_ids=True):
            remedy = "choose another name or chmod +w it"
            raise OutputError(f"{shown_output(self.path)}: the file is write-protected; {remedy}")
        with _lock:
            if self._target in _targets:
                name = shown_output(self.path)
                raise UsageError(f"{name}: is already being written; name it only once")
            # Never more than the rights of what it replaces: who opens it at once could read on.
            rights = 0o666 if mode is None else 0o666 & mode
            self._temporary, fd = temporary_file(self._target, rights)
            _targets.add(self._target)
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
        """Whether parts can be written in any order: only in regular files."""
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
        """Whether the file is in memory (tmpfs) rather than on a disk."""
        if not self.takes_offsets:
            return False
        info = (ctypes.c_long * 64)()
        return ctypes.CDLL(None).fstatfs(self._fd, info) == 0 and info[0] == _TMPFS

    def pages(self, size: int, offset: int) -> NDArray[np.uint8]:
        """Map part of a file in memory that is to be filled, uint8[size]; for threads as well.

        Its pages are reserved before: filling bytes for which there is no room would end the
        process. Drop the array before the file is committed.

        Raises:
            OutputError: the disk is full.
        """
        # Sooner done than MADV_POPULATE_WRITE, for which whoever maps memory waits, CUDA as well.
        try:
            os.posix_fallocate(self._fd, offset, size)
        except OSError as error:
            raise output_error(self.path, error) from error
        return self.mapped(size, offset)

    def mapped(self, size: int, offset: int = 0) -> NDArray[np.uint8]:
        """Map part of the file for changes in place, uint8[size]; requires ``takes_offsets``.

        The file must already have these bytes. Drop the array before the file is committed.
        """
        first = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        pages = mmap.mmap(self._fd, offset + size - first, offset=first)
        return np.frombuffer(pages, dtype=np.uint8)[offset - first :]

    def cut(self, size: int) -> None:
        """Leave only the first ``size`` bytes.

        Raises:
            OutputError: the file cannot be changed.
        """
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise output_error(self.path, error) from error

    def free_space(self) -> int:
        """Bytes that the file's disk has left for this user."""
        info = os.fstatvfs(self._fd)
        return info.f_bavail * info.f_frsize

    def close(self) -> None:
        """Have everything written; the file is complete but not yet under its name.

        Raises:
            OutputError: the disk is full, or fails otherwise.
        """
        try:
            if self._temporary is not None:
                # Closing any descriptor makes network file systems report failed writes; this one
                # stays open, since it holds the lock that marks the file as in use.
                os.close(os.dup(self._fd))
            else:
                self._close()
        except OSError as error:
            raise output_error(self.path, error) from error

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def commit(self) -> None:
        """Rename the temporary file to the target; closes it first.

        Raises:
            OutputError: the file cannot be closed or renamed.
        """
        commit_all([self])

    def renaming(self) -> Renaming | None:
        """The rename that is to come; None for a stream."""
        return None if self._temporary is None else Renaming(self._temporary, self._target)

    @property
    def replaces_at_once(self) -> bool:
        """Whether the rename is a single step."""
        return True

    def pledge(self) -> None:
        """Leave the temporary file where it is if the process ends: a journal has it."""
        if self._temporary is not None:
            forget(self._temporary)

    def keep_old(self) -> None:
        """Give the file to be replaced a second name, so that ``restore`` can bring it back.

        Skipped on file systems without hard links.
        """
        if self._temporary is None:
            return
        replaces = self._target.exists()
        if replaces:
            self._old = second_name(self._target)
        self._goes_back = self._old is not None or not replaces

    def rename(self) -> None:
        """Rename the temporary file to the target.

        Raises:
            OutputError: it cannot be renamed.
        """
        if self._temporary is None:
            return
        try:
            self._temporary.replace(self._target)
        except OSError as error:
            raise output_error(self.path, error) from error

    def restore(self) -> None:
        """Undo ``rename``, if it happened and ``keep_old`` saw to it. Does not fail."""
        if not self._goes_back or not is_at(self._fd, self._target):
            return
        with contextlib.suppress(OSError):
            if self._old is not None:
                self._old.replace(self._target)
            else:
                self._target.unlink()

    def discard(self) -> None:
        """Remove the temporary file; the target is unchanged. Never fails."""
        with contextlib.suppress(OSError):
            self._close()
        for path in (self._temporary, self._old):
            if path is not None:
                remove_temporary(path)
        if self._temporary is not None:
            with _lock:
                _targets.discard(self._target)
        self._temporary = self._old = None


def _for_writing(number: int) -> int:
    """Duplicate a descriptor; both share one position."""
    if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "")
    return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)


def write_texts(texts: Mapping[str | Path, str | bytes]) -> None:
    """Write small files (text as UTF-8) atomically, all or none.

    Args:
        texts: content by path; ``-`` is standard output.

    Raises:
        OutputError: one cannot be written; existing files are unchanged.
    """
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(AtomicFile(path)) for path in texts]
        for file, text in zip(files, texts.values(), strict=True):
            file.write(text.encode() if isinstance(text, str) else text)
        commit_all(files)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write a small text file (UTF-8) atomically.

    Args:
        path: the file; ``-`` is standard output.
        text: its content.

    Raises:
        OutputError: it cannot be written; an existing file is unchanged.
    """
    write_texts({path: text})


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
