"""Writes BGZF blocks, many at a time while other Python threads go on."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np

from ngsgpu.io.compress.deflate import Functions, call, compressed, libdeflate
from ngsgpu.jit import njit
from ngsgpu.machine_code import MachineCode, machine_code
from ngsgpu.sequence.intrinsics import array_at

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
"""Bytes below which blocks are made one by one, without code that has to be compiled."""


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
    return put_by(_put_blocks, data, level)


def put_by(encoder: MachineCode, data: bytes | memoryview, level: int, *more: int) -> memoryview:
    """The blocks that an encoder puts.

    Args:
        encoder: gets the address and size of the data, the level, ``more``, the address of the
            blocks and those of libdeflate's functions, as ``_put_blocks``.
        data: uncompressed bytes.
        level: as for ``compressed``.
        more: what this encoder alone needs.
    """
    # One block more than there are: encoders are given more room than a block may have.
    out = np.empty((-(-len(data) // BLOCK_BYTES) + 1) * MOST_BLOCK_BYTES, dtype=np.uint8)
    text, functions = np.frombuffer(data, dtype=np.uint8), libdeflate()
    size = encoder(
        text.ctypes.data, text.size, level, *more, out.ctypes.data,
        functions.new, functions.deflate, functions.crc32, functions.free,
    )  # fmt: skip
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


@machine_code
def _put_blocks(text, size, level, out, new, deflate, crc32, free):  # type: ignore[no-untyped-def]
    """Put the blocks of a text into ``out``; their size, or -1 if there is no memory for it.

    Args:
        text: its address.
        size: of the text, bytes.
        level: of ``compressed``.
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
    made = array_at(out, (-(-size // BLOCK_BYTES) + 1) * MOST_BLOCK_BYTES, np.uint8)
    at = 0
    for begin in range(0, size, BLOCK_BYTES):
        piece = array_at(text + begin, min(BLOCK_BYTES, size - begin), np.uint8)
        stream = put_deflated(piece, compressor, functions, made, at + HEADER_BYTES)
        at = finish_block(piece, functions, made, at, stream)
    call(free, (compressor,))
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
