"""Records: a read or another sequence as a Python object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from ngsgpu.errors import UsageError
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import DEFAULT_LIMITS
from ngsgpu.io.text.scan import BASES, FASTA_BASES

_QUALITIES: Final = bytes(range(33, 127))
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


def check_record(record: RecordLike) -> None:
    """Check that something has the name, sequence and qualities of a record, as text.

    Raises:
        UsageError: it has not.
    """
    try:
        name, sequence, qualities = record.name, record.sequence, record.qualities
    except AttributeError:
        raise UsageError(
            f"{record!r:.40} is no record: that has name, sequence and qualities"
        ) from None
    for what, text in (("name", name), ("sequence", sequence), ("qualities", qualities or "")):
        if not isinstance(text, str):
            raise UsageError(f"{what} of a record must be text, not {type(text).__name__}")


def fastq_bytes(record: RecordLike) -> bytes:
    """A record as FASTQ.

    Raises:
        UsageError: it has no qualities, or something that no FASTQ file may have.
    """
    check_record(record)
    if record.qualities is None:
        raise UsageError(f"record {record.name!r} has no qualities; write FASTA")
    if len(record.qualities) != len(record.sequence):
        counts = f"{len(record.sequence)} bases, but {len(record.qualities)} qualities"
        raise UsageError(f"record {record.name!r}: {counts}")
    name, bases = _encoded(record, BASES)
    qualities = record.qualities.encode(errors="backslashreplace")
    if len(qualities) != len(bases) or qualities.translate(None, _QUALITIES):
        raise UsageError(f"record {record.name!r}: qualities must be characters from '!' to '~'")
    return b"@%b\n%b\n+\n%b\n" % (name, bases, qualities)


def fasta_bytes(record: RecordLike) -> bytes:
    """A record as FASTA, the sequence in one line.

    Raises:
        UsageError: it has something that no FASTA file may have.
    """
    check_record(record)
    return b">%b\n%b\n" % _encoded(record, FASTA_BASES)


def _encoded(record: RecordLike, letters: bytes) -> tuple[bytes, bytes]:
    """Name and sequence of a record, as a reader takes them."""
    try:
        name = record.name.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(f"record {record.name!a}: the name cannot be written as UTF-8") from None
    if any(end in part for end in "\n\r" for part in (record.name, record.sequence)):
        raise UsageError(f"record {record.name!r} has a line end within it")
    if b"\0" in name or len(name) > DEFAULT_LIMITS.header_bytes:
        raise UsageError(f"record {record.name[:80]!r}: a name is at most 1 MiB, without NUL")
    bases = record.sequence.encode("ascii", "replace")  # '?' is none of the letters
    if others := bases.translate(None, letters):
        raise UsageError(
            f"record {record.name!r}: {others[:1].decode()!r} in the sequence is no nucleotide code"
        )
    return name, bases


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
