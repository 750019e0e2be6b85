"""Compression to bytes that depend on nothing but the data and the level, by libdeflate.

ISA-L is twice as fast at level 1, but of the same data it now and then makes other bytes: in about
one process of thirty for short data, and rarely for whole blocks.
"""

from __future__ import annotations

from typing import Final

import deflate

DEFAULT_LEVEL: Final = 1
"""What ``docs/formats.md`` shows to be the best use of time on reads."""

MAX_LEVEL: Final = 12


def compressed(data: bytes | memoryview, level: int, *, raw: bool = False) -> bytes | bytearray:
    """A zlib stream that holds the data.

    Args:
        data: any bytes.
        level: 1 (fast) to ``MAX_LEVEL`` (small).
        raw: whether to make a bare deflate stream instead.
    """
    packed: bytes | bytearray
    packed = deflate.deflate_compress(data, level) if raw else deflate.zlib_compress(data, level)
    return packed
