"""What happens when a GPU cannot: one rule for all commands.

It cannot where its memory does not suffice or CUDA fails, or where its kernels do not take what
they are given (``UnsuitableError``: reads that are too long, an odd record, a pipe). Then

- with ``--backend auto`` the CPU does everything from the beginning, unless something was written
  that cannot be taken back. One line says so and why, and others may have the GPUs;
- with ``--backend cuda`` the run ends with what the GPU could not.

Reading is another matter: what the GPU's reader does not take, the CPU reads, whatever the backend
is, and the GPU goes on with that (``ngsgpu.io.gpu.feed.say_read_by_cpu``).
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
    """Do something on the backend of the options, or on the CPU where that may stand in.

    Args:
        options: of the run.
        on_gpu: does it on GPUs. A failed attempt leaves nothing behind.
        on_cpu: does it on the CPU, from the beginning.
        may_begin_again: whether the inputs are still there, and no output has gone out.
        gives_back: whether nothing that comes later in the run uses the GPUs.

    Raises:
        DeviceError: the GPU could not, and the CPU may not stand in.
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
