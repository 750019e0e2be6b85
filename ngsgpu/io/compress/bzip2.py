"""bzip2, by the standard library."""

from __future__ import annotations

import bz2
import io
from typing import Final

from ngsgpu.io.compress.stream import Compression, Opened, Owning


def _stream(file: Opened) -> Owning:
    buffered = io.BufferedReader(file, 1 << 20)
    return Owning(bz2.BZ2File(buffered), buffered)


BZIP2: Final = Compression("bzip2", "bzip2", (b"BZh",), _stream, endings=(".bz2",))
