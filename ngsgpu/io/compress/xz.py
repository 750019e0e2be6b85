"""xz, by the standard library."""

from __future__ import annotations

import io
import lzma
from typing import Final

from ngsgpu.io.compress.stream import Compression, Opened, Owning


def _stream(file: Opened) -> Owning:
    buffered = io.BufferedReader(file, 1 << 20)
    return Owning(lzma.LZMAFile(buffered), buffered)


XZ: Final = Compression("xz", "xz", (b"\xfd7zXZ\x00",), _stream, (lzma.LZMAError,), (".xz",))
