"""Errors that users cause or can mend; each is shown as one line, without a traceback.

Exit statuses: 2 for wrong use or input that cannot be read, 1 for a run that fails on the way
(a full disk, say), 130 when interrupted, 143 when terminated.
"""

from __future__ import annotations

from pathlib import Path


class NgsgpuError(Exception):
    """Something went wrong that a user can understand; the message is one line."""

    exit_status = 1


class UsageError(NgsgpuError):
    """Options that contradict each other or ask for what is not there."""

    exit_status = 2


class OutputError(NgsgpuError):
    """An output could not be written; no part of it was left behind."""


class DeviceError(NgsgpuError):
    """A GPU, its driver or its memory failed the run; the message names what was being done."""


class InputError(NgsgpuError):
    """Input that cannot be used.

    Args:
        path: the file, ``-`` for standard input.
        cause: what is wrong, a clause without a full stop.
        remedy: what the user can do about it, a clause without a full stop.
        record: number of the record in the file, from 1.
        line: number of the line in the file, from 1.
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
        where = ["standard input" if self.path == "-" else self.path]
        if self.record is not None:
            where.append(f"record {self.record:,}")
        if self.line is not None:
            where.append(f"line {self.line:,}")
        return f"{', '.join(where)}: {self.cause}; {self.remedy}"
