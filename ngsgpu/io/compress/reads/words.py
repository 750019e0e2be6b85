"""Words and vectors of bytes at any address, for kernels: loaded, stored, compared, counted.

All functions take and return 64-bit integers. See ``ngsgpu.sequence.intrinsics`` for how they are
made. Those that load need as many bytes to be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from ngsgpu.jit import intrinsic

LANES: Final = 64
"""Bytes that ``same`` and ``equal_to`` compare."""

_Unary: TypeAlias = Callable[[Any], Any]
_Binary: TypeAlias = Callable[[Any, Any], Any]


def _generator(make: Callable[..., Any], count: int, *, returns: bool = True) -> Any:
    """An intrinsic of ``count`` integers whose value ``make`` builds."""

    def typed(*_: Any) -> Any:
        from numba import types

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature
            value = make(builder, *arguments)
            return value if returns else context.get_dummy_value()

        return (types.int64 if returns else types.void)(*[types.int64] * count), generate

    def unary(typing_context: Any, first: Any) -> Any:
        return typed(typing_context, first)

    def binary(typing_context: Any, first: Any, second: Any) -> Any:
        return typed(typing_context, first, second)

    function = unary if count == 1 else binary
    function.__name__ = make.__name__
    return intrinsic(function)


def _integer(bits: int) -> Any:
    from llvmlite import ir

    return ir.IntType(bits)


def _at(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _vector() -> Any:
    from llvmlite import ir

    return ir.VectorType(ir.IntType(8), LANES)


def _load_byte(builder: Any, address: Any) -> Any:
    return builder.zext(_at(builder, address, _integer(8)), _integer(64))


def _load_word(builder: Any, address: Any) -> Any:
    return _at(builder, address, _integer(64))


def _store_word(builder: Any, address: Any, word: Any) -> None:
    builder.store(word, builder.inttoptr(address, _integer(64).as_pointer()), align=1)


def _same(builder: Any, first: Any, second: Any) -> Any:
    equal = builder.icmp_unsigned(
        "==", _at(builder, first, _vector()), _at(builder, second, _vector())
    )
    return builder.bitcast(equal, _integer(64))


def _equal_to(builder: Any, address: Any, byte: Any) -> Any:
    from llvmlite import ir

    nothing = ir.Constant(_vector(), ir.Undefined)
    low = builder.trunc(byte, _integer(8))
    one = builder.insert_element(nothing, low, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    equal = builder.icmp_unsigned(
        "==", _at(builder, address, _vector()), builder.shuffle_vector(one, nothing, places)
    )
    return builder.bitcast(equal, _integer(64))


def _trailing_zeros(builder: Any, word: Any) -> Any:
    return builder.cttz(word, _integer(1)(0))


def _leading_zeros(builder: Any, word: Any) -> Any:
    return builder.ctlz(word, _integer(1)(0))


def _ones(builder: Any, word: Any) -> Any:
    return builder.ctpop(word)


def _shift_right(builder: Any, word: Any, count: Any) -> Any:
    return builder.lshr(word, count)


load_byte = cast(_Unary, _generator(_load_byte, 1))
"""The byte at an address."""

load_word = cast(_Unary, _generator(_load_word, 1))
"""The eight bytes at an address, the first lowest."""

store_word = cast(_Binary, _generator(_store_word, 2, returns=False))
"""Store a word at an address, its lowest byte first."""

same = cast(_Binary, _generator(_same, 2))
"""Which of the ``LANES`` bytes at two addresses are equal: bit i says it of byte i."""

equal_to = cast(_Binary, _generator(_equal_to, 2))
"""Which of the ``LANES`` bytes at an address are the given one."""

trailing_zeros = cast(_Unary, _generator(_trailing_zeros, 1))
"""Zero bits below the lowest one; 64 of a word without any."""

leading_zeros = cast(_Unary, _generator(_leading_zeros, 1))
"""Zero bits above the highest one; 64 of a word without any."""

ones = cast(_Unary, _generator(_ones, 1))
"""Number of bits that are set."""

shift_right = cast(_Binary, _generator(_shift_right, 2))
"""A word moved to the right by up to 63 bits, zeros from the left."""
