"""Folders as outputs: they appear whole; those with a manifest replace only their like."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ngsgpu.declared.outputs import check_declared
from ngsgpu.errors import InputError, OutputError, UsageError, output_error
from ngsgpu.io.mapped import open_regular
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.commit import Output, Renaming, commit_all, finish_commits
from ngsgpu.io.output.manifest import MANIFEST
from ngsgpu.io.output.places import is_at, take_place
from ngsgpu.io.output.temporary import close_folder, forget, open_folder
from ngsgpu.io.paths import check_apart


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder.

    Attributes:
        noun: what it is, with its article.
        mark: what is in its manifest and in no other one.
        files: names of the files that it may have.
    """

    noun: str
    mark: str
    files: frozenset[str]


class AtomicFolder:
    """A folder to be filled that gets its name only when it is committed; a context manager.

    As ``AtomicFile``: at the end of its block it is gone unless ``commit_all`` took it.

    Args:
        path: the target; the folders above it are made if they are missing.
        replaces: whether an older folder of its name is replaced; otherwise only an empty one.

    Attributes:
        path: the target as given.
        place: where the files go.

    Raises:
        OutputError: it cannot be made.
    """

    def __init__(self, path: str | Path, *, replaces: bool = True) -> None:
        check_declared(path)
        self.path = path
        self._target = Path(os.path.realpath(path))
        self._may_replace = replaces
        self._replaces = False
        try:
            self.place, self._lock = open_folder(self._target, _rights(self._target))
        except OSError as error:
            raise output_error(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    def close(self) -> None:
        """Nothing: its files were closed one by one."""

    def renaming(self) -> Renaming:
        """The rename that is to come."""
        return Renaming(self.place, self._target)

    @property
    def replaces_at_once(self) -> bool:
        """Whether the rename is a single step: two folders are exchanged by some systems only."""
        return not (self._may_replace and self._target.exists())

    def pledge(self) -> None:
        """Leave the folder where it is if the process ends: a journal has it."""
        forget(self.place)

    def keep_old(self) -> None:
        """Note whether there is an older one, which the rename keeps under the temporary name."""
        self._replaces = self._may_replace and self._target.exists()

    def rename(self) -> None:
        """Give the folder its name.

        Raises:
            OutputError: it cannot be renamed.
        """
        try:
            if self._may_replace:
                take_place(self.place, self._target)
            else:
                self.place.rename(self._target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise OutputError(
                    f"{self.path}: another run wrote here at the same time; run again to replace it"
                ) from error
            raise output_error(self.path, error) from error

    def restore(self) -> None:
        """Undo ``rename``, if it happened. Does not fail."""
        if is_at(self._lock, self._target):
            with suppress(OSError):
                if not self._replaces:
                    self._target.rename(self.place)
                elif self.place.exists():
                    take_place(self.place, self._target)

    def discard(self) -> None:
        """Remove what lies under the temporary name. Never fails."""
        if self._lock >= 0:
            close_folder(self.place, self._lock)
            self._lock = -1


@contextmanager
def new_folder(path: str | Path, kind: FolderKind) -> Iterator[Path]:
    """A folder beside its final place, which it takes at the end of the block.

    An older one of its kind is replaced; nothing else is.

    Args:
        path: its place.
        kind: what it is.

    Raises:
        InputError: the place has other contents.
        OutputError: it cannot be written.
        UsageError: the path is a stream.
    """
    check_place(path, kind)
    try:
        with AtomicFolder(path) as folder:
            yield folder.place
            commit_all([folder])
    except OSError as error:
        raise output_error(path, error) from error


def write_tree(folder: Path, texts: Mapping[str, str]) -> None:
    """Write small files (UTF-8) below a folder, all or none, with the folders that are missing.

    Args:
        folder: made if it is not there, as the folders above and below it.
        texts: content by path in the folder.

    Raises:
        OutputError: one cannot be written; nothing is changed or made then.
    """
    paths = {Path(os.path.realpath(folder)) / name: text for name, text in texts.items()}
    for above in {_lowest_there(path.parent) for path in paths}:
        finish_commits(above)  # or what a killed run had decided on would appear on the way
    tops = {path: _highest_missing(path.parent) for path in paths}
    with ExitStack() as opened:
        outputs: list[Output] = []
        made: dict[Path, AtomicFolder] = {}
        for path, text in paths.items():
            top = tops[path]
            if top is None:
                outputs.append(file := opened.enter_context(AtomicFile(path)))
                file.write(text.encode())
                continue
            if top not in made:
                made[top] = opened.enter_context(AtomicFolder(top))
            inside = made[top].place / path.relative_to(top)
            try:
                inside.parent.mkdir(parents=True, exist_ok=True)
                inside.write_text(text, encoding="utf-8")
            except OSError as error:
                raise output_error(path, error) from error
        commit_all([*outputs, *made.values()])


def _rights(path: Path) -> int:
    """Mode of a new folder: that of the folder which it replaces, if any."""
    try:
        return stat.S_IMODE(path.stat().st_mode) | 0o700
    except OSError:
        return 0o777


def _lowest_there(path: Path) -> Path:
    return next(own for own in (path, *path.parents) if os.path.lexists(own))


def _highest_missing(path: Path) -> Path | None:
    """The first of a folder and those above it, from the root, that is not there; None: all are."""
    missing = [own for own in (path, *path.parents) if not os.path.lexists(own)]
    return missing[-1] if missing else None


def check_place(path: str | Path, kind: FolderKind) -> None:
    """Refuse to replace anything but a folder of the kind, or an empty one.

    Raises:
        InputError: names what is in the way.
        UsageError: the path is a stream, or lies in a database.
    """
    if str(path) == "-":
        raise UsageError(f"{kind.noun} is a folder; name one with `out`")
    check_apart([path])
    place = Path(path)
    if not place.exists():
        return
    if not place.is_dir():
        raise InputError(path, f"is a file, but {kind.noun} is a folder", "choose another name")
    foreign = sorted({entry.name for entry in place.iterdir()} - kind.files - {MANIFEST})
    manifest = place / MANIFEST
    if not foreign and os.path.lexists(manifest) and not _has_mark(manifest, kind.mark):
        foreign = [MANIFEST]
    if foreign:
        raise InputError(
            path, f"holds {foreign[0]}, which is not part of {kind.noun}", "move it away"
        )


def _has_mark(manifest: Path, mark: str) -> bool:
    """Whether a manifest is a file with a mark."""
    try:
        with open_regular(manifest) as file:
            return mark.encode() in file.read()
    except (OSError, ValueError):
        return False
