"""Machine instructions on 64-bit words that Numba does not expose.

``intrinsic`` turns a code generator into a function with a different signature, so each generator
is kept apart from its function, and ``cast`` gives the function's type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from ngsgpu.jit import intrinsic

_WordFunction: TypeAlias = Callable[[np.uint64], np.uint64]


def _popcount(typing_context: Any, word: Any) -> Any:
    from numba import types

    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount = cast(_WordFunction, intrinsic(_popcount))
"""Number of bits set in a uint64."""


def _reverse_bits(typing_context: Any, word: Any) -> Any:
    from numba import types

    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitreverse(arguments[0])

    return types.uint64(types.uint64), generate


reverse_bits = cast(_WordFunction, intrinsic(_reverse_bits))
"""The 64 bits of a uint64 in opposite order."""
