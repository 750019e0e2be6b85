"""The cache of compiled kernels: Numba's, with complete dependency tracking.

Numba keeps a kernel until its own file changes. The code also depends on the kernels it calls, the
constants it reads and the field positions of the tuples it gets, all possibly from other files;
here these are part of an entry's key. An entry's file is named after its key and written before
the index refers to it, so that no process finds other code there while another one compiles.
Without a writable directory, kernels are compiled in memory.

This module imports Numba; see ``ngsgpu.jit``.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.types import BaseNamedTuple, BaseTuple

logger = logging.getLogger("ngsgpu")

_DEFERRED = "ngsgpu.jit"
"""Module of the classes ``Kernel`` and ``Intrinsic``, which imports this one when it compiles."""

_warned = False


def keep(dispatcher: Any, inner: bool) -> None:
    """Let Numba's dispatcher find and keep its machine code, if there is a place for it.

    Args:
        dispatcher: of a kernel.
        inner: whether other kernels call it, not Python.
    """
    try:
        dispatcher._cache = KernelCache(dispatcher.py_func, inner)
    except (RuntimeError, OSError) as error:  # RuntimeError: nowhere to write
        _warn(error)


def _warn(error: Exception) -> None:
    """Warn once that kernels are not cached, with the remedy."""
    global _warned
    if not _warned:
        _warned = True
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else ""
        logger.warning(
            "compiled kernels cannot be cached%s, so every start recompiles them (up to half "
            "a minute); set NUMBA_CACHE_DIR to a writable directory",
            f" ({reason})" if reason else "",
        )


class KernelCache(FunctionCache):
    """The cache entries of one kernel.

    Args:
        function: the undecorated kernel.
        inner: whether other kernels call it, not Python.

    Raises:
        RuntimeError: there is no writable directory.
        OSError: likewise.
    """

    def __init__(self, function: Callable[..., Any], inner: bool) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _Entries(
            self._cache_path, self._impl.filename_base, locator.get_source_stamp()
        )
        self._depends_on = (inner, digest(function))

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        fields = repr([list(_fields(kind)) for kind in signature])
        return *super()._index_key(signature, codegen), self._depends_on, fields

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for a signature; None where it is not there, or cannot be read."""
        try:
            return super().load_overload(signature, target_context)
        except Exception as error:  # whatever a damaged file makes of unpickling
            logger.debug("could not read a cached kernel: %s", error)
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep the code for a signature, if that is possible."""
        try:
            super().save_overload(signature, data)
        except OSError as error:
            self.disable()
            _warn(error)


class _Entries(IndexDataCacheFile):
    """The files of a kernel's entries."""

    def save(self, key: Any, data: Any) -> None:
        """Write an entry, then the index; entries that it does not name are removed."""
        text = repr((self._source_stamp, [str(part) for part in key])).encode()
        beginning = self._index_name.removesuffix("nbi")
        name = f"{beginning}{hashlib.sha256(text).hexdigest()[:16]}.nbc"
        self._save_data(name, data)
        try:
            named = self._load_index()
        except Exception:  # damaged: begin anew
            named = {}
        named[key] = name
        self._save_index(named)
        for path in Path(self._cache_path).glob(f"{beginning}*.nbc"):
            if path.name not in named.values():
                with contextlib.suppress(OSError):
                    path.unlink()


def digest(function: Callable[..., Any]) -> str:
    """A hash of all that a kernel's code depends on besides the types of its arguments."""
    own = hashlib.sha256()
    for text in _parts(function, set()):
        own.update(text.encode() + b"\0")
    return own.hexdigest()


def _parts(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    """What identifies a function, and the functions and constants that it uses."""
    if id(function) in seen:
        return
    seen.add(id(function))
    code = function.__code__
    yield from _parts_of_code(code)
    yield repr(function.__defaults__)
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
    """What identifies a global: a kernel, a constant, a module of which ``names`` are used."""
    if type(value).__module__ == _DEFERRED:
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


def _fields(kind: Any) -> Iterator[object]:
    """Names of the fields of named tuples, as deep as they go."""
    is_named, is_tuple = (isinstance(kind, base) for base in (BaseNamedTuple, BaseTuple))
    if is_named:
        yield kind.instance_class._fields
    if is_tuple:
        for one in kind:
            yield from _fields(one)
