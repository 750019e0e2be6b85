"""Writes BGZF blocks at any level: at 1 with the encoder for reads, wherever there are any."""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.io.compress.bgzf_blocks import (
    BLOCK_BYTES,
    FOOTER_BYTES,
    HEADER_BYTES,
    MOST_BLOCK_BYTES,
    bgzf_blocks,
    finish_block,
    put_deflated,
    put_stored,
)
from ngsgpu.io.compress.deflate import call, libdeflate
from ngsgpu.io.compress.reads.bits import PADDING, new_work, put_stream
from ngsgpu.jit import njit

LEVEL: Final = 1
"""The level of the encoder for reads."""

MOST_STREAM_BYTES: Final = MOST_BLOCK_BYTES - HEADER_BYTES - FOOTER_BYTES
"""Bytes of a block's stream; what would have more is stored as it is."""

LEAST_BYTES: Final = 1 << 19
"""Data shorter than this are left to libdeflate, which does not need Numba."""


def reads_blocks(data: bytes | memoryview, level: int) -> bytes | memoryview:
    """BGZF blocks that hold ``data``; all but the last are full.

    They depend on nothing but data and level.

    Args:
        data: uncompressed bytes.
        level: as for ``compressed``.
    """
    if level != LEVEL or len(data) < LEAST_BYTES:
        return bgzf_blocks(data, level)
    text = np.frombuffer(data, dtype=np.uint8)
    text.flags.writeable = False  # one type for Numba, which compiles this for 10 s
    # One block more than there are: encoders are given more room than a block may have.
    out = np.empty((-(-text.size // BLOCK_BYTES) + 1) * MOST_BLOCK_BYTES, dtype=np.uint8)
    work, most = new_work(BLOCK_BYTES), MOST_STREAM_BYTES
    size = _put_blocks(text, level, most, libdeflate(), work, out)
    if size < 0:
        raise MemoryError
    return out[:size].data


@njit(nogil=True, cache=True)
def _put_blocks(text, level, most, functions, work, out):  # type: ignore[no-untyped-def]
    """Put the blocks of a text into ``out``; their size, or -1 if there is no memory for it."""
    compressor = call(functions.new, (level,))
    if compressor == 0:
        return -1
    at = 0
    for begin in range(0, text.size, BLOCK_BYTES):
        piece = text[begin : begin + BLOCK_BYTES]
        block = piece
        if begin + piece.size + PADDING > text.size:
            # The encoder reads behind a block.
            block = work.padded
            block[: piece.size] = piece
        body = at + HEADER_BYTES
        place = np.int64(out[body:].ctypes.data)
        size = put_stream(np.int64(block.ctypes.data), np.int64(piece.size), work, place, most)
        if size < 0:
            size = put_stored(piece, out, body)
        elif size == 0:
            size = put_deflated(piece, compressor, functions, out, body)
        at = finish_block(piece, functions, out, at, size)
    call(functions.free, (compressor,))
    return at
