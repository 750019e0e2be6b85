"""The records of a lane on the GPU, mates together, batch after batch.

A batch consists of the records that the chunks of both files have in common. All GPU stages read
FASTQ here: packing (``gpu_read``), merging, classification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import numpy as np

from ngsgpu.io.gpu.feed import HostCache, IrregularInputError
from ngsgpu.io.gpu.feeds import open_feed
from ngsgpu.io.gpu.parse import KERNELS, THREADS, ParsedChunk, Parser, blocks_for
from ngsgpu.io.text.diagnose import PhredOffset

CHUNK_BYTES: Final = 16 << 20
"""Small enough for the L2 cache of a GPU, and for one chunk per thread."""

MIN_CHUNK: Final = 1 << 16
MAX_READERS: Final = 12
NO_PAIR: Final = 2**64 - 1


class Files(Protocol):
    """The input; ``ngsgpu.io.inputs.ReadFiles`` or similar."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The file, or the files of first and second mates."""

    @property
    def interleaved(self) -> bool:
        """Whether mates alternate in the one file."""


class Cursor:
    """How far into its records a file was used.

    Args:
        path: the file.
        parser: gives its chunks.

    Attributes:
        path: the file.
        parser: gives its chunks.
        used: records of the chunk that were used.
    """

    def __init__(self, path: str, parser: Parser) -> None:
        self.path = path
        self.parser = parser
        self.used = 0
        self._chunk: ParsedChunk | None = None

    @property
    def chunk(self) -> ParsedChunk:
        """The chunk; after ``left`` has said that there is one."""
        assert self._chunk is not None
        return self._chunk

    def left(self, seen: Callable[[Cursor, ParsedChunk], None]) -> int:
        """Unused records of the chunk; advances to the next chunk if there are none.

        Args:
            seen: called with each new chunk.
        """
        while self._chunk is None or self.used == self._chunk.records:
            try:
                self._chunk = self.parser.next_chunk()
            except IrregularInputError as error:
                raise IrregularInputError(f"{self.path}: {error}") from error
            self.used = 0
            if self._chunk is None:
                return 0
            seen(self, self._chunk)
        return self._chunk.records - self.used


@dataclass(frozen=True, slots=True)
class DeviceRecordBatch:
    """Records that belong together; valid until the lane gives the next batch.

    Attributes:
        parts: of each file, or of both mates where they alternate in one: the chunk, and the
            number in it of the first record.
        step: from one pair's record to the next one's.
        units: how many pairs, or single reads.
        records: of each file.
    """

    parts: tuple[tuple[ParsedChunk, int], ...]
    step: int
    units: int
    records: int


class DeviceReadFiles:
    """Reads one lane; use it as a context manager.

    Args:
        lane: regular files.
        threads: threads that read and inflate, of which at most ``MAX_READERS`` are used.
        chunk_bytes: bytes of a file that are handled at a time.
        phred_offset: as for ``ngsgpu.io.text.reader.read_batches``.
        copies: CUDA stream for copies to the device.
        bad_pair: uint64[1] on the device: number of the first pair that is none; see ``NO_PAIR``.
        first_pair: number of the lane's first pair.
        host_cache: keeps inflated data.

    Attributes:
        cursors: of the files.

    Raises:
        InputError: a file cannot be opened.
        IrregularInputError: it is none for the GPU's reader.
    """

    def __init__(
        self,
        lane: Files,
        *,
        threads: int,
        chunk_bytes: int,
        phred_offset: PhredOffset,
        copies: Any,
        bad_pair: Any,
        first_pair: int = 0,
        host_cache: HostCache | None = None,
    ) -> None:
        self._interleaved = lane.interleaved
        self._bad_pair = bad_pair
        self._first_pair = first_pair
        self.cursors: list[Cursor] = []
        readers = min(threads, MAX_READERS)
        with ExitStack() as stack:
            pool = stack.enter_context(
                ThreadPoolExecutor(readers, thread_name_prefix="ngsgpu-read")
            )
            for path in lane.inputs:
                feed = open_feed(
                    path,
                    pool,
                    host_cache or HostCache(0),
                    threads=max(1, readers // len(lane.inputs)),
                    chunk_bytes=chunk_bytes,
                    ahead=2 + readers // len(lane.inputs),
                    share=1 / len(lane.inputs),
                )
                stack.callback(feed.close)
                parser = Parser(
                    feed,
                    chunk_bytes=chunk_bytes,
                    interleaved=lane.interleaved,
                    phred_offset=phred_offset,
                    copies=copies,
                )
                stack.callback(copies.synchronize)
                self.cursors.append(Cursor(path, parser))
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def batches(
        self, seen: Callable[[Cursor, ParsedChunk], None] = lambda cursor, chunk: None
    ) -> Iterator[DeviceRecordBatch]:
        """All records, in order.

        Args:
            seen: called with each new chunk of a file.

        Raises:
            IrregularInputError: an input is invalid or unusual; the CPU decides. Batches yielded
                before
                must then be discarded, since mates are checked at the end.
        """
        cursors = self.cursors
        step = 2 if self._interleaved else 1
        pair = self._first_pair
        while records := min(cursor.left(seen) for cursor in cursors):
            parts = [(cursor.chunk, cursor.used) for cursor in cursors]
            if self._interleaved:
                parts.append((parts[0][0], parts[0][1] + 1))
            batch = DeviceRecordBatch(tuple(parts), step, records // step, records)
            if len(parts) == 2:
                check_mates(batch, first_pair=pair, bad_pair=self._bad_pair)
            yield batch
            pair += batch.units
            for cursor in cursors:
                cursor.used += records
        if any(cursor.left(seen) for cursor in cursors):
            raise IrregularInputError(f"{self._names()} have different numbers of reads")
        if (bad := int(self._bad_pair[0])) != NO_PAIR:
            raise IrregularInputError(f"{self._names()}: pair {bad + 1} is not one of mates")

    def _names(self) -> str:
        return " and ".join(str(cursor.path) for cursor in self.cursors)


def no_bad_pair() -> Any:
    """uint64[1] on the device, for ``DeviceReadFiles``."""
    import cupy

    return cupy.asarray(np.full(1, NO_PAIR, dtype=np.uint64))


def check_mates(batch: DeviceRecordBatch, *, first_pair: int, bad_pair: Any) -> None:
    """Check on the device that records have the names of mates, by the rule of ``io.pairs``.

    Args:
        batch: pairs.
        first_pair: number of the first.
        bad_pair: uint64[1] on the device, becomes the smallest number of a pair that is none.
    """
    first, second = batch.parts
    KERNELS.launch(
        "check_mates",
        blocks_for(batch.units),
        (THREADS,),
        (
            *_headers(*first),
            *_headers(*second),
            np.uint32(batch.step),
            np.uint32(batch.units),
            np.uint64(first_pair),
            bad_pair,
        ),
    )


def _headers(chunk: ParsedChunk, record: int) -> tuple[Any, ...]:
    return chunk.slot.raw, chunk.slot.line_end, np.uint32(chunk.begin), np.uint32(record)


def total_bytes(paths: Sequence[str]) -> int:
    """Size of files on disk in bytes.

    Raises:
        IrregularInputError: a file is missing.
    """
    from pathlib import Path

    try:
        return sum(Path(path).stat().st_size for path in paths)
    except OSError as error:
        raise IrregularInputError(str(error)) from error
