"""What Numba does not offer: prefetching, arrays without counted references, arrays at addresses.

``intrinsic`` turns a code generator into a function with a different signature, so each generator
is kept apart from its function, and ``cast`` gives the function its type.
"""

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


def _array_at(typing_context: Any, address: Any, size: Any, item: Any) -> Any:
    from numba import types

    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np import arrayobj

        kind = signature.return_type
        array = context.make_array(kind)(context, builder)
        place, items, _ = arguments
        width = context.get_constant(
            types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype))
        )
        data = builder.inttoptr(place, context.get_data_type(kind.dtype).as_pointer())
        populate: Any = arrayobj.populate_array
        populate(array, data=data, shape=[items], strides=[width], itemsize=width, meminfo=None)
        return array._getvalue()

    return types.Array(item.dtype, 1, "C")(types.int64, types.int64, item), generate


array_at = cast(Callable[[Any, Any, Any], Any], intrinsic(_array_at))
"""The array of ``size`` items of a NumPy type at an address, which it does not own; for kernels."""
