"""Numba's ``njit`` and ``intrinsic``, put off until a kernel is called.

Importing Numba and the first of its compiled functions takes about as long as building a database
of bacteria on a GPU. Modules with kernels are imported by whoever needs a table or a class of
theirs, so the decorator here only notes what is to be compiled::

    from ngsgpu.jit import njit

    @njit(nogil=True, cache=True)
    def count(...): ...

A few lines of input need no machine code at all: ``interpreted`` runs kernels as they are written.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

_lock = threading.RLock()
_here = threading.local()
_SMALL = 1 << 17
_WITHOUT = ("scipy.linalg", "scipy.linalg.cython_blas")


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel; options are those of ``numba.njit``."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, options)

    return decorate


@contextlib.contextmanager
def interpreted(when: bool = True) -> Iterator[None]:
    """Run the kernels that this thread calls in the block as plain Python, if ``when`` is true.

    For inputs so small that loading Numba would take longer. Numbers in these kernels have to be
    NumPy's where they are meant to wrap around.
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
    """``interpreted`` where that is quicker than loading Numba, which another may have done.

    Args:
        size: bytes that kernels look at, about.
    """
    return interpreted(size <= _SMALL and "numba" not in sys.modules)


class Kernel:
    """A function that Numba compiles when it is first called, by Python or by another kernel.

    Args:
        function: the function.
        options: of ``numba.njit``.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._options = options
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher."""
        if self._compiled is None:
            with _lock:
                if self._compiled is None:
                    self._compiled = self._dispatcher()
        return self._compiled

    def _dispatcher(self) -> Any:
        options = dict(self._options)
        kept = options.pop("cache", False)
        dispatcher = _numba().njit(**options)(self.function)
        if kept:
            from ngsgpu.jit_cache import keep

            keep(dispatcher)
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes this for in kernels that call it."""
        return self.compiled._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the kernel."""
        if getattr(_here, "interpreted", False):
            return self.function(*arguments, **named)
        return self.compiled(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compiled, name)


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a generator of code a function for kernels; as ``numba.extending.intrinsic``."""
    return Intrinsic(function)


class Intrinsic:
    """What a generator of code makes, for kernels only.

    Args:
        function: is given Numba's typing context and the types of the arguments, and gives a
            signature and what generates the code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """What Numba takes this for in kernels that call it."""
        types = _numba().types
        from numba.core.typing.templates import make_intrinsic_template

        make_template: Any = make_intrinsic_template
        name = self.function.__name__
        return types.Function(
            make_template(self, self.function, name, prefer_literal=False, kwargs={})
        )


@functools.cache
def _numba() -> Any:
    """Numba, without SciPy, which it would import for products of matrices that are not used."""
    hidden = _HiddenHere()
    sys.meta_path.insert(0, hidden)
    try:
        import numba
        import numba.np.arraymath
    finally:
        sys.meta_path.remove(hidden)
    return numba


class _HiddenHere(importlib.abc.MetaPathFinder):
    """Refuses to find some modules, for the thread that made it alone."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in _WITHOUT and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not used here", name=fullname)
