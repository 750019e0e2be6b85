"""Zstandard: files of frames, which are decompressed and compressed on several cores.

A file is a sequence of frames [RFC 8878], each with its own checksum; skippable frames hold other
things. Frames are independent: those that end soon are decompressed by several threads, a long one
(the ``zstd`` program writes a single frame) as a stream. What is written here are frames of a fixed
number of bytes and, last, the table of the seekable format [zstd, contrib/seekable_format], by
which programs find a place without decompressing what lies before it.
"""

from __future__ import annotations

import struct
import sys
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ngsgpu.errors import InputError
from ngsgpu.io.compress.stream import Compression, Opened, Parts

if TYPE_CHECKING or sys.version_info < (3, 14):
    from backports import zstd as library
else:
    from compression import zstd as library

MAGIC: Final = b"\x28\xb5\x2f\xfd"
FRAME_BYTES: Final = 2 << 20
"""Bytes that a frame holds. Against frames of 8 MB, those of 2 MB were at most 0.3 % larger and
those of 1 MB 0.6 %, at levels 1 and 3 on reads of an isolate, a human and a gut metagenome."""

ZstdError: Final[type[Exception]] = library.ZstdError

_SKIPPABLE: Final = b"\x2a\x4d\x18"
"""Behind a first byte of 0x50 to 0x5f."""
_SEEK_TABLE: Final = struct.Struct("<II")
_SEEK_ENDING: Final = struct.Struct("<IBI")
_SEEK_MAGIC: Final = 0x8F92EAB1
_BLOCK_BYTES: Final = 1 << 17
_LARGEST_WINDOW: Final = 27
"""Binary logarithm; as much as the ``zstd`` program allows unless told otherwise."""
_HIGHEST_WINDOW: Final = 31
"""Of the ``zstd`` program at all."""
_READ_BYTES: Final = 1 << 20
_TASK_BYTES: Final = 1 << 20
"""Compressed bytes from which on frames are a task."""
_MOST_HELD: Final = 8 << 20
"""Compressed bytes up to which the end of a frame is looked for."""
_MOST_INFLATED: Final = 32 << 20
"""Decompressed bytes of a task."""


class _Frame(NamedTuple):
    """Sizes of a frame.

    Attributes:
        size: bytes of it.
        most: decompressed bytes at most.
    """

    size: int
    most: int


class ZstdStream:
    """Reads a file of frames, decompressing them on several threads, in order.

    Args:
        raw: the compressed file.
    """

    def __init__(self, raw: Opened) -> None:
        self._raw = raw
        threads = max(1, raw.threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-inflate")
        self._ahead = threads + 1
        self._tasks: deque[Future[bytes]] = deque()
        self._parts = Parts()
        self._held = b""
        self._at = 0  # where what was not yet taken of it begins
        self._long: Any = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available decompressed bytes; 0 at the end.

        Raises:
            EOFError: the file ends within a frame.
            ZstdError: the data are damaged.
            InputError: a frame needs too much memory.
        """
        while not self._parts:
            if self._long is None:
                self._submit()
            if self._tasks:
                self._parts.extend([self._tasks.popleft().result()])
            elif self._long is not None:
                self._parts.extend([self._stream()])
            else:
                return 0
        return self._parts.copy_into(buffer)

    def close(self) -> None:
        """Stop the threads and close the file."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._raw.close()

    def _submit(self) -> None:
        """Have the next frames decompressed, up to a long one."""
        while len(self._tasks) < self._ahead and self._long is None:
            if not (frames := self._next_frames()):
                break
            self._tasks.append(self._pool.submit(_decompress, frames))

    def _next_frames(self) -> list[bytes]:
        """The frames of a task; none at the end of the file and before a long frame."""
        frames: list[bytes] = []
        size = most = 0
        while size < _TASK_BYTES and self._at_frame():
            frame = self._find_end()
            if frame is None:
                if not frames:
                    self._long = library.ZstdDecompressor()
                break
            if frames and most + frame.most > _MOST_INFLATED:
                break
            frames.append(self._held[self._at : self._at + frame.size])
            self._at += frame.size
            size += frame.size
            most += frame.most
        return frames

    def _at_frame(self) -> bool:
        """Skip skippable frames; whether there is another frame."""
        while self._hold(1):
            if not self._hold(4):
                raise EOFError
            magic = self._held[self._at : self._at + 4]
            if magic == MAGIC:
                return True
            if magic[1:] != _SKIPPABLE or magic[0] >> 4 != 5:
                raise ZstdError("something else follows a frame")
            if not self._hold(8):
                raise EOFError
            self._skip(8 + struct.unpack_from("<I", self._held, self._at + 4)[0])
        return False

    def _skip(self, size: int) -> None:
        while size > 0:
            if not self._hold(1):
                raise EOFError
            gone = min(size, len(self._held) - self._at)
            self._at += gone
            size -= gone

    def _hold(self, size: int) -> bool:
        """Hold at least ``size`` bytes; False if there are fewer."""
        length = len(self._held) - self._at
        if length >= size:
            return True
        parts = [self._held[self._at :]]
        while length < size and (more := self._raw.read(max(_READ_BYTES, size - length))):
            parts.append(more)
            length += len(more)
        self._held, self._at = b"".join(parts), 0
        return length >= size

    def _find_end(self) -> _Frame | None:
        """Size of the next frame; None if it is too long to be held, or cut short."""
        size, ending = self._frame_header()
        blocks, last = 0, False
        while not last:
            if size > _MOST_HELD or not self._hold(size + 3):
                return None
            at = self._at + size
            block = int.from_bytes(self._held[at : at + 3], "little")
            last = bool(block & 1)
            # A block of one repeated byte has only that.
            size += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
            blocks += 1
        size += ending
        most = blocks * _BLOCK_BYTES
        if size > _MOST_HELD or most > _MOST_INFLATED or not self._hold(size):
            return None
        return _Frame(size, most)

    def _frame_header(self) -> tuple[int, int]:
        """Bytes of the next frame before its first block, and behind its last."""
        if not self._hold(6):
            raise EOFError
        descriptor = self._held[self._at + 4]
        single = descriptor >> 5 & 1
        dictionary = (0, 1, 2, 4)[descriptor & 3]
        content = (single, 2, 4, 8)[descriptor >> 6]
        size = 5 + (1 - single) + dictionary + content
        if not self._hold(size):
            raise EOFError
        if single:  # its window is its content
            number = self._held[self._at + size - content : self._at + size]
            window = int.from_bytes(number, "little") + (256 if content == 2 else 0)
        else:
            eighths = self._held[self._at + 5]
            window = ((1 << 10 + (eighths >> 3)) >> 3) * (8 + (eighths & 7))
        exponent = max(0, window - 1).bit_length()
        if exponent > _HIGHEST_WINDOW:
            raise ZstdError("a frame asks for a window that there is not")
        if exponent > _LARGEST_WINDOW:
            raise InputError(
                self._raw.path,
                f"compressed in zstd's long mode, with a window of {-(-window >> 20):,} MiB",
                f"decompress it first with `zstd -d --long={_HIGHEST_WINDOW}`",
            )
        return size, 4 * (descriptor >> 2 & 1)

    def _stream(self) -> bytes:
        """Some of a long frame's bytes; none at its end."""
        if self._long.eof:
            self._held, self._at = self._long.unused_data, 0
            self._long = None
            return b""
        if not self._long.needs_input:
            return self._long.decompress(b"", _READ_BYTES)
        if not self._hold(1):
            raise EOFError
        data, self._held, self._at = self._held[self._at :], b"", 0
        return self._long.decompress(data, _READ_BYTES)


def _decompress(frames: list[bytes]) -> bytes:
    """The content of whole frames; checksums are checked."""
    return b"".join(_content(frame) for frame in frames)


def _content(frame: bytes) -> bytes:
    decompressor = library.ZstdDecompressor()
    content: bytes = decompressor.decompress(frame)
    if not decompressor.eof or decompressor.unused_data:
        raise ZstdError("a frame does not end where its blocks do")
    return content


def compress_frame(data: bytes | memoryview, level: int) -> bytes:
    """A frame with a checksum that holds ``data``; its bytes depend on nothing else.

    Args:
        data: uncompressed bytes.
        level: of zstd, 1 to 19.
    """
    parameters = library.CompressionParameter
    options: dict[int, int] = {parameters.compression_level: level, parameters.checksum_flag: 1}
    compressor = library.ZstdCompressor(options=options)
    frame: bytes = compressor.compress(data, library.ZstdCompressor.FLUSH_FRAME)
    return frame


def seek_table(sizes: list[tuple[int, int]]) -> bytes:
    """The skippable frame that ends a file of the seekable format.

    Args:
        sizes: compressed and decompressed bytes of each frame.
    """
    table = b"".join(_SEEK_TABLE.pack(*size) for size in sizes)
    table += _SEEK_ENDING.pack(len(sizes), 0, _SEEK_MAGIC)
    return b"\x5e" + _SKIPPABLE + struct.pack("<I", len(table)) + table


_MAGICS: Final = (MAGIC, *(bytes([0x50 + kind]) + _SKIPPABLE for kind in range(16)))
ZSTD: Final = Compression("zstd", "zstd", _MAGICS, ZstdStream, (ZstdError,), (".zst",))
