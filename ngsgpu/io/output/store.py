"""Verified array files: the size and CRC-32 of each file are stored in a manifest.

Their directories appear atomically (``folder``).
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import accumulate
from operator import xor
from pathlib import Path
from typing import Any, Final

import numpy as np
from isal import isal_zlib
from numpy.typing import DTypeLike, NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.mapped import map_file, open_regular
from ngsgpu.io.output.atomic import output_error
from ngsgpu.io.output.manifest import REMEDY
from ngsgpu.io.output.temporary import rights
from ngsgpu.pool import map_all

_CHUNK: Final = 1 << 24
_CHANGED: Final = "the content has changed (CRC-32)"

FileList = dict[str, dict[str, int]]


def array_header(dtype: DTypeLike, shape: tuple[int, ...]) -> bytes:
    """The header of a ``.npy`` file, as NumPy writes it."""
    header = io.BytesIO()
    description = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_1_0(
        header, {"descr": description, "fortran_order": False, "shape": shape}
    )
    return header.getvalue()


class ArrayFile:
    """A ``.npy`` file that is written in pieces, by several threads, in any order.

    Args:
        folder: where it is made.
        name: of the array.
        dtype: of its elements.
        shape: of the array.

    Raises:
        OutputError: the file cannot be written.
    """

    def __init__(self, folder: Path, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        self._path = folder / f"{name}.npy"
        self._dtype = np.dtype(dtype)
        header = array_header(dtype, shape)
        self._start = len(header)
        self._size = self._start + math.prod(shape) * self._dtype.itemsize
        self._sums: dict[int, tuple[int, int]] = {}
        with self._errors():
            how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            self._file = os.open(self._path, how, rights(self._path))
        self.put(-self._start, np.frombuffer(header, dtype=np.uint8))

    def put(self, at: int, data: NDArray[Any]) -> None:
        """Write bytes.

        Args:
            at: place of the first one in the array.
            data: contiguous array.

        Raises:
            OutputError: they cannot be written.
        """
        if data.size == 0:
            return
        view = data.reshape(-1).view(np.uint8).data
        place = self._start + at
        self._sums[place] = len(view), isal_zlib.crc32(view)
        done = 0
        with self._errors():
            while done < len(view):
                done += os.pwrite(self._file, view[done:], place + done)

    def reshape(self, shape: tuple[int, ...]) -> None:
        """Change the shape, where the size is known in the end only.

        Raises:
            OutputError: the header cannot be written.
        """
        header = array_header(self._dtype, shape)
        assert len(header) == self._start
        self._size = self._start + math.prod(shape) * self._dtype.itemsize
        self.put(-self._start, np.frombuffer(header, dtype=np.uint8))

    def close(self) -> dict[str, int]:
        """Close the file, which must be whole, and give its size and CRC-32.

        Raises:
            OutputError: the last bytes cannot be written.
        """
        with self._errors():
            os.close(self._file)
        places = sorted(self._sums)
        sizes, sums = zip(*(self._sums[place] for place in places), strict=True)
        assert places == list(accumulate(sizes, initial=0))[:-1]
        assert sum(sizes) == self._size
        return {"bytes": self._size, "crc32": joined_checksum(sums, sizes)}

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise output_error(self._path, error) from error


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]], threads: int = 1) -> FileList:
    """Write each array to a file of its name.

    Args:
        folder: where.
        arrays: by their names.
        threads: how many files are written at a time.

    Returns:
        Size and CRC-32 of the files, for the manifest.

    Raises:
        OutputError: a file cannot be written.
    """

    def save(name: str) -> dict[str, int]:
        array = np.ascontiguousarray(arrays[name])
        file = ArrayFile(folder, name, array.dtype, array.shape)
        flat = array.reshape(-1).view(np.uint8)
        for at in range(0, len(flat), _CHUNK):
            file.put(at, flat[at : at + _CHUNK])
        return file.close()

    names = sorted(arrays)
    saved = map_all(max(1, threads), save, names, name="save")
    return {f"{name}.npy": own for name, own in zip(names, saved, strict=True)}


def joined_checksum(sums: Sequence[int], sizes: Sequence[int]) -> int:
    """CRC-32 of concatenated strings.

    Args:
        sums: of each string.
        sizes: their bytes.
    """
    behind = list(accumulate(reversed(sizes), initial=0))[-2::-1]
    if len(sums) <= _FEW:
        return reduce(xor, map(_shifted, sums, behind), 0)
    own = _shifted(np.array(sums, dtype=np.uint64), np.array(behind, dtype=np.uint64))
    return int(np.bitwise_xor.reduce(own))


_FEW: Final = 4
"""Strings for which arrays take longer than numbers."""

_POLYNOMIAL: Final = 0xEDB88320
_ONE: Final = 0x80000000


def _times(a: Any, b: Any) -> Any:
    """Product of two polynomials modulo that of CRC-32; the highest bit is the coefficient of 1.

    Args:
        a: a number, or uint64 ones.
        b: likewise.
    """
    product = 0
    for _ in range(32):
        product = product ^ a * (b >> 31)
        b = b << 1 & 0xFFFFFFFF
        a = a >> 1 ^ _POLYNOMIAL * (a & 1)
    return product


def _shifted(own: Any, behind: Any) -> Any:
    """What checksums of strings add to those of longer ones that have bytes behind them.

    Args:
        own: the checksum, or uint64 ones.
        behind: bytes.
    """
    bits, power = 8 * behind, _ONE >> 1
    while np.any(bits):
        own = _times(own, _ONE ^ (_ONE ^ power) * (bits & 1))
        bits, power = bits >> 1, _times(power, power)
    return own


def array_checksum(array: NDArray[Any], threads: int = 1, before: int = 0) -> int:
    """CRC-32 of the bytes of an array, behind those of which ``before`` is the checksum.

    Args:
        array: any contiguous array.
        threads: number of threads.
        before: checksum of preceding bytes.
    """
    flat = array.reshape(-1).view(np.uint8)
    pieces = [flat[at : at + _CHUNK].data for at in range(0, len(flat), _CHUNK)]
    sums = map_all(threads, isal_zlib.crc32, pieces, name="check")
    return joined_checksum([before, *sums], [0, *map(len, pieces)])


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            value = isal_zlib.crc32(chunk, value)
    return value


def size_of(files: FileList) -> int:
    """Bytes of all files of a list."""
    return sum(own["bytes"] for own in files.values())


def check_sizes(folder: Path, files: Mapping[str, Mapping[str, int]]) -> None:
    """Refuse a directory with a missing file or one whose size differs from the manifest.

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
    """The files of a directory whose content has changed, each with the reason."""
    damaged = []
    for name, known in files.items():
        path = folder / name
        try:
            check_sizes(folder, {name: known})
            if checksum(path) != known["crc32"]:
                damaged.append(f"{path}: {_CHANGED}")
        except InputError as error:
            damaged.append(f"{path}: {error.cause}")
        except (OSError, ValueError) as error:
            reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else error
            damaged.append(f"{path}: cannot be read ({reason})")
    return damaged


def check_content(
    folder: Path,
    files: Mapping[str, Mapping[str, int]],
    arrays: Mapping[str, NDArray[Any]],
    threads: int = 1,
) -> None:
    """Compare arrays from ``open_array`` with the checksums of their files.

    Args:
        folder: directory of the files.
        files: their checksums.
        arrays: by name.
        threads: reading threads.

    Raises:
        InputError: names the first file whose content has changed.
    """
    for name, array in arrays.items():
        head = isal_zlib.crc32(array_header(array.dtype, array.shape))
        value = array_checksum(array, threads, head)
        if value != files[f"{name}.npy"]["crc32"]:
            raise InputError(folder / f"{name}.npy", _CHANGED, REMEDY)


def open_array(
    folder: Path, name: str, dtype: DTypeLike, columns: int | None = None
) -> NDArray[Any]:
    """Map an array written by ``save_arrays``; changes stay in memory.

    The header must match the size of the file exactly.

    Args:
        folder: its directory.
        name: of the array.
        dtype: of its elements.
        columns: columns of a two-dimensional array; None: one-dimensional.

    Raises:
        InputError: the file is missing or damaged.
    """
    path = folder / f"{name}.npy"
    width = () if columns is None else (columns,)
    start = len(array_header(dtype, (0, *width)))
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            rows, odd = divmod(size - start, math.prod(width) * np.dtype(dtype).itemsize)
            shape = (rows, *width)
            if rows < 0 or odd or file.read(start) != array_header(dtype, shape):
                raise InputError(path, "has unexpected contents", REMEDY)
            return map_file(path, file, dtype, shape, start)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else error
        raise InputError(
            path, f"a part of the database cannot be read ({reason})", REMEDY
        ) from error


def starts_are_valid(starts: NDArray[np.int64], size: int) -> bool:
    """Whether places where strings begin, and the last ends, ascend from 0 to ``size``."""
    return (
        len(starts) > 0
        and int(starts[0]) == 0
        and int(starts[-1]) == size
        and bool((starts[1:] >= starts[:-1]).all())
    )
