"""The ``ngsgpu`` script and ``python -m ngsgpu``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from types import FrameType


def _interrupted(number: int, frame: FrameType | None) -> None:
    del number, frame
    with contextlib.suppress(OSError):
        os.write(2, b"ngsgpu: interrupted\n")
    os._exit(130)


def reuse_freed_memory() -> None:
    """Have glibc keep what is freed, up to 32 MB a piece, for the next batch.

    Threads that return memory to the kernel and take it anew wait for each other there.
    """
    trim_threshold, mmap_threshold = -1, -3
    with contextlib.suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(trim_threshold, 512 << 20)
        libc.mallopt(mmap_threshold, 32 << 20)


def main_cli() -> None:
    """Run the command line; Ctrl-C counts from the start, while modules are imported."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # An exception in the middle of an import could surface as anything, or not at all.
        signal.signal(signal.SIGINT, _interrupted)
    if sys.argv[1:2] != ["gpu"]:  # which runs other programs
        # NumPy's BLAS would start a thread per core, each of which spins for a while.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        reuse_freed_memory()
    from ngsgpu import cli

    signal.signal(signal.SIGINT, before)
    cli.main_cli()


if __name__ == "__main__":
    main_cli()
