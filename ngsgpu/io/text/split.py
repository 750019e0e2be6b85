"""Splits chunks into records, with any number of threads.

Where a chunk's first record begins is known only when the previous chunk has been split, so it is
guessed. ``reader`` compares the guess with the end of the previous chunk and splits the chunk again
if they differ. A record belongs to the chunk in which it begins; a chunk's buffer extends far
enough to hold it completely, unless it is very long.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.compress.source import Chunk
from ngsgpu.io.text import scan
from ngsgpu.io.text.batch import RecordBatch

OVERLAP: Final = 1 << 16
"""Bytes of the next chunk that a chunk has, for the end of its last record."""

_SEARCHED: Final = 1 << 20
"""Bytes in which the first record is looked for; in longer sequences it is not guessed."""

_Number = TypeVar("_Number", np.int32, np.int64)


class Split(NamedTuple):
    """The records of a range of bytes.

    Attributes:
        start: where the first one begins; -1 if no beginning was found.
        end: first byte after them.
        status: why there are no more, as in ``scan``.
        lines: lines from ``start`` to ``end``, counted for FASTA only.
        header_start: int64 [n], and so on: see ``RecordBatch``.
    """

    start: int
    end: int
    status: int
    lines: int
    header_start: NDArray[np.int64]
    header_end: NDArray[np.int64]
    seq_start: NDArray[np.int64]
    seq_end: NDArray[np.int64]
    seq_len: NDArray[np.int32]
    qual_start: NDArray[np.int64] | None

    def batch(self, data: NDArray[np.uint8], first_record: int, path: str) -> RecordBatch:
        """The records, which were found in ``data``."""
        return RecordBatch(data, self.start, self.end, *self[4:], first_record, path)


class Splitter:
    """Splits the chunks of a file.

    Args:
        is_fastq: FASTQ rather than FASTA.
        lowest: lowest byte allowed as a quality.
        longest_header: in bytes.
    """

    def __init__(self, *, is_fastq: bool, lowest: int, longest_header: int) -> None:
        self.is_fastq = is_fastq
        self._lowest = lowest
        self._longest_header = longest_header
        self._is_base = scan.base_table()
        self._bytes_per_record = 64.0

    def guess(self, chunk: Chunk) -> Split:
        """The records that begin in a chunk which is not the first, from a guess on."""
        find = scan.find_fastq if self.is_fastq else scan.find_fasta
        start = find(chunk.buffer, min(chunk.size, _SEARCHED))
        return self.split(chunk.buffer, start if start >= 0 else chunk.size, chunk.size, chunk.ends)

    def split(self, data: NDArray[np.uint8], start: int, size: int, ends: bool) -> Split:
        """The records that begin at or after ``start`` and before ``size``.

        Args:
            data: uint8, which may extend beyond ``size``.
            start: beginning of a record.
            size: records that begin here or later are left out.
            ends: whether the file ends with ``data``.
        """
        capacity = int((size - start) / self._bytes_per_record * 1.05) + 16
        places = [np.empty(capacity, dtype=np.int64) for _ in range(5)]
        lengths = np.empty(capacity, dtype=np.int32)
        count = lines = 0
        at = start
        while True:
            found = *places[:4], lengths
            if self.is_fastq:
                status, count, at = scan.scan_fastq(
                    data, at, size, ends, self._is_base, self._lowest, self._longest_header,
                    *found, places[4], count,
                )  # fmt: skip
            else:
                status, count, at, more = scan.scan_fasta(
                    data, at, size, ends, self._is_base, self._longest_header, *found, count
                )
                lines += more
            if status != scan.FULL:
                break
            places = [_doubled(array) for array in places]
            lengths = _doubled(lengths)
        if count > 0:
            self._bytes_per_record = (at - start) / count
        header_start, header_end, seq_start, seq_end, qual_start = (
            array[:count] for array in places
        )
        return Split(
            start, at, status, lines, header_start, header_end, seq_start, seq_end,
            lengths[:count], qual_start if self.is_fastq else None,
        )  # fmt: skip


def _doubled(array: NDArray[_Number]) -> NDArray[_Number]:
    return np.concatenate([array, np.empty_like(array)])
