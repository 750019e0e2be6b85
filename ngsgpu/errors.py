"""Errors that users cause or can fix; each is printed as one line without a traceback.

Exit statuses: 2 for wrong usage or unreadable input, 3 for too little memory, 1 for a run that
fails otherwise (a full disk, for example), 130 when interrupted, 143 when terminated. Pipelines
repeat a job that ended with 3 where there is more memory, and never one that ended with 2. A run
that ended with 4 has written its outputs, and found more in the input than the user allows, or left
nothing of its reads.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

OUT_OF_MEMORY: Final = 3
"""Exit status if the memory of the host or of a GPU, or what is allowed of it, is too small."""

TOO_MANY_FOUND: Final = 4
"""Exit status of a whole run that found more of something than the user allows."""

NOTHING_LEFT: Final = 4
"""Exit status of a whole run that kept none of its reads, all of which it looked at."""


def install_extra(name: str) -> str:
    """How to install an extra: from the clone, since no package index has ngsgpu."""
    return f"pip install '.[{name}]' in the clone of ngsgpu"


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
    errno.EBADF: ("it is closed, or not open for writing", "check the redirections (>, >&-)"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n)"),
}


_STANDARD_OUTPUT: Final = ("-", "/dev/stdout")


def without_control_characters(text: str) -> str:
    """A text from an untrusted source as a terminal may show it."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


class NgsgpuError(Exception):
    """Something went wrong that a user can understand; the message is one line."""

    exit_status = 1

    def reword(self, change: Callable[[str], str]) -> None:
        """Change the message.

        Args:
            change: makes the new text from the old one.
        """
        self.args = (change(str(self)),)


class UsageError(NgsgpuError):
    """Options that are contradictory or cannot be satisfied."""

    exit_status = 2


class HostMemoryError(UsageError):
    """A run takes more of the host's memory than is allowed or free."""

    exit_status = OUT_OF_MEMORY


class OutputError(NgsgpuError):
    """An output could not be written; no part of it was left behind."""


class NoReaderError(OutputError):
    """The program that reads standard output has ended, as ``head`` does; nothing is said."""


def output_error(path: str | Path, error: OSError) -> OutputError:
    """The one-line error for a failed write: path, cause, remedy."""
    unknown = (os.strerror(error.errno) if error.errno else str(error), "check the disk")
    cause, remedy = _CAUSES.get(error.errno or 0, unknown)
    is_quiet = error.errno == errno.EPIPE and str(path) in _STANDARD_OUTPUT
    kind = NoReaderError if is_quiet else OutputError
    return kind(f"{shown_output(path)}: {cause}; {remedy}")


def shown_input(path: str | Path) -> str:
    """An input's name for messages."""
    return "standard input" if str(path) == "-" else str(path)


def shown_output(path: str | Path) -> str:
    """An output's name for messages."""
    return "standard output" if str(path) == "-" else str(path)


class DeviceError(NgsgpuError):
    """A GPU, its driver or its memory failed; the message names the operation."""


class DeviceMemoryError(DeviceError):
    """The memory of a GPU, or pinned host memory, is too small."""

    exit_status = OUT_OF_MEMORY


class UnsuitableError(DeviceError):
    """The GPU kernels do not support this input or these options; the CPU does."""

    exit_status = 2


class InputError(NgsgpuError):
    """Unusable input.

    Args:
        path: the file, ``-`` for standard input.
        cause: what is wrong, a clause without a full stop.
        remedy: what the user can do about it, a clause without a full stop.
        record: record number in the file, from 1.
        line: line number in the file, from 1.
    """

    exit_status = 2

    def __init__(
        self,
        path: str | Path,
        cause: str,
        remedy: str,
        *,
        record: int | None = None,
        line: int | None = None,
    ) -> None:
        self.path = str(path)
        self.cause = cause
        self.remedy = remedy
        self.record = record
        self.line = line
        super().__init__(str(self))

    def __str__(self) -> str:
        where = [shown_input(self.path)]
        if self.record is not None:
            where.append(f"record {self.record:,}")
        if self.line is not None:
            where.append(f"line {self.line:,}")
        return f"{', '.join(where)}: {self.cause}; {self.remedy}"

    def reword(self, change: Callable[[str], str]) -> None:
        """Change the cause and the remedy, not the file's name."""
        self.cause, self.remedy = change(self.cause), change(self.remedy)
        super().reword(str)


def unreadable(path: str | Path, error: OSError) -> InputError:
    """The one-line error for an input that cannot be opened or read."""
    return InputError(path, error.strerror or str(error), "check the path")


_NO_MEMORY: Final = ("cannot allocate memory", "failed to map segment", "can't start new thread")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means out of memory, whichever library or thread raised it."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    text = str(error).lower()
    kinds = ImportError | OSError | RuntimeError
    return isinstance(error, kinds) and any(words in text for words in _NO_MEMORY)
