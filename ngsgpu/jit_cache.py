"""Kernels for CPUs that are compiled once: Numba's machine code in the files of ``compiled``.

Numba keeps a kernel beside its source file until that file changes. The code also depends on the
kernels it calls, the constants it reads and the field positions of the tuples it gets, all
possibly from other files. Here all of these, the processor and Numba's version are part of an
entry's name, and where the source lies is not.

Code that is to run on other machines too is compiled for a processor that nearly all of them have,
``BASELINE`` (``jit_names``). It is used where there is none for this very processor, and
only if this one has all its instructions.

This module imports Numba; see ``ngsgpu.jit``.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.types import BaseNamedTuple, BaseTuple

from ngsgpu import compiled
from ngsgpu.jit_names import BASELINE, digest, has_baseline

logger = logging.getLogger("ngsgpu")

INNER: Final = "inner-"
"""In the names of kernels that only other kernels call, whose code has theirs inside already."""

_ONLY_CODE: Final = frozenset(
    {"numba.misc.quicksort", "numba.np.arraymath", "numba.np.arrayobj", "numba.np.npyimpl"}
)
"""Modules of Numba that take long to import, and define nothing that their compiled code uses."""

_warned = False


def keep(dispatcher: Any, options: dict[str, Any], before_compiling: Callable[[], None]) -> None:
    """Let Numba's dispatcher find and keep its machine code, if there is a place for it.

    Args:
        dispatcher: of a kernel.
        options: those that it was made with.
        before_compiling: called where there is no code yet.
    """
    if compiled.cache_folder() is None:
        warn(None)
    folder = compiled.trusted_folder()
    dispatcher._cache = KernelCache(dispatcher.py_func, options, folder, before_compiling)


def warn(error: OSError | None) -> None:
    """Warn once that kernels are not kept, with the remedy; of ``error``, or without a folder."""
    global _warned
    if not _warned:
        _warned = True
        reason = os.strerror(error.errno) if error and error.errno else ""
        logger.warning(
            "compiled kernels cannot be cached%s, so every start recompiles them (up to half "
            "a minute); set NGSGPU_CACHE_DIR to a writable directory",
            f" ({reason})" if reason else "",
        )


class KernelCache(NullCache):
    """The kept code of one kernel, for Numba's dispatcher.

    Args:
        function: the undecorated kernel.
        options: those of ``numba.njit``.
        folder: of the user's compiled kernels; None if there is none.
        before_compiling: called where there is no code for a signature.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        folder: Path | None,
        before_compiling: Callable[[], None],
    ) -> None:
        self._folder = folder
        self._before_compiling = before_compiling
        self._beginning = f"cpu.{function.__module__}.{function.__qualname__}-"
        self._mark = INNER if options.get("no_cpython_wrapper") else ""
        self._depends_on = (
            digest(function), sorted(options.items()), numba.__version__,
            sys.implementation.cache_tag,
        )  # fmt: skip

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for a signature; None where it is not there, or cannot be read.

        Code that is compiled needs Numba's runtime, but none of the rules of compiling, whose
        import takes as long as all the rest (``target_context.refresh``, which Numba calls before
        it compiles).
        """
        rtsys.initialize(target_context)
        triple, *processor = target_context.codegen().magic_tuple()
        for code in self._found(signature, triple, tuple(processor)):
            try:
                kept = _Unpickler(code, self._before_compiling).load()
                return CompileResult._rebuild(target_context, *kept)
            except Exception as error:  # whatever another version of a class makes of unpickling
                logger.debug("could not read a kept kernel: %s", error)
        self._before_compiling()
        return None

    def _found(self, signature: Any, triple: str, processor: tuple[str, ...]) -> Iterator[bytes]:
        """The user's code for this processor, then that of the installation."""
        if self._folder is not None:
            own = compiled.read(self._folder / self._name(signature, (triple, *processor)))
            if own is not None:
                yield own
        if has_baseline():
            shared = compiled.prebuilt(self._name(signature, (triple, BASELINE, "")))
            if shared is not None:
                yield shared

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep the code for a signature, if that is possible."""
        if self._folder is None or data.lifted or data.library.has_dynamic_globals:
            return
        path = self._folder / self._name(signature, data.codegen.magic_tuple())
        try:
            compiled.keep(path, dumps(data._reduce()))
        except OSError as error:
            self._folder = None
            warn(error)
        else:
            compiled.remove_old(self._folder, self._beginning)

    def _name(self, signature: Any, processor: tuple[str, ...]) -> str:
        """Name of an entry, by all that the code depends on."""
        fields = [list(_fields(kind)) for kind in signature]
        key = repr((str(signature), fields, processor, self._depends_on))
        return f"{self._beginning}{self._mark}{hashlib.sha256(key.encode()).hexdigest()[:32]}"


class _Unpickler(pickle.Unpickler):
    """Reads kept code without importing those modules of Numba that only compiling needs.

    Code has an environment for each function that is part of it: constants, and the module, which
    would be imported. Others than ``_ONLY_CODE`` are, as they may define symbols that code uses.

    Args:
        code: the pickled code.
        before_importing: called before a module of Numba is imported.
    """

    def __init__(self, code: bytes, before_importing: Callable[[], None]) -> None:
        super().__init__(io.BytesIO(code))
        self._before_importing = before_importing

    def find_class(self, module: str, name: str) -> Any:
        """A class or function that the code was pickled with."""
        return self._environment if name == "_rebuild_env" else super().find_class(module, name)

    def _environment(self, module: str, constants: Any, name: str) -> Any:
        found = lookup_environment(name)
        if found is not None:
            return found
        if module not in _ONLY_CODE or module in sys.modules:
            if module.startswith("numba.") and module not in sys.modules:
                self._before_importing()
            return _rebuild_env(module, constants, name)
        found = Environment({"__name__": module})
        found.consts[:] = constants
        found.env_name = name
        Environment._memo[name] = found
        return found


def _fields(kind: Any) -> Iterator[object]:
    """Classes and fields of named tuples, as deep as they go."""
    is_named, is_tuple = (isinstance(kind, base) for base in (BaseNamedTuple, BaseTuple))
    if is_named:
        kept = kind.instance_class
        yield kept.__module__, kept.__qualname__, kept._fields
    if is_tuple:
        for one in kind:
            yield from _fields(one)
