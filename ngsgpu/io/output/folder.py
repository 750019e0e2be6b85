"""Outputs that are folders with a manifest: they appear whole, and replace only their like."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ngsgpu.errors import InputError, UsageError, output_error
from ngsgpu.io.mapped import check_mapped, open_regular
from ngsgpu.io.output.manifest import MANIFEST
from ngsgpu.io.output.temporary import take_place, temporary_folder


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


@contextmanager
def new_folder(path: str | Path, kind: FolderKind) -> Iterator[Path]:
    """A folder beside its final place, which it takes at the end of the block.

    An older one of its kind is replaced; nothing else is.

    Raises:
        InputError: the place has other contents.
        OutputError: it cannot be written.
        UsageError: the path is a stream.
    """
    check_place(path, kind)
    place = Path(os.path.realpath(path))
    try:
        with temporary_folder(place) as folder:
            yield folder
            check_mapped()
            take_place(folder, place)
    except OSError as error:
        raise output_error(path, error) from error


def check_place(path: str | Path, kind: FolderKind) -> None:
    """Refuse to replace anything but a folder of the kind, or an empty one.

    Raises:
        InputError: names what is in the way.
        UsageError: the path is a stream.
    """
    if str(path) == "-":
        raise UsageError(f"{kind.noun} is a folder; name one with -o")
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
