"""Reading files a second time, in pieces whose places were recorded by the first pass.

With the positions of the sequences the second pass need not split the files into records again: it
copies bytes and replaces some.
"""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.seek import Checkpoint, SeekingReader
from ngsgpu.io.compress.source import Source
from ngsgpu.io.paths import FileIdentity, changed, identify, read_at


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive whole records of a file. The segments of a file are contiguous.

    Attributes:
        start: first byte in the (decompressed) file.
        end: end of the bytes.
        base: added to a segment's entries of ``FileLayout.starts`` to get file offsets; may be
            negative.
        first_record: number in the file of the first record, which is also its index in
            ``FileLayout.starts``.
        records: number of records.
    """

    start: int
    end: int
    base: int
    first_record: int
    records: int


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Positions of the sequences of one FASTQ file.

    Attributes:
        path: the file.
        compression: as in ``Source``.
        identity: of the file when it was read.
        segments: all its bytes.
        starts: uint32[records], first byte of each sequence, minus the segment's ``base``.
        kept: the file's decompressed bytes, in order, if they were cached.
        checkpoints: places from which on a gzip file can be inflated, if they suffice to read any
            part.
    """

    path: str
    compression: str
    identity: FileIdentity
    segments: tuple[Segment, ...]
    starts: NDArray[np.uint32]
    kept: tuple[NDArray[np.uint8], ...] | None = None
    checkpoints: tuple[Checkpoint, ...] = ()

    def sequence_offsets(self, first: int, last: int) -> NDArray[np.int64]:
        """Where the sequences of records ``first`` to ``last``, exclusive, begin in the file."""
        offsets = self.starts[first:last].astype(np.int64)
        index = bisect.bisect_right(self.segments, first, key=lambda one: one.first_record) - 1
        for segment in itertools.islice(self.segments, index, None):
            if segment.first_record >= last:
                break
            begin = max(0, segment.first_record - first)
            offsets[begin : segment.first_record + segment.records - first] += segment.base
        return offsets

    @property
    def takes_offsets(self) -> bool:
        """Whether the second reading may get pieces in any order, and in any thread."""
        return self.kept is not None or self.compression == "plain" or bool(self.checkpoints)

    def records_in(self, start: int, end: int) -> tuple[int, int]:
        """The records whose sequences begin in some bytes of the file: first, and one past them."""
        found = []
        for place in (start, end) if self.segments else ():
            index = bisect.bisect_right(self.segments, place, key=lambda one: one.start) - 1
            one = self.segments[max(0, index)]
            own = self.starts[one.first_record : one.first_record + one.records]
            within = np.uint32(min(max(0, place - one.base), (1 << 32) - 1))
            found.append(one.first_record + int(own.searchsorted(within)))
        return (found[0], found[1]) if found else (0, 0)

    @property
    def size(self) -> int:
        """Bytes of the file, decompressed."""
        return self.segments[-1].end if self.segments else 0


@dataclass(frozen=True, slots=True)
class ReadFilesLayout:
    """The files of one lane.

    Attributes:
        files: the file, or those of first and second mates.
        first_read: number of the lane's first read; record i of file m is read
            ``first_read + m + i * len(files)``.
    """

    files: tuple[FileLayout, ...]
    first_read: int


Fill: TypeAlias = Callable[[NDArray[np.uint8]], None]
"""Fills an array of the size of a piece with its bytes; may be called in any thread."""


class PieceReader(Protocol):
    """Reads pieces of a file."""

    def prepare(self, start: int, end: int) -> Fill:
        """How to get bytes ``start`` to ``end``; pieces have to be asked for in order.

        Raises:
            InputError: the file cannot be read any more, or has changed.
        """

    def close(self) -> None:
        """Close the file."""


def open_again(file: FileLayout, threads: int) -> PieceReader:
    """Open a file for a second reading.

    Args:
        file: the file, as it was found the first time.
        threads: threads that inflate BGZF.

    Raises:
        InputError: the file has changed, or cannot be opened.
    """
    check_same(file)
    if file.kept is not None:
        return KeptReader(file.kept)
    if file.compression == "plain" or file.checkpoints:
        return AnywhereReader(file)
    return InflatingReader(file, threads)


def check_same(file: FileLayout) -> None:
    """Check that a file has not changed since it was first read.

    Raises:
        InputError: it has.
    """
    _check(file.path, file.identity)


@contextmanager
def unchanged(paths: Iterable[str]) -> Iterator[None]:
    """Check that files do not change during the block.

    For anything that reads them twice. Missing or special files are left to their readers.

    Raises:
        InputError: a file was replaced or written to.
    """
    found = {path: identity for path in paths if (identity := _regular(path)) is not None}
    yield
    for path, identity in found.items():
        _check(path, identity)


def _regular(path: str) -> FileIdentity | None:
    try:
        return identify(path) if Path(path).is_file() else None
    except OSError:
        return None


def _check(path: str, identity: FileIdentity) -> None:
    try:
        same = identify(path) == identity
    except OSError:
        same = False
    if not same:
        raise changed(path)


class AnywhereReader:
    """Reads pieces of a file, each in the thread that needs it."""

    def __init__(self, file: FileLayout) -> None:
        self._file = file
        self._text: PlainText | SeekingReader
        try:
            if file.checkpoints:
                self._text = SeekingReader(file.path, file.checkpoints, file.size)
            else:
                self._text = PlainText(file.path)
        except OSError as error:
            raise _unreadable(file, error) from error

    def prepare(self, start: int, end: int) -> Fill:
        """How to read a piece."""
        return lambda data: self._read(data, start)

    def _read(self, data: NDArray[np.uint8], start: int) -> None:
        try:
            self._text.fill(data, start)
        except OSError as error:
            raise _unreadable(self._file, error) from error

    def close(self) -> None:
        """Close the file."""
        self._text.close()


class PlainText:
    """A plain file, as ``SeekingReader``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._raw = Path(path).open("rb", buffering=0)  # noqa: SIM115  # see close()

    def fill(self, data: NDArray[np.uint8], start: int) -> None:
        """Read the bytes from a place on."""
        if read_at(self._raw, data, start) < len(data):
            raise changed(self._path)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


class KeptReader:
    """Reads pieces of a file cached in memory.

    Args:
        parts: the file's bytes, in order.
    """

    def __init__(self, parts: tuple[NDArray[np.uint8], ...]) -> None:
        self._parts = parts
        self._ends = list(accumulate(map(len, parts)))

    def prepare(self, start: int, end: int) -> Fill:
        """Find the parts that hold a piece."""
        pieces = []
        index = bisect.bisect_right(self._ends, start)
        while start < end:
            begin = self._ends[index] - len(self._parts[index])
            stop = min(end, self._ends[index])
            pieces.append(self._parts[index][start - begin : stop - begin])
            start = stop
            index += 1
        return _joined(pieces)

    def close(self) -> None:
        """Nothing to do."""


class InflatingReader:
    """Inflates a file from its beginning."""

    def __init__(self, file: FileLayout, threads: int) -> None:
        self._file = file
        self._source = Source(file.path, threads=threads, chunk_bytes=4 << 20)
        self._chunks = self._source.chunks()
        self._rest = np.empty(0, dtype=np.uint8)

    def prepare(self, start: int, end: int) -> Fill:
        """Inflate a piece, and return how to get it."""
        pieces = []
        missing = end - start
        while missing > 0:
            if len(self._rest) == 0:
                chunk = next(self._chunks, None)
                if chunk is None:
                    raise changed(self._file.path)
                self._rest = chunk.data
            pieces.append(self._rest[:missing])
            self._rest = self._rest[missing:]
            missing -= len(pieces[-1])
        return _joined(pieces)

    def close(self) -> None:
        """Stop inflating."""
        self._source.close()


def _joined(pieces: list[NDArray[np.uint8]]) -> Fill:
    def fill(data: NDArray[np.uint8]) -> None:
        if pieces:
            np.concatenate(pieces, out=data)

    return fill


def _unreadable(file: FileLayout, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return InputError(
        file.path, f"could not be read ({reason})", "check the disk or copy the file again"
    )
