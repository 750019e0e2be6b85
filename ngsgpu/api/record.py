"""Records: a read or another sequence as a Python object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from ngsgpu.errors import UsageError
from ngsgpu.io.text.batch import RecordBatch

_COMPLEMENT: Final = str.maketrans("ACGTUNacgtun", "TGCAANtgcaan")


class RecordLike(Protocol):
    """What counts as a record, such as those of dnaio."""

    @property
    def name(self) -> str:
        """The header, without ``@`` or ``>``."""

    @property
    def sequence(self) -> str:
        """The bases."""

    @property
    def qualities(self) -> str | None:
        """The characters of the qualities; None in FASTA."""


@dataclass(frozen=True, slots=True)
class Record:
    """A read, or another sequence.

    Attributes:
        name: the header, without ``@`` or ``>``.
        sequence: the bases.
        qualities: the characters of the qualities, as many; None in FASTA.

    Raises:
        UsageError: sequence and qualities differ in length.
    """

    name: str
    sequence: str
    qualities: str | None = None

    def __post_init__(self) -> None:
        if self.qualities is not None and len(self.qualities) != len(self.sequence):
            raise UsageError(
                f"record {self.name!r}: {len(self.sequence)} bases, but {len(self.qualities)} "
                "qualities"
            )

    def __len__(self) -> int:
        return len(self.sequence)

    def __getitem__(self, place: slice | int) -> Record:
        """Some of the bases with their qualities, under the same name."""
        qualities = None if self.qualities is None else self.qualities[place]
        return Record(self.name, self.sequence[place], qualities)

    @property
    def id(self) -> str:
        """The first word of the name."""
        return self.name.split(maxsplit=1)[0] if self.name else ""

    def reverse_complement(self) -> Record:
        """The other strand, under the same name."""
        qualities = None if self.qualities is None else self.qualities[::-1]
        return Record(self.name, self.sequence[::-1].translate(_COMPLEMENT), qualities)

    def fastq_bytes(self) -> bytes:
        """The record as FASTQ.

        Raises:
            UsageError: it has no qualities.
        """
        return fastq_bytes(self)

    def fasta_bytes(self) -> bytes:
        """The record as FASTA, the sequence in one line."""
        return fasta_bytes(self)


def fastq_bytes(record: RecordLike) -> bytes:
    """A record as FASTQ.

    Raises:
        UsageError: it has no qualities, or a line end within it.
    """
    if record.qualities is None:
        raise UsageError(f"record {record.name!r} has no qualities; write FASTA")
    return _encoded(f"@{record.name}\n{record.sequence}\n+\n{record.qualities}\n", 4, record)


def fasta_bytes(record: RecordLike) -> bytes:
    """A record as FASTA, the sequence in one line.

    Raises:
        UsageError: it has a line end within it.
    """
    return _encoded(f">{record.name}\n{record.sequence}\n", 2, record)


def _encoded(text: str, lines: int, record: RecordLike) -> bytes:
    if text.count("\n") != lines:
        raise UsageError(f"record {record.name!r} has a line end within it")
    return text.encode(errors="surrogateescape")


def records_of(batch: RecordBatch) -> Iterator[Record]:
    """The records of a batch, one Python object each."""
    text = batch.text.tobytes().decode("latin-1")
    shift = batch.begin
    starts = batch.seq_start if batch.qual_start is None else batch.qual_start
    places = zip(
        (batch.header_start - shift).tolist(),
        (batch.header_end - shift).tolist(),
        (batch.seq_start - shift).tolist(),
        (batch.seq_end - shift).tolist(),
        batch.seq_len.tolist(),
        (starts - shift).tolist(),
        strict=True,
    )
    has_qualities = batch.qual_start is not None
    for header, header_end, start, end, length, quality in places:
        name, sequence = text[header:header_end], text[start:end]
        if not name.isascii():
            name = name.encode("latin-1").decode(errors="surrogateescape")
        if len(sequence) != length:
            sequence = "".join(sequence.split())
        yield Record(name, sequence, text[quality : quality + length] if has_qualities else None)
