"""Warp reductions of GPUs before compute capability 8.0, translated for the GPU that is here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ngsgpu.device.cuda.compiler import Target, compile_source

pytestmark = pytest.mark.gpu

SOURCE = """
#include "ngsgpu/device/cuda/reduce.cuh"
extern "C" __global__ void reduce(const unsigned* values, unsigned* results) {
    const unsigned own = values[threadIdx.x], all = 0xFFFFFFFFu;
    const unsigned found[] = {
        __reduce_add_sync(all, own), unsigned(__reduce_add_sync(all, int(own))),
        __reduce_min_sync(all, own), unsigned(__reduce_min_sync(all, int(own))),
        __reduce_max_sync(all, own), unsigned(__reduce_max_sync(all, int(own))),
        __reduce_or_sync(all, own)};
    for (int i = 0; i < 7; ++i) results[i * 32 + threadIdx.x] = found[i];
}
"""


@pytest.mark.parametrize("architecture", ["compute_75", "compute_80"])
def test_reductions(tmp_path: Path, architecture: str) -> None:
    import cupy

    source = tmp_path / "kernels.cu"
    source.write_text(SOURCE)
    module = cupy.cuda.function.Module()
    cupy.cuda.runtime.free(0)
    module.load(compile_source(source, Target(architecture)))
    values = np.random.default_rng(7).integers(0, 1 << 32, 32, dtype=np.uint32)
    results = cupy.zeros((7, 32), dtype=cupy.uint32)
    module.get_function("reduce")((1,), (32,), (cupy.asarray(values), results))
    signed = values.view(np.int32)
    expected = [
        values.sum(dtype=np.uint32), values.sum(dtype=np.uint32),
        values.min(), np.uint32(signed.min().view(np.uint32)),
        values.max(), np.uint32(signed.max().view(np.uint32)),
        np.bitwise_or.reduce(values),
    ]  # fmt: skip
    assert (results.get() == np.array(expected, dtype=np.uint32)[:, None]).all()
