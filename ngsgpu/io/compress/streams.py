"""bzip2 and xz: files of streams, which the standard library decompresses one after the other."""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable
from typing import Final, Protocol

from ngsgpu.io.compress.stream import Compression, Opened, Parts

_READ_BYTES: Final = 1 << 16
"""Compressed bytes that are handed on at a time: what follows a stream is copied, and streams may
be as short as 14 bytes."""
_PART_BYTES: Final = 1 << 20


class _Decompressor(Protocol):
    """Decompresses one stream."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class StreamError(Exception):
    """Something else than a stream follows a stream."""


class StreamsReader:
    """Reads a file of streams. Zeros may follow a stream, as on tapes; nothing else may.

    Args:
        file: the compressed file.
        magic: what a stream begins with.
        begin: makes a decompressor.
        padding: of how many zeros those behind a stream have to be a multiple.
    """

    def __init__(
        self, file: Opened, magic: bytes, begin: Callable[[], _Decompressor], padding: int
    ) -> None:
        self._file = file
        self._magic = magic
        self._begin = begin
        self._padding = padding
        self._stream = begin()
        self._parts = Parts()

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available decompressed bytes; 0 at the end.

        Raises:
            EOFError: the file ends within a stream.
            StreamError: something else follows a stream.
        """
        while not self._parts:
            if self._stream.eof and not self._go_on():
                return 0
            data = b""
            if self._stream.needs_input and not (data := self._file.read(_READ_BYTES)):
                raise EOFError
            self._parts.extend([self._stream.decompress(data, _PART_BYTES)])
        return self._parts.copy_into(buffer)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _go_on(self) -> bool:
        """Begin the next stream; False if there is none."""
        rest = self._stream.unused_data
        zeros = 0
        while True:
            data = rest.lstrip(b"\0")
            zeros += len(rest) - len(data)
            if data:
                break
            if not (rest := self._file.read(_READ_BYTES)):
                if zeros % self._padding:
                    raise StreamError(
                        f"the zeros behind a stream are no multiple of {self._padding}"
                    )
                return False
        self._file.unread(data)
        begun = self._file.peek(len(self._magic))
        if not self._magic.startswith(begun) or zeros % self._padding:
            raise StreamError("something else follows a stream")
        self._stream = self._begin()
        return True


def _bzip2(file: Opened) -> StreamsReader:
    return StreamsReader(file, b"BZh", bz2.BZ2Decompressor, 1)


def _xz(file: Opened) -> StreamsReader:
    return StreamsReader(file, _XZ_MAGIC, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4)


_XZ_MAGIC: Final = b"\xfd7zXZ\x00"
BZIP2: Final = Compression("bzip2", "bzip2", (b"BZh",), _bzip2, (StreamError,), (".bz2",))
XZ: Final = Compression("xz", "xz", (_XZ_MAGIC,), _xz, (StreamError, lzma.LZMAError), (".xz",))

BZIP2_PIECE_BYTES: Final = 899_981
"""One block of bzip2's at its highest level: it leaves 19 of 900,000 bytes free."""
XZ_PIECE_BYTES: Final = 4 << 20


def compress_bzip2(data: bytes | memoryview, level: int) -> bytes:
    """A stream of bzip2; levels above its highest, 9, are that."""
    return bz2.compress(data, min(level, 9))


def compress_xz(data: bytes | memoryview, level: int) -> bytes:
    """A stream of xz, whose memory is that of a piece at any level; those above 9 are 9."""
    chain = [{"id": lzma.FILTER_LZMA2, "preset": min(level, 9), "dict_size": XZ_PIECE_BYTES}]
    return lzma.compress(data, filters=chain)
