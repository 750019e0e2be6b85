"""Initialises CUDA while Python is still busy with imports and files.

Creating a CUDA context, importing CuPy and loading the compiled kernels take a third of a second
each, mostly outside Python. A command that will use the GPU starts this as early as possible::

    with choose_backend(...) as chosen:
        prepare_cuda(len(chosen.gpus), "ngsgpu.minhash.gpu")
        from ngsgpu.minhash.gpu import build_tables_on_gpu

Two threads may then import CuPy, or NumPy, at the same time and must not each hold a module that
the other waits for: everywhere ``cupy`` is imported first, as a whole (``from cupy import cuda``),
never a submodule by name; so is ``numpy``.

This is only an optimisation: failures here are reported by the first call that needs CUDA. It ends
with the lease, so that no GPU is touched that this process no longer holds.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)
_LIBRARY = "libcuda.so.1"

_touching = threading.Lock()
"""Held during the first CUDA call, which is when CUDA determines the visible GPUs."""

_stopped = threading.Event()


def prepare_cuda(gpus: int, *modules: str, first: int = 0) -> None:
    """Start creating contexts and loading kernels, in background threads.

    Call it once ``CUDA_VISIBLE_DEVICES`` is final (inside the lease).

    Args:
        gpus: number of GPUs to be used, from the first visible one; 0 does nothing.
        modules: Python modules with a ``KernelModule`` named ``KERNELS``, or a function
            ``prepare`` that loads everything needed.
        first: number of the first GPU to initialise, if those before it already are.
    """
    _stopped.clear()
    for device in range(first, gpus):
        threading.Thread(
            target=_prepare, args=(device, modules), name="ngsgpu-cuda", daemon=True
        ).start()


def stop_preparing() -> None:
    """Start nothing more, before ``CUDA_VISIBLE_DEVICES`` or the lease changes.

    Waits for a first CUDA call in progress, less than a second.
    """
    with _touching:
        _stopped.set()


def _prepare(device: int, modules: tuple[str, ...]) -> None:
    try:
        if not _touched(device):
            return
        from cupy import cuda

        with cuda.Device(device):
            cuda.runtime.free(0)
        for name in modules:
            if _stopped.is_set():
                return
            # One after the other; what has to be compiled is compiled at the same time.
            module = importlib.import_module(name)
            load = getattr(module, "prepare", None) or module.KERNELS.load
            threading.Thread(
                target=_load, args=(device, load), name=f"ngsgpu-load-{name}", daemon=True
            ).start()
    except Exception as error:
        _LOG.debug("could not initialise CUDA: %s", error)


def _load(device: int, load: Callable[[], None]) -> None:
    """Load the kernels of a module onto a GPU."""
    try:
        from cupy import cuda

        if not _stopped.is_set():
            with cuda.Device(device):
                load()
    except Exception as error:
        _LOG.debug("could not load kernels ahead: %s", error)


def _touched(device: int) -> bool:
    """Make a GPU's context and import CuPy; false where it is too late for that."""
    cuda = None
    with _touching, contextlib.suppress(OSError):
        if _stopped.is_set():
            return False
        cuda = ctypes.CDLL(_LIBRARY)
        cuda.cuInit(0)
    if cuda is not None:
        _make_context(cuda, device)
    with _touching:
        if _stopped.is_set():
            return False
        importlib.import_module("cupy")
    return True


def _make_context(cuda: ctypes.CDLL, device: int) -> None:
    """Create the GPU's primary context, which CuPy uses; slow, but blocks no other thread."""
    number, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuDeviceGet(ctypes.byref(number), device) == 0:
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number)
