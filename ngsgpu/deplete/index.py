"""The index of a host: its sampled k-mers in a file that is mapped into memory.

The file is a header of 4096 bytes, JSON padded with spaces, and the table of ``kmers``.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.deplete.kmers import GROUP
from ngsgpu.deplete.params import IndexParameters
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.store import joined_checksum
from ngsgpu.pool import map_all

FORMAT: Final = "ngsgpu host index"
VERSION: Final = 1
HEADER_BYTES: Final = 4096
_NAMES_BYTES: Final = 2048
_PIECE: Final = 1 << 24
_REMEDY: Final = "build it again with `ngsgpu deplete-index`, or copy it again"
_NO_INDEX: Final = "give an index made by `ngsgpu deplete-index`"


@dataclass(frozen=True, slots=True)
class HostIndex:
    """Sampled k-mers of a host.

    Attributes:
        parameters: which k-mers.
        table: uint32, the table of ``kmers``.
        kmers: number of distinct k-mers.
        sequences: number of sequences they are from.
        bases: letters of these.
        sources: names of their files, as far as the header has room.
    """

    parameters: IndexParameters
    table: NDArray[np.uint32]
    kmers: int
    sequences: int
    bases: int
    sources: tuple[str, ...]

    def describe(self) -> dict[str, Any]:
        """What it holds, for the statistics."""
        return {
            **asdict(self.parameters),
            "kmers": self.kmers,
            "bytes": self.table.nbytes,
            "sequences": self.sequences,
            "bases": self.bases,
            "sources": list(self.sources),
        }

    def save(self, path: str | Path, threads: int = 1) -> None:
        """Write the file; it appears whole or not at all.

        Args:
            path: where.
            threads: that compute checksums.

        Raises:
            OutputError: it cannot be written.
            UsageError: the path is a stream.
        """
        header = {"format": FORMAT, "version": VERSION, **self.describe()}
        names = list(self.sources)
        while len(json.dumps(names)) > _NAMES_BYTES:
            names.pop()
        header |= {"sources": names, "crc32": _checksum(self.table, threads)}
        with AtomicFile(path) as file:
            if not file.takes_offsets:
                raise UsageError(f"{path}: an index is mapped into memory; give a regular file")
            file.write(_sealed(header))
            file.write(self.table.view(np.uint8).data)
            file.commit()


def open_index(path: str | Path, threads: int = 1) -> HostIndex:
    """Map an index into memory and check it.

    Args:
        path: its file.
        threads: that check it.

    Raises:
        InputError: it is missing, damaged, or none.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(HEADER_BYTES)
        size = Path(path).stat().st_size
    except OSError as error:
        _refuse(path, f"cannot be read ({os.strerror(error.errno or 0)})", _NO_INDEX, error)
    try:
        header = json.loads(text)
        if header["format"] != FORMAT:
            raise ValueError
        version = header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        _refuse(path, "is not the index of a host", _NO_INDEX, error)
    if version != VERSION:
        _refuse(path, f"is of version {version} and this program reads {VERSION}", _REMEDY)
    if text != _sealed(header):
        _refuse(path, "the header has changed (CRC-32)", _REMEDY)
    if size != HEADER_BYTES + header["bytes"]:
        known = HEADER_BYTES + header["bytes"]
        _refuse(path, f"has {size:,} bytes where the index had {known:,}", _REMEDY)
    # "c": like arrays in memory to Numba, which else compiles the kernels once more.
    table = np.asarray(np.memmap(path, dtype=np.uint32, mode="c", offset=HEADER_BYTES))
    if _checksum(table, threads) != header["crc32"]:
        _refuse(path, "the content has changed (CRC-32)", _REMEDY)
    names = ("kmer", "one_in", "max_repeats")
    return HostIndex(
        IndexParameters(**{name: header[name] for name in names}),
        table,
        header["kmers"],
        header["sequences"],
        header["bases"],
        tuple(header["sources"]),
    )


def _refuse(path: str | Path, cause: str, remedy: str, reason: Exception | None = None) -> NoReturn:
    raise InputError(path, cause, remedy) from reason


def _sealed(header: dict[str, Any]) -> bytes:
    """The text of a header, its own checksum last."""
    own = {name: value for name, value in header.items() if name != "header_crc32"}
    own["header_crc32"] = isal_zlib.crc32(json.dumps(own).encode())
    return (json.dumps(own) + "\n").encode().ljust(HEADER_BYTES)


def _checksum(table: NDArray[np.uint32], threads: int) -> int:
    """CRC-32 of a table."""
    flat = table.view(np.uint8)
    pieces = [flat[at : at + _PIECE].data for at in range(0, len(flat), _PIECE)]
    value = 0
    for piece, own in zip(
        pieces, map_all(threads, isal_zlib.crc32, pieces, name="check"), strict=True
    ):
        value = joined_checksum(value, own, len(piece))
    return value


def groups_for(kmers: int) -> int:
    """Groups of a table for so many k-mers: three fifths of its places are used."""
    return kmers * 5 // (3 * GROUP) + 1
