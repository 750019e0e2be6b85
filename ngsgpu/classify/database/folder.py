"""The directory of a database: where it may be created, who may change it, and how it changes.

A database can be written to a new path, into an empty directory, or in place of another database.
Nothing that ``ngsgpu`` did not write is ever removed or replaced: a directory with other contents
is refused. New parts get new names (their generation), the manifest is replaced last, and only then
are the old parts removed, so that readers find the old or the new version. A reader locks the
manifest that it reads. While one is locked, it keeps a second, hidden name, and its parts stay; the
next change after its last reader has gone removes them.

Changes wait for each other on the file ``.lock`` in the directory, which exists only during a
change. The locks are the kernel's and end with the process.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Final

from ngsgpu.ending import cleaned_up
from ngsgpu.errors import InputError
from ngsgpu.io.mapped import open_regular
from ngsgpu.io.output.atomic import AtomicFile, output_error
from ngsgpu.io.output.commit import commit_all, finish_commits
from ngsgpu.io.output.folder import AtomicFolder
from ngsgpu.io.output.manifest import MANIFEST, parse_json
from ngsgpu.io.output.places import is_at
from ngsgpu.io.output.temporary import forget, remove_if_stale, remove_temporary, second_name
from ngsgpu.io.paths import check_apart

logger = logging.getLogger("ngsgpu")

FORMAT: Final = "ngsgpu classification database"
LOCK: Final = ".lock"

_PART: Final = re.compile(r"(?:targets|taxonomy|partition-\d{4,})-(\d{4,})")
_TEMPORARY: Final = re.compile(r"\..+\.ngsgpu-[0-9a-f]+\.tmp")
_ARRAYS: Final = (
    "directory", "entries", "locations", "blocks",
    "name_bytes", "name_start", "length", "node", "partition", "file",
    "taxid", "parent", "rank", "merged_taxid", "merged_index",
)  # fmt: skip
_FILES: Final = frozenset((MANIFEST, *(f"{name}.npy" for name in _ARRAYS)))
_OLD_MANIFESTS: Final = f".{MANIFEST}.ngsgpu-*.tmp"
_PATIENCE: Final = 200
"""How often a reader tries to hold a version, 10 ms apart."""

_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def check_place(path: str | Path, inputs: Sequence[str | Path] = ()) -> None:
    """Refuse a directory where no database may be created.

    Args:
        path: the directory.
        inputs: the inputs of the database; must not be in the directory, nor be it.

    Raises:
        InputError: the directory contains anything other than a database, an input, or the current
            directory; or it is a file.
        UsageError: it lies in a database.
    """
    check_apart([path])
    check_inputs(path, inputs)
    place = Path(os.path.realpath(path))
    if place in Path.cwd().parents:
        raise InputError(
            path,
            "the current directory is inside this directory",
            "choose another directory with `database`",
        )
    if not place.exists():
        return
    if not place.is_dir():
        raise InputError(path, "is a file, but a database is a directory", "choose another name")
    with _errors_of(place):
        foreign = _foreign_entry(place)
    if foreign is not None:
        raise InputError(
            path,
            f"holds {foreign}, which is not part of a database",
            "give a new or empty directory, or a database",
        )


def check_inputs(path: str | Path, inputs: Sequence[str | Path]) -> None:
    """Refuse inputs that are, or are in, the directory of a database; raises InputError."""
    place = Path(os.path.realpath(path))
    for name in inputs:
        there = Path(os.path.realpath(name))
        if there == place or place in there.parents:
            where = "is this very folder" if there == place else "lies in this folder"
            raise InputError(
                path, f"the input {name} {where}", "choose another directory with `database`"
            )


def _foreign_entry(place: Path) -> str | None:
    """Something in a folder that does not belong to a database; None if all does."""
    has_arrays = False
    with os.scandir(place) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if _PART.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            if (inside := _foreign_file(Path(entry))) is not None:
                return f"{entry.name}/{inside}"
            has_arrays = has_arrays or any(Path(entry).iterdir())
        elif not _TEMPORARY.fullmatch(entry.name) and not (
            entry.name in (MANIFEST, LOCK) and entry.is_file(follow_symlinks=False)
        ):
            return entry.name
    values = _manifest(place)
    is_damaged = values is None and has_arrays
    if (place / MANIFEST).exists() and not is_damaged and (values or {}).get("format") != FORMAT:
        return MANIFEST
    return None


def _foreign_file(folder: Path) -> str | None:
    """Something in a part of a database that does not belong there."""
    with os.scandir(folder) as entries:
        for entry in entries:
            is_file = entry.is_file(follow_symlinks=False)
            if not (is_file and (entry.name in _FILES or _TEMPORARY.fullmatch(entry.name))):
                return entry.name
    return None


def _manifest(place: Path) -> dict[str, Any] | None:
    """The manifest as far as it can be read, damaged or not."""
    return _values_of(place / MANIFEST)


def _values_of(manifest: Path) -> dict[str, Any] | None:
    try:
        with open_regular(manifest) as file:
            values = parse_json(file.read())
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


@contextmanager
def database_folder(
    path: Path, inputs: Sequence[str | Path], also: Sequence[AtomicFile] = ()
) -> Iterator[tuple[Path, int]]:
    """A directory to write a database to, renamed to its final name on success.

    Args:
        path: the final name.
        inputs: see ``check_place``.
        also: files that get their names together with a new directory, if it is one; they are
            complete at the end of the block.

    Yields:
        The directory to write to, and the generation of the parts. Write the manifest last.

    Raises:
        InputError: see ``check_place``.
        OutputError: it cannot be written; an older database is unchanged.
    """
    check_place(path, inputs)
    place = Path(os.path.realpath(path))
    if place.exists():
        with changed(place) as generation:
            check_place(path, inputs)  # once more: it may have changed while we waited
            yield place, generation
        return
    with _errors_of(path), AtomicFolder(path, replaces=False) as folder:
        yield folder.place, 1
        commit_all([folder, *also])


@contextmanager
def changed(path: Path) -> Iterator[int]:
    """Change a database exclusively; yields the generation of new parts.

    The parts of the generation take effect when the manifest is replaced. Parts no longer used are
    then removed; if the manifest is not replaced, the new parts are.

    Raises:
        OutputError: the directory cannot be written.
    """
    with locked(path):
        if not (path / MANIFEST).exists():
            _remove_parts(path, lambda _: True)  # of a database that was never finished
        generation = 1 + max(map(_generation, _parts(path)), default=0)
        old: list[Path] = []

        def remove_unused() -> None:
            named = _named_parts(_manifest(path))
            if not any(_generation(name) == generation for name in named):
                for name in old:
                    remove_temporary(name)
                _remove_parts(path, lambda name: _generation(name) == generation)
                return
            for name in old:
                remove_if_stale(name)
                forget(name)
            _remove_left(path)
            for name in path.glob(_OLD_MANIFESTS):
                named |= _named_parts(_values_of(name))
            _remove_parts(path, lambda name: name not in named)

        with cleaned_up(remove_unused):
            if (name := second_name(path / MANIFEST)) is not None:
                old.append(name)
            yield generation


def _parts(path: Path) -> list[str]:
    """Names of the parts of a database, of all generations."""
    with os.scandir(path) as entries:
        return [
            entry.name
            for entry in entries
            if _PART.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]


def _generation(name: str) -> int:
    return int(name.rsplit("-", 1)[1])


def _named_parts(values: dict[str, Any] | None) -> set[str]:
    """Names of the parts that a manifest names; none if it cannot be read."""
    try:
        parts = [values["targets"], values["taxonomy"], *values["partitions"]] if values else []
        named = {part["folder"] for part in parts if part is not None}
    except (KeyError, TypeError):
        return set()
    return {name for name in named if isinstance(name, str) and _PART.fullmatch(name)}


def _remove_parts(path: Path, is_unused: Callable[[str], bool]) -> None:
    """Remove parts of a database, and what runs that were killed left of them."""
    for name in filter(is_unused, _parts(path)):
        folder = path / name
        if _foreign_file(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
    _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove what runs that were killed left, and old manifests that nobody holds any more."""
    for left in path.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(left.name):
            remove_if_stale(left)


class HeldVersion:
    """A lock on a version of a database, until it is closed or dropped.

    Args:
        file: descriptor of its manifest.
    """

    def __init__(self, file: int) -> None:
        self.close: Final = weakref.finalize(self, os.close, file)
        """Lets go of the version, once."""


def hold_version(path: Path) -> HeldVersion | None:
    """Keep the parts of the present version of a database until the result is closed.

    Its manifest is locked, together with other readers. None where there is no manifest, or no
    locks: there a reader whose files vanish while it opens them begins again.
    """
    manifest = path / MANIFEST
    for _ in range(_PATIENCE):
        try:
            with open_regular(manifest) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                # It may have been replaced, and its parts removed, before it was locked.
                if is_at(file.fileno(), manifest):
                    return HeldVersion(os.dup(file.fileno()))
        except BlockingIOError:
            time.sleep(0.01)  # it has just been written, and is not ready
        except (OSError, ValueError):
            return None
    return None


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a database, or wait for it, with a message.

    Args:
        path: the database.
        shared: together with others that hold it shared: builders of single partitions.

    Raises:
        OutputError: the folder cannot be written.
    """
    lock = path / LOCK
    held: list[FileIO] = []

    def release() -> None:
        for file in held:
            file.close()
        remove_if_stale(lock)  # by the last one that held it

    with cleaned_up(release):
        with _errors_of(path):
            held.append(FileIO(_lock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)))
        finish_commits(path)  # a manifest that a killed run had decided on comes first
        yield


def _lock(lock: Path, kind: int) -> int:
    while True:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.warning("%s: waiting for another run to finish changing it", lock.parent)
                fcntl.flock(file, kind)
            # If the previous holder has removed the file, the lock is a different one by now.
            if is_at(file, lock):
                return file
        except OSError as error:
            if error.errno in _NO_LOCKS:
                logger.warning(
                    "%s: no locks on this file system: avoid concurrent changes", lock.parent
                )
                return file
            os.close(file)
            raise
        except BaseException:
            os.close(file)
            raise
        os.close(file)


@contextmanager
def atomic_directory(
    path: Path, also: Callable[[], Sequence[AtomicFile]] = tuple
) -> Iterator[Path]:
    """Fill a part of a database next to its final place; an older one is removed on success.

    Args:
        path: the final place.
        also: completes files that get their names together with the part.

    Raises:
        InputError: the existing directory has foreign contents.
        OutputError: it cannot be written.
    """
    if path.is_dir() and (foreign := _foreign_file(path)) is not None:
        raise InputError(path, f"holds {foreign}, which is not part of a database", "move it away")
    with _errors_of(path), AtomicFolder(path) as part:
        yield part.place
        commit_all([part, *also()])


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise output_error(path, error) from error
