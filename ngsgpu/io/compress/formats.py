"""The formats that are read, those that are known but refused, and those that are written.

A new format that is read is a ``Compression``, in a module of this folder unless the standard
library inflates it, and an entry of ``FORMATS``; one that is written is a ``Packing``.
"""

from __future__ import annotations

import bz2
import io
import lzma
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
from ngsgpu.io.compress.stream import MAGIC_BYTES, Compression, Opened, Owning
from ngsgpu.io.compress.zstd import FRAME_BYTES, ZSTD, compress_frame, seek_table


def _bzip2(file: Opened) -> Owning:
    buffered = io.BufferedReader(file, 1 << 20)
    return Owning(bz2.BZ2File(buffered), buffered)


def _xz(file: Opened) -> Owning:
    buffered = io.BufferedReader(file, 1 << 20)
    return Owning(lzma.LZMAFile(buffered), buffered)


BZIP2: Final = Compression("bzip2", "bzip2", (b"BZh",), _bzip2, endings=(".bz2",))
XZ: Final = Compression("xz", "xz", (b"\xfd7zXZ\x00",), _xz, (lzma.LZMAError,), (".xz",))
PLAIN: Final = Compression("plain", "plain", (b"",), lambda file: file)
"""Files that are not compressed."""

FORMATS: Final = (BAM, CRAM, BGZF, GZIP, BZIP2, XZ, ZSTD)
"""In the order in which they are looked for; what is none of them is plain."""

_REFUSED: Final = (
    (b"\x04\x22\x4d\x18", "compressed with lz4, which is not read here", "lz4 -dc"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    (b"\x1f\x9d", "compressed with compress (.Z), which is not read here", "uncompress -c"),
)

PACKED_ENDINGS: Final = tuple(ending for kind in FORMATS for ending in kind.endings)
"""Of the names of compressed files."""


def without_packing(name: str) -> str:
    """A file's name without the endings that say how it is compressed."""
    for ending in PACKED_ENDINGS:
        name = name.removesuffix(ending)
    return name


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
    return next((one for one in _PACKINGS if str(path).endswith(one.endings)), None)


def _end_bgzf(sizes: list[tuple[int, int]]) -> bytes:
    return EOF_BLOCK


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

_PACKINGS: Final = (
    Packing((".gz", ".bgz", ".bgzf"), BGZF_PIECE_BYTES, BLOCK_BYTES, reads_blocks, _end_bgzf),
    Packing((".zst",), FRAME_BYTES, FRAME_BYTES, compress_frame, _end_zstd),
)
