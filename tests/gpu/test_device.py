"""Launches, errors, memory and leases on a real GPU."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.device import pinned
from ngsgpu.device.cuda import compiler, kernels
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.sort import radix_argsort, radix_sort
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.device.plan import gpu_memory
from ngsgpu.device.team import Team, here, limited_gpu_memory
from ngsgpu.errors import DeviceError

SOURCE = """
extern "C" __global__ void fill(int* values, int value, long long count) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) values[i] = value + int(i);
}

extern "C" __global__ void reverse(int* values, int count) {
    extern __shared__ int kept[];
    for (int i = threadIdx.x; i < count; i += blockDim.x) kept[i] = values[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) values[i] = kept[count - 1 - i];
}

extern "C" __global__ void stray(int* values) { values[1ll << 45] = 1; }
"""


def write_package(root: Path) -> None:
    folder = root / "ngsgpu" / "toy"
    folder.mkdir(parents=True)
    (folder / "kernels.cu").write_text(SOURCE)


@pytest.fixture
def module(tmp_path, monkeypatch):
    write_package(tmp_path)
    monkeypatch.setattr(compiler, "ROOT", tmp_path)
    monkeypatch.setattr(kernels, "ROOT", tmp_path)
    monkeypatch.setenv("NGSGPU_CACHE_DIR", str(tmp_path / "cache"))
    return KernelModule("ngsgpu.toy")


def test_launch_on_any_stream(module):
    import cupy

    for stream in (None, cupy.cuda.Stream(non_blocking=True)):
        values = cupy.zeros(1000, dtype=cupy.int32)
        cupy.cuda.Device().synchronize()
        arguments = (values, np.int32(5), np.int64(len(values)))
        module.launch("fill", (8,), (128,), arguments, stream=stream)
        cupy.cuda.Device().synchronize()
        assert values.get().tolist() == list(range(5, 1005))


def test_compiled_code_is_kept_and_used(module, tmp_path, monkeypatch):
    import cupy

    module.load()
    assert len(list((tmp_path / "cache" / "kernels").iterdir())) == 1
    monkeypatch.setattr(kernels, "compile_source", None)
    values = cupy.zeros(3, dtype=cupy.int32)
    again = KernelModule("ngsgpu.toy")
    again.launch("fill", (1,), (32,), (values, np.int32(1), np.int64(3)))
    assert values.get().tolist() == [1, 2, 3]


def test_large_shared_memory(module):
    import cupy

    for size in (1000, 20_000, 16_000):
        values = cupy.arange(size, dtype=cupy.int32)
        module.launch("reverse", (1,), (256,), (values, np.int32(size)), shared_bytes=4 * size)
        assert values.get().tolist() == list(range(size))[::-1]


def test_refused_launches_name_the_kernel(module):
    import cupy

    values = cupy.zeros(3, dtype=cupy.int32)
    with pytest.raises(DeviceError, match=r"kernel reverse of ngsgpu\.toy\.kernels .*1,048,576 by"):
        module.launch("reverse", (1,), (32,), (values, np.int32(3)), shared_bytes=1 << 20)
    with pytest.raises(DeviceError, match=r"kernel fill of .*block \(2048,\)"):
        module.launch("fill", (1,), (2048,), (values, np.int32(3), np.int64(3)))
    with pytest.raises(DeviceError, match=r"kernel absent of ngsgpu\.toy\.kernels"):
        module.launch("absent", (1,), (32,), (values,))
    # None of these leaves the GPU unusable.
    module.launch("fill", (1,), (32,), (values, np.int32(7), np.int64(3)))
    assert values.get().tolist() == [7, 8, 9]


def test_a_fault_is_told_of_its_kernel(tmp_path):
    """In a process of its own, since CUDA is of no use to one after such a fault."""
    write_package(tmp_path)
    code = f"""
        import pathlib
        from ngsgpu.device.cuda import compiler
        from ngsgpu.device.cuda import kernels
        compiler.ROOT = kernels.ROOT = pathlib.Path({str(tmp_path)!r})
        import cupy, os
        os.environ["NGSGPU_SYNC_KERNELS"] = "1"
        try:
            kernels.KernelModule("ngsgpu.toy").launch(
                "stray", (1,), (1,), (cupy.zeros(1, dtype=cupy.int32),))
        except kernels.DeviceError as error:
            print(error, flush=True)
        os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("kernel stray of ngsgpu.toy.kernels"), done.stderr
    assert "illegal" in done.stdout.lower()


def test_memory_is_limited():
    import cupy

    assert 0 < gpu_memory().budget < gpu_memory().total
    with pytest.raises(DeviceError, match="not enough GPU memory"), limited_gpu_memory(64 << 20):
        cupy.empty(32 << 20, dtype=cupy.uint8)
        cupy.empty(128 << 20, dtype=cupy.uint8)
    cupy.empty(128 << 20, dtype=cupy.uint8)


def two_gpus() -> Team:
    from cupy import cuda

    if cuda.runtime.getDeviceCount() < 2:
        pytest.skip("2 GPUs are needed")
    return Team(2)


def test_memory_of_the_second_gpu_is_limited():
    import cupy

    second = two_gpus().devices[1]
    refused = pytest.raises(DeviceError, match=r"not enough GPU memory .*raise `gpu_memory`")
    with refused, limited_gpu_memory(64 << 20, gpus=2), second:
        cupy.empty(32 << 20, dtype=cupy.uint8)
        cupy.empty(128 << 20, dtype=cupy.uint8)
    with second:
        cupy.empty(128 << 20, dtype=cupy.uint8)


def test_gpus_work_at_once_and_are_gathered():
    import cupy

    team = two_gpus()

    def work(member: int) -> Any:
        values = cupy.arange(1 << 20, dtype=cupy.uint64)[::-1].copy() + np.uint64(member)
        radix_sort(values)
        cupy.cuda.get_current_stream().synchronize()
        return values

    for member, values in enumerate(team.at_once(work)):
        assert values.device == team.devices[member]
        brought = here(values)
        assert brought.device == cupy.cuda.Device()
        assert np.array_equal(brought.get(), np.arange(1 << 20, dtype=np.uint64) + member)


@pytest.mark.parametrize("count", [0, 1, 2, 100_000])
def test_sorting(count):
    import cupy

    keys = np.random.default_rng(count).integers(0, max(1, count // 3), count, dtype=np.uint64)
    values = cupy.asarray(keys)
    radix_sort(values)
    assert np.array_equal(values.get(), np.sort(keys))
    if count:
        values = cupy.asarray(keys)
        assert np.array_equal(radix_argsort(values).get(), np.argsort(keys, kind="stable"))
        assert np.array_equal(values.get(), np.sort(keys))


def test_sorting_without_memory_says_what_it_wanted():
    import cupy

    with pytest.raises(DeviceError, match="not enough GPU memory"), limited_gpu_memory(48 << 20):
        radix_sort(cupy.zeros(4 << 20, dtype=cupy.uint64))


def test_page_locked_buffers():
    import cupy

    pool = PinnedPool(1 << 20, 2)
    with pool.borrowed() as buffer:
        buffer[:] = 7
        device = cupy.empty(len(buffer), dtype=cupy.uint8)
        device.set(buffer)
        assert int(device.astype(cupy.int64).sum()) == 7 << 20


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 4096])
def test_large_arrays_are_copied_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(pinned, "_PIECE", 16)
    monkeypatch.setattr(pinned, "_MANY_PIECES", 4)
    array = np.random.default_rng(size).integers(0, 1 << 16, (2, size), dtype=np.uint16)
    array.flags.writeable = False  # as mapped files are
    there = pinned.to_device(array.T)
    assert there.dtype == array.dtype
    assert np.array_equal(there.get(), array.T)


def test_leased_program_sees_its_gpu_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("NGSGPU_LOCK_DIR", str(tmp_path / "locks"))
    code = "import cupy; print(cupy.cuda.runtime.getDeviceCount(), int(cupy.arange(5).sum()))"
    done = subprocess.run(
        [sys.executable, "-m", "ngsgpu", "gpu", "run", "-n", "1", "--", sys.executable, "-c", code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["1", "10"]), done.stderr
