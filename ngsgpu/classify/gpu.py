"""What building and querying on a GPU have in common: parameters, copies from and to the host."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters

_HOST_TO_DEVICE: Final = 1


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
