"""Compression to bytes that depend on nothing but the data."""

from __future__ import annotations

import zlib
from typing import Final

from isal import isal_zlib

ISA_L_LEVELS: Final = (1, 2, 3)

SHORT: Final = 4096
"""Bytes below which ISA-L is not used.

At levels 1 and 2 its streams of shorter data, whose hash tables it shortens, depend on addresses in
memory: in about one process of thirty they were others (ISA-L of isal 1.9.1; data of up to 248
bytes were seen).
"""


def compressed(data: bytes | memoryview, level: int, wbits: int = zlib.MAX_WBITS) -> bytes:
    """A deflate stream that holds the data.

    Args:
        data: any bytes.
        level: 1 to 3 are ISA-L's levels, 4 to 9 zlib's, slower and smaller.
        wbits: the kind of stream, as of ``zlib``.
    """
    if level in ISA_L_LEVELS and len(data) >= SHORT:
        return isal_zlib.compress(data, level, wbits=wbits)
    deflater = zlib.compressobj(level, zlib.DEFLATED, wbits)
    return deflater.compress(data) + deflater.flush()
