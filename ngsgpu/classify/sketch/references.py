"""Reference sequences: finding their files, reading them, dealing them out to partitions.

A reference sequence is called a target. Targets are numbered in the order of the files as given
and of the records in them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters
from ngsgpu.classify.sketch.cpu import unpack_sequences
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.compress.formats import FASTA_ENDINGS, is_named_fasta
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.text.batch import RecordBatch, first_word, printable
from ngsgpu.io.text.reader import CHUNK_BYTES, read_batches

MAX_WINDOWS: Final = (1 << 32) - 1
"""Per partition; a location is the number of a window."""

SMALL_FILE: Final = 256 << 20
"""Bytes up to which files are read as a whole, several at a time."""
_SHARE: Final = 8
"""Files with less than 1/8 of a partition's share of windows stay in one partition."""


@dataclass(slots=True)
class Targets:
    """Reference sequences.

    Attributes:
        names: first words of the headers.
        length: bases.
        file: index of each one's file.
        files: the files, as given.
        headers: the whole headers; left empty where they are not needed.
    """

    names: list[bytes] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    file: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    headers: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    def windows(self, parameters: SketchParameters) -> NDArray[np.int64]:
        """Windows of each target, int64."""
        return windows_of_lengths(np.array(self.length, dtype=np.int64), parameters)


def windows_of_lengths(
    length: NDArray[np.int64], parameters: SketchParameters
) -> NDArray[np.int64]:
    """``SketchParameters.windows`` of many lengths."""
    window, stride, kmer = parameters.window, parameters.stride, parameters.kmer
    full = (length - window) // stride + 1
    longer = full + (length - full * stride >= kmer)
    return np.where(length <= window, (length >= kmer).astype(np.int64), longer)


def find_references(paths: Sequence[str | Path]) -> list[str]:
    """The files of reference sequences: those named, and those in directories named.

    Of a directory, and the directories in it, all files with an ending of FASTA are taken, in the
    order of their paths.

    Raises:
        InputError: a path does not exist, or a directory holds no such file.
        UsageError: a file is named twice.
    """
    found: list[str] = []
    for path in map(Path, paths):
        if not path.is_dir():
            found.append(str(path))
            continue
        inside = sorted(str(file) for file in path.rglob("*") if _is_fasta(file))
        if not inside:
            endings = ", ".join(FASTA_ENDINGS)
            raise InputError(
                path, f"contains no file ending in {endings}", "name the files themselves"
            )
        found += inside
    if not found:
        raise UsageError("no references given; name FASTA files or directories of them")
    seen: set[str] = set()
    for name in found:
        if name in seen:
            raise UsageError(f"{name}: is named twice; name each reference file once")
        seen.add(name)
    return found


def _is_fasta(path: Path) -> bool:
    return is_named_fasta(path) and path.is_file()


def read_reference(
    path: str, *, threads: int = 1, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[RecordBatch]:
    """Read a file of reference sequences.

    Args:
        path: the file.
        threads: how many decompress.
        chunk_bytes: how much is read at a time.

    Raises:
        InputError: it cannot be read, holds no sequence, or an empty one, or something other than
            nucleotides.
    """
    records = 0
    for batch in read_batches(path, threads=threads, chunk_bytes=chunk_bytes, phred_offset=33):
        empty = np.flatnonzero(batch.seq_len == 0)
        if len(empty) > 0:
            record = int(empty[0])
            raise InputError(
                path,
                f"the sequence {batch.name(record)} has no bases",
                "the file may be truncated; download it again or remove the record",
                record=batch.first_record + record + 1,
            )
        records += len(batch)
        yield batch
    if records == 0:
        raise InputError(path, "the file contains no sequence", "download it again or remove it")


def unpack_batch(batch: RecordBatch) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes of the sequences of a batch, and where each begins; as in ``Unpacked``."""
    start = np.zeros(len(batch) + 1, dtype=np.int64)
    np.cumsum(batch.seq_len, out=start[1:])
    codes = np.empty(int(start[-1]), dtype=np.uint8)
    unpack_sequences(batch.data, batch.seq_start, batch.seq_end, codes)
    return codes, start


def read_ahead(
    files: Sequence[str], threads: int, small_file: int | None = None
) -> Generator[tuple[str, RecordBatch, NDArray[np.uint8], NDArray[np.int64]], None, None]:
    """Read files of reference sequences, several at a time.

    Large files are read one at a time, batch by batch, so that little waits in memory.

    Args:
        files: the files.
        threads: number of files read at a time.
        small_file: decompressed bytes up to which a file counts as small, and chunk size of a large
            one; None: ``SMALL_FILE`` of the stored size, ``CHUNK_BYTES``.

    Yields:
        A file's name, a batch of its records, and their codes (see ``unpack_batch``), in order.

    Raises:
        InputError: see ``read_reference``.
    """
    coming = iter(files)
    waiting: deque[tuple[str, Future[list[_Batch]] | None]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-reference") as pool:
        try:
            while True:
                while len(waiting) <= threads and (path := next(coming, None)) is not None:
                    small = (
                        _size(path) <= SMALL_FILE
                        if small_file is None
                        else unpacked_size(path) <= small_file
                    )
                    waiting.append((path, pool.submit(_read_whole, path) if small else None))
                if not waiting:
                    return
                path, future = waiting.popleft()
                batches = (
                    future.result()
                    if future is not None
                    else _batches(path, threads, min(small_file or CHUNK_BYTES, CHUNK_BYTES))
                )
                for batch, codes, start in batches:
                    yield path, batch, codes, start
        finally:
            for _, future in waiting:
                if future is not None:
                    future.cancel()


_Batch = tuple[RecordBatch, NDArray[np.uint8], NDArray[np.int64]]


def _batches(path: str, threads: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[_Batch]:
    for batch in read_reference(path, threads=threads, chunk_bytes=chunk_bytes):
        yield batch, *unpack_batch(batch)


def _read_whole(path: str) -> list[_Batch]:
    return list(_batches(path, 1))


def _size(path: str) -> int:
    """Size of a file in bytes; 0 if unknown, in which case reading reports the error."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


class TargetSink(Protocol):
    """Receives the records of references as they are found, in order."""

    def start(self, path: str, record: int, header: bytes) -> int:
        """A record begins.

        Args:
            path: its file.
            record: its number in the file, from 0.
            header: without the ``>``.

        Returns:
            The number of its target; -1 to leave it out.

        Raises:
            InputError: it is refused.
        """

    def finish(self, bases: int) -> None:
        """Report the number of bases of the first unfinished record.

        Raises:
            InputError: it is refused.
        """


def add_batch(sink: TargetSink, batch: RecordBatch) -> NDArray[np.int64]:
    """Report the records of a batch to a sink; return the numbers of their targets, int64."""
    numbers = np.empty(len(batch), dtype=np.int64)
    for record in range(len(batch)):
        start, end = int(batch.header_start[record]), int(batch.header_end[record])
        header = batch.data[start:end].tobytes()
        numbers[record] = sink.start(batch.path, batch.first_record + record, header)
        sink.finish(int(batch.seq_len[record]))
    return numbers


class TargetCollector:
    """Collects the targets of files that are read, and refuses names that come twice.

    Args:
        known: names of targets that are there already.
        files: their files.
    """

    def __init__(self, known: Sequence[bytes] = (), files: Sequence[str] = ()) -> None:
        self.targets = Targets(files=list(files))
        self._first = len(known)
        self._place: dict[bytes, int] = dict.fromkeys(known, -1)

    def start(self, path: str, record: int, header: bytes) -> int:
        """A record begins; see ``TargetSink``.

        Raises:
            InputError: its name was seen before, or it has none.
        """
        targets = self.targets
        if not targets.files or targets.files[-1] != path:
            targets.files.append(path)
        name = first_word(header)
        if not name:
            raise InputError(
                path,
                "a sequence has no name",
                "each header needs a unique first word",
                record=record + 1,
            )
        if name in self._place:
            raise self._twice(name, path, record + 1)
        number = self._place[name] = len(targets)
        targets.names.append(name)
        targets.headers.append(header)
        targets.file.append(len(targets.files) - 1)
        return self._first + number

    def finish(self, bases: int) -> None:
        """Report the number of bases of the first unfinished record."""
        self.targets.length.append(bases)

    def _twice(self, name: bytes, path: str, record: int) -> InputError:
        place = self._place[name]
        where = "in the database"
        if place >= 0:
            where = f"in {self.targets.files[self.targets.file[place]]}"
        return InputError(
            path,
            f"the name {printable(name)} is already used, {where}",
            "give each reference sequence a unique name, or remove the copy",
            record=record,
        )


def assign_partitions(
    windows: NDArray[np.int64], file: Sequence[int], partitions: int
) -> NDArray[np.int32]:
    """Assign targets to partitions with about equal numbers of windows.

    The largest piece goes first, to the partition with the fewest windows, on ties the first. A
    piece is a target, or a small file, so that few partitions need the same file.

    Args:
        windows: int64[targets].
        file: index of each target's file, ascending.
        partitions: number of partitions.

    Returns:
        int32[targets], each target's partition.

    Raises:
        UsageError: there are fewer pieces than partitions.
    """
    if partitions == 1:
        return np.zeros(len(windows), dtype=np.int32)
    if len(windows) < partitions:
        raise UsageError(
            f"{len(windows)} reference sequences cannot fill {partitions} partitions; ask for fewer"
        )
    pieces = _pieces(windows, np.asarray(file, dtype=np.int64), partitions)
    weights = np.add.reduceat(windows, pieces[:-1])
    order = np.argsort(-weights, kind="stable")
    heap = [(0, partition) for partition in range(partitions)]
    result = np.empty(len(windows), dtype=np.int32)
    for piece in order.tolist():
        weight, partition = heapq.heappop(heap)
        result[pieces[piece] : pieces[piece + 1]] = partition
        # A piece without a window still fills a place.
        heapq.heappush(heap, (weight + max(1, int(weights[piece])), partition))
    return result


def _pieces(
    windows: NDArray[np.int64], file: NDArray[np.int64], partitions: int
) -> NDArray[np.int64]:
    """Starts of the pieces, and the end of the last: files, the large ones cut into targets."""
    begins = np.flatnonzero(np.diff(file, prepend=file[0] - 1))
    weight = np.add.reduceat(windows, begins)
    large = weight * partitions * _SHARE > windows.sum()
    if len(begins) < partitions:
        large[:] = True
    cut = np.repeat(large, np.diff(np.append(begins, len(windows))))
    cut[begins] = True
    return np.append(np.flatnonzero(cut), len(windows))
