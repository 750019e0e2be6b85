"""Candidate files: the results of one partition, to be merged with those of the others.

A line of JSON identifies the file; blocks of queries follow, each a set of columns (names, lengths,
candidates) compressed one by one, and at the end a block without queries. Every file contains the
names, so that merging needs nothing else and detects files of different reads. The line and each
block have a CRC-32 over all of their bytes, and nothing follows the last block: no change goes
unnoticed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, get_type_hints

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.classify.query.queries import CandidateArrays, QueryBlock
from ngsgpu.errors import InputError
from ngsgpu.io.compress.deflate import compressed
from ngsgpu.io.output.manifest import parse_json
from ngsgpu.jit import Integer, njit

FORMAT: Final = "ngsgpu candidates"
VERSION: Final = 3
_BLOCK: Final = struct.Struct("<IIB")
_SUM: Final = struct.Struct("<I")
_COLUMN: Final = struct.Struct("<QQ")
_MAX_HITS: Final = (1 << 31) - 1
_LONGEST_HEADER: Final = 1 << 20
_READ_AT_ONCE: Final = 1 << 24
_MAX_COMPRESSED: Final = 1100
"""Maximum expansion of a DEFLATE byte, rounded up."""
_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]
_DAMAGE: Final = (ValueError, IndexError, struct.error, _ISAL_ERROR)
_REMEDY: Final = "run `ngsgpu classify` for this partition again"
_COLUMNS: Final[tuple[tuple[str, Any], ...]] = (
    ("names", np.uint8),
    ("name_length", np.uint32),
    ("length1", np.int32),
    ("length2", np.int32),
    ("features", np.uint32),
    ("count", np.uint8),
    ("target", np.int32),
    ("hits", np.uint32),
    ("window_begin", np.uint32),
    ("windows", np.uint32),
)


@dataclass(frozen=True, slots=True)
class CandidateHeader:
    """The identity of a candidate file.

    Attributes:
        sample: sample name.
        database: digest of the database.
        partition: number of the partition.
        partitions: number of partitions of the database.
        candidates: maximum candidates per query.
        insert_size: as in ``QueryParameters``.
        lowest: as in ``QueryParameters``.
        by_model: as of ``Engine``.
        read_errors: per base, as the qualities of long reads say; 0 if they do not.
    """

    sample: str
    database: str
    partition: int
    partitions: int
    candidates: int
    insert_size: int
    lowest: str
    by_model: bool
    read_errors: float = 0.0

    def line(self) -> bytes:
        """The first line of the file, a checksum of itself last."""
        values = {"format": FORMAT, "version": VERSION, **asdict(self)}
        if not self.read_errors:
            del values["read_errors"]
        values["crc32"] = isal_zlib.crc32(json.dumps(values).encode())
        return json.dumps(values).encode() + b"\n"


@njit(nogil=True, cache=True)
def _copy_names(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    sink: NDArray[np.uint8],
) -> None:
    at = np.int64(0)
    for i in range(start.size):
        for j in range(start[i], end[i]):
            sink[at] = source[j]
            at += 1


@njit(nogil=True, cache=True)
def _spread(count: NDArray[np.uint8], flat: NDArray[np.int32], rows: NDArray[np.int32]) -> Integer:
    """Put values of lists that follow each other into rows."""
    at = np.int64(0)
    for i in range(count.size):
        for j in range(count[i]):
            rows[i, j] = flat[at]
            at += 1
    return at


def own_names(
    data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Concatenate names, and return their lengths.

    Args:
        data: bytes that contain the names.
        start: first byte of each name, int64[n].
        end: byte after the last one of each name, int64[n].
    """
    lengths = (end - start).astype(np.uint32)
    names = np.empty(int(lengths.sum(dtype=np.int64)), dtype=np.uint8)
    _copy_names(data, start, end, names)
    return names, lengths


def compact_block(block: QueryBlock) -> QueryBlock:
    """The block in its own memory, without the file's bytes that contain its names."""
    names, lengths = own_names(block.names, block.name_start, block.name_end)
    ends = np.cumsum(lengths, dtype=np.int64)
    return replace(
        block,
        names=names,
        name_start=ends - lengths,
        name_end=ends,
        length1=block.length1.copy(),
        length2=block.length2.copy(),
        features=block.features.copy(),
        candidates=block.candidates.copy(),
    )


def encode_block(block: QueryBlock) -> bytes:
    """A block of queries in file format."""
    best = block.candidates
    names, lengths = own_names(block.names, block.name_start, block.name_end)
    there = best.target >= 0
    columns: dict[str, NDArray[Any]] = {
        "names": names,
        "name_length": lengths,
        "length1": block.length1,
        "length2": block.length2,
        "features": block.features,
        "count": there.sum(axis=1),
        "target": best.target[there],
        "hits": best.hits[there],
        "window_begin": best.window_begin[there],
        "windows": (best.window_end - best.window_begin)[there],
    }
    parts = []
    for name, dtype in _COLUMNS:
        raw = np.ascontiguousarray(columns[name], dtype=dtype).tobytes()
        packed = compressed(raw, 1)
        parts += [_COLUMN.pack(len(raw), len(packed)), packed]
    return _sealed_block(len(block), b"".join(parts), int(block.paired))


def _sealed_block(count: int, body: bytes, paired: int) -> bytes:
    head = _BLOCK.pack(count, len(body), paired)
    return head + _SUM.pack(isal_zlib.crc32(body, isal_zlib.crc32(head))) + body


END_BLOCK: Final = _sealed_block(0, b"", 0)


def sample_of(path: str | Path) -> str:
    """Name of the sample that a file of candidates is of.

    Raises:
        InputError: it cannot be read.
    """
    file = CandidateFile(path)
    file.close()
    return file.header.sample


class CandidateFile:
    """A candidate file opened for reading.

    Args:
        path: the file.
        opened: the file, if it is already open.

    Attributes:
        header: its identity.

    Raises:
        InputError: it cannot be read, is not a candidate file or has another version.
    """

    def __init__(self, path: str | Path, opened: BinaryIO | None = None) -> None:
        self.path = str(path)
        try:
            self._file = opened or Path(path).open("rb")  # noqa: SIM115  # closed by `close`
        except OSError as error:
            raise InputError(
                path, f"cannot be opened ({error.strerror})", "check the path"
            ) from error
        try:
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_header(self) -> CandidateHeader:
        line = self._file.readline(_LONGEST_HEADER)
        try:
            values = parse_json(line)
            if values.pop("format") != FORMAT:
                raise ValueError
            version = values.pop("version")
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise InputError(self.path, "is not a candidate file", "check the path") from error
        if version != VERSION:
            raise InputError(
                self.path, f"is of version {version}; this program reads {VERSION}", _REMEDY
            )
        values.pop("crc32", None)
        try:
            header = CandidateHeader(**values)
            whole = header.line() == line
        except (TypeError, ValueError):
            whole = False
        types = get_type_hints(CandidateHeader).items()
        if not whole or any(type(getattr(header, name)) is not kind for name, kind in types):
            raise InputError(self.path, "the first line is damaged", _REMEDY)
        return header

    def blocks(
        self, taxon_of_target: NDArray[np.int32], windows: NDArray[np.int64]
    ) -> Iterator[QueryBlock]:
        """Read all blocks.

        Args:
            taxon_of_target: see ``Engine``; empty where calls may be sequences.
            windows: int64[targets], of each target of the database.

        Raises:
            InputError: the file is damaged or cut short.
        """
        while True:
            head = self._take(_BLOCK.size)
            count, size, paired = _BLOCK.unpack(head)
            (own,) = _SUM.unpack(self._take(_SUM.size))
            body = self._take(size)
            damaged = isal_zlib.crc32(body, isal_zlib.crc32(head)) != own
            if damaged or (count == 0 and (size > 0 or self._file.read(1))):
                raise InputError(self.path, "the file is damaged", _REMEDY)
            if count == 0:
                return
            try:
                yield self._decode(count, bool(paired), body, taxon_of_target, windows)
            except _DAMAGE as error:
                raise InputError(self.path, "the file is damaged", _REMEDY) from error

    def _take(self, size: int) -> bytes:
        pieces = []
        while size > 0:
            # Do not allocate memory for a damaged size.
            pieces.append(self._file.read(min(size, _READ_AT_ONCE)))
            if not pieces[-1]:
                raise InputError(self.path, "the file is truncated", _REMEDY)
            size -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _decode(
        self,
        count: int,
        paired: bool,
        body: bytes,
        taxon_of_target: NDArray[np.int32],
        windows: NDArray[np.int64],
    ) -> QueryBlock:
        columns = _columns_of(body)
        most = self.header.candidates
        held, flat = columns["count"], columns["target"]
        begin = columns["window_begin"].astype(np.int64)
        end = begin + columns["windows"]
        of_queries = ("count", "name_length", "length1", "length2", "features")
        of_candidates = ("target", "hits", "window_begin", "windows")
        whole = (
            all(len(columns[name]) == count for name in of_queries)
            and all(len(columns[name]) == held.sum(dtype=np.int64) for name in of_candidates)
            and len(columns["names"]) == columns["name_length"].sum(dtype=np.int64)
            and int(held.max(initial=0)) <= most
            and min(int(columns[name].min(initial=0)) for name in ("length1", "length2")) >= 0
            and int(columns["hits"].max(initial=0)) <= _MAX_HITS
            and int(flat.min(initial=0)) >= 0
            and int(flat.max(initial=0)) < len(windows)
            and bool((end < windows[flat]).all())
        )
        if not whole:
            raise ValueError
        best = CandidateArrays.empty(count, most)
        for array, values in (
            (best.target, flat),
            (best.hits, columns["hits"]),
            (best.window_begin, begin),
            (best.window_end, end),
        ):
            _spread(held, values.astype(np.int32), array)
        if len(taxon_of_target) > 0:
            taxon = np.where(best.target >= 0, taxon_of_target[best.target], np.int32(-1))
            best.taxon[...] = taxon
        ends = np.cumsum(columns["name_length"], dtype=np.int64)
        return QueryBlock(
            names=columns["names"].copy(),
            name_start=ends - columns["name_length"],
            name_end=ends,
            length1=columns["length1"].copy(),
            length2=columns["length2"].copy(),
            features=columns["features"].astype(np.int64),
            candidates=best,
            paired=paired,
        )


def _columns_of(body: bytes) -> dict[str, NDArray[Any]]:
    """The columns of a block.

    Raises:
        ValueError: they are damaged, as with all of ``_DAMAGE``.
    """
    columns = {}
    at = 0
    for name, dtype in _COLUMNS:
        size, packed = _COLUMN.unpack_from(body, at)
        at += _COLUMN.size
        if packed > len(body) - at or size > _MAX_COMPRESSED * packed:
            raise ValueError(name)
        raw = isal_zlib.decompress(body[at : at + packed], bufsize=max(size, 1))
        if len(raw) != size:
            raise ValueError(name)
        columns[name] = np.frombuffer(raw, dtype=dtype)
        at += packed
    if at != len(body):
        raise ValueError
    return columns
