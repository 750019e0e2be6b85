"""How the outputs of a run get their names: all of them, or none.

They are renamed in the order in which they were opened, statistics last. A signal waits until all
have their names; a failure brings back what was replaced; a process that is killed leaves a
journal, by which the next run finishes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ngsgpu.ending import defer_signals
from ngsgpu.errors import output_error
from ngsgpu.io.mapped import check_mapped
from ngsgpu.io.output.places import is_at, is_temporary_of, remove, take_place, try_lock


class Output(Protocol):
    """A file or folder that is complete but for its name."""

    @property
    def replaces_at_once(self) -> bool:
        """Whether ``rename`` is a single step."""

    def close(self) -> None:
        """Have everything written."""

    def renaming(self) -> Renaming | None:
        """The rename that is to come; None for a stream."""

    def pledge(self) -> None:
        """Leave it where it is if the process ends: a journal has it."""

    def keep_old(self) -> None:
        """Prepare for ``restore``."""

    def rename(self) -> None:
        """Give it its name."""

    def restore(self) -> None:
        """Undo ``rename``, if it happened. Does not fail."""

    def discard(self) -> None:
        """Remove what lies under a temporary name. Does not fail."""


def commit_all(outputs: Sequence[Output]) -> None:
    """Give all outputs their names, or none.

    Args:
        outputs: in the order in which they are renamed.

    Raises:
        InputError: a file that is mapped, and was read for them, was cut or changed meanwhile.
        OutputError: one cannot be closed or renamed; then all targets are unchanged, except on
            file systems without hard links, where those already replaced stay replaced.
    """
    check_mapped()
    for output in outputs:
        output.close()
    renamings = [own for output in outputs if (own := output.renaming()) is not None]
    if len(renamings) < 2 and all(output.replaces_at_once for output in outputs):
        for output in outputs:  # one alone is renamed, or is not
            output.rename()
    else:
        with defer_signals():
            _rename_all(outputs, renamings)
    for output in outputs:
        output.discard()


def _rename_all(outputs: Sequence[Output], renamings: Sequence[Renaming]) -> None:
    journal: Journal | None = None
    try:
        for output in outputs:
            output.keep_old()
        try:
            journal = Journal(renamings)
        except OSError as error:
            raise output_error(renamings[0].target, error) from error
        for output in outputs:
            output.pledge()
        for output in outputs:
            output.rename()
    except BaseException:
        if journal is not None:
            journal.remove()  # what it has decided is withdrawn first
        for output in outputs:
            output.restore()
        raise
    journal.remove()


_BEGINNING: Final = ".ngsgpu-"
_ENDING: Final = ".commit"
_LARGEST: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Renaming:
    """A complete output that gets its name.

    Attributes:
        temporary: its name so far, in the directory of the target.
        target: its name.
    """

    temporary: Path
    target: Path


class Journal:
    """The journal of several renames, from its making until ``remove``.

    Args:
        renamings: of all outputs, in the order in which they take place.

    Raises:
        OSError: it cannot be written; then nothing of it is left.
    """

    def __init__(self, renamings: Sequence[Renaming]) -> None:
        folders = list(dict.fromkeys(own.target.parent for own in renamings))
        token = secrets.token_hex(8)
        self._paths = [folder / f"{_BEGINNING}{token}{_ENDING}" for folder in folders]
        self._locks: list[int] = []
        try:
            # The one that decides comes last.
            for path in reversed(self._paths):
                self._locks.append(_locked_file(path))
                os.write(self._locks[-1], _text(renamings, path, self._paths[0]))
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove it, first the one that decides. Does not fail."""
        for path in self._paths:
            remove(path)
        for lock in self._locks:
            os.close(lock)
        self._locks.clear()


def _locked_file(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        lock = os.open(path, flags, 0o600)
        # Until it was locked, another process may have taken it for one that was left.
        if try_lock(lock) is not False and is_at(lock, path):
            return lock
        os.close(lock)


def _text(renamings: Sequence[Renaming], path: Path, decides: Path) -> bytes:
    def named(own: Path) -> str:
        return os.path.relpath(own, path.parent)

    rows = [
        {
            "temporary": named(own.temporary),
            "target": named(own.target),
            "new": _identity(own.temporary),
            "old": _identity(own.target),
        }
        for own in renamings
    ]
    return json.dumps({"decided_by": named(decides), "renamings": rows}).encode()


def _identity(path: Path) -> list[int] | None:
    try:
        info = path.lstat()
    except OSError:
        return None
    return [info.st_dev, info.st_ino, info.st_mtime_ns]


def finish_commits(folder: Path) -> set[Path]:
    """Finish the renames of runs that were killed, by their journals in a directory. Never fails.

    Returns:
        Temporary files that another process is about to rename: not stale.
    """
    try:
        names = [
            entry.name
            for entry in os.scandir(folder)
            if entry.name.startswith(_BEGINNING) and entry.name.endswith(_ENDING)
        ]
    except OSError:
        return set()
    pending: set[Path] = set()
    for name in names:
        with contextlib.suppress(OSError):
            pending |= _finish(folder / name)
    return pending


def _finish(path: Path) -> set[Path]:
    """Finish the renames of a journal unless its process lives; the files it still needs."""
    with _opened(path) as journal:
        if journal is None:
            return set()
        content = _content(path, journal)
        needed = set() if content is None else {own.temporary for own, _ in content[1]}
        if not try_lock(journal):
            return needed
        if not is_at(journal, path):
            return set()
        if content is None:  # it was not decided
            remove(path)
            return set()
        decides, renamings = content
        if decides == path:
            for renaming, row in renamings:
                with contextlib.suppress(OSError):
                    _rename(renaming, row)
        elif os.path.lexists(decides) and (needed := _finish(decides)):
            return needed
        remove(path)
        return set()


def _rename(own: Renaming, row: dict[str, Any]) -> None:
    if _identity(own.temporary) != row["new"]:
        return  # it has its name
    if _identity(own.target) not in (None, row["old"]):
        return  # somebody wrote another one since
    if own.temporary.is_dir():
        take_place(own.temporary, own.target)
    else:
        own.temporary.replace(own.target)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """A journal of this user; None where there is none, or something else."""
    try:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        journal = os.open(path, flags)
    except OSError:
        yield None
        return
    try:
        info = os.fstat(journal)
        is_own = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1
        yield journal if is_own and info.st_size <= _LARGEST else None
    finally:
        os.close(journal)


def _content(path: Path, journal: int) -> tuple[Path, list[tuple[Renaming, dict[str, Any]]]] | None:
    """The journal that decides, and the renames with what is known of each; None if damaged."""

    def place(text: str) -> Path:
        return Path(os.path.normpath(path.parent / text))

    try:
        values = json.loads(os.pread(journal, _LARGEST, 0))
        rows = [
            (Renaming(place(row["temporary"]), place(row["target"])), row)
            for row in values["renamings"]
        ]
        decides = place(values["decided_by"])
        are_known = all({"new", "old"} <= row.keys() for _, row in rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        return None
    are_ours = all(
        own.temporary.parent == own.target.parent
        and is_temporary_of(own.temporary.name, own.target)
        for own, _ in rows
    )
    is_journal = decides.name.startswith(_BEGINNING) and decides.name.endswith(_ENDING)
    return (decides, rows) if are_known and are_ours and is_journal else None
