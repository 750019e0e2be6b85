"""Helpers of the tests of reading and writing: records as plain Python objects."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ngsgpu.io.compress.bgzf_blocks import EOF_BLOCK
from ngsgpu.io.compress.source import Source
from ngsgpu.io.compress.zstd import library as zstd
from ngsgpu.io.text.batch import RecordBatch

BASES = b"ACGTUNRYSWKMBDHVacgtunryswkmbdhv."


class Record(NamedTuple):
    header: bytes
    bases: bytes
    qualities: bytes | None


def records_of(batches: Iterable[RecordBatch]) -> tuple[list[Record], bytes]:
    """All records of some batches, and the batches' data joined; checks that they fit."""
    records: list[Record] = []
    data = b""
    for batch in batches:
        assert len(batch) > 0
        assert batch.first_record == len(records)
        text = batch.data.tobytes()
        titles = headers(batch)
        assert [name_of(title) for title in titles] == batch.names()
        for i in range(len(batch)):
            bases = text[batch.seq_start[i] : batch.seq_end[i]]
            bases = bases.replace(b"\n", b"").replace(b"\r", b"")
            assert len(bases) == batch.seq_len[i]
            qualities = None
            if batch.qual_start is not None:
                start = int(batch.qual_start[i])
                qualities = text[start : start + int(batch.seq_len[i])]
            records.append(Record(titles[i], bases, qualities))
        data += batch.text.tobytes()
    return records, data


def headers(batch: RecordBatch) -> list[bytes]:
    text = batch.data.tobytes()
    return [text[a:b] for a, b in zip(batch.header_start, batch.header_end, strict=True)]


def name_of(header: bytes) -> bytes:
    return re.split(rb"[ \t]", header, maxsplit=1)[0]


def fastq(records: Iterable[Record], end: bytes = b"\n") -> bytes:
    return b"".join(
        b"@" + r.header + end + r.bases + end + b"+" + end + (r.qualities or b"") + end
        for r in records
    )


def fasta(records: Iterable[Record], end: bytes = b"\n", width: int | None = None) -> bytes:
    text = b""
    for record in records:
        text += b">" + record.header + end
        step = width or max(1, len(record.bases))
        for start in range(0, len(record.bases), step):
            text += record.bases[start : start + step] + end
    return text


def reads(count: int, *, mate: bytes = b"", length: int = 20) -> list[Record]:
    """Some plain reads."""
    letters = b"ACGTTGCAACGGTTCA" * (length // 16 + 2)
    return [
        Record(b"read%d%s" % (i, mate), letters[i % 16 : i % 16 + length], b"F" * length)
        for i in range(count)
    ]


def bgzf(data: bytes, block: int = 100, *, end_marker: bool = True) -> bytes:
    """BGZF blocks made with zlib alone, as an independent check of the reader."""
    out = b""
    for start in range(0, len(data), block):
        piece = data[start : start + block]
        deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = deflater.compress(piece) + deflater.flush()
        head = struct.pack("<4BI2BH2B2H", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(body) + 25)
        out += head + body + struct.pack("<2I", zlib.crc32(piece), len(piece))
    return out + (EOF_BLOCK if end_marker else b"")


def members(data: bytes, size: int) -> bytes:
    """A gzip file of several members."""
    pieces = [data[i : i + size] for i in range(0, len(data), size)] or [b""]
    return b"".join(gzip.compress(piece, 1) for piece in pieces)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def compression(path: Path) -> str:
    source = Source(path, threads=1, chunk_bytes=1)
    source.close()
    return source.compression


def decompressed(path: Path) -> bytes:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"BZh"):
        return bz2.decompress(data)
    if data.startswith(b"\xfd7zXZ"):
        return lzma.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return zstd.decompress(data)
    return data


def text_of(path: Path | str, *, threads: int = 2, chunk_bytes: int = 1 << 16) -> bytes:
    """The whole text of a file of reads, packed or not."""
    source = Source(path, threads=threads, chunk_bytes=chunk_bytes)
    try:
        return b"".join(chunk.data.tobytes() for chunk in source.chunks())
    finally:
        source.close()
