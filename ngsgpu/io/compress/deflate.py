"""Compression to bytes that depend on nothing but the data and the level, by libdeflate.

ISA-L is twice as fast at level 1, but of the same data it now and then makes other bytes: in about
one process of thirty for short data, and rarely for whole blocks.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final, NamedTuple

import deflate

from ngsgpu.jit import intrinsic

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


class Library(NamedTuple):
    """Addresses of libdeflate's functions, for ``call``."""

    new: int
    compress: int
    crc32: int
    free: int


@functools.cache
def library() -> Library | None:
    """libdeflate as the Python package has it; None where it shows Python's functions only."""
    try:
        symbols = ctypes.CDLL(deflate._deflate.__file__)
        names = ("alloc_compressor", "deflate_compress", "crc32", "free_compressor")
        functions = [getattr(symbols, f"libdeflate_{name}") for name in names]
    except (AttributeError, OSError):
        return None
    return Library(*(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions))


@intrinsic
def call(typing: Any, function: Any, arguments: Any) -> Any:
    """Call a C function from a kernel, by its address and with a tuple of 64-bit integers.

    Pointers, sizes and smaller integers are passed so. What it returns is a 64-bit integer, of
    which only as many bits mean something as the C function gives.
    """
    from llvmlite import ir
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * len(arguments))
        given = [builder.extract_value(values[1], k) for k in range(len(arguments))]
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), given)

    return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), generate
