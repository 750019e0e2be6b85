"""Arrays without reference counts, for kernels made of many short functions.

Numba counts the references of every array argument with atomic additions; for a named tuple of
twenty arrays that costs more than a short function's work, and threads contend for the counts. A
kernel called from Python holds its arrays for the whole call, so they need not be counted within
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ngsgpu.jit import intrinsic


def _items(kind: Any) -> list[Any]:
    return list(kind.types)


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    from numba import types

    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = context.get_constant_null(cast(Any, types).MemInfoPointer(types.voidptr))
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        items = [
            _without_owner(context, builder, item, builder.extract_value(value, i))
            for i, item in enumerate(_items(kind))
        ]
        return context.make_tuple(builder, kind, items)
    return value


def _borrowed(typing_context: Any, value: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.args[0], arguments[0])

    return value(value), generate


borrowed = cast(Callable[[Any], Any], intrinsic(_borrowed))
"""An array, or a tuple of arrays, whose references are not counted; for kernels only.

It must not outlive the kernel call that was given its owner.
"""
