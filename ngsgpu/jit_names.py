"""What kept machine code is named after: all that it depends on, and processors that run it.

Without Numba, so that ``machine_code`` can find code that needs none.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

BASELINE: Final = "x86-64-v3"
"""Processors since Intel's Haswell (2013) and AMD's Excavator (2015), by LLVM's name."""

_BASELINE_FEATURES: Final = (
    "avx", "avx2", "bmi", "bmi2", "cmov", "cx16", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe",
    "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
)  # fmt: skip

_DEFERRED = "ngsgpu.jit"
"""Module of the classes ``Kernel`` and ``Intrinsic``, whose functions count."""


def baseline_environment() -> dict[str, str]:
    """Environment variables with which Numba compiles for ``BASELINE``; none elsewhere."""
    if platform.machine() != "x86_64":
        return {}
    return {"NUMBA_CPU_NAME": BASELINE, "NUMBA_CPU_FEATURES": ""}


@functools.cache
def has_baseline() -> bool:
    """Whether this processor has the instructions of ``BASELINE``."""
    if platform.machine() != "x86_64":
        return False
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return all(features.get(name) for name in _BASELINE_FEATURES)


def digest(function: Callable[..., Any]) -> str:
    """A hash of all that a kernel's code depends on besides the types of its arguments."""
    own = hashlib.sha256()
    for text in _parts(function, set()):
        own.update(text.encode() + b"\0")
    return own.hexdigest()


def _parts(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    """Texts that identify a function, and the functions and constants that it uses."""
    if id(function) in seen:
        return
    seen.add(id(function))
    code = function.__code__
    yield from _parts_of_code(code)
    yield repr(function.__defaults__)
    for cell in function.__closure__ or ():
        yield from _parts_of_value(cell.cell_contents, set(), seen)
    names = set(_names(code))
    for name in sorted(names):
        if name in function.__globals__:
            yield name
            yield from _parts_of_value(function.__globals__[name], names, seen)


def _parts_of_code(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts_of_code(constant)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _parts_of_value(value: Any, names: set[str], seen: set[int]) -> Iterator[str]:
    """Texts that identify a global: a kernel, a constant, a module of which ``names`` are used."""
    if type(value).__module__ == _DEFERRED:
        yield repr(getattr(value, "options", None))
        yield from _parts(value.function, seen)
    elif isinstance(value, tuple):
        for one in value:
            yield from _parts_of_value(one, names, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, bool | int | float | str | bytes | np.generic | type(None)):
        yield repr(value)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
        if value.__name__.split(".")[0] == __name__.split(".")[0]:
            for name in sorted(names & vars(value).keys()):
                yield from _parts_of_value(vars(value)[name], names, seen)
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    elif isinstance(value, types.FunctionType) and value.__module__.startswith("ngsgpu."):
        yield from _parts(value, seen)
    else:
        yield type(value).__qualname__
