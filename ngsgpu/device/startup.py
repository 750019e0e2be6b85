"""Making CUDA ready while Python is still busy with imports and files.

A context of CUDA, CuPy and the compiled kernels take a third of a second each, mostly outside of
Python. A command that is going to use the GPU says so as soon as it knows::

    with choose_backend(...) as chosen:
        prepare_cuda(len(chosen.gpus), "ngsgpu.classify.index.gpu_build")
        from ngsgpu.classify.database.build import build_database

Two threads may import CuPy at the same time then, and must not hold a module each that the other
one waits for: everywhere ``cupy`` is imported first, whole (``from cupy import cuda``), and never a
module inside of it by its own name.

Nothing depends on it: whatever fails here is told by the first call that needs it. It ends with
the lease, so that no GPU is touched that this process does not hold any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import threading

_LOG = logging.getLogger(__name__)
_LIBRARY = "libcuda.so.1"

_touching = threading.Lock()
"""Held by who touches CUDA for the first time, which is when it learns of the visible GPUs."""

_stopped = threading.Event()


def prepare_cuda(gpus: int, *modules: str, first: int = 0) -> None:
    """Begin to make contexts and to load kernels, in threads of their own.

    Call it once ``CUDA_VISIBLE_DEVICES`` is what it will be (inside of the lease).

    Args:
        gpus: how many will be used, from the first that is visible; none does nothing.
        modules: Python modules with a ``KernelModule`` named ``KERNELS``, or a function
            ``prepare`` that loads all that is needed.
        first: number of the first GPU to make ready, where those before it are.
    """
    _stopped.clear()
    for device in range(first, gpus):
        threading.Thread(
            target=_prepare, args=(device, modules), name="ngsgpu-cuda", daemon=True
        ).start()


def stop_preparing() -> None:
    """Begin nothing more, before ``CUDA_VISIBLE_DEVICES`` or the lease changes.

    Waits for who is just touching CUDA for the first time, less than a second.
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
                module = importlib.import_module(name)
                getattr(module, "prepare", module.KERNELS.load)()
    except Exception as error:
        _LOG.debug("could not initialise CUDA: %s", error)


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
    """Make the GPU's primary context, which CuPy takes; it takes long and holds up nobody."""
    number, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuDeviceGet(ctypes.byref(number), device) == 0:
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number)
