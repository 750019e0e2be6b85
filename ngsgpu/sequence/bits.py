"""Machine instructions on 64-bit words that Numba does not expose by itself.

``# type: ignore`` marks the places where Numba's decorators turn a code generator into a
function of other arguments than those written.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of bits set in a uint64."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def reverse_bits(typing_context: Any, word: Any) -> Any:
    """The 64 bits of a uint64 in opposite order."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitreverse(arguments[0])

    return types.uint64(types.uint64), generate
