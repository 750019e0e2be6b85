"""Standard input, output and error as they may be: closed, full, or without a reader."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from ngsgpu.errors import output_error

_INSTEAD = ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))


class _Output(io.FileIO):
    """Standard output, whose first failure is an error of ours, or standard error, whose is none.

    After the first failure both are silent: whatever is still in buffers goes nowhere.
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
    """Make the standard streams of this process fit for use.

    A closed one is opened in the direction in which it is of no use, so that writing to standard
    output still fails, and no file gets its number; what goes to standard error is lost.
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
    """Print the line of an error to standard error.

    Names in it may come from anybody's files, so nothing that a terminal would obey is printed.
    """
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in message
    )
    print(f"ngsgpu: error: {shown}", file=sys.stderr)
