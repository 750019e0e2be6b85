"""A run that never ends: kernels compute, in the main thread or in a pool that it waits for.

``python -m benchmarks.harness.stuck main|pool FILE`` says ``ready`` and has to be ended by a
signal, on which FILE is removed.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu import cli, ending
from ngsgpu.jit import njit


@njit(nogil=True)
def forever(counter: NDArray[np.int64]) -> int:
    """Count as long as the counter is not negative."""
    while counter[0] >= 0:
        counter[0] = (counter[0] + 1) & 1023
    return int(counter[0])


def work(arguments: list[str]) -> int:
    """Stands for a command."""
    forever(np.array([-1]))  # compiled
    counter = np.zeros(1, dtype=np.int64)
    print("ready", flush=True)
    if sys.argv[1] == "main":
        forever(counter)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(forever, [counter] * 8))
    return 0


if __name__ == "__main__":
    ending.before_ending(lambda: Path(sys.argv[2]).unlink())
    cli._run = work
    cli.main_cli()
