"""What happens when a GPU fails: one rule for all commands.

A GPU fails if its memory is too small, CUDA reports an error, or its kernels do not support the
input (``UnsuitableError``: reads too long, an odd record, a pipe). Then

- with ``--backend auto`` the CPU repeats everything, unless output was written that cannot be
  withdrawn. One line says so and why, and the GPUs are released;
- with ``--backend cuda`` the run fails with the reason.

Reading is separate: with any backend, the CPU reads what the GPU reader does not support, and the
GPU continues with the result (``ngsgpu.io.gpu.feed.say_read_by_cpu``).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TypeVar

from ngsgpu.device.leases import keep_gpus
from ngsgpu.device.team import Team, free_unused
from ngsgpu.errors import DeviceError
from ngsgpu.run.options import RunOptions

_LOG = logging.getLogger("ngsgpu")
_Result = TypeVar("_Result")


def on_backend(
    options: RunOptions,
    on_gpu: Callable[[], _Result],
    on_cpu: Callable[[], _Result],
    *,
    may_begin_again: Callable[[], bool] = lambda: True,
    gives_back: bool = True,
) -> _Result:
    """Run on the backend of the options, or on the CPU if it may take over.

    Args:
        options: of the run.
        on_gpu: runs on GPUs. A failed attempt leaves nothing behind.
        on_cpu: runs on the CPU, from the beginning.
        may_begin_again: whether the inputs can be read again and no output has been published.
        gives_back: whether nothing later in the run uses the GPUs.

    Raises:
        DeviceError: the GPU failed, and the CPU may not take over.
    """
    if options.backend == "cpu":
        return on_cpu()
    try:
        return on_gpu()
    except DeviceError as error:
        if not (options.may_fall_back and may_begin_again()):
            raise
        cause = str(error).partition(";")[0]
    # Only now are the frames of the failed attempt gone, and its arrays with them.
    _LOG.warning("%s; continuing on the CPU", cause)
    if gives_back:
        _leave_gpus(options.gpus)
    return on_cpu()


def _leave_gpus(count: int) -> None:
    """Let others have the GPUs, and what CuPy keeps of their memory."""
    # CUDA may be of no use any more, nor CuPy.
    with contextlib.suppress(Exception):
        Team(count).each(lambda member: free_unused())
    keep_gpus(0)
