"""Kernels that Numba compiles when they are called."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from ngsgpu.jit import interpreted, njit


@njit(nogil=True)
def twice(number: int) -> int:
    return 2 * number


@njit(nogil=True)
def four_times(number: int) -> int:
    return twice(twice(number))


def test_kernels_call_each_other() -> None:
    assert four_times(np.int64(3)) == 12
    with interpreted():
        assert four_times(np.int64(3)) == 12


def test_importing_kernels_does_not_import_numba() -> None:
    code = "import sys, ngsgpu.classify.build; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
