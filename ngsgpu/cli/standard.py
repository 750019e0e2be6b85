"""Standard streams that may be closed, full or without a reader."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from ngsgpu.errors import output_error, without_control_characters

_INSTEAD = ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))


class _Output(io.FileIO):
    """Standard output, which raises an `NgsgpuError` on its first failure, or standard error.

    Failures of standard error are ignored. After the first failure both discard all data.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self._failed = False

    def write(self, data: Any, /) -> int:
        if not self._failed:
            try:
                return super().write(data)
            except OSError as error:
                self._failed = True
                if self.fileno() == 1:
                    if isinstance(error, BrokenPipeError):
                        raise
                    raise output_error("-", error) from error
        return memoryview(data).nbytes


def prepare() -> None:
    """Replace closed or unusable standard streams of this process.

    A closed stream is reopened on the null device in the opposite direction, so that writing to
    standard output still fails and no other file gets its descriptor. Standard error is lost.
    """
    for number, flags in _INSTEAD:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    sys.stdout = _stream(1, sys.stdout)
    sys.stderr = _stream(2, sys.stderr)


def _stream(number: int, before: TextIO | None) -> TextIO:
    raw = _Output(number)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="backslashreplace" if number == 2 else getattr(before, "errors", None),
        line_buffering=number == 2 or raw.isatty(),
    )


def say_error(message: str) -> None:
    """Print an error as one line to standard error.

    Control characters are escaped, since names in the message may come from untrusted files.
    """
    print(f"ngsgpu: error: {without_control_characters(message)}", file=sys.stderr)
