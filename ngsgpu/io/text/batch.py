"""Batches of records, and how chunks are split into them, with any number of threads.

A batch holds the bytes of the file itself, and where in them the parts of each record are.

Where a chunk starts in a record is known only when the previous chunk has been split, so the first
record of a chunk is guessed. ``reader`` compares the guess with the end of the previous chunk and
splits the chunk again if they differ. A record belongs to the chunk in which it begins; the buffer
of a chunk extends far enough to hold it completely, unless it is very long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import without_control_characters
from ngsgpu.io.compress.source import Chunk
from ngsgpu.io.text import scan
from ngsgpu.pool import parts_within


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Consecutive records of one file, as the file's own bytes and offsets into them.

    Concatenating ``text`` of all batches of a file gives the whole (decompressed) file, byte for
    byte: record ``i`` owns the bytes from its ``@`` or ``>`` up to that of record ``i + 1``, the
    last record of a batch those up to ``end``.

    Attributes:
        data: uint8 [bytes], decompressed; may hold more than these records.
        begin: first byte of the records in ``data``.
        end: end of their bytes in ``data``.
        header_start: int64 [n], first byte of the header, after the ``@`` or ``>``.
        header_end: int64 [n], end of the header, before its line end (LF or CR LF).
        seq_start: int64 [n], first base.
        seq_end: int64 [n], end of the last base. ``seq_end - seq_start`` is ``seq_len`` unless the
            sequence is wrapped (FASTA only); then the range has line ends inside.
        seq_len: int32 [n], number of bases.
        qual_start: int64 [n], first quality byte; there are ``seq_len`` of them, without a break.
            None for FASTA.
        first_record: number of the first record in its file, from 0.
        path: the file, ``-`` for standard input.
    """

    data: NDArray[np.uint8]
    begin: int
    end: int
    header_start: NDArray[np.int64]
    header_end: NDArray[np.int64]
    seq_start: NDArray[np.int64]
    seq_end: NDArray[np.int64]
    seq_len: NDArray[np.int32]
    qual_start: NDArray[np.int64] | None
    first_record: int
    path: str

    def __len__(self) -> int:
        return len(self.header_start)

    @property
    def text(self) -> NDArray[np.uint8]:
        """The bytes of these records."""
        return self.data[self.begin : self.end]

    @property
    def nbytes(self) -> int:
        """Bytes of memory: of the text, which other batches may share, and of the offsets."""
        offsets = (
            self.header_start, self.header_end, self.seq_start, self.seq_end, self.seq_len,
            self.qual_start,
        )  # fmt: skip
        return self.end - self.begin + sum(own.nbytes for own in offsets if own is not None)

    def slice(self, start: int, stop: int) -> RecordBatch:
        """Records ``start`` up to ``stop`` as a batch that shares all arrays with this one.

        Args:
            start: first record, 0 <= start <= stop.
            stop: end, at most ``len(self)``.
        """
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"slice {start}:{stop} of a batch of {len(self)} records")
        if start == 0 and stop == len(self):
            return self
        return RecordBatch(
            data=self.data,
            begin=self._cut(start),
            end=self._cut(stop),
            header_start=self.header_start[start:stop],
            header_end=self.header_end[start:stop],
            seq_start=self.seq_start[start:stop],
            seq_end=self.seq_end[start:stop],
            seq_len=self.seq_len[start:stop],
            qual_start=None if self.qual_start is None else self.qual_start[start:stop],
            first_record=self.first_record + start,
            path=self.path,
        )

    def _cut(self, record: int) -> int:
        """Offset in ``data`` at which the bytes of ``record`` begin."""
        if record == 0:
            return self.begin
        if record == len(self):
            return self.end
        return int(self.header_start[record]) - 1

    def names(self) -> list[bytes]:
        """First word of each header, for messages and tests: one Python object per record."""
        text = self.data.data
        spans = zip(self.header_start.tolist(), self.header_end.tolist(), strict=True)
        return [first_word(text[start:end].tobytes()) for start, end in spans]

    def name(self, record: int) -> str:
        """First word of one header, for messages; see ``printable``."""
        header = self.data[self.header_start[record] : self.header_end[record]].tobytes()
        return printable(first_word(header))


def first_word(header: bytes) -> bytes:
    """The header up to its first space or tab."""
    return header.split(b" ", 1)[0].split(b"\t", 1)[0]


def printable(name: bytes) -> str:
    """A name for a message: in quotes, without control characters, and not too long."""
    text = without_control_characters(name.decode("ascii", "backslashreplace"))
    return f"'{text}'" if len(text) <= 80 else f"'{text[:77]}...'"


def concatenate(batches: Sequence[RecordBatch]) -> RecordBatch:
    """One batch of the records of consecutive batches of the same file; copies.

    Args:
        batches: at least one, in file order.
    """
    if len(batches) == 1:
        return batches[0]
    texts = [batch.text for batch in batches]
    ends = np.cumsum([len(text) for text in texts]).tolist()
    begins = (batch.begin for batch in batches)
    shifts = [end - len(text) - begin for end, text, begin in zip(ends, texts, begins, strict=True)]

    def concatenate(field: str) -> NDArray[np.int64]:
        return np.concatenate(
            [getattr(batch, field) + shift for batch, shift in zip(batches, shifts, strict=True)]
        )

    return RecordBatch(
        data=np.concatenate(texts),
        begin=0,
        end=ends[-1],
        header_start=concatenate("header_start"),
        header_end=concatenate("header_end"),
        seq_start=concatenate("seq_start"),
        seq_end=concatenate("seq_end"),
        seq_len=np.concatenate([batch.seq_len for batch in batches]),
        qual_start=None if batches[0].qual_start is None else concatenate("qual_start"),
        first_record=batches[0].first_record,
        path=batches[0].path,
    )


class Stretches(NamedTuple):
    """Parts of the sequences of a batch, which a task takes together.

    Attributes:
        begin: int64[n], where they begin in the text.
        stop: int64[n], where they stop.
        record: int64[n], the records of whose sequences they are parts.
    """

    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    record: NDArray[np.int64]


def cut_sequences(batch: RecordBatch, most: int) -> Iterator[Stretches]:
    """Cut the sequences of a batch into stretches, in order.

    Args:
        batch: records.
        most: letters that those of a task have at most, line ends included.
    """
    begin, stop, record = batch.seq_start, batch.seq_end, np.arange(len(batch))
    sizes = stop - begin
    if sizes.max(initial=0) > most:
        pieces = np.maximum(1, -(-sizes // most))
        record = np.repeat(record, pieces)
        first = np.repeat(np.cumsum(pieces) - pieces, pieces)
        begin = begin[record] + (np.arange(len(record)) - first) * most
        stop = np.minimum(begin + most, stop[record])
        sizes = stop - begin
    for i, j in parts_within(np.cumsum(sizes), most):
        yield Stretches(begin[i:j], stop[i:j], record[i:j])


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
        """The records, which were found in ``data``.

        Args:
            data: the text, uint8.
            first_record: number of the first record, from 0.
            path: file of the records, for messages.
        """
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
        self._is_base = scan.base_table(scan.BASES if is_fastq else scan.FASTA_BASES)
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
