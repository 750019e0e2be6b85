"""Outputs that are folders with a manifest: they appear whole, and replace only their like."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.errors import InputError, UsageError, output_error
from ngsgpu.io.output.temporary import take_place, temporary_folder

MANIFEST: Final = "manifest.json"


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
    if not foreign and manifest.exists() and kind.mark.encode() not in manifest.read_bytes():
        foreign = [MANIFEST]
    if foreign:
        raise InputError(
            path, f"holds {foreign[0]}, which is not part of {kind.noun}", "move it away"
        )
