"""What building and querying on a GPU have in common: launches, codes, copies to the host."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters
from ngsgpu.device.kernels import grid_for
from ngsgpu.sequence.codec import AMBIGUOUS, CODES

THREADS: Final = 256
_BLOCKS_PER_MULTIPROCESSOR: Final = 32
_HOST_TO_DEVICE: Final = 1


def grid_of(units: int, a_block: int) -> tuple[int]:
    """Grid for kernels whose blocks take so many units at a time, over and over."""
    return grid_for(max(1, units), a_block, _BLOCKS_PER_MULTIPROCESSOR)


def grid_of_threads(units: int) -> tuple[int]:
    """Grid where a thread takes a unit."""
    return grid_of(units, THREADS)


def grid_of_warps(units: int) -> tuple[int]:
    """Grid where a warp takes a unit."""
    return grid_of(units, THREADS // 32)


def code_table(letters: bool) -> Any:
    """Code of each byte, for text (letters) or for codes themselves."""
    import cupy

    if letters:
        return cupy.asarray(CODES)
    table = np.full(256, AMBIGUOUS, dtype=np.uint8)
    table[:AMBIGUOUS] = np.arange(AMBIGUOUS)
    return cupy.asarray(table)


def sketch_numbers(parameters: SketchParameters) -> tuple[np.int32, ...]:
    """k, sketch size, window and stride as kernels take them."""
    rules = parameters.rules
    return tuple(map(np.int32, (rules.kmer, rules.sketch, rules.window, rules.stride)))


def to_device(array: NDArray[Any]) -> Any:
    """Copy an array to the device, straight from where it lies, be it a mapped file.

    CuPy would copy it to page-locked memory first, which takes longer to get than to fill.
    """
    import cupy

    there = cupy.empty(array.shape, dtype=array.dtype)
    if array.size > 0:
        array = np.ascontiguousarray(array)
        cupy.cuda.runtime.memcpy(there.data.ptr, array.ctypes.data, array.nbytes, _HOST_TO_DEVICE)
    return there


def to_host(array: Any) -> NDArray[Any]:
    """Copy an array from the device, through page-locked memory."""
    import cupyx

    host: NDArray[Any] = cupyx.empty_pinned(array.shape, dtype=array.dtype)
    if array.size > 0:
        array.get(out=host)
    return host
