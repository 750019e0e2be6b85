"""Positions of the sequences in the input files, recorded by a first pass for a second one.

With them the second pass need not split the files into records again: it copies bytes and
replaces some.
"""

from __future__ import annotations

import bisect
import itertools
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class FileIdentity(NamedTuple):
    """What changes when a file is replaced or written to.

    Attributes:
        device: number of its file system.
        inode: its number there.
        size: bytes, as stored.
        modified: when it was last written, ns.
    """

    device: int
    inode: int
    size: int
    modified: int


def identify(file: int | str) -> FileIdentity:
    """The identity of a file, from its descriptor or path."""
    info = os.stat(file)  # noqa: PTH116  # descriptors, too
    return FileIdentity(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


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
    """

    path: str
    compression: str
    identity: FileIdentity
    segments: tuple[Segment, ...]
    starts: NDArray[np.uint32]
    kept: tuple[NDArray[np.uint8], ...] | None = None

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
