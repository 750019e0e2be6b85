"""BAM files made byte by byte, and what ``samtools fastq`` makes of them, in plain Python."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.support.io.records import Record, bgzf

CODES: Final = b"=ACMGRSVTWYHKDBN"
_COMPLEMENT: Final = bytes.maketrans(b"ACMGRSVTWYHKDBN", b"TGKCYSBAWRDMHVN")

PAIRED: Final = 0x1
UNMAPPED: Final = 0x4
REVERSE: Final = 0x10
FIRST: Final = 0x40
SECOND: Final = 0x80
SECONDARY: Final = 0x100
QC_FAIL: Final = 0x200
SUPPLEMENTARY: Final = 0x800


class Alignment(NamedTuple):
    """A record of a BAM file.

    Attributes:
        name: of the read.
        flags: as in SAM.
        bases: letters of ``CODES``.
        qualities: numbers, as many as bases, or None.
        cigar: operations, packed.
        tags: packed.
    """

    name: bytes
    flags: int
    bases: bytes
    qualities: bytes | None
    cigar: tuple[int, ...] = ()
    tags: bytes = b""


def packed(record: Alignment) -> bytes:
    """The bytes of a record."""
    codes = [CODES.index(base) for base in record.bases] + [0]
    pairs = bytes(codes[i] << 4 | codes[i + 1] for i in range(0, len(record.bases), 2))
    qualities = b"\xff" * len(record.bases) if record.qualities is None else record.qualities
    name = record.name + b"\0"
    fixed = struct.pack(
        "<iiBBHHHiiii", -1, -1, len(name), 0, 4680, len(record.cigar), record.flags,
        len(record.bases), -1, -1, 0,
    )  # fmt: skip
    cigar = struct.pack(f"<{len(record.cigar)}I", *record.cigar)
    body = fixed + name + cigar + pairs + qualities + record.tags
    return struct.pack("<i", len(body)) + body


def content(records: Iterable[Alignment], header: bytes = b"@HD\tVN:1.6\n") -> bytes:
    """The inflated bytes of a BAM file."""
    start = b"BAM\1" + struct.pack("<i", len(header)) + header + struct.pack("<i", 1)
    reference = struct.pack("<i", 2) + b"c\0" + struct.pack("<i", 1000)
    return start + reference + b"".join(map(packed, records))


def bam(records: Iterable[Alignment], block: int = 1000, *, end_marker: bool = True) -> bytes:
    """A BAM file, with blocks of so many bytes."""
    return bgzf(content(records), block, end_marker=end_marker)


def pairs_of(firsts: Iterable[Record], seconds: Iterable[Record]) -> list[Alignment]:
    """Unaligned pairs; names without mate numbers."""
    return [
        Alignment(
            read.header.partition(b"/")[0],
            PAIRED | UNMAPPED | mate,
            read.bases,
            bytes(quality - 33 for quality in read.qualities or b""),
        )
        for pair in zip(firsts, seconds, strict=True)
        for read, mate in zip(pair, (FIRST, SECOND), strict=True)
    ]


def as_fastq(records: Iterable[Alignment]) -> bytes:
    """What ``samtools fastq`` writes."""
    kept = [one for one in records if one.bases and not one.flags & (SECONDARY | SUPPLEMENTARY)]
    text = []
    while kept:
        one = kept.pop(0)
        if kept and _mate(one) == b"/2" and _mate(kept[0]) == b"/1" and kept[0].name == one.name:
            text.append(_text(kept.pop(0)))
        text.append(_text(one))
    return b"".join(text)


def _mate(record: Alignment) -> bytes:
    if not record.flags & PAIRED:
        return b""
    return {FIRST: b"/1", SECOND: b"/2"}.get(record.flags & (FIRST | SECOND), b"")


def _text(record: Alignment) -> bytes:
    bases, name = record.bases, record.name + _mate(record)
    scores = [33] * len(bases) if record.qualities is None else list(record.qualities)
    if record.flags & REVERSE:
        bases, scores = bases.translate(_COMPLEMENT)[::-1], scores[::-1]
    return b"@%b\n%b\n+\n%b\n" % (name, bases, bytes(score + 33 for score in scores))


def read_bam(data: bytes) -> bytes:
    """The FASTQ text of a BAM file, read slowly.

    Raises:
        OSError: or EOFError, zlib.error, ValueError, struct.error: the file is damaged.
    """
    text = gzip.decompress(data)
    if text[:4] != b"BAM\1":
        raise ValueError("no BAM file")
    at = 8 + struct.unpack_from("<i", text, 4)[0]
    (references,) = struct.unpack_from("<i", text, at)
    at += 4
    for _ in range(references):
        at += 8 + struct.unpack_from("<i", text, at)[0]
    found = []
    while at < len(text):
        (size,) = struct.unpack_from("<i", text, at)
        found.append(_unpacked(text[at + 4 : at + 4 + size], size))
        at += 4 + size
    return as_fastq(found)


def _unpacked(body: bytes, size: int) -> Alignment:
    if len(body) < size:
        raise EOFError
    name_size, _, _, operations, flags, length = struct.unpack_from("<BBHHHi", body, 8)
    at = 32 + name_size + 4 * operations
    name = body[32 : 32 + name_size - 1]
    codes = [code for both in body[at : at + (length + 1) // 2] for code in (both >> 4, both & 15)]
    at += (length + 1) // 2
    qualities = body[at : at + length]
    bases = bytes(CODES[code] for code in codes[:length])
    absent = qualities[:1] == b"\xff"
    return Alignment(name, flags, bases, None if absent else qualities)
