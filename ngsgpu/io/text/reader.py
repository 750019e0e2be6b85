"""FASTQ and FASTA files as batches of records.

The threads of a pool split chunks into records, each from a guess of where its first record begins
(see ``batch``), and read them, too, where the file can be read in any order. Here the chunks come
together: guesses are verified, records and lines are counted, and faults are put into words.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Final, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.options import Option
from ngsgpu.declared.values import check_value
from ngsgpu.errors import InputError, shown_input
from ngsgpu.io.compress.alignments import ALIGNMENTS
from ngsgpu.io.compress.source import Chunk, Source
from ngsgpu.io.text import diagnose, scan
from ngsgpu.io.text.batch import OVERLAP, RecordBatch, Split, Splitter, concatenate
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.pool import map_ahead

__all__ = [
    "CHUNK_BYTES",
    "DEFAULT_LIMITS",
    "PHRED_OFFSET",
    "PhredOffset",
    "ReadLimits",
    "read_batches",
    "reading_pool",
    "unexpected_pairs",
]

logger = logging.getLogger("ngsgpu")

CHUNK_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 8 << 20
"""Most bytes a batch: enough for Python's share of the work to be small, which only one thread can
do at a time, and few enough for many threads."""

SAMPLED_RECORDS: Final = 10_000
"""Records whose qualities decide whether a file looks like Phred+64. A fixed number, so that the
size of the chunks decides nothing."""

_LOOK_AHEAD: Final = 1 << 20
"""Bytes behind a bad record and a header of any length that are examined for the diagnosis."""
_MOST_LOOKED_AT: Final = 64 << 20
"""Bytes of a long record that are."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Sizes beyond which a file is taken for something other than reads.

    Attributes:
        header_bytes: longest header.
        record_bytes: longest record of FASTA; lengths of sequences have to fit 32 bits.
        read_bytes: longest record of FASTQ. The longest reads have 4 million bases, chromosomes a
            thousand times as many; what is longer is damaged, or made to fill the memory.
    """

    header_bytes: int = 1 << 20
    record_bytes: int = (1 << 31) - 1
    read_bytes: int = 1 << 28


DEFAULT_LIMITS: Final = ReadLimits()
PHRED_OFFSET: Final = Option("", choices=get_args(PhredOffset))


def reading_pool(threads: int) -> ThreadPoolExecutor:
    """Threads that read files and split them."""
    return ThreadPoolExecutor(max(1, threads), thread_name_prefix="ngsgpu-split")


def read_batches(
    path: str | Path,
    *,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    phred_offset: PhredOffset = "auto",
    limits: ReadLimits = DEFAULT_LIMITS,
    pool: ThreadPoolExecutor | None = None,
    refuse_pairs: bool = False,
) -> Generator[RecordBatch, None, None]:
    """Read a file's records in order, in batches of about ``chunk_bytes``.

    FASTQ or FASTA and the compression are detected from the content. Every byte is checked; see
    ``docs/formats.md`` for accepted input. An empty file gives no batches and a warning to the
    logger ``ngsgpu``.

    Args:
        path: the file; ``-`` is standard input.
        threads: threads that read, inflate BGZF blocks and split into records; does not affect the
            result.
        chunk_bytes: maximum decompressed bytes per batch, up to 8 MB; a longer record makes a
            longer
            batch.
        phred_offset: ``auto`` assumes Phred+33 and refuses a file that looks like Phred+64; 33
            never
            suspects that; 64 means Phred+64 (or Solexa+64).
        limits: sizes beyond which a file is refused.
        pool: the threads, if shared with others.
        refuse_pairs: refuse BAM and CRAM whose reads have mates, which would be taken for single
            ones.

    Yields:
        Batches of at least one record, whose arrays the caller may keep or change.

    Raises:
        InputError: the file cannot be opened, decompressed or parsed; with the number of the record
            and of the line.
        UsageError: the offset is none of these.
    """
    check_value("phred_offset", phred_offset, PHRED_OFFSET)
    chunk_bytes = min(chunk_bytes, BATCH_BYTES)
    source = Source(
        path, threads=threads, chunk_bytes=chunk_bytes, overlap=min(chunk_bytes, OVERLAP)
    )
    own = reading_pool(threads) if pool is None else pool
    try:
        reader = _Reader(source, phred_offset, limits, refuse_pairs)
        yield from reader.batches(own, threads + 2)
    finally:
        if pool is None:
            own.shutdown(wait=True, cancel_futures=True)
        source.close()


def unexpected_pairs(path: str) -> InputError:
    """The error of a file of pairs where single reads are expected."""
    return InputError(
        path,
        "its reads have mates by their flags, but are given as single reads",
        "add `interleaved`, or give a file instead of a stream",
    )


class _Reader:
    """Joins one source's chunks; holds the bytes carried from chunk to chunk."""

    def __init__(
        self, source: Source, phred_offset: PhredOffset, limits: ReadLimits, refuse_pairs: bool
    ) -> None:
        self._source = source
        self._refuse_pairs = refuse_pairs
        self._path = source.path
        self._made = source.compression in ALIGNMENTS
        self._phred_offset = phred_offset
        self._limits = limits
        self._qualities = np.zeros(256, dtype=np.int64)
        self._longest = 0
        self._quality_decided = phred_offset != "auto"
        self._records = 0
        self._lines = 0

    def batches(self, pool: ThreadPoolExecutor, ahead: int) -> Iterator[RecordBatch]:
        """Yield the file's batches, with ``ahead`` chunks in flight."""
        tasks = self._tasks()
        first = next(tasks, _no_chunk)()
        if first.size == 0:
            logger.warning("%s: the file is empty", shown_input(self._path))
            return
        if self._refuse_pairs and self._source.holds_pairs:
            raise unexpected_pairs(self._path)
        if first.buffer[0] not in b"@>":
            following = (task() for task in tasks)
            fault = diagnose.neither(_look_ahead(first.data, first.ends, following, 4096))
            raise InputError(self._path, fault.cause, fault.remedy, record=1, line=1)
        self._splitter = splitter = Splitter(
            is_fastq=first.buffer[0] == ord("@"),
            lowest=59 if self._phred_offset == 64 else 33,
            longest_header=self._limits.header_bytes,
        )
        self._quality_decided |= not splitter.is_fastq

        def split_first() -> tuple[Chunk, Split]:
            return first, splitter.split(first.buffer, 0, first.size, first.ends)

        def split(task: Callable[[], Chunk]) -> tuple[Chunk, Split]:
            chunk = task()
            return chunk, splitter.guess(chunk)

        if first.ends:  # what is small is not worth other threads
            yield from self._join(iter([split_first()]))
            return
        work: Iterator[Callable[[], tuple[Chunk, Split]]]
        work = chain([split_first], (partial(split, task) for task in tasks))
        with contextlib.closing(map_ahead(pool, _call, work, ahead)) as pieces:
            yield from self._join(pieces)

    def _tasks(self) -> Iterator[Callable[[], Chunk]]:
        """Each gives a chunk; where a file can be read in any order, they do not end."""
        if self._source.takes_offsets:
            return (partial(self._source.chunk_at, index) for index in count())
        return (partial(_as_it_is, chunk) for chunk in self._source.chunks())

    def _join(self, pieces: Iterator[tuple[Chunk, Split]]) -> Iterator[RecordBatch]:
        """Batches of chunks that were split, verified, or split again."""
        carried: NDArray[np.uint8] | None = None  # of a record longer than a chunk's overlap
        filled = 0  # bytes of it
        wanted = 0  # bytes to read before checking again
        done = 0  # bytes of the chunk that belong to the batch before
        held: RecordBatch | None = None
        for chunk, split in pieces:
            data, size = chunk.buffer, chunk.size
            joined, carried = carried, None
            if joined is not None:
                # The kernel moves large arrays without a copy.
                joined.resize(filled + len(data), refcheck=False)
                joined[filled:] = data
                wanted -= size
                size += filled
                if wanted > 0 and not chunk.ends:
                    carried, filled = joined, size
                    continue
                data = joined
                split = self._splitter.split(data, 0, size, chunk.ends)
            elif done >= size:
                done -= size
                if chunk.ends:
                    break
                continue
            elif split.start != done:
                split = self._splitter.split(data, done, size, chunk.ends)
            batch = split.batch(data, self._records, self._path)
            self._count(batch, split, ends=chunk.ends)
            if split.status == scan.BAD:
                following = (chunk for chunk, _ in pieces)
                bad = data[split.end : size]
                seen = min(len(bad), _MOST_LOOKED_AT) + self._limits.header_bytes + _LOOK_AHEAD
                self._refuse(_look_ahead(bad, chunk.ends, following, seen))
            done = max(0, split.end - size)
            if split.end < size:
                filled = size - split.end
                wanted = self._bytes_to_read(filled)
                whole = joined is not None and split.end == 0
                carried = joined if whole else data[split.end : size].copy()
            if held is not None and len(batch) == 0:
                batch = concatenate([held, batch])
            elif held is not None:
                yield held
            held = None
            if len(batch) > 0:
                # Blank lines at the end of the file belong to its last batch.
                known = split.end < len(data)
                if data[split.end] in b"\r\n" if known else not chunk.ends:
                    held = batch
                else:
                    yield batch
            if chunk.ends:
                break
        self._check_offset(ends=True)
        if held is not None:
            yield held

    def _bytes_to_read(self, held: int) -> int:
        """How much more of a record to read before it is looked at again.

        Raises:
            InputError: it is too long.
        """
        limits = self._limits
        most = limits.read_bytes if self._splitter.is_fastq else limits.record_bytes
        if held > most:
            raise InputError(
                self._path,
                f"the record is longer than {most:,} bytes",
                "check that this is a file of reads",
                record=self._records + 1,
            )
        return min(held, most + 1 - held)

    def _count(self, batch: RecordBatch, split: Split, *, ends: bool) -> None:
        """Count the records and lines of a batch, and sample qualities of the first records."""
        if not self._quality_decided:
            sampled = min(len(batch), max(0, SAMPLED_RECORDS - self._records))
            scan.count_qualities(
                batch.data, batch.qual_start, batch.seq_len, sampled, self._qualities
            )
            self._longest = max(self._longest, int(batch.seq_len[:sampled].max(initial=0)))
        self._records += len(batch)
        self._lines += split.lines if batch.qual_start is None else 4 * len(batch)
        self._check_offset(ends=ends and split.status != scan.BAD)

    def _check_offset(self, *, ends: bool) -> None:
        """Refuse a file that looks like Phred+64 as soon as enough of it was seen."""
        if self._quality_decided or not (ends or self._records >= SAMPLED_RECORDS):
            return
        self._quality_decided = True
        seen = np.flatnonzero(self._qualities)
        if len(seen) == 0 or not scan.may_be_phred64(low := int(seen[0]), high := int(seen[-1])):
            return
        range_seen = f"the qualities lie between {chr(low)!r} and {chr(high)!r}"
        if scan.looks_like_phred64(self._qualities, self._longest):
            raise InputError(
                self._path,
                f"{range_seen}, which looks like Phred+64",
                "give `phred_offset=64`, or `phred_offset=33` if they really are Phred+33",
            )
        logger.warning(
            "%s: %s; read as Phred+33 (Q%d to Q%d), since Phred+64 would leave no base above Q%d; "
            "`phred_offset=33` or 64 decides",
            shown_input(self._path),
            range_seen,
            low - 33,
            high - 33,
            high - 64,
        )

    def _refuse(self, text: bytes) -> NoReturn:
        """Raise the error that explains the fault of the record at the beginning of ``text``."""
        find = diagnose.fastq_fault if self._splitter.is_fastq else diagnose.fasta_fault
        fault = find(text, self._phred_offset, self._limits.header_bytes)
        raise InputError(
            self._path,
            fault.cause,
            fault.remedy,
            record=self._records + 1,
            line=None if self._made else self._lines + fault.line + 1,
        )


def _look_ahead(
    data: NDArray[np.uint8], ends: bool, following: Iterator[Chunk], size: int
) -> bytes:
    """The first ``size`` bytes of ``data`` and, unless the file ends there, of what follows."""
    text = data[:size].tobytes()
    with contextlib.suppress(InputError):  # damage further on is not what is wrong here
        while not ends and len(text) < size and (chunk := next(following, None)) is not None:
            text += chunk.data.tobytes()
            ends = chunk.ends
    return text[:size]


def _no_chunk() -> Chunk:
    return Chunk(np.empty(0, dtype=np.uint8), 0, ends=True)


def _as_it_is(chunk: Chunk) -> Chunk:
    return chunk


def _call(work: Callable[[], tuple[Chunk, Split]]) -> tuple[Chunk, Split]:
    return work()
