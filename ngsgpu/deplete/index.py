"""The index of a host: its sampled k-mers in a file that is mapped into memory.

The file is a header of 4096 bytes, JSON padded with spaces, and the ``table``. In version
2 the sorted hashes of the k-mers follow, which depletion does not need.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.deplete.params import IndexParameters
from ngsgpu.deplete.parts import Pages
from ngsgpu.deplete.table import GROUP
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.mapped import map_file, open_regular
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.manifest import fields_of, has_shape, is_count, is_text, parse_json
from ngsgpu.io.output.store import array_checksum

FORMAT: Final = "ngsgpu host index"
VERSION: Final = 1
WITH_KMERS: Final = 2
"""The version with hashes."""

HEADER_BYTES: Final = 4096
_NAMES_BYTES: Final = 2048
_BLOCK: Final = 64 << 20
"""Bytes that are written at a time."""
_PARAMETERS: Final = ("kmer", "one_in", "max_repeats")
_SHAPE: Final = {
    "format": str,
    **dict.fromkeys(("version", *_PARAMETERS), is_count),
    **dict.fromkeys(("kmers", "bytes", "sequences", "bases", "crc32", "header_crc32"), is_count),
    "kmers_crc32?": is_count,
    "sources": [is_text],
}
_REMEDY: Final = "build it again with `ngsgpu deplete-index`, or copy it again"
_NO_KMERS: Final = "build it again with `ngsgpu deplete-index --keep-kmers`"
_NO_INDEX: Final = "give an index made by `ngsgpu deplete-index`"


@dataclass(frozen=True, slots=True)
class HostIndex:
    """Sampled k-mers of a host.

    Attributes:
        parameters: which k-mers.
        table: uint32, see ``table``.
        kmers: number of distinct k-mers.
        sequences: number of sequences they are from.
        bases: letters of these.
        sources: names of their files, as far as the header has room.
        has_kmers: whether the file has the hashes of the k-mers.
        hashes: uint64, of the k-mers, ascending; None: they were not kept, or not asked for.
        pages: of these arrays, if they lie in a temporary file.
    """

    parameters: IndexParameters
    table: NDArray[np.uint32]
    kmers: int
    sequences: int
    bases: int
    sources: tuple[str, ...]
    has_kmers: bool = False
    hashes: NDArray[np.uint64] | None = None
    pages: Pages | None = None

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
        with AtomicFile(path) as file:
            self.write(file, threads)
            file.commit()

    def write(self, file: AtomicFile, threads: int) -> None:
        """Write to a file that is open; see ``save``."""
        if not file.takes_offsets:
            raise UsageError(f"{file.path}: an index is mapped into memory; give a regular file")
        version = VERSION if self.hashes is None else WITH_KMERS
        header = {"format": FORMAT, "version": version, **self.describe()}
        names = list(self.sources)
        while len(json.dumps(names)) > _NAMES_BYTES:
            names.pop()
        header["sources"] = names
        file.write(bytes(HEADER_BYTES))
        header["crc32"] = self._write(self.table, file, threads)
        if self.hashes is not None:
            header["kmers_crc32"] = self._write(self.hashes, file, threads)
        file.write_at(_sealed(header), 0)

    def _write(self, array: NDArray[Any], file: AtomicFile, threads: int) -> int:
        """Write an array; its checksum."""
        content, value = array.view(np.uint8), 0
        for begin in range(0, len(content), _BLOCK):
            block = content[begin : begin + _BLOCK]
            value = array_checksum(block, threads, value)
            file.write(block.data)
            if self.pages is not None:
                self.pages.release()
        return value


def open_index(path: str | Path, threads: int = 1, *, with_kmers: bool = False) -> HostIndex:
    """Map an index into memory and check it.

    Args:
        path: its file.
        threads: that check it.
        with_kmers: whether the hashes of its k-mers are needed.

    Raises:
        InputError: it is missing, damaged, or none; or it lacks the hashes.
    """
    try:
        with open_regular(path) as file:
            header = _read_header(path, file)
            if header["kmers"] == 0:
                _refuse(path, "has no k-mers", "build it again of the sequences of the host")
            has_kmers, end = "kmers_crc32" in header, HEADER_BYTES + header["bytes"]
            size = os.fstat(file.fileno()).st_size
            known = end + 8 * header["kmers"] * has_kmers
            if size != known:
                _refuse(path, f"has {size:,} bytes where the index had {known:,}", _REMEDY)
            table = map_file(path, file, np.uint32, (header["bytes"] // 4,), HEADER_BYTES)
            hashes = None
            if with_kmers and has_kmers:
                hashes = map_file(path, file, np.uint64, (header["kmers"],), end)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else error
        _refuse(path, f"cannot be read ({reason})", _NO_INDEX, error)
    if array_checksum(table, threads) != header["crc32"]:
        _refuse(path, "the content has changed (CRC-32)", _REMEDY)
    if with_kmers and hashes is None:
        _refuse(path, "has no list of its k-mers", _NO_KMERS)
    if hashes is not None and array_checksum(hashes, threads) != header["kmers_crc32"]:
        _refuse(path, "the list of k-mers has changed (CRC-32)", _REMEDY)
    with fields_of(Path(path)):
        parameters = IndexParameters(*(header[name] for name in _PARAMETERS))
    return HostIndex(
        parameters,
        table,
        header["kmers"],
        header["sequences"],
        header["bases"],
        tuple(header["sources"]),
        has_kmers,
        hashes,
    )


def _read_header(path: str | Path, file: FileIO) -> dict[str, Any]:
    """The header of an index, checked but for what it says of the table."""
    text = file.read(HEADER_BYTES)
    try:
        header = parse_json(text)
    except ValueError as error:
        _refuse(path, "is not the index of a host", _NO_INDEX, error)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        _refuse(path, "is not the index of a host", _NO_INDEX)
    version = header.get("version")
    if is_count(version) and version not in (VERSION, WITH_KMERS):
        known = f"{VERSION} and {WITH_KMERS}"
        _refuse(path, f"is of version {version} and this program reads {known}", _REMEDY)
    is_sealed = has_shape(header, _SHAPE) and text == _sealed(header)
    if not is_sealed or ("kmers_crc32" in header) != (version == WITH_KMERS):
        _refuse(path, "the header has changed (CRC-32)", _REMEDY)
    if header["bytes"] == 0 or header["bytes"] % (4 * GROUP):
        _refuse(path, "the header is damaged: it has no whole groups", _REMEDY)
    return header


def _refuse(path: str | Path, cause: str, remedy: str, reason: Exception | None = None) -> NoReturn:
    raise InputError(path, cause, remedy) from reason


def _sealed(header: dict[str, Any]) -> bytes:
    """The text of a header, its own checksum last."""
    own = {name: value for name, value in header.items() if name != "header_crc32"}
    own["header_crc32"] = isal_zlib.crc32(json.dumps(own).encode())
    return (json.dumps(own) + "\n").encode().ljust(HEADER_BYTES)


def groups_for(kmers: int) -> int:
    """Groups of a table for a number of k-mers: three fifths of its places are used."""
    return kmers * 5 // (3 * GROUP) + 1
