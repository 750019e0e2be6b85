"""Manifests: JSON that says what a folder of ours holds, with a checksum of itself.

``read_manifest`` is the one function that reads them, and checks format, version, checksum and the
type of every field, so that whoever uses the values needs no checks of types.

The shape of a value is given by

- ``bool`` or another type, of which it is;
- a function that says whether it is one (``is_count``, ``is_text``, ``is_name``, ``is_number``);
- ``[shape]``: a list;
- ``{str: shape}``: an object with any names;
- ``{"name": shape, "other?": shape}``: an object with these names and no others; one with a
  question mark may be missing;
- ``(shape, None)``: either, or null.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from isal import isal_zlib

from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.mapped import open_regular
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.commit import commit_all

_Opened = TypeVar("_Opened")

MANIFEST: Final = "manifest.json"
REMEDY: Final = "build the database again, or copy it again from where it is whole"
_LARGEST: Final = 1 << 62
_MOST_BYTES: Final = 1 << 30


def is_count(value: object) -> bool:
    """Whether a value is a whole number from 0 to 2^62."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return is_count(value) or (isinstance(value, float) and math.isfinite(value))


def is_fraction(value: object) -> bool:
    """Whether a value is a number above 0 and up to 1."""
    return is_number(value) and 0 < float(str(value)) <= 1


def is_text(value: object) -> bool:
    """Whether a value is a text that can be printed, or names a file."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def is_name(value: object) -> bool:
    """Whether a value is the name of a file, without a folder."""
    return is_text(value) and value not in ("", ".", "..") and "/" not in str(value)


FILES: Final = {str: {"bytes": is_count, "crc32": is_count}}
"""Shape of the sizes and checksums of files."""

_HEAD: Final = {"format": str, "version": is_count, "crc32": is_count}


def has_shape(value: object, shape: Any) -> bool:
    """Whether a value has a shape; see the module."""
    if isinstance(shape, tuple):
        return any(value is None if one is None else has_shape(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(one, shape[0]) for one in value)
    if isinstance(shape, type):
        return type(value) is shape
    if not isinstance(shape, dict):
        return bool(shape(value))
    if not isinstance(value, dict):
        return False
    if str in shape:
        return all(has_shape(one, shape[str]) for one in value.values())
    known = {name.rstrip("?"): (name, one) for name, one in shape.items()}
    needed = {name for name, (written, _) in known.items() if not written.endswith("?")}
    return needed <= value.keys() <= known.keys() and all(
        has_shape(one, known[name][1]) for name, one in value.items()
    )


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_manifest(
    path: Path,
    what: str,
    version: int,
    shape: Mapping[str, Any],
    command: str = "ngsgpu db build",
    *,
    oldest: int | None = None,
) -> dict[str, Any]:
    """Read a manifest.

    Args:
        path: its file.
        what: it is of.
        version: the newest that is read.
        shape: of its fields, but for format, version and checksum.
        command: that builds one.
        oldest: the oldest version that is read; None: ``version`` alone.

    Raises:
        InputError: it is missing, damaged, of something else, or of a version that is not read.
    """
    try:
        text = _text_of(path)
        values = parse_json(text)
    except FileNotFoundError as error:
        raise InputError(
            path, f"there is no {what} here", f"check the path, or build it with `{command}`"
        ) from error
    except OSError as error:
        cause = f"the manifest cannot be read ({os.strerror(error.errno or 0)})"
        raise InputError(path, cause, REMEDY) from error
    except ValueError as error:
        raise InputError(path, "the manifest is damaged", REMEDY) from error
    if not isinstance(values, dict) or values.get("format") != what:
        raise InputError(path, f"is not the manifest of a {what}", "check the path")
    found = values.get("version")
    known = range(version if oldest is None else oldest, version + 1)
    if is_count(found) and found not in known:
        raise InputError(
            path,
            f"is of version {found} and this program reads version {version}",
            f"build it again with `{command}`",
        )
    if not _is_sealed(text, values):
        raise InputError(path, "the manifest was changed or damaged", REMEDY)
    if not has_shape(values, {**_HEAD, **shape}):
        raise InputError(path, "the manifest is damaged: a field is missing or wrong", REMEDY)
    return values


def opened_whole(paths: Sequence[str | Path], open_it: Callable[[], _Opened]) -> _Opened:
    """What files hold together; if they are replaced while they are opened, it begins again.

    Args:
        paths: the files, or folders with a manifest.
        open_it: opens them.

    Raises:
        InputError: of ``open_it``, for files that stayed as they are.
    """
    while True:
        before = [_identity(Path(path)) for path in paths]
        try:
            opened = open_it()
        except InputError:
            if [_identity(Path(path)) for path in paths] == before:
                raise
        else:
            if [_identity(Path(path)) for path in paths] == before:
                return opened


def _identity(path: Path) -> tuple[int, ...]:
    """Values that differ after a file or folder is replaced; empty where there is none."""
    try:
        own = path.stat()
        if stat.S_ISDIR(own.st_mode):
            return own.st_ino, *_identity(path / MANIFEST)
    except (OSError, ValueError):
        return ()
    return own.st_ino, own.st_mtime_ns, own.st_size


@contextmanager
def fields_of(path: Path) -> Iterator[None]:
    """Refuse a manifest whose values make no sense in the block.

    Raises:
        InputError: it is damaged.
    """
    try:
        yield
    except (UsageError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(path, f"the manifest is damaged ({error})", REMEDY) from error


def save_manifest(path: Path, values: dict[str, Any], also: Sequence[AtomicFile] = ()) -> None:
    """Write a manifest, including a checksum of itself.

    Args:
        path: of the manifest.
        values: its content.
        also: complete files that get their names together with it.

    Raises:
        OutputError: it cannot be written; an older one is unchanged.
    """
    with AtomicFile(path) as manifest:
        manifest.write(sealed(values).encode())
        commit_all([manifest, *also])


def sealed(values: dict[str, Any]) -> str:
    """The text of a manifest, its own checksum last."""
    own = {name: value for name, value in values.items() if name != "crc32"}
    own["crc32"] = isal_zlib.crc32(json.dumps(own).encode())
    return json.dumps(own, indent=1) + "\n"


def _is_sealed(text: str, values: dict[str, Any]) -> bool:
    try:
        return text == sealed(values)
    except (RecursionError, ValueError):
        return False


def _text_of(path: Path) -> str:
    """The text of a file; a pipe is not waited for."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        return file.read().decode()
