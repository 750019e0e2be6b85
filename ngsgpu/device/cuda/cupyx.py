"""Keeps ``cupyx`` empty until something in it is used.

An operator between a CuPy array and a number (``keys >> 15``) goes through NumPy's ufunc to
``cupy.ndarray.__array_ufunc__``, which imports ``cupyx.scipy.special`` for the sake of its few
ufuncs, and with it all that ``cupyx/__init__.py`` imports: sparse matrices, and SciPy where that is
installed. That takes half a second at the first such operator.

CuPy itself imports ``cupyx`` lazily (``cupy.random``), but the import of a submodule ends that.
Here the package stays lazy also then: its submodules are found, and its own code runs when one of
its names is first looked up. Only the command line asks for this; in other programs that import
``ngsgpu``, CuPy stays as it is.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "cupyx"


def postpone_cupyx() -> None:
    """Let ``cupyx``, if it is imported later on, run its code when one of its names is used."""
    if _PACKAGE not in sys.modules and not any(isinstance(own, _Finder) for own in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the package, to be loaded by ``_Postponed``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The package's specification with another loader; None for other modules."""
        if fullname != _PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Postponed(spec.loader)
        return spec


class _Postponed(Loader):
    """Gives a module a ``__getattr__`` that executes it, in place of executing it.

    Args:
        loader: executes the module.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = threading.RLock()
        self._begun = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module as its own loader creates it."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Have the module executed when a name of it is looked up that it does not have."""

        def look_up(name: str) -> Any:
            if not name.startswith("__"):
                with self._lock:  # other threads wait for the whole module
                    if not self._begun:
                        self._begun = True
                        self._loader.exec_module(module)
                if name in vars(module):
                    return vars(module)[name]
                if (own := vars(module)["__getattr__"]) is not look_up:
                    return own(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = look_up  # type: ignore[method-assign]
