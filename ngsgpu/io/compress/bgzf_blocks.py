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

_MAX_BLOCK: Final = 1 << 16
_HEADER: Final = bytes.fromhex("1f8b08040000000000ff060042430200")
_HEADER_BYTES: Final = 18
_FOOTER_BYTES: Final = 8
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
    out = np.empty((blocks + 1) * _MAX_BLOCK, dtype=np.uint8)
    size = _put_blocks(np.frombuffer(data, dtype=np.uint8), level, libdeflate(), out)
    if size < 0:
        raise MemoryError
    return out[:size].data


def _block(piece: bytes | memoryview, level: int) -> bytes:
    body = compressed(piece, level, raw=True)
    if len(body) > _MAX_BLOCK - _HEADER_BYTES - _FOOTER_BYTES:
        # As they are: incompressible bytes.
        body = b"\x01" + struct.pack("<HH", len(piece), len(piece) ^ 0xFFFF) + bytes(piece)
    size = struct.pack("<H", len(body) + _HEADER_BYTES + _FOOTER_BYTES - 1)
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
        body = at + _HEADER_BYTES
        room = out.size - body
        size = call(
            functions.deflate,
            (compressor, piece.ctypes.data, piece.size, out[body:].ctypes.data, room),
        )
        if size == 0 or size > _MAX_BLOCK - _HEADER_BYTES - _FOOTER_BYTES:
            out[body] = 1
            _put(out, body + 1, piece.size, 2)
            _put(out, body + 3, piece.size ^ 0xFFFF, 2)
            out[body + 5 : body + 5 + piece.size] = piece
            size = 5 + piece.size
        out[at : at + _HEADER_ARRAY.size] = _HEADER_ARRAY
        _put(out, body - 2, size + _HEADER_BYTES + _FOOTER_BYTES - 1, 2)
        at = body + size
        crc = call(functions.crc32, (0, piece.ctypes.data, piece.size))
        _put(out, at, crc, 4)
        _put(out, at + 4, piece.size, 4)
        at += _FOOTER_BYTES
    call(functions.free, (compressor,))
    return at


@njit(nogil=True, cache=True)
def _put(out, at, value, count):  # type: ignore[no-untyped-def]
    """Put the low bytes of a number, the lowest first."""
    for k in range(count):
        out[at + k] = (value >> (8 * k)) & 0xFF
