"""Inflates parts of a deflate stream that begin and end at any bit.

Libraries begin at a byte. So a part that begins at a later bit is given after empty blocks which
fill the bits before it, and a last, empty block is put at the bit where the part shall end: it is
taken as such if, and only if, a block of the stream ends right there.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.io.compress.deflate import DONE, NO_ROOM, inflated
from ngsgpu.io.compress.members import ERRORS

WINDOW: Final = 1 << 15
"""Bytes before a place that what follows may repeat."""


_TRIED: Final = 1 << 14
"""Compressed bytes by which a block is told from what only looks like its header."""

_GROWTH: Final = 6
"""Bytes of text per compressed byte for which there is room at first."""


class DamagedError(Exception):
    """A part that cannot be inflated: damaged, cut off, or too long."""


class InflatedPart(NamedTuple):
    """An inflated part of a deflate stream.

    Attributes:
        text: uint8.
        position: the byte of the stream behind the last block that was read.
    """

    text: NDArray[np.uint8]
    position: int


def closed(data: memoryview, end: int | None) -> NDArray[np.uint8]:
    """Compressed bytes up to a bit, with a last block there; just the bytes, if it is None."""
    if end is None:
        return np.frombuffer(data, dtype=np.uint8)
    stop, bit = end >> 3, end & 7
    last = last_block(data[stop] if bit else 0, bit)
    return np.frombuffer(b"".join([data[:stop], last]), dtype=np.uint8)


def last_block(byte: int, bit: int) -> bytes:
    """A last, empty block from a bit on, with the bits of the byte before."""
    value = byte & ((1 << bit) - 1) | _LAST_BLOCK << bit
    bits = bit + _LAST_BITS
    size = -(-bits // 8)
    # Ones, which no block ends with by accident.
    value |= ((1 << 8 * size) - 1) >> bits << bits
    return value.to_bytes(size, "little")


def inflate_part(stream: NDArray[np.uint8], start: int, window: bytes, most: int) -> InflatedPart:
    """Inflate a part of a deflate stream.

    Args:
        stream: compressed bytes, see ``closed``; read where they are, if the part begins at a byte
            and no window is given.
        start: bit where the part begins, with a block.
        window: up to ``WINDOW`` bytes that come before the part's.
        most: bytes that its text may have.

    Raises:
        DamagedError: there is no such part, or its text is longer.
    """
    begun = _begun(stream, start, window)
    room = _GROWTH * len(begun)
    while True:
        room = min(room, most)
        out = np.empty(len(window) + room, dtype=np.uint8)
        done = inflated(begun, out)
        if done.status != NO_ROOM or room == most:
            break
        room *= 4
    if done.status != DONE:
        raise DamagedError
    text = out[len(window) : done.written]
    if 2 * len(text) < room:
        text = text.copy()  # what was not needed is free again
    return InflatedPart(text, len(stream) - len(begun) + done.read)


def is_inflated(data: memoryview, start: int) -> bool:
    """Whether what follows on a bit can be inflated for a while."""
    inflater = isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=bytes(WINDOW))
    tried = closed(data[: (start >> 3) + _TRIED], None)
    try:
        inflater.decompress(_begun(tried, start, b"").data)
    except ERRORS:
        return False
    return True


def _begun(stream: NDArray[np.uint8], start: int, window: bytes) -> NDArray[np.uint8]:
    """A stream from a bit on, behind a block that holds a window as it is."""
    at, bit = start >> 3, start & 7
    before = []
    if window:
        size = len(window)
        before = [struct.pack("<BHH", 0, size, size ^ 0xFFFF), window]
    if bit:
        before.append(filler(bit, int(stream[at])))
        at += 1
    if not before:
        return stream[at:]
    return np.concatenate([np.frombuffer(b"".join(before), dtype=np.uint8), stream[at:]])


def _empty_blocks(bits: int) -> tuple[int, int]:
    """Empty blocks whose length leaves the remainder ``bits`` by 8, and their length in bits."""
    value = length = 0

    def put(number: int, count: int) -> None:
        nonlocal value, length
        value |= number << length
        length += count

    if bits % 2:
        # Codes for 255, for 256 (the end of the block) and for one distance, all of one bit.
        for number, count in ((4, 3), (0, 5), (0, 5), (14, 4)):
            put(number, count)
        for symbol in (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1):
            put(symbol in (1, 18), 3)
        for zeros in (138, 117):
            put(1, 1)
            put(zeros - 11, 7)
        put(0b1000, 4)
    while length % 8 != bits:
        put(0b010, 10)
    return value, length


_FILLERS: Final = tuple(_empty_blocks(bits) for bits in range(8))
_LAST_BLOCK: Final = 0b011
_LAST_BITS: Final = 10


def filler(bit: int, byte: int) -> bytes:
    """What to inflate instead of a byte in which a part begins at a bit other than the first."""
    value, length = _FILLERS[bit]
    return (value | byte >> bit << length).to_bytes(length // 8 + 1, "little")
