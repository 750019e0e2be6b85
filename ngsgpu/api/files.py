"""Files of reads, to be read and written record by record or in arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Generic, Literal, Self, TypeAlias, TypeVar, overload

from ngsgpu.api.record import Record, RecordLike, check_record, fasta_bytes, fastq_bytes, records_of
from ngsgpu.declared.options import Option
from ngsgpu.declared.values import check_value
from ngsgpu.errors import UsageError, unreadable
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL
from ngsgpu.io.compress.formats import is_named_fasta
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.reader import CHUNK_BYTES

Pair: TypeAlias = tuple[Record, Record]
Item = TypeVar("Item", Record, Pair)

_AT_ONCE: Final = 1 << 18
"""Bytes that are handed on together."""


class Closing:
    """A context manager that is closed when its block ends."""

    def close(self) -> None:
        """Let go what is held; nothing by default."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Reads(Closing, Generic[Item]):
    """Reads in files: iterate over records, or over pairs of them; again as often as needed.

    Nothing is open between iterations; it is a context manager as other files are.

    Attributes:
        files: the lanes.
        paired: whether items are pairs.
    """

    def __init__(
        self, files: Sequence[ReadFiles], *, threads: int = 1, phred_offset: PhredOffset = "auto"
    ) -> None:
        self.files = tuple(files)
        self.paired = any(lane.paired for lane in files)
        self._threads = threads
        self._phred_offset: PhredOffset = phred_offset

    def batches(self) -> Iterator[tuple[RecordBatch, ...]]:
        """The records in arrays: a batch at a time, or the batches of both mates.

        Raises:
            InputError: a file cannot be read.
        """
        for lane in self.files:
            yield from lane.batches(
                threads=self._threads, phred_offset=self._phred_offset, chunk_bytes=CHUNK_BYTES
            )

    def __iter__(self) -> Iterator[Item]:
        """The records, or the pairs.

        Raises:
            InputError: a file cannot be read; with the number of the record.
        """
        for batches in self.batches():
            records = [records_of(batch) for batch in batches]
            if self.paired:  # of two files, or of one where they alternate
                yield from zip(records[0], records[-1], strict=True)
            else:
                yield from records[0]  # type: ignore[misc]


class Writer(Closing):
    """Writes reads to one file, or to one for each mate; a context manager.

    The files appear whole when the block ends, and not at all if it fails.

    Args:
        paths: the file, or those of both mates; names ending in ``.gz``, ``.zst``, ``.bz2``
            or ``.xz`` are compressed.
        threads: that compress.
        compress_level: 1 (fast) to 12 (small).

    Raises:
        OutputError: a file cannot be written.
        UsageError: a name is that of a format that is not written (``.bam``).
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        threads: int = 1,
        compress_level: int = DEFAULT_LEVEL,
    ) -> None:
        self._outputs = OutputSet(paths, threads=threads, compression_level=compress_level)
        self._waiting = [bytearray() for _ in paths]
        self._named_fasta = [is_named_fasta(path) for path in paths]
        self._is_fasta: list[bool | None] = [None for _ in paths]
        self._closed = False

    def write(self, record: RecordLike, mate: RecordLike | None = None) -> None:
        """Write a record, or a pair; without a second file, mates alternate in the one.

        Files with names such as ``x.fa``, and of records without qualities, are FASTA.

        Raises:
            UsageError: there are two files and no mate, it is no record or one that no reader
                takes, records of a file have qualities and others have none, or the file is
                closed.
            OutputError: the disk is full, for example.
        """
        if mate is None and len(self._waiting) == 2:
            raise UsageError("there are two files, for pairs: write(record, mate)")
        self._put(0, record)
        if mate is not None:
            self._put(len(self._waiting) - 1, mate)

    def _put(self, file: int, record: RecordLike) -> None:
        if self._closed:
            raise UsageError("the file is closed; write within the with block")
        check_record(record)
        is_fasta = self._named_fasta[file] or record.qualities is None
        if self._is_fasta[file] not in (None, is_fasta):
            here, before = ("no ", "some") if is_fasta else ("", "none")
            raise UsageError(
                f"{record.name!r} has {here}qualities, the records before have {before}"
            )
        self._is_fasta[file] = is_fasta
        self._waiting[file] += fasta_bytes(record) if is_fasta else fastq_bytes(record)
        if len(self._waiting[file]) >= _AT_ONCE:
            self._pass_on(file)

    def _pass_on(self, file: int) -> None:
        self._outputs.write(file, bytes(self._waiting[file]))
        self._waiting[file].clear()

    def close(self) -> None:
        """Complete the files, which then get their names."""
        if not self._closed:
            for file in range(len(self._waiting)):
                self._pass_on(file)
            self._outputs.commit()
        self._closed = True

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.close()
        else:
            self._outputs.abort()
            self._closed = True


@overload
def open(
    path: str | Path, mate: None = None, *, mode: Literal["r"] = "r",
    interleaved: Literal[False] = False, threads: int = 1, phred_offset: PhredOffset = "auto",
) -> Reads[Record]: ...  # fmt: skip
@overload
def open(
    path: str | Path, mate: str | Path, *, mode: Literal["r"] = "r", threads: int = 1,
    phred_offset: PhredOffset = "auto",
) -> Reads[Pair]: ...  # fmt: skip
@overload
def open(
    path: str | Path, *, interleaved: Literal[True], mode: Literal["r"] = "r", threads: int = 1,
    phred_offset: PhredOffset = "auto",
) -> Reads[Pair]: ...  # fmt: skip
@overload
def open(
    path: str | Path, mate: str | Path | None = None, *, mode: Literal["w"], threads: int = 1,
    compress_level: int = DEFAULT_LEVEL,
) -> Writer: ...  # fmt: skip
def open(
    path: str | Path,
    mate: str | Path | None = None,
    *,
    mode: Literal["r", "w"] = "r",
    interleaved: bool = False,
    threads: int = 1,
    phred_offset: PhredOffset = "auto",
    compress_level: int = DEFAULT_LEVEL,
) -> Reads[Record] | Reads[Pair] | Writer:
    """Open a file of reads, or the two files of pairs.

    Args:
        path: FASTQ or FASTA, plain or compressed, BAM or CRAM; in mode ``w`` FASTQ or FASTA.
        mate: the file of second mates.
        mode: ``r`` to read, ``w`` to write.
        interleaved: whether mates alternate in the one file that is read.
        threads: that read, inflate and split into records, or compress.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        compress_level: of what is written, 1 (fast) to 12 (small).

    Returns:
        To read, an iterable of records or of pairs; see ``Reads`` and ``Writer``.

    Raises:
        InputError: a file cannot be opened.
        OutputError: a file cannot be written.
        UsageError: the mode is neither, or a path is none.
    """
    check_value("mode", mode, Option("", choices=("r", "w")))
    paths = [path] if mate is None else [path, mate]
    for one in paths:
        if not isinstance(one, str | Path):
            raise UsageError(f"`path` and `mate` must be paths, not {type(one).__name__}")
    if mate in ("r", "w"):
        raise UsageError(f"`mate` is a file of mates; write mode={mate!r} for the mode")
    if mode == "w":
        return Writer(paths, threads=threads, compress_level=compress_level)
    for one in paths:
        try:
            Path(one).stat()
        except OSError as error:
            raise unreadable(one, error) from error
    if interleaved and mate is not None:
        raise UsageError("interleaved pairs are in one file")
    lane = ReadFiles(tuple(map(str, paths)), interleaved=interleaved)
    return Reads([lane], threads=threads, phred_offset=phred_offset)
