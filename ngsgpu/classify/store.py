"""Directories of arrays that are checked and appear whole or not at all.

A folder of ``.npy`` files is written beside its place and renamed. For each file its size and
CRC-32 are kept in a manifest, which finds any changed byte.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.atomic import output_error, temporary_path, write_text_atomically

_CHUNK: Final = 1 << 24
REMEDY: Final = "build the database again, or copy it again from where it is whole"

FileList = dict[str, dict[str, int]]


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Fill a folder beside its place; it takes the place of an older one when all went well.

    Raises:
        OutputError: it cannot be written.
    """
    temporary = temporary_path(path, os.getpid())
    replaced = temporary.with_name(temporary.name + ".old")
    try:
        for stale in (temporary, replaced):
            shutil.rmtree(stale, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            path.rename(replaced)
        temporary.rename(path)
    except OSError as error:
        raise output_error(path, error) from error
    finally:
        if replaced.exists() and not path.exists():
            with contextlib.suppress(OSError):
                replaced.rename(path)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write each array to a file of its name.

    Raises:
        OutputError: a file cannot be written.
    """
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        try:
            with path.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        except OSError as error:
            raise output_error(path, error) from error


def list_files(folder: Path) -> FileList:
    """Size and CRC-32 of all files in a folder, for the manifest."""
    return {
        path.name: {"bytes": path.stat().st_size, "crc32": checksum(path)}
        for path in sorted(folder.iterdir())
        if path.name != "manifest.json"
    }


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            value = isal_zlib.crc32(chunk, value)
    return value


def check_sizes(folder: Path, files: Mapping[str, Mapping[str, int]]) -> None:
    """Refuse a folder with a file that is missing or has another size than the manifest says.

    Raises:
        InputError: names the file.
    """
    for name, known in files.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise InputError(
                path, f"a part of the database is missing ({reason})", REMEDY
            ) from error
        if size != known["bytes"]:
            cause = f"has {size:,} bytes where the database had {known['bytes']:,}"
            if size < known["bytes"]:
                cause += ": it was cut short"
            raise InputError(path, cause, REMEDY)


def damaged_files(folder: Path, files: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The files of a folder whose content is not what it was, each with the reason."""
    damaged = []
    for name, known in files.items():
        path = folder / name
        try:
            check_sizes(folder, {name: known})
            if checksum(path) != known["crc32"]:
                damaged.append(f"{path}: the content has changed (CRC-32)")
        except InputError as error:
            damaged.append(f"{path}: {error.cause}")
        except OSError as error:
            damaged.append(f"{path}: cannot be read ({os.strerror(error.errno or 0)})")
    return damaged


def open_array(folder: Path, name: str, dtype: type[np.generic], ndim: int = 1) -> NDArray[Any]:
    """Map an array that ``save_arrays`` wrote; changes of it stay in memory.

    Raises:
        InputError: the file is missing or damaged.
    """
    path = folder / f"{name}.npy"
    try:
        # "c": like arrays in memory to Numba, which else compiles the kernels once more.
        small = path.stat().st_size < 4096
        array = np.load(path, mmap_mode=None if small else "c", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            path, f"a part of the database cannot be read ({error})", REMEDY
        ) from error
    if array.dtype != dtype or array.ndim != ndim:
        raise InputError(path, "does not hold what belongs here", REMEDY)
    if isinstance(array.base, mmap.mmap):
        array.base.madvise(mmap.MADV_WILLNEED)
    return np.asarray(array)


def read_json(path: Path, what: str, version: int) -> dict[str, Any]:
    """Read a manifest.

    Raises:
        InputError: it is missing, damaged, of something else, or of a version that is not read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text)
    except FileNotFoundError as error:
        raise InputError(
            path, f"there is no {what} here", "check the path, or build it with `ngsgpu db build`"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(path, "the manifest is damaged", REMEDY) from error
    if not isinstance(values, dict) or values.get("format") != what:
        raise InputError(path, f"is not the manifest of a {what}", "check the path")
    if values.get("version") != version:
        raise InputError(
            path,
            f"is of version {values.get('version')} and this program reads version {version}",
            "build the database again with `ngsgpu db build`",
        )
    if text != _sealed(values):
        raise InputError(path, "the manifest was changed or damaged", REMEDY)
    return values


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a manifest, with a checksum of itself.

    Raises:
        OutputError: it cannot be written; an older one stays.
    """
    write_text_atomically(path, _sealed(values))


def _sealed(values: dict[str, Any]) -> str:
    """The text of a manifest, its own checksum last."""
    own = {name: value for name, value in values.items() if name != "crc32"}
    own["crc32"] = isal_zlib.crc32(json.dumps(own).encode())
    return json.dumps(own, indent=1) + "\n"
