"""Kernels that run without Numba once they are compiled: machine code that takes integers.

To import Numba and load a kernel takes a third of a second, in which all other threads of Python
wait, those that feed a GPU too; a run on a GPU may need it for nothing but compressing its outputs.
Here LLVM alone loads the kernel's object file, in a tenth of that time. So the code must need
nothing of Numba or Python: a kernel gets addresses and other integers, and it, and all kernels that
it calls, allocate nothing (``_nrt=False``, which Numba then checks)::

    @machine_code
    def count(text, size):  # int64 each, and what is returned
        ...
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from ngsgpu import compiled
from ngsgpu.ending import defer_signals
from ngsgpu.jit import Kernel
from ngsgpu.jit_names import BASELINE, digest, has_baseline

_OPTIONS: Final = {"nogil": True, "_nrt": False}

_lock = threading.RLock()
_engines: list[Any] = []
"""Own the code that was loaded."""


class MachineCode:
    """A kernel of integers, loaded or compiled when it is first called.

    Args:
        function: the kernel, as for ``ngsgpu.jit.njit``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._arguments = function.__code__.co_argcount
        self._beginning = f"cpu.{function.__module__}.{function.__qualname__}-"
        self._code: Callable[..., int] | None = None

    def __call__(self, *arguments: int) -> int:
        """Run the kernel, while other threads of Python go on."""
        result, reason = ctypes.c_int64(), ctypes.c_void_p()
        code = self._code or self._load()
        if code(ctypes.byref(result), ctypes.byref(reason), *arguments) != 0:
            raise RuntimeError(f"{self._function.__qualname__} failed")
        return result.value

    def _load(self) -> Callable[..., int]:
        with _lock, defer_signals():
            if self._code is None:
                kept = next(self._kept(), None)
                address = _linked(self._compiled() if kept is None else kept)
                # Numba's convention: places of the result and of what is raised, then arguments.
                places = (ctypes.c_void_p, ctypes.c_void_p)
                numbers = (ctypes.c_int64,) * self._arguments
                self._code = ctypes.CFUNCTYPE(ctypes.c_int32, *places, *numbers)(address)
            return self._code

    def _kept(self) -> Iterator[bytes]:
        """The user's code for this processor, then that of the installation."""
        import llvmlite.binding as llvm

        folder = compiled.trusted_folder()
        if folder is not None and (own := compiled.read(folder / self._name(*_processor()))):
            yield own
        if has_baseline():
            shared = compiled.prebuilt(self._name(llvm.get_process_triple(), BASELINE, ""))
            if shared is not None:
                yield shared

    def _compiled(self) -> bytes:
        """The name of the function in an object file, a line, and the file; by Numba."""
        dispatcher = Kernel(self._function, _OPTIONS).dispatcher(inner=True)
        from numba.core.types import int64

        signature = (int64,) * self._arguments
        dispatcher.compile(signature)
        made = dispatcher.overloads[signature]
        name = made.fndesc.llvm_func_name
        made.library.get_pointer_to_function(name)  # makes the file
        code: bytes = name.encode() + b"\n" + made.library._get_compiled_object()
        self._keep(code)
        return code

    def _keep(self, code: bytes) -> None:
        """Keep the code, if there is a place for it."""
        from ngsgpu.jit_cache import warn

        folder = compiled.trusted_folder()
        if compiled.cache_folder() is None:
            warn(None)
        if folder is None:
            return
        try:
            compiled.keep(folder / self._name(*_processor()), code)
        except OSError as error:
            warn(error)
        else:
            compiled.remove_old(folder, self._beginning)

    def _name(self, *processor: str) -> str:
        """Name of an entry, by all that the code depends on."""
        import llvmlite

        key = repr((digest(self._function), sorted(_OPTIONS.items()), llvmlite.__version__))
        key += repr(processor)
        return f"{self._beginning}code-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def machine_code(function: Callable[..., Any]) -> MachineCode:
    """Decorate a kernel that gets and returns integers, see above."""
    return MachineCode(function)


def _processor() -> tuple[str, str, str]:
    """What Numba compiles for: kind of machine, processor, instructions."""
    import llvmlite.binding as llvm

    name, features = (os.environ.get(f"NUMBA_CPU_{word}") for word in ("NAME", "FEATURES"))
    return (
        llvm.get_process_triple(),
        llvm.get_host_cpu_name() if name is None else name,
        llvm.get_host_cpu_features().flatten() if features is None else features,
    )


def _linked(code: bytes) -> int:
    """The address of a function, after its object file was loaded."""
    import llvmlite.binding as llvm

    name, _, file = code.partition(b"\n")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(file))
    engine.finalize_object()
    _engines.append(engine)
    address: int = engine.get_function_address(name.decode())
    return address
