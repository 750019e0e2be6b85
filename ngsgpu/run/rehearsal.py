"""A rehearsal of a run: all that it does before it reads, such as checks, and nothing else.

A chain rehearses all of its steps before the first one runs. Whoever is about to read the first
record calls `end_rehearsal`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ngsgpu.io.paths import is_stream

if TYPE_CHECKING:
    # Commands ask for a rehearsal before CUDA starts, and NumPy is imported meanwhile.
    from ngsgpu.io.output.folder import FolderKind

_is_rehearsal = False


class _Rehearsed(Exception):  # noqa: N818
    """All is well so far."""


@contextmanager
def rehearsal() -> Iterator[None]:
    """Within the block, runs end before they read, and say nothing."""
    global _is_rehearsal
    before = logging.root.manager.disable
    _is_rehearsal = True
    logging.disable(logging.CRITICAL)
    try:
        yield
    except _Rehearsed:
        pass
    finally:
        logging.disable(before)
        _is_rehearsal = False


def is_rehearsal() -> bool:
    """Whether runs end before they read."""
    return _is_rehearsal


def end_rehearsal(
    outputs: Iterable[str | Path], folder: tuple[str | Path, FolderKind] | None = None
) -> None:
    """In a rehearsal, check that the outputs of a run can be written, and end it.

    Args:
        outputs: files.
        folder: a further output.

    Raises:
        OutputError: one cannot be written.
    """
    if _is_rehearsal:
        check_outputs(outputs, folder)
        raise _Rehearsed


def check_outputs(
    outputs: Iterable[str | Path], folder: tuple[str | Path, FolderKind] | None = None
) -> None:
    """Check that files can be written, but for streams, whose readers would see them end.

    Args:
        outputs: files.
        folder: a further output.

    Raises:
        OutputError: one cannot be written.
    """
    from ngsgpu.io.output.writer import OutputSet

    files = [path for path in outputs if Path(path).is_dir() or not is_stream(path)]
    with suppress(_Rehearsed), OutputSet(files, packs=False, folder=folder):
        raise _Rehearsed  # so that nothing gets its name
