"""The ``ngsgpu`` script and ``python -m ngsgpu``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType


def _interrupted(number: int, frame: FrameType | None) -> None:
    del number, frame
    with contextlib.suppress(OSError):
        os.write(2, b"ngsgpu: interrupted\n")
    os._exit(130)


def main_cli() -> None:
    """Run the command line; Ctrl-C counts from the start, while modules are imported."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # An exception in the middle of an import could surface as anything, or not at all.
        signal.signal(signal.SIGINT, _interrupted)
    if sys.argv[1:2] != ["gpu"]:  # which runs other programs
        # NumPy's BLAS would start a thread per core, each of which spins for a while.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from ngsgpu import cli

    signal.signal(signal.SIGINT, before)
    cli.main_cli()


if __name__ == "__main__":
    main_cli()
