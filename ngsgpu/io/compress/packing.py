"""How outputs are compressed, by the endings of their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, EOF_BLOCK
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL
from ngsgpu.io.compress.reads.blocks import reads_blocks
from ngsgpu.io.compress.zstd import FRAME_BYTES, compress_frame, seek_table


@dataclass(frozen=True, slots=True)
class Packing:
    """A format of compressed outputs, made of pieces that are compressed independently.

    Attributes:
        endings: of the names of files that are compressed so.
        piece_bytes: uncompressed bytes of a piece; the last may be shorter.
        pack: compresses a piece at a level of 1 to 12.
        end: what ends the file, from the compressed and uncompressed bytes of its pieces.
    """

    endings: tuple[str, ...]
    piece_bytes: int
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


BGZF_PIECE_BYTES: Final = 64 * BLOCK_BYTES
"""Each passes through a queue and takes Python's lock a few times; larger ones do so less often."""

_PACKINGS: Final = (
    Packing((".gz", ".bgz", ".bgzf"), BGZF_PIECE_BYTES, reads_blocks, _end_bgzf),
    Packing((".zst",), FRAME_BYTES, compress_frame, _end_zstd),
)
