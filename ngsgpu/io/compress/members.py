"""Members of gzip files: how they begin and end, and inflating them one after the other."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from typing import Final, NamedTuple

from isal import igzip, isal_zlib

_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]
ERRORS: Final[tuple[type[Exception], ...]] = (gzip.BadGzipFile, _ISAL_ERROR, zlib.error)
"""What is raised where the data are damaged."""

MEMBER_BEGIN: Final = b"\x1f\x8b\x08"
FOOTER_BYTES: Final = 8

_EXTRA: Final = 4
_STRINGS: Final = (8, 16)
_CHECKSUM: Final = 2
_RESERVED: Final = 0xE0
_MAX_STRING: Final = 4096
"""Longest name or comment that is looked through."""


class Footer(NamedTuple):
    """What the end of a member says of its bytes."""

    crc: int
    size: int

    def check(self, crc: int, size: int) -> None:
        """Compare with the bytes that there were.

        Raises:
            gzip.BadGzipFile: they are others.
        """
        if crc != self.crc:
            raise gzip.BadGzipFile(f"CRC check failed {self.crc} != {crc}")
        if size & 0xFFFFFFFF != self.size:
            raise gzip.BadGzipFile("Incorrect length of data produced")


def gunzip(raw: io.RawIOBase | io.BytesIO) -> io.BufferedIOBase:
    """Inflate a gzip file of any number of members with ISA-L, one after the other."""
    stream: io.BufferedIOBase = igzip.IGzipFile(fileobj=raw, mode="rb")  # type: ignore[no-untyped-call]
    return stream


def member_start(data: memoryview, at: int) -> int | None:
    """Where the deflate stream of the member begins whose header is at byte ``at``.

    None if the header is damaged, unusual (with a header checksum) or not complete.
    """
    if bytes(data[at : at + 3]) != MEMBER_BEGIN or len(data) < at + 10:
        return None
    flags = data[at + 3]
    if flags & (_CHECKSUM | _RESERVED):
        return None
    at += 10
    if flags & _EXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in _STRINGS:
        if flags & flag:
            end = bytes(data[at : at + _MAX_STRING]).find(b"\0")
            if end < 0:
                return None
            at += end + 1
    return at if at <= len(data) else None


def read_footer(data: memoryview, at: int) -> Footer | None:
    """The end of a member; None if it is not complete."""
    if len(data) < at + FOOTER_BYTES:
        return None
    return Footer(*struct.unpack_from("<II", data, at))
