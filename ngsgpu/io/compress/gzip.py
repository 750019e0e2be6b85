"""gzip: any number of members, inflated by ISA-L; checksums are checked."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Final

from isal import igzip, isal_zlib

from ngsgpu.io.compress.stream import Compression, Opened, Owning

_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]
ERRORS: Final = (gzip.BadGzipFile, _ISAL_ERROR, zlib.error)
"""What is raised where the data are damaged."""


def gunzip(raw: io.RawIOBase | io.BytesIO) -> io.BufferedIOBase:
    """Inflate a gzip file of any number of members with ISA-L; checksums are checked."""
    stream: io.BufferedIOBase = igzip.IGzipFile(fileobj=raw, mode="rb")  # type: ignore[no-untyped-call]
    return stream


def _matches(file: Opened) -> bool:
    return file.peek(2) == b"\x1f\x8b"


def _stream(file: Opened) -> Owning:
    return Owning(gunzip(file), file)


GZIP: Final = Compression("gzip", "gzip", _matches, _stream, ERRORS, (".gz",))
