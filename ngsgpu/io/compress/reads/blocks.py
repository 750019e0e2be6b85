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
    put_by,
    put_deflated,
    put_stored,
)
from ngsgpu.io.compress.deflate import Functions, call
from ngsgpu.io.compress.reads.bits import PADDING, WORK_BYTES, put_stream, work_at
from ngsgpu.machine_code import machine_code
from ngsgpu.sequence.intrinsics import array_at

LEVEL: Final = 1
"""The level of the encoder for reads."""

MOST_STREAM_BYTES: Final = MOST_BLOCK_BYTES - HEADER_BYTES - FOOTER_BYTES
"""Bytes of a block's stream; what would have more is stored as it is."""

LEAST_BYTES: Final = 1 << 19
"""Data shorter than this are left to libdeflate, which needs no code that has to be compiled."""


def reads_blocks(data: bytes | memoryview, level: int) -> bytes | memoryview:
    """BGZF blocks that hold ``data``; all but the last are full.

    They depend on nothing but data and level.

    Args:
        data: uncompressed bytes.
        level: as for ``compressed``.
    """
    if level != LEVEL or len(data) < LEAST_BYTES:
        return bgzf_blocks(data, level)
    work = np.empty(WORK_BYTES // 8, dtype=np.int64)
    return put_by(_put_blocks, data, level, MOST_STREAM_BYTES, work.ctypes.data)


@machine_code
def _put_blocks(text, size, level, most, work, out, new, deflate, crc32, free):  # type: ignore[no-untyped-def]
    """Put the blocks of a text into ``out``; their size, or -1 if there is no memory for it.

    Args:
        text: its address.
        size: of the text, bytes.
        level: of ``compressed``.
        most: bytes of a block's stream.
        work: address of memory for ``work_at``.
        out: address of the blocks, with room for one of ``MOST_BLOCK_BYTES`` more than there are.
        new: address of a function, see ``Functions``, as are those of the others.
        deflate: of the function.
        crc32: of the function.
        free: of the function.
    """
    functions = Functions(new, deflate, 0, crc32, free, 0, 0, 0)
    compressor = call(new, (level,))
    if compressor == 0:
        return -1
    memory = work_at(work)
    made = array_at(out, (-(-size // BLOCK_BYTES) + 1) * MOST_BLOCK_BYTES, np.uint8)
    at = 0
    for begin in range(0, size, BLOCK_BYTES):
        own = min(BLOCK_BYTES, size - begin)
        piece = array_at(text + begin, own, np.uint8)
        block = text + begin
        if begin + own + PADDING > size:
            # The encoder reads behind a block.
            block = work
            for place in range(own):
                memory.padded[place] = piece[place]
        body = at + HEADER_BYTES
        stream = put_stream(block, own, memory, out + body, most)
        if stream < 0:
            stream = put_stored(piece, made, body)
        elif stream == 0:
            stream = put_deflated(piece, compressor, functions, made, body)
        at = finish_block(piece, functions, made, at, stream)
    call(free, (compressor,))
    return at
