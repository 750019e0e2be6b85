"""BGZF: gzip cut into blocks of at most 64 KiB that are inflated on several cores.

Each block is a gzip member whose extra field ``BC`` holds the block's size [SAM specification,
section 4.1], so blocks can be found without inflating, and any gzip reader reads the whole file.
"""

from __future__ import annotations

import io
import logging
import struct
import sys
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.compress.bgzf_blocks import FOOTER_BYTES, HEADER_BYTES
from ngsgpu.io.compress.deflate import DONE, call, libdeflate
from ngsgpu.io.compress.members import ERRORS as GZIP_ERRORS
from ngsgpu.io.compress.members import gunzip
from ngsgpu.io.compress.seek import Checkpoints
from ngsgpu.io.compress.stream import Compression, Opened, Parts
from ngsgpu.jit import is_small, njit

logger = logging.getLogger("ngsgpu")

_GROUP_BYTES: Final = 1 << 21
"""Compressed bytes that one task inflates."""


class BgzfError(Exception):
    """Blocks that violate the format."""


ERRORS: Final[tuple[type[Exception], ...]] = (BgzfError, *GZIP_ERRORS)
"""What is raised where the data are damaged."""


MAGIC: Final = b"\x1f\x8b\x08\x04"
"""A gzip member with an extra field."""


def is_bgzf(head: bytes) -> bool:
    """Whether a gzip member's first 18 bytes are those of a BGZF block."""
    return len(head) >= 18 and head[:4] == MAGIC and head[10:16] == b"\x06\x00BC\x02\x00"


class BgzfStream:
    """Reads a BGZF file, inflating groups of blocks on several threads, in order.

    A gzip member that is not a BGZF block (for example a plain gzip file appended to a BGZF file)
    ends the parallel part: it and everything after it are inflated serially.

    Args:
        raw: the compressed file.
        must_end: whether a file without end marker is truncated; else there is a warning.

    Attributes:
        checkpoints: places from which on the file can be read again.
    """

    def __init__(self, raw: Opened, *, must_end: bool = False) -> None:
        self._raw = raw
        self._must_end = must_end
        self.checkpoints = Checkpoints()
        self._place = self._text = 0
        threads = max(1, raw.threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ngsgpu-inflate")
        self._ahead = threads + 1
        self._groups: deque[Future[NDArray[np.uint8]]] = deque()
        self._parts = Parts()
        self._compressed = b""
        self._ended = False
        self._last_block_empty = True
        self._serial: io.BufferedIOBase | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available inflated bytes; 0 at the end."""
        while not self._parts:
            self._submit()
            if not self._groups:
                return self._readinto_serially(buffer)
            self._parts.extend([self._groups.popleft().result()])
        return self._parts.copy_into(buffer)

    def close(self) -> None:
        """Stop the threads and close the file."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._serial is not None:
            self._serial.close()
        self._raw.close()

    def _submit(self) -> None:
        while len(self._groups) < self._ahead and not self._ended:
            group, sizes = self._next_group()
            if group:
                self._groups.append(self._pool.submit(_inflate, group, sizes))

    def _next_group(self) -> tuple[bytes, int]:
        """Whole blocks, and the number of bytes that they hold."""
        self._fill(_GROUP_BYTES)
        held = self._compressed
        at = total = 0
        while at < len(held) and at < _GROUP_BYTES:
            if not is_bgzf(held[at : at + 18]):
                break
            end = at + struct.unpack_from("<H", held, at + 16)[0] + 1
            if end - at < 26:
                raise BgzfError("a block is too short")
            if end > len(held):
                raise EOFError
            inflated = struct.unpack_from("<I", held, end - 4)[0]
            if inflated > 65536:
                raise BgzfError("a block is too long")
            self._last_block_empty = inflated == 0
            total += inflated
            at = end
        self._compressed = held[at:]
        if at == 0:
            self._end()
        if self.checkpoints.wants(self._text):
            self.checkpoints.note(8 * self._place, self._text, None)
        self._place += at
        self._text += total
        return held[:at], total

    def _fill(self, size: int) -> None:
        """Hold more than ``size`` compressed bytes and a whole block, or all that is left."""
        parts = [self._compressed]
        length = len(self._compressed)
        while length < size + 65536:
            more = self._raw.read(size)
            if not more:
                break
            parts.append(more)
            length += len(more)
        self._compressed = b"".join(parts)

    def _end(self) -> None:
        self._ended = True
        rest = self._compressed.lstrip(b"\0")  # a file may be padded with zeros, as on tapes
        while not rest and (more := self._raw.read(_GROUP_BYTES)):
            rest = more.lstrip(b"\0")
        if rest:
            self._raw.unread(rest)
            self.checkpoints.drop()
            self._serial = gunzip(self._raw)
        elif not self._last_block_empty:
            if self._must_end:
                raise EOFError
            logger.warning(
                "%s: has no BGZF end marker; it may have been truncated between two blocks",
                self._raw.path,
            )

    def _readinto_serially(self, buffer: memoryview) -> int:
        return 0 if self._serial is None else self._serial.readinto(buffer)


def _confirms(file: Opened) -> bool:
    return is_bgzf(file.peek(18))


def _inflate(group: bytes, size: int) -> NDArray[np.uint8]:
    """Inflate whole blocks of ``size`` bytes together; checksums are checked."""
    out = np.empty(size, dtype=np.uint8)
    fast = not is_small(size) or "numba" in sys.modules
    if not (fast and _inflate_blocks(np.frombuffer(group, dtype=np.uint8), libdeflate(), out)):
        _inflate_members(group, out)
    return out


def _inflate_members(group: bytes, out: NDArray[np.uint8]) -> None:
    """Inflate blocks as members of a gzip file, whatever these are; says what is wrong with one."""
    view = out.data
    with gunzip(io.BytesIO(group)) as stream:
        done = 0
        while done < len(out):
            count = stream.readinto(view[done:])
            if not count:
                raise BgzfError("a block contains fewer bytes than declared")
            done += count
        if stream.read(1):
            raise BgzfError("a block contains more bytes than declared")


@njit(nogil=True, cache=True)
def _inflate_blocks(group, functions, out):  # type: ignore[no-untyped-def]
    """Inflate whole blocks; False if something is wrong with one."""
    inflater = call(functions.new_inflater, (0,))
    at = done = 0
    right = inflater != 0
    while right and at < group.size:
        end = at + _number(group, at + 16, 2) + 1
        text = out[done : done + _number(group, end - 4, 4)]
        body = group[at + HEADER_BYTES : end - FOOTER_BYTES]
        # Without places for how much was read and written it has to be all.
        told = call(
            functions.inflate,
            (inflater, body.ctypes.data, body.size, text.ctypes.data, text.size, 0, 0),
        )
        right = (told & 0xFFFFFFFF) == DONE and (
            call(functions.crc32, (0, text.ctypes.data, text.size)) & 0xFFFFFFFF
        ) == _number(group, end - FOOTER_BYTES, 4)
        done += text.size
        at = end
    call(functions.free_inflater, (inflater,))
    return right


@njit(nogil=True, cache=True)
def _number(data, at, count):  # type: ignore[no-untyped-def]
    """A number of some bytes, the lowest first."""
    value = np.int64(0)
    for k in range(count):
        value |= np.int64(data[at + k]) << (8 * k)
    return value


BGZF: Final = Compression("bgzf", "BGZF", (MAGIC,), BgzfStream, ERRORS, (".bgz",), _confirms)
