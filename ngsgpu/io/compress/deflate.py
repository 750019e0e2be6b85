"""libdeflate: whole streams, compressed and inflated in one call each.

What it makes of data depends on nothing but these and the level. ISA-L is twice as fast at level 1,
but of the same data it now and then makes other bytes: in about one process of thirty for short
data, and rarely for whole blocks. It inflates as fast, but its Python package takes Python's lock
several times for each 64 KiB, which 16 threads wait for half of their time.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    new_inflater: int
    inflate: int
    free_inflater: int


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


def inflated(stream: NDArray[np.uint8], out: NDArray[np.uint8]) -> Inflated:
    """Inflate a deflate stream, up to its last block, while other threads of Python run.

    Args:
        stream: uint8, begins with it.
        out: gets its text.
    """
    functions = libdeflate()
    read, written = ctypes.c_size_t(), ctypes.c_size_t()
    inflater = _NEW_INFLATER(functions.new_inflater)()
    if not inflater:
        raise MemoryError
    try:
        status = _INFLATE(functions.inflate)(
            inflater, stream.ctypes.data, stream.size, out.ctypes.data, out.size,
            ctypes.byref(read), ctypes.byref(written),
        )  # fmt: skip
    finally:
        _FREE(functions.free_inflater)(inflater)
    return Inflated(status, read.value, written.value)


class Inflated(NamedTuple):
    """How inflating a stream went.

    Attributes:
        status: ``DONE``, ``NO_ROOM`` if the text is longer than there is room, or another number
            if the data are damaged or end early.
        read: bytes of the stream; only if done.
        written: bytes of its text; only if done.
    """

    status: int
    read: int
    written: int


DONE: Final = 0
NO_ROOM: Final = 3

_NEW: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SHRINK: Final = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
)  # fmt: skip
_NEW_INFLATER: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p)
_INFLATE: Final = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
    ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip


@functools.cache
def libdeflate() -> Functions:
    """The library: that in the Python package ``deflate``, else the system's or conda's.

    Raises:
        ImportError: there is none.
    """
    names = (
        "alloc_compressor", "deflate_compress", "zlib_compress", "crc32", "free_compressor",
        "alloc_decompressor", "deflate_decompress_ex", "free_decompressor",
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
