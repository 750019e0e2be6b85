"""Compression to bytes that depend on nothing but the data and the level, by libdeflate.

ISA-L is twice as fast at level 1, but of the same data it now and then makes other bytes: in about
one process of thirty for short data, and rarely for whole blocks.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ngsgpu.jit import intrinsic

DEFAULT_LEVEL: Final = 1
"""What ``docs/formats.md`` shows to be the best use of time on reads."""

MAX_LEVEL: Final = 12

_ROOM: Final = 1 << 10
"""Bytes that a stream of short data may have more than them; one more for each 64 thereof."""


class Functions(NamedTuple):
    """Addresses of libdeflate's functions, for ``call``."""

    new: int
    deflate: int
    zlib: int
    crc32: int
    free: int


def compressed(data: bytes | memoryview, level: int, *, raw: bool = False) -> bytes:
    """A zlib stream that holds the data.

    Args:
        data: any bytes.
        level: 1 (fast) to ``MAX_LEVEL`` (small).
        raw: whether to make a bare deflate stream instead.
    """
    functions = libdeflate()
    source = np.frombuffer(data, dtype=np.uint8)
    out = np.empty(len(data) + len(data) // 64 + _ROOM, dtype=np.uint8)
    compress = _SHRINK(functions.deflate if raw else functions.zlib)
    compressor = _NEW(functions.new)(level)
    if not compressor:
        raise MemoryError
    try:
        size = compress(compressor, source.ctypes.data, source.size, out.ctypes.data, out.size)
    finally:
        _FREE(functions.free)(compressor)
    return out[:size].tobytes()


_NEW: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SHRINK: Final = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
)  # fmt: skip


@functools.cache
def libdeflate() -> Functions:
    """The library: that in the Python package ``deflate``, else the system's or conda's.

    Raises:
        ImportError: there is none.
    """
    names = (
        "alloc_compressor", "deflate_compress", "zlib_compress", "crc32", "free_compressor",
    )  # fmt: skip
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
            functions = [getattr(library, f"libdeflate_{name}") for name in names]
        except (AttributeError, OSError):
            continue
        return Functions(*(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions))
    raise ImportError("libdeflate is missing; pip install deflate", name="deflate")


def _libraries() -> Iterator[str]:
    try:
        from deflate import _deflate
    except ImportError:
        pass
    else:
        yield _deflate.__file__
    yield str(Path(sys.prefix, "lib", "libdeflate.so.0"))
    yield "libdeflate.so.0"


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

    integers = types.UniTuple(types.int64, len(arguments))  # type: ignore[no-untyped-call]
    return types.int64(types.int64, integers), generate
