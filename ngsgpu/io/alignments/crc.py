"""Checksums of a CRAM file, while its bytes pass by.

htslib checks those of blocks that it decompresses, but not of uncompressed headers: a changed
byte there may say that no quality is stored. Version 3 has a checksum behind the header of each
container and behind each block [CRAM specification, sections 7 and 8].
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from typing import Final

_DEFINITION_BYTES: Final = 26
"""Magic, version and name of the file."""
_PIECE_BYTES: Final = 1 << 16

_Walk = Generator[int, bytes, None]
"""Asks for a number of bytes and is sent them."""


class CrcError(Exception):
    """A checksum is wrong."""


class CramChecksums:
    """Checks the containers and blocks of a version 3 file.

    Damage that makes other things of the bytes than containers is not looked for: htslib finds it.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._between = False
        self._walk = self._file()
        self._wanted = next(self._walk)

    @property
    def is_whole(self) -> bool:
        """Whether what was added ends behind a container."""
        return self._between and not self._held

    def add(self, data: bytes) -> None:
        """Check the next bytes of the file.

        Raises:
            CrcError: a checksum is wrong.
        """
        self._held += data
        at = 0
        while len(self._held) - at >= self._wanted:
            own = bytes(self._held[at : at + self._wanted])
            at += self._wanted
            self._wanted = self._walk.send(own)
        del self._held[:at]

    def _file(self) -> _Walk:
        """Walk through the containers and blocks of the file."""
        yield _DEFINITION_BYTES
        container = 0
        while True:
            container += 1
            header = _Checked()
            self._between = True
            start = yield from header.take(4)
            self._between = False
            size = int.from_bytes(start, "little")
            for _ in range(4):  # reference, position, span, records
                yield from header.number(4)
            for _ in range(2):  # records before, bases
                yield from header.number(8)
            blocks = yield from header.number(4)
            for _ in range((yield from header.number(4))):  # where slices begin
                yield from header.number(4)
            yield from header.end(f"the header of container {container:,}")
            for number in range(1, blocks + 1):
                block = _Checked()
                yield from block.take(2)
                yield from block.number(4)
                stored = yield from block.number(4)
                yield from block.number(4)
                yield from block.data(stored)
                yield from block.end(f"block {number:,} of container {container:,}")
                size -= block.read
            if size > 0:  # what is left free for a longer header
                yield from _Checked().data(size)


class _Checked:
    """Reads numbers, and adds up the checksum of what it reads."""

    def __init__(self) -> None:
        self.read = 0
        self._sum = 0

    def take(self, size: int) -> Generator[int, bytes, bytes]:
        """So many bytes."""
        own = (yield size) if size > 0 else b""
        self._sum = zlib.crc32(own, self._sum)
        self.read += size
        return own

    def data(self, size: int) -> Generator[int, bytes, None]:
        """The content of a block, which is not held as a whole."""
        for at in range(0, size, _PIECE_BYTES):
            yield from self.take(min(_PIECE_BYTES, size - at))

    def number(self, longest: int) -> Generator[int, bytes, int]:
        """A number of as many bytes more as its first has leading ones, ``longest`` at most."""
        (first,) = yield from self.take(1)
        more = min(8 - (first ^ 0xFF).bit_length(), longest)
        number = first & (0x7F >> more)
        rest = yield from self.take(more)
        if more < 4 or longest > 4:
            return number << 8 * more | int.from_bytes(rest)
        # Of the last of 32 bits, four are in the first byte, and four in the last.
        return (first & 15) << 28 | int.from_bytes(rest[:3]) << 4 | rest[3] & 15

    def end(self, what: str) -> Generator[int, bytes, None]:
        """The checksum behind what was read."""
        if int.from_bytes((yield 4), "little") != self._sum:
            raise CrcError(f"the checksum of {what} is wrong")
        self.read += 4
