"""Asking the processor for memory that is needed soon, for look-ups at random places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ngsgpu.jit import intrinsic

_READ = 0
_KEEP = 3
_DATA = 1


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    from llvmlite import ir
    from numba import types

    del typing_context, index

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, flag(_READ), flag(_KEEP), flag(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch = cast(Callable[[Any, Any], None], intrinsic(_prefetch))
"""Prefetch the cache line that contains element ``index`` of the flattened ``array``.

For contiguous arrays inside kernels. An index outside the array is ignored.
"""
