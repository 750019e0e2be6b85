"""Inflates a gzip file from inside of a member on, by one thread."""

from __future__ import annotations

import zlib
from typing import Final

from isal import isal_zlib

from ngsgpu.io.compress.bits import filler
from ngsgpu.io.compress.members import FOOTER_BYTES, gunzip, read_footer
from ngsgpu.io.compress.stream import Opened, Owning, Parts, Stream

_STEP: Final = 1 << 16
"""Compressed bytes that are inflated at a time."""

_TRUNCATED: Final = "Compressed file ended before the end-of-stream marker was reached"


class Remainder:
    """Inflates the rest of a file one byte after the other.

    Args:
        file: the file, at the byte where the rest begins.
        bit: bit of that byte where it does, with a block.
        window: the member's bytes before, up to 32 KiB.
        crc: CRC-32 of all the member's bytes before.
        size: how many there are.
    """

    def __init__(self, file: Opened, bit: int, window: bytes, crc: int, size: int) -> None:
        self._file = file
        known = {"zdict": window} if window else {}
        self._inflater = isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS, **known)
        self._bit = bit
        self._crc = crc
        self._size = size
        self._parts = Parts()
        self._ended = False
        self._following: Stream | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available inflated bytes; 0 at the end."""
        while not self._parts:
            if self._following is not None:
                return self._following.readinto(buffer) or 0
            if self._ended:
                return 0
            if self._inflater.eof:
                self._end_member()
            else:
                self._inflate()
        return self._parts.copy_into(buffer)

    def close(self) -> None:
        """Close the file."""
        if self._following is not None:
            self._following.close()
        self._file.close()

    def _inflate(self) -> None:
        data = self._file.read(1 if self._bit else _STEP)
        if not data:
            raise EOFError(_TRUNCATED)
        if self._bit:
            data = filler(self._bit, data[0])
            self._bit = 0
        part = self._inflater.decompress(data)
        self._crc = isal_zlib.crc32(part, self._crc)
        self._size += len(part)
        if part:
            self._parts.extend([part])

    def _end_member(self) -> None:
        """Check the member, and find out whether another one follows."""
        self._file.unread(self._inflater.unused_data)
        footer = read_footer(memoryview(self._file.read_whole(FOOTER_BYTES)), 0)
        if footer is None:
            raise EOFError(_TRUNCATED)
        footer.check(self._crc, self._size)
        rest = b""
        while not rest:
            more = self._file.read(_STEP)
            if not more:
                self._ended = True
                return
            rest = more.lstrip(b"\0")
        self._file.unread(rest)
        self._following = Owning(gunzip(self._file), self._file)
