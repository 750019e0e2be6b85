"""Inflates parts of a deflate stream that begin and end at any bit.

Libraries begin at a byte. So a part that begins at a later bit is given after empty blocks which
fill the bits before it, and a last, empty block is put at the bit where the part shall end: it is
taken as such if, and only if, a block of the stream ends right there.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from isal import isal_zlib

WINDOW: Final = 1 << 15
"""Bytes before a place that what follows may repeat."""

STEP: Final = 1 << 16
"""Compressed bytes that are inflated at a time; what they become stays in the cores' caches."""


class Inflater:
    """Inflates a part of a deflate stream, in steps.

    Args:
        data: compressed bytes that hold the part.
        start: bit of ``data`` where the part begins, with a block.
        end: bit where it ends, or not before where the stream does; None: with ``data``.
        window: up to ``WINDOW`` bytes that come before the part's.
    """

    def __init__(self, data: memoryview, start: int, end: int | None, window: bytes) -> None:
        self._inflater = (
            isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=window)
            if window
            else isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        )
        self._input = list(_steps(data, start, end))
        self._length = sum(len(step) for step in self._input)
        self._input.reverse()
        self._fed = 0
        self._origin = (start >> 3) - _FILLERS[start & 7][1] // 8
        self._has_end = end is not None

    def steps(self) -> Iterator[bytes]:
        """Inflate step by step.

        Raises:
            isal_zlib.error: the data are damaged.
        """
        while self._input and not self.ended:
            step = self._input.pop()
            self._fed += len(step)
            yield self._inflater.decompress(step)

    @property
    def ended(self) -> bool:
        """Whether a last block was read: the stream's, or that of the part."""
        return bool(self._inflater.eof)

    @property
    def met_end(self) -> bool:
        """Whether the part ended with a block at the given bit."""
        complete = self._fed == self._length and not self._inflater.unused_data
        return self.ended and self._has_end and complete

    @property
    def position(self) -> int:
        """The byte of ``data`` behind the stream's last block, which was read."""
        return self._origin + self._fed - len(self._inflater.unused_data)


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


def _steps(data: memoryview, start: int, end: int | None) -> Iterator[bytes | memoryview]:
    """The compressed bytes of a part, made whole at both ends."""
    at, bit = start >> 3, start & 7
    stop = len(data) if end is None else end >> 3
    if bit:
        yield filler(bit, data[at])
        at += 1
    for step in range(at, stop, STEP):
        yield data[step : min(stop, step + STEP)]
    if end is not None:
        bit = end & 7
        value = (data[stop] & ((1 << bit) - 1) if bit else 0) | _LAST_BLOCK << bit
        bits = bit + _LAST_BITS
        size = -(-bits // 8)
        # Ones, which no block ends with by accident.
        value |= ((1 << 8 * size) - 1) >> bits << bits
        yield value.to_bytes(size, "little")
