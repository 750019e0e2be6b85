"""Translates CUDA errors: the operation, the cause and the remedy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ngsgpu.errors import DeviceError, DeviceMemoryError

# CUDA reports a kernel's fault at a later call, so the named operation may be innocent.
# Names as the driver spells them, without the underscores that the runtime omits.
_LATER_FAULTS = ("illegaladdress", "misalignedaddress", "launchfail", "illegalinstruction",
                 "assert", "hardwarestackerror", "invalidpc", "launchtimeout")  # fmt: skip


def device_error(doing: str, error: BaseException) -> DeviceError:
    """Make an error of ours from one that CuPy raised.

    Args:
        doing: what failed, as ``kernel sign_reads`` or ``copying the reads to the GPU``.
        error: ``CUDARuntimeError``, ``CUDADriverError`` or ``OutOfMemoryError`` of CuPy.
    """
    cause = " ".join(str(error).split()) or type(error).__name__
    if "limit set to" in cause:  # CuPy's pool has one where ``gpu_memory`` was given
        return DeviceMemoryError(f"{doing}: not enough GPU memory ({cause}); raise `gpu_memory`")
    if isinstance(error, MemoryError) or "OUT_OF_MEMORY" in cause or "MemoryAllocation" in cause:
        return DeviceMemoryError(f"{doing}: not enough GPU memory ({cause}); {_memory_remedy()}")
    if any(name in cause.lower().replace("_", "") for name in _LATER_FAULTS):
        cause += "; set NGSGPU_SYNC_KERNELS=1 to learn which kernel it is, and report it"
    return DeviceError(f"{doing}: {cause}")


def _memory_remedy() -> str:
    """Name the memory that is free now, if CUDA still answers."""
    remedy = "use a GPU that is free, or give `gpu_memory` a smaller size"
    try:
        from cupy import cuda

        free, total = cuda.runtime.memGetInfo()
    except Exception:  # the error may have made CUDA unusable
        return remedy
    from ngsgpu.device.memory import format_size

    return f"{format_size(free)} of {format_size(total)} are free: {remedy}"


@contextlib.contextmanager
def cuda_errors(doing: str) -> Iterator[None]:
    """Translate errors that CuPy raises inside the block.

    Args:
        doing: the operation, a phrase for the message.

    Raises:
        DeviceError: CUDA failed or ran out of memory.
    """
    try:
        from cupy import cuda
    except ImportError as error:
        cause = " ".join(str(error).split())
        raise DeviceError(
            f"{doing}: CuPy cannot be loaded ({cause}); `ngsgpu doctor` shows what is missing"
        ) from error
    try:
        yield
    except (
        cuda.runtime.CUDARuntimeError,
        cuda.driver.CUDADriverError,
        cuda.memory.OutOfMemoryError,
    ) as error:
        raise device_error(doing, error) from error
