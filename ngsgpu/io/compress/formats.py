"""The formats that are read, those that are known but refused, and those that are written.

A new format that is read is a ``Compression``, in a module of this folder, and an
entry of ``FORMATS``; one that is written is a ``Packing``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.errors import InputError
from ngsgpu.io.compress.alignments import BAM, CRAM
from ngsgpu.io.compress.bgzf import BGZF
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, EOF_BLOCK
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL
from ngsgpu.io.compress.gzip import GZIP
from ngsgpu.io.compress.reads.blocks import reads_blocks
from ngsgpu.io.compress.stream import MAGIC_BYTES, Compression, Opened
from ngsgpu.io.compress.streams import (
    BZIP2,
    BZIP2_PIECE_BYTES,
    XZ,
    XZ_PIECE_BYTES,
    compress_bzip2,
    compress_xz,
)
from ngsgpu.io.compress.zstd import FRAME_BYTES, ZSTD, compress_frame, seek_table

PLAIN: Final = Compression("plain", "plain", (b"",), lambda file: file)
"""Files that are not compressed."""

FORMATS: Final = (BAM, CRAM, BGZF, GZIP, BZIP2, XZ, ZSTD)
"""In the order in which they are looked for; what is none of them is plain."""

_REFUSED: Final = (
    (b"\x04\x22\x4d\x18", "compressed with lz4, which is not read here", "lz4 -dc"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    (b"LZIP", "compressed with lzip, which is not read here", "lzip -dc"),
    (b"\x5d\x00\x00", "compressed with lzma, which is not read here", "unlzma -c"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so"),
    (b"\x1f\x9d", "compressed with compress (.Z), which is not read here", "gzip -dc"),
)

PACKED_ENDINGS: Final = tuple(ending for kind in FORMATS for ending in kind.endings)
"""Of the names of compressed files."""


def without_packing(name: str) -> str:
    """A file's name without the endings that say how it is compressed."""
    for ending in PACKED_ENDINGS:
        name = name.removesuffix(ending)
    return name


FASTA_ENDINGS: Final = (".fa", ".fna", ".fasta", ".fas", ".ffn", ".fsa")


def is_named_fasta(path: str | Path) -> bool:
    """Whether a file has the name of a FASTA file, compressed or not."""
    return without_packing(Path(path).name.lower()).endswith(FASTA_ENDINGS)


def recognise(file: Opened) -> Compression:
    """The format of a file, by its first bytes.

    Raises:
        InputError: it is one that is known, but not read.
        OSError: the disk fails.
    """
    for kind in FORMATS:
        if kind.matches(file):
            return kind
    head = file.peek(MAGIC_BYTES)
    for magic, cause, command in _REFUSED:
        if head.startswith(magic):
            remedy = f"decompress it first, for instance with `{command}`, or recompress with gzip"
            raise InputError(file.path, cause, remedy)
    return PLAIN


@dataclass(frozen=True, slots=True)
class Packing:
    """A format of compressed outputs, made of pieces that are compressed independently.

    Attributes:
        endings: of the names of files that are compressed so.
        piece_bytes: uncompressed bytes of a piece; the last may be shorter.
        unit_bytes: of the parts of a piece that are compressed independently; ``pack`` takes any
            number of whole ones, from ``LEAST_PACKED`` bytes on with the same result.
        pack: compresses a piece at a level of 1 to 12.
        end: what ends the file, from the compressed and uncompressed bytes of its pieces.
    """

    endings: tuple[str, ...]
    piece_bytes: int
    unit_bytes: int
    pack: Callable[[bytes | memoryview, int], bytes | memoryview]
    end: Callable[[list[tuple[int, int]]], bytes]


def packing_of(path: str | Path) -> Packing | None:
    """How an output of this name is compressed; None if it is plain."""
    name = str(path).lower()
    return next((one for one in _PACKINGS if name.endswith(one.endings)), None)


def _end_bgzf(sizes: list[tuple[int, int]]) -> bytes:
    return EOF_BLOCK


def _end_streams(
    compress: Callable[[bytes, int], bytes],
) -> Callable[[list[tuple[int, int]]], bytes]:
    """Nothing ends streams, but a file without any is none of their format."""
    return lambda sizes: b"" if sizes else compress(b"", DEFAULT_LEVEL)


def _end_zstd(sizes: list[tuple[int, int]]) -> bytes:
    if sizes:
        return seek_table(sizes)
    # A file without any frame is none of zstd's.
    frame = compress_frame(b"", DEFAULT_LEVEL)
    return frame + seek_table([(len(frame), 0)])


LEAST_PACKED: Final = 1 << 20
"""Bytes from which on all are packed alike; fewer may be left to what needs nothing compiled."""

BGZF_PIECE_BYTES: Final = 64 * BLOCK_BYTES
"""Each passes through a queue and takes Python's lock a few times; larger ones do so less often."""


def _streams(
    ending: str, piece_bytes: int, compress: Callable[[bytes | memoryview, int], bytes]
) -> Packing:
    return Packing((ending,), piece_bytes, piece_bytes, compress, _end_streams(compress))


_PACKINGS: Final = (
    Packing((".gz", ".bgz", ".bgzf"), BGZF_PIECE_BYTES, BLOCK_BYTES, reads_blocks, _end_bgzf),
    Packing((".zst",), FRAME_BYTES, FRAME_BYTES, compress_frame, _end_zstd),
    Packing(
        (".bz2",),
        BZIP2_PIECE_BYTES,
        BZIP2_PIECE_BYTES,
        compress_bzip2,
        _end_streams(compress_bzip2),
    ),
    Packing((".xz",), XZ_PIECE_BYTES, XZ_PIECE_BYTES, compress_xz, _end_streams(compress_xz)),
)
