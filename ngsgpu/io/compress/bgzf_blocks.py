"""Writes BGZF blocks, many at a time while other Python threads go on."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np

from ngsgpu.io.compress.deflate import call, compressed, libdeflate
from ngsgpu.jit import njit

BLOCK_BYTES: Final = 65280
"""Uncompressed bytes per block, as in bgzip: even incompressible data fit a 64 KiB block."""

EOF_BLOCK: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block that ends a BGZF file; a file without it may have been cut short."""

MOST_BLOCK_BYTES: Final = 1 << 16
HEADER_BYTES: Final = 18
FOOTER_BYTES: Final = 8

_HEADER: Final = bytes.fromhex("1f8b08040000000000ff060042430200")
_HEADER_ARRAY: Final = np.frombuffer(_HEADER, dtype=np.uint8)

_SMALL: Final = 1 << 19
"""Bytes below which blocks are made one by one, which does not need Numba."""


def bgzf_blocks(data: bytes | memoryview, level: int) -> bytes | memoryview:
    """BGZF blocks that hold ``data``; all but the last are full.

    Args:
        data: uncompressed bytes.
        level: as for ``compressed``.
    """
    if len(data) < _SMALL:
        return b"".join(
            _block(data[start : start + BLOCK_BYTES], level)
            for start in range(0, len(data), BLOCK_BYTES)
        )
    blocks = -(-len(data) // BLOCK_BYTES)
    # One block more than there are: libdeflate is given more room than a block may have.
    out = np.empty((blocks + 1) * MOST_BLOCK_BYTES, dtype=np.uint8)
    size = _put_blocks(np.frombuffer(data, dtype=np.uint8), level, libdeflate(), out)
    if size < 0:
        raise MemoryError
    return out[:size].data


def _block(piece: bytes | memoryview, level: int) -> bytes:
    body = compressed(piece, level, raw=True)
    if len(body) > MOST_BLOCK_BYTES - HEADER_BYTES - FOOTER_BYTES:
        # As they are: incompressible bytes.
        body = b"\x01" + struct.pack("<HH", len(piece), len(piece) ^ 0xFFFF) + bytes(piece)
    size = struct.pack("<H", len(body) + HEADER_BYTES + FOOTER_BYTES - 1)
    footer = struct.pack("<II", zlib.crc32(piece), len(piece))
    return b"".join([_HEADER, size, body, footer])


@njit(nogil=True, cache=True)
def _put_blocks(text, level, functions, out):  # type: ignore[no-untyped-def]
    """Put the blocks of a text into ``out``; their size, or -1 if there is no memory for it."""
    compressor = call(functions.new, (level,))
    if compressor == 0:
        return -1
    at = 0
    for begin in range(0, text.size, BLOCK_BYTES):
        piece = text[begin : begin + BLOCK_BYTES]
        size = put_deflated(piece, compressor, functions, out, at + HEADER_BYTES)
        at = finish_block(piece, functions, out, at, size)
    call(functions.free, (compressor,))
    return at


@njit(nogil=True, cache=True, _nrt=False)
def put_deflated(piece, compressor, functions, out, body):  # type: ignore[no-untyped-def]
    """Put the stream that libdeflate makes of a block, or the block as it is; the bytes put."""
    room = out.size - body
    size = call(
        functions.deflate,
        (compressor, piece.ctypes.data, piece.size, out[body:].ctypes.data, room),
    )
    if size == 0 or size > MOST_BLOCK_BYTES - HEADER_BYTES - FOOTER_BYTES:
        size = put_stored(piece, out, body)
    return size


@njit(nogil=True, cache=True, _nrt=False)
def put_stored(piece, out, body):  # type: ignore[no-untyped-def]
    """Put a block as it is, in a deflate stream; the bytes put."""
    out[body] = 1
    _put(out, body + 1, piece.size, 2)
    _put(out, body + 3, piece.size ^ 0xFFFF, 2)
    for place in range(piece.size):
        out[body + 5 + place] = piece[place]
    return 5 + piece.size


@njit(nogil=True, cache=True, _nrt=False)
def finish_block(piece, functions, out, at, size):  # type: ignore[no-untyped-def]
    """Put what is before and after a stream of ``size`` bytes; where the next block begins."""
    for place in range(_HEADER_ARRAY.size):
        out[at + place] = _HEADER_ARRAY[place]
    _put(out, at + HEADER_BYTES - 2, size + HEADER_BYTES + FOOTER_BYTES - 1, 2)
    at += HEADER_BYTES + size
    crc = call(functions.crc32, (0, piece.ctypes.data, piece.size))
    _put(out, at, crc, 4)
    _put(out, at + 4, piece.size, 4)
    return at + FOOTER_BYTES


@njit(nogil=True, cache=True, _nrt=False)
def _put(out, at, value, count):  # type: ignore[no-untyped-def]
    """Put the low bytes of a number, the lowest first."""
    for k in range(count):
        out[at + k] = (value >> (8 * k)) & 0xFF
