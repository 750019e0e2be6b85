"""How outputs are compressed, by the endings of their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.io.compress.bgzf import BLOCK_BYTES, EOF_BLOCK, deflate
from ngsgpu.io.compress.zstd import FRAME_BYTES, compress_frame, seek_table


@dataclass(frozen=True, slots=True)
class Packing:
    """A format of compressed outputs, made of pieces that are compressed independently.

    Attributes:
        endings: of the names of files that are compressed so.
        piece_bytes: uncompressed bytes of a piece; the last may be shorter.
        level: compression level unless another is asked for.
        pack: compresses a piece at a level of 1 to 9.
        end: what ends the file, from the compressed and uncompressed bytes of its pieces.
    """

    endings: tuple[str, ...]
    piece_bytes: int
    level: int
    pack: Callable[[bytes | memoryview, int], bytes]
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
    frame = compress_frame(b"", ZSTD_LEVEL)
    return frame + seek_table([(len(frame), 0)])


DEFAULT_LEVEL: Final = 2
"""ISA-L's middle level: about the size of gzip -3 at many times its speed."""
ZSTD_LEVEL: Final = 1
"""Already smaller than BGZF at its default; docs/formats.md has the figures."""

_PACKINGS: Final = (
    Packing((".gz", ".bgz", ".bgzf"), 16 * BLOCK_BYTES, DEFAULT_LEVEL, deflate, _end_bgzf),
    Packing((".zst",), FRAME_BYTES, ZSTD_LEVEL, compress_frame, _end_zstd),
)
