"""FASTQ and FASTA files as batches of records.

The source reads and decompresses ahead in a thread of its own; here each chunk is split into
records by one kernel call. What is left of a chunk, the beginning of a record, is put in front of
the next one.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import HEADROOM, Chunk, Source
from ngsgpu.io.text import diagnose, scan
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.diagnose import PhredOffset

__all__ = [
    "CHUNK_BYTES",
    "DEFAULT_LIMITS",
    "InputFormat",
    "PhredOffset",
    "ReadLimits",
    "probe",
    "read_batches",
]

logger = logging.getLogger("ngsgpu")

_Number = TypeVar("_Number", np.int32, np.int64)

CHUNK_BYTES: Final = 32 << 20
SAMPLED_RECORDS: Final = 10_000
"""Records whose qualities decide whether a file looks like Phred+64. A fixed number, so that the
size of the chunks decides nothing."""

_LOOK_AHEAD: Final = 1 << 20
"""Bytes of a bad record, and what follows it, that are looked at to say what is wrong."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Sizes beyond which a file is taken for something other than reads.

    Attributes:
        header_bytes: longest header.
        record_bytes: longest record; lengths of sequences have to fit 32 bits.
    """

    header_bytes: int = 1 << 20
    record_bytes: int = (1 << 31) - 1


DEFAULT_LIMITS: Final = ReadLimits()


@dataclass(frozen=True, slots=True)
class InputFormat:
    """What an input is, found from its content.

    Attributes:
        layout: ``fastq`` or ``fasta``, ``empty`` if there is nothing in the file.
        compression: ``plain``, ``gzip``, ``bgzf``, ``bzip2`` or ``xz``.
    """

    layout: Literal["fastq", "fasta", "empty"]
    compression: str


def probe(path: str | Path) -> InputFormat:
    """Recognise a file without reading more than its beginning.

    For regular files only: what is read from a pipe or standard input cannot be given back.

    Raises:
        InputError: the file cannot be opened, or is neither FASTQ nor FASTA.
    """
    source = Source(path, threads=1, chunk_bytes=1 << 16)
    try:
        for chunk in source.chunks():
            data = chunk.buffer[HEADROOM : HEADROOM + chunk.size]
            if data[0] not in b"@>":
                fault = diagnose.neither(data[:4096].tobytes())
                raise InputError(source.path, fault.cause, fault.remedy, record=1, line=1)
            return InputFormat("fastq" if data[0] == ord("@") else "fasta", source.compression)
        return InputFormat("empty", source.compression)
    finally:
        source.close()


def read_batches(
    path: str | Path,
    *,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    phred_offset: PhredOffset = "auto",
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Generator[RecordBatch, None, None]:
    """Read a file's records in order, in batches of about ``chunk_bytes``.

    FASTQ or FASTA and the compression are recognised by content, not by name. Every byte is
    checked; see ``docs/formats.md`` for what is accepted. An empty file gives no batches and a
    warning to the logger ``ngsgpu``.

    Args:
        path: the file; ``-`` is standard input.
        threads: threads that inflate BGZF blocks. The result does not depend on it.
        chunk_bytes: decompressed bytes a batch; a longer record makes a longer batch.
        phred_offset: ``auto`` takes qualities as Phred+33 and refuses a file that looks like
            Phred+64; 33 never suspects that; 64 takes them as Phred+64 (or Solexa+64).
        limits: sizes beyond which a file is refused.

    Yields:
        Batches of at least one record, whose arrays are the caller's to keep or change.

    Raises:
        InputError: the file cannot be opened, decompressed or understood; with the number of the
            record and of the line where the trouble is.
    """
    source = Source(path, threads=threads, chunk_bytes=chunk_bytes)
    try:
        yield from _Splitter(source, phred_offset, limits).batches()
    finally:
        source.close()


class _Splitter:
    """Splits one source's chunks into batches; holds what is carried from chunk to chunk."""

    def __init__(self, source: Source, phred_offset: PhredOffset, limits: ReadLimits) -> None:
        self._path = source.path
        self._chunks = source.chunks()
        self._next: Chunk | None = None
        self._phred_offset = phred_offset
        self._lowest = 59 if phred_offset == 64 else 33
        self._limits = limits
        self._is_base = scan.base_table()
        self._quality_range = np.array([255, 0], dtype=np.uint8)
        self._quality_decided = phred_offset != "auto"
        self._records = 0
        self._lines = 0
        self._bytes_per_record = 64.0

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the file's batches."""
        self._next = next(self._chunks, None)
        if self._next is None:
            logger.warning("%s: the file is empty", _shown(self._path))
            return
        if self._next.buffer[HEADROOM] not in b"@>":
            fault = diagnose.neither(self._look_ahead(self._next.buffer[:0], 4096))
            raise InputError(self._path, fault.cause, fault.remedy, record=1, line=1)
        is_fastq = self._next.buffer[HEADROOM] == ord("@")
        rest = self._next.buffer[:0]
        held: RecordBatch | None = None
        while True:
            data, eof = self._data(rest)
            batch, rest = self._fastq(data, eof) if is_fastq else self._fasta(data, eof)
            if len(batch) > 0:
                self._records += len(batch)
                self._bytes_per_record = len(batch.data) / len(batch)
            if is_fastq:
                self._check_offset(self._records, eof=eof)
            if held is not None:  # only blank lines follow
                batch = replace(held, data=np.concatenate([held.data, batch.data]))
            held = batch if self._blank_lines_follow(rest) else None
            if held is None and len(batch) > 0:
                yield batch
            if eof:
                return

    def _blank_lines_follow(self, rest: NDArray[np.uint8]) -> bool:
        """Whether the file's last records were read, but not the blank lines after them."""
        if len(rest) == 0 and self._next is not None:
            rest = self._next.buffer[HEADROOM:]
        return len(rest) > 0 and rest[0] in b"\r\n"

    def _data(self, rest: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], bool]:
        """What is left of the last chunk and the next one, and whether the file ends there."""
        if len(rest) > self._limits.record_bytes:
            raise InputError(
                self._path,
                f"the record is longer than {self._limits.record_bytes:,} bytes",
                "check that this is a file of reads",
                record=self._records + 1,
            )
        chunk = self._next
        assert chunk is not None
        self._next = next(self._chunks, None)
        if len(rest) <= HEADROOM:
            start = HEADROOM - len(rest)
            chunk.buffer[start:HEADROOM] = rest
            return chunk.buffer[start : HEADROOM + chunk.size], self._next is None
        # A record longer than the headroom: take chunks until the bytes have doubled, so that a
        # long record is looked at few times.
        parts = [rest, chunk.buffer[HEADROOM : HEADROOM + chunk.size]]
        length = chunk.size
        while length < len(rest) and self._next is not None:
            parts.append(self._next.buffer[HEADROOM : HEADROOM + self._next.size])
            length += self._next.size
            self._next = next(self._chunks, None)
        return np.concatenate(parts), self._next is None

    def _fastq(self, data: NDArray[np.uint8], eof: bool) -> tuple[RecordBatch, NDArray[np.uint8]]:
        found = _Offsets(self._expected(len(data)), with_qualities=True)
        sampled = 0 if self._quality_decided else max(0, SAMPLED_RECORDS - self._records)
        count = at = 0
        while True:
            status, count, at = scan.scan_fastq(
                data, at, eof, self._is_base, self._lowest, self._limits.header_bytes,
                sampled, self._quality_range, found.header_start, found.header_end,
                found.seq_start, found.seq_end, found.seq_len, found.qual_start, count,
            )  # fmt: skip
            if status != scan.FULL:
                break
            found.grow()
        if status == scan.BAD:
            self._check_offset(self._records + count, eof=False)
            self._refuse(data[at:], count, 4 * (self._records + count), diagnose.fastq_fault)
        batch = found.batch(data[:at], count, self._records, self._path)
        return batch, data[at:]

    def _fasta(self, data: NDArray[np.uint8], eof: bool) -> tuple[RecordBatch, NDArray[np.uint8]]:
        found = _Offsets(self._expected(len(data)), with_qualities=False)
        count = at = 0
        while True:
            status, count, at, lines = scan.scan_fasta(
                data, at, eof, self._is_base, self._limits.header_bytes, found.header_start,
                found.header_end, found.seq_start, found.seq_end, found.seq_len, count,
            )  # fmt: skip
            self._lines += lines
            if status != scan.FULL:
                break
            found.grow()
        if status == scan.BAD:
            self._refuse(data[at:], count, self._lines, diagnose.fasta_fault)
        return found.batch(data[:at], count, self._records, self._path), data[at:]

    def _expected(self, size: int) -> int:
        """How many records to make room for; more are made room for when needed."""
        return int(size / self._bytes_per_record * 1.05) + 16

    def _check_offset(self, records: int, *, eof: bool) -> None:
        """Refuse a file that looks like Phred+64 as soon as enough of it was seen."""
        if self._quality_decided or not (eof or records >= SAMPLED_RECORDS):
            return
        self._quality_decided = True
        low, high = (int(quality) for quality in self._quality_range)
        if diagnose.looks_like_phred64(low, high):
            raise InputError(
                self._path,
                f"the qualities lie between {chr(low)!r} and {chr(high)!r}, which looks like "
                "Phred+64",
                "give --phred-offset 64, or --phred-offset 33 if they are Phred+33 all the same",
            )

    def _refuse(
        self,
        data: NDArray[np.uint8],
        count: int,
        lines: int,
        find: Callable[[bytes, PhredOffset, int], diagnose.Fault],
    ) -> NoReturn:
        """Raise the error that says what is wrong with the record at the start of ``data``.

        Args:
            data: what the chunk has of the record, and what follows.
            count: records before it in this chunk.
            lines: lines before it in the file.
            find: finds the fault.
        """
        text = self._look_ahead(data, _LOOK_AHEAD)
        fault = find(text, self._phred_offset, self._limits.header_bytes)
        raise InputError(
            self._path,
            fault.cause,
            fault.remedy,
            record=self._records + count + 1,
            line=lines + fault.line + 1,
        )

    def _look_ahead(self, data: NDArray[np.uint8], size: int) -> bytes:
        """Bytes from the start of ``data`` on, up to ``size`` of them or the end of the file."""
        text = data[:size].tobytes()
        with contextlib.suppress(InputError):  # damage further on is not what is wrong here
            while len(text) < size and self._next is not None:
                text += self._next.buffer[HEADROOM : HEADROOM + self._next.size].tobytes()
                self._next = next(self._chunks, None)
        return text[:size]


class _Offsets:
    """The arrays that a kernel fills, which can grow."""

    def __init__(self, capacity: int, *, with_qualities: bool) -> None:
        self._with_qualities = with_qualities
        self.header_start = np.empty(capacity, dtype=np.int64)
        self.header_end = np.empty(capacity, dtype=np.int64)
        self.seq_start = np.empty(capacity, dtype=np.int64)
        self.seq_end = np.empty(capacity, dtype=np.int64)
        self.seq_len = np.empty(capacity, dtype=np.int32)
        self.qual_start = np.empty(capacity if with_qualities else 0, dtype=np.int64)

    def grow(self) -> None:
        """Make room for twice as many records."""
        self.header_start = _doubled(self.header_start)
        self.header_end = _doubled(self.header_end)
        self.seq_start = _doubled(self.seq_start)
        self.seq_end = _doubled(self.seq_end)
        self.seq_len = _doubled(self.seq_len)
        self.qual_start = _doubled(self.qual_start)

    def batch(
        self, data: NDArray[np.uint8], count: int, first_record: int, path: str
    ) -> RecordBatch:
        """The first ``count`` records, which are those in ``data``."""
        return RecordBatch(
            data=data,
            header_start=self.header_start[:count],
            header_end=self.header_end[:count],
            seq_start=self.seq_start[:count],
            seq_end=self.seq_end[:count],
            seq_len=self.seq_len[:count],
            qual_start=self.qual_start[:count] if self._with_qualities else None,
            first_record=first_record,
            path=path,
        )


def _doubled(array: NDArray[_Number]) -> NDArray[_Number]:
    return np.concatenate([array, np.empty_like(array)])


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path
