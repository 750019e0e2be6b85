"""Numba's ``njit`` and ``intrinsic``, deferred until a kernel is called.

Importing Numba and its first compiled function takes about as long as building a database of
bacteria on a GPU. Modules with kernels are often imported only for a table or a class, so the
decorator here only records what to compile::

    from ngsgpu.jit import njit

    @njit(nogil=True, cache=True)
    def count(...): ...

Tiny inputs need no machine code: ``interpreted`` runs kernels as plain Python.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ngsgpu.ending import defer_signals

if TYPE_CHECKING:
    import numpy as np

Integer: TypeAlias = "int | np.integer[Any]"
"""Type of a kernel's number, counted by Python or taken from an array; Numba ignores it."""

_lock = threading.RLock()
_here = threading.local()
_SMALL = 1 << 17
_CONFIGURATION = ".numba_config.yaml"


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel; options are those of ``numba.njit``."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, options)

    return decorate


@contextlib.contextmanager
def interpreted(when: bool = True) -> Iterator[None]:
    """Run the kernels called by this thread in the block as plain Python, if ``when`` is true.

    For inputs so small that loading Numba would take longer. Numbers that are meant to wrap around
    must be NumPy scalars in these kernels.
    """
    import numpy as np

    before = getattr(_here, "interpreted", False)
    _here.interpreted = before or when
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        _here.interpreted = before


def interpreted_if_small(size: int) -> contextlib.AbstractContextManager[None]:
    """``interpreted`` if that is faster than loading Numba, which may already be loaded.

    Args:
        size: approximate number of bytes that kernels process.
    """
    return interpreted(is_small(size) and "numba" not in sys.modules)


def is_small(size: int) -> bool:
    """Whether kernels process so few bytes that plain Python is faster than loading Numba."""
    return size <= _SMALL


class Kernel:
    """A function that Numba compiles when it is first called, by Python or by another kernel.

    Args:
        function: the function.
        options: of ``numba.njit``.

    Attributes:
        function: as given.
        options: as given.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        self._dispatchers: dict[bool, Any] = {}

    def dispatcher(self, inner: bool = False) -> Any:
        """Numba's dispatcher for Python, or the ``inner`` one for other kernels.

        That has no wrappers that Python could call, which take a third of the time to compile.
        """
        if inner not in self._dispatchers:
            with _lock:
                if inner not in self._dispatchers:
                    self._dispatchers[inner] = self._new_dispatcher(inner)
        return self._dispatchers[inner]

    def _new_dispatcher(self, inner: bool) -> Any:
        options = self.options | {"no_cpython_wrapper": inner, "no_cfunc_wrapper": inner}
        kept = options.pop("cache", False)
        dispatcher = _numba().njit(**options)(self.function)
        # LLVM's objects are not whole meanwhile: an exception would end the process in a crash.
        dispatcher.compile = defer_signals()(dispatcher.compile)
        if inner:
            _once_for_a_type(dispatcher)
        if kept:
            from ngsgpu.jit_cache import keep

            keep(dispatcher, options, _import_compiler)
        else:
            _import_compiler()
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The type Numba infers for this object in kernels that call it."""
        return self.dispatcher(inner=True)._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the kernel."""
        if getattr(_here, "interpreted", False):
            return self.function(*arguments, **named)
        return self.dispatcher()(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher(), name)


def _once_for_a_type(dispatcher: Any) -> None:
    """Let Numba compile a kernel for a type, not again for every constant that is passed to it."""
    template, unliteral = dispatcher.get_call_template, _numba().types.unliteral

    def of_types(arguments: Any, named: dict[str, Any]) -> Any:
        return template(
            tuple(map(unliteral, arguments)),
            {name: unliteral(argument) for name, argument in named.items()},
        )

    dispatcher.get_call_template = of_types


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a generator of code a function for kernels; as ``numba.extending.intrinsic``."""
    return Intrinsic(function)


class Intrinsic:
    """A code generator for use in kernels only.

    Args:
        function: gets Numba's typing context and the argument types; returns a signature and the
            code generator.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """The type Numba infers for this object in kernels that call it."""
        types = _numba().types
        from numba.core.typing.templates import make_intrinsic_template

        make_template: Any = make_intrinsic_template
        name = self.function.__name__
        return types.Function(
            make_template(self, self.function, name, prefer_literal=False, kwargs={})
        )


@functools.cache
def _numba() -> Any:
    """Numba."""
    with _without_others():
        import numba
    return numba


@functools.cache
def _import_compiler() -> None:
    """Import what Numba needs to compile; for kernels that are kept already, it is not needed."""
    with _without_others():
        importlib.import_module("numba.np.arraymath")


@contextlib.contextmanager
def _without_others() -> Iterator[None]:
    """Import Numba without SciPy, which it uses for products of matrices, and the like.

    And without PyYAML, if there is no file of settings that Numba would read by it.
    """
    hidden = _HiddenHere("scipy", *(() if Path(_CONFIGURATION).exists() else ("yaml",)))
    with defer_signals():
        sys.meta_path.insert(0, hidden)
        try:
            yield
        finally:
            sys.meta_path.remove(hidden)


class _HiddenHere(importlib.abc.MetaPathFinder):
    """Refuses to find some packages, for the thread that made it alone."""

    def __init__(self, *packages: str) -> None:
        self._packages, self._thread = packages, threading.get_ident()

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        package = fullname.partition(".")[0]
        if package in self._packages and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not used here", name=fullname)
