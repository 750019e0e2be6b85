"""Sequences of a file by their names, without reading the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ngsgpu.api.files import Closing
from ngsgpu.api.record import Record
from ngsgpu.api.runs import Folder
from ngsgpu.errors import InputError, UsageError, install_extra
from ngsgpu.io.text.reader import read_batches


class NamedSequences(Closing, Mapping[str, Record]):
    """The sequences of a FASTA or FASTQ file, plain or gzip, by name; a context manager.

    The file is read once, and refused where a command would refuse it; then pyfastx finds each
    sequence. Its index is a temporary file.

    Args:
        path: the file.
        threads: that read it.

    Raises:
        InputError: it cannot be read, or two sequences have the same name.
        UsageError: pyfastx is not installed.
    """

    def __init__(self, path: str | Path, *, threads: int = 1) -> None:
        try:
            import pyfastx
        except ImportError as error:
            raise UsageError(f"sequences by name need pyfastx; {install_extra('names')}") from error
        records, self._fastq = 0, False
        for batch in read_batches(path, threads=threads, phred_offset=33):
            records += len(batch)
            self._fastq = batch.qual_start is not None
        self._folder = Folder()
        kind = pyfastx.Fastq if self._fastq else pyfastx.Fasta
        self._file: Any = None
        if records:
            self._file = kind(str(path), index_file=str(self._folder.path / "index"))
        self._names: dict[str, int] = {name: at for at, name in enumerate(self._all_names())}
        if len(self._names) != records:
            raise InputError(path, "two sequences have the same name", "rename one of them")

    def _all_names(self) -> Iterator[str]:
        if self._file is not None:
            yield from self._file.keys()

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the file."""
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Record:
        """The sequence with a name, the first word of its header.

        Raises:
            KeyError: there is none.
        """
        if name not in self._names:
            raise KeyError(name)
        found = self._file[name]
        return Record(found.name, found.seq, found.qual if self._fastq else None)

    def fetch(self, name: str, start: int, end: int) -> str:
        """Bases ``start`` to ``end`` of a sequence, counted from 0, without those after it.

        Raises:
            KeyError: there is none of this name.
            IndexError: the range is not in the sequence.
        """
        sequence = self[name].sequence if self._fastq else self._file[name]
        if not 0 <= start <= end <= len(sequence):
            raise IndexError(f"{start} to {end} of {name}, which has {len(sequence)} bases")
        part = sequence[start:end] if end > start else ""
        return part if isinstance(part, str) else part.seq

    def close(self) -> None:
        """Close the file and remove the index."""
        self._file = None
        self._folder.remove()
