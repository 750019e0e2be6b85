"""The formats that are read, and those that are known but refused.

A new format is a module of this folder that ends in a ``Compression``, and a line in ``FORMATS``.
"""

from __future__ import annotations

from typing import Final

from ngsgpu.errors import InputError
from ngsgpu.io.compress.alignments import BAM, CRAM
from ngsgpu.io.compress.bgzf import BGZF
from ngsgpu.io.compress.bzip2 import BZIP2
from ngsgpu.io.compress.gzip import GZIP
from ngsgpu.io.compress.stream import MAGIC_BYTES, Compression, Opened
from ngsgpu.io.compress.xz import XZ
from ngsgpu.io.compress.zstd import ZSTD

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
