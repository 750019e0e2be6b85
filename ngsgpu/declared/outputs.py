"""A command writes no file that none of its parameters declares.

Before a command runs its outputs are declared, from the roles of its parameters; whoever opens an
output asks `check_declared`. A parameter without a role, or a name that a command makes up, thus
ends in an error instead of in a file that was overwritten. Without a command (from Python) all may
be written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PLACEHOLDER: Final = "{sample}"
"""What names of outputs have in place of a sample's name."""

_declared: list[re.Pattern[str]] | None = None


@contextmanager
def only_declared(written: Iterable[str], prefixes: Iterable[str]) -> Iterator[None]:
    """Within the block, only these outputs may be written.

    Args:
        written: files, or folders with all that is in them; ``{sample}`` stands for any text.
        prefixes: how other names begin.
    """
    global _declared
    before, _declared = _declared, []
    try:
        for path in written:
            for name in _names(path):
                own = ".*".join(map(re.escape, name.split(PLACEHOLDER)))
                _declared.append(re.compile(rf"{own}(/.*)?", re.DOTALL))
        for prefix in prefixes:
            declare_output(prefix)
        yield
    finally:
        _declared = before


def declare_output(prefix: str | Path) -> None:
    """Let the running command write a file or folder that it chose, or names that begin so."""
    if _declared is not None:
        for name in _names(prefix):
            _declared.append(re.compile(rf"{re.escape(name)}.*", re.DOTALL))


def check_declared(path: str | Path) -> None:
    """Check an output that is about to be opened.

    Raises:
        RuntimeError: the command that runs has not declared it.
    """
    if _declared is None or str(path) == "-":
        return
    if not any(own.fullmatch(name) for name in _names(path) for own in _declared):
        raise RuntimeError(f"{path}: no parameter of the command declares this output")


def _names(path: str | Path) -> set[str]:
    """A path as it is named, and where its links lead: an output may be opened by either."""
    return {os.path.abspath(path), os.path.realpath(path)}  # noqa: PTH100
