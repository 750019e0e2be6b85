"""The cache of compiled kernels and the errors of launches, with CUDA stood in for."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ngsgpu.device.cuda import compiler, kernels
from ngsgpu.device.cuda.compiler import Target
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.errors import DeviceError

TARGET = Target("sm_90")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelModule:
    """A module in a tree of its own, whose cache is ``tmp_path/cache``."""
    package = tmp_path / "ngsgpu" / "toy"
    package.mkdir(parents=True)
    (package / "kernels.cu").write_text(
        '#include "ngsgpu/toy/outer.cuh"\nextern "C" __global__ void fill(int* a) { *a = N; }\n'
    )
    (package / "outer.cuh").write_text('#pragma once\n  # include "ngsgpu/toy/inner.cuh"\n')
    (package / "inner.cuh").write_text('#include "ngsgpu/toy/outer.cuh"\nconstexpr int N = 1;\n')
    monkeypatch.setattr(compiler, "ROOT", tmp_path)
    monkeypatch.setattr(kernels, "ROOT", tmp_path)
    monkeypatch.setenv("NGSGPU_CACHE_DIR", str(tmp_path / "cache"))
    return KernelModule("ngsgpu.toy")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Architectures that were compiled for, in order."""
    calls: list[str] = []
    real = kernels.compile_source

    def counted(source: Path, target: Target, **options: bool) -> bytes:
        calls.append(target.architecture)
        return real(source, target, **options)

    monkeypatch.setattr(kernels, "compile_source", counted)
    return calls


def test_compiled_once(module: KernelModule, compiled: list[str], tmp_path: Path) -> None:
    image = module.image(TARGET)
    assert image.startswith(b"\x7fELF")
    assert KernelModule("ngsgpu.toy").image(TARGET) == image
    assert compiled == ["sm_90"]
    (path,) = (tmp_path / "cache" / "kernels").iterdir()
    assert path.name.startswith("ngsgpu.toy.kernels-sm_90-")


def test_checked_once(module: KernelModule, compiled: list[str]) -> None:
    # What was compiled for a run may have had warnings.
    image = module.image(TARGET)
    assert module.checked("sm_90") == module.checked("sm_90") == image
    assert compiled == ["sm_90", "sm_90"]
    with module.path.open("a") as file:
        file.write('extern "C" __global__ void one_more() { int unused; }\n')
    module.image(TARGET)
    for _ in range(2):
        with pytest.raises(DeviceError, match="compiles for sm_90 with warnings"):
            module.checked("sm_90")
    assert compiled == ["sm_90"] * 5


@pytest.mark.parametrize("file", ["kernels.cu", "outer.cuh", "inner.cuh"])
def test_compiled_anew_when_a_file_changes(
    module: KernelModule, compiled: list[str], tmp_path: Path, file: str
) -> None:
    module.image(TARGET)
    path = tmp_path / "ngsgpu" / "toy" / file
    path.write_text(path.read_text() + "// changed\n")
    module.image(TARGET)
    assert compiled == ["sm_90", "sm_90"]


def test_compiled_anew_for_other_options_and_architectures(
    module: KernelModule, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module.image(TARGET)
    module.image(Target("sm_80"))
    monkeypatch.setattr(compiler, "OPTIONS", (*compiler.OPTIONS, "-G"))
    module.image(TARGET)
    assert compiled == ["sm_90", "sm_80", "sm_90"]


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:-1] + b"?"])
def test_damaged_file_is_replaced(
    module: KernelModule, compiled: list[str], tmp_path: Path, damage: Any
) -> None:
    image = module.image(TARGET)
    (path,) = (tmp_path / "cache" / "kernels").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert module.image(TARGET) == image
    assert module.image(TARGET) == image
    assert compiled == ["sm_90", "sm_90"]


def test_kernels_of_the_installation_need_no_compiler(
    module: KernelModule, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = kernels.compiled
    monkeypatch.setattr(files, "PREBUILT", tmp_path / "prebuilt")
    loaded: list[bytes] = []
    refused: list[bytes] = []

    class Module:
        def load(self, image: bytes) -> None:
            if image in refused:
                raise Cuda(monkeypatch).error("cudaErrorNoKernelImageForDevice")
            loaded.append(image)

    stand_in = SimpleNamespace(
        runtime=SimpleNamespace(free=lambda size: None, CUDARuntimeError=RuntimeError),
        driver=SimpleNamespace(CUDADriverError=RuntimeError),
        Device=lambda device: SimpleNamespace(compute_capability="90"),
        function=SimpleNamespace(Module=Module),
    )
    assert module.prebuilt(TARGET) is None
    files.keep_prebuilt(module.prebuilt_name(TARGET), b"machine code")
    with monkeypatch.context() as patched:
        import cupy

        patched.setattr(cupy, "cuda", stand_in)
        patched.setattr(compiler, "_nvrtc", lambda: pytest.fail("the compiler is loaded"))
        module._loaded(0)
    assert (loaded, compiled) == ([b"machine code"], [])
    # A driver that is too old for it, or other sources: compiled here.
    refused.append(b"machine code")
    with monkeypatch.context() as patched:
        patched.setattr(cupy.cuda.function, "Module", Module)
        patched.setattr(cupy.cuda.runtime, "free", lambda size: None)
        patched.setattr(cupy.cuda, "Device", stand_in.Device)
        module._loaded(0)
    assert loaded[1:] == [module.image(TARGET)]
    with (tmp_path / "ngsgpu" / "toy" / "inner.cuh").open("a") as file:
        file.write("// changed\n")
    assert module.prebuilt(TARGET) is None
    assert module.prebuilt(Target("sm_80")) is None


def test_kernels_in_a_folder_of_others_are_compiled_anew(
    module: KernelModule, compiled: list[str], tmp_path: Path
) -> None:
    module.image(TARGET)
    (tmp_path / "cache" / "kernels").chmod(0o777)
    kernels.compiled._is_trusted.cache_clear()
    assert module.image(TARGET).startswith(b"\x7fELF")
    assert compiled == ["sm_90", "sm_90"]


def test_unusable_cache_does_not_stop_a_run(
    module: KernelModule, compiled: list[str], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    assert module.image(TARGET).startswith(b"\x7fELF")
    assert compiled == ["sm_90"]


def test_missing_header_is_named(module: KernelModule, tmp_path: Path) -> None:
    (tmp_path / "ngsgpu" / "toy" / "inner.cuh").unlink()
    with pytest.raises(DeviceError, match=r"kernels\.cu includes .*inner\.cuh, which cannot"):
        module.image(TARGET)


class Cuda:
    """Stands in for the parts of CuPy that a launch uses, and remembers the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from cupy.cuda import driver, runtime

        class Error(runtime.CUDARuntimeError):
            def __init__(self, text: str) -> None:
                RuntimeError.__init__(self, text)

            def __str__(self) -> str:
                return str(self.args[0])

        self.calls: list[Any] = []
        self.fault: Exception | None = None
        self.error = Error
        monkeypatch.setattr(runtime, "getDevice", lambda: 0)
        monkeypatch.setattr(runtime, "memGetInfo", lambda: (3 << 30, 80 << 30))
        monkeypatch.setattr(runtime, "deviceSynchronize", lambda: self.calls.append("synchronize"))
        monkeypatch.setattr(driver, "funcSetAttribute", lambda *a: self.calls.append(a))

    def __call__(self, *arguments: Any) -> None:
        self.calls.append(arguments)
        if self.fault:
            raise self.fault

    ptr = 77


@pytest.fixture
def cuda(module: KernelModule, monkeypatch: pytest.MonkeyPatch) -> Cuda:
    cuda = Cuda(monkeypatch)
    module._modules[0] = SimpleNamespace(get_function=lambda name: cuda)
    return cuda


def test_launch(module: KernelModule, cuda: Cuda) -> None:
    module.launch("fill", (3,), (32,), [1, 2])
    module.launch("fill", (0,), (32,), [])
    assert cuda.calls == [((3,), (32,), (1, 2), 0, None)]


def test_large_shared_memory_is_asked_for_once(module: KernelModule, cuda: Cuda) -> None:
    for size in (48 << 10, 64 << 10, 50 << 10, 96 << 10):
        module.launch("fill", (1,), (1,), (), shared_bytes=size)
    assert [call for call in cuda.calls if call[0] == 77] == [(77, 8, 64 << 10), (77, 8, 96 << 10)]


def test_refused_launch_names_the_kernel(module: KernelModule, cuda: Cuda) -> None:
    cuda.fault = cuda.error("cudaErrorInvalidValue: invalid argument")
    with pytest.raises(DeviceError) as caught:
        module.launch("fill", (3,), (2048,), (), shared_bytes=1000)
    assert str(caught.value) == (
        "kernel fill of ngsgpu.toy.kernels (grid (3,), block (2048,), 1,000 bytes of shared "
        "memory): cudaErrorInvalidValue: invalid argument"
    )


def test_fault_of_an_earlier_kernel(module: KernelModule, cuda: Cuda) -> None:
    cuda.fault = cuda.error("cudaErrorIllegalAddress: an illegal memory access was encountered")
    with pytest.raises(DeviceError, match="set NGSGPU_SYNC_KERNELS=1 to learn which kernel"):
        module.launch("fill", (3,), (32,), ())


def test_memory_that_ran_out_is_counted(module: KernelModule, cuda: Cuda) -> None:
    cuda.fault = cuda.error("cudaErrorMemoryAllocation: out of memory")
    with pytest.raises(DeviceError, match=r"not enough GPU memory .*3.0 GiB of 80.0 GiB are free"):
        module.launch("fill", (3,), (32,), ())


def test_synchronous_launches(
    module: KernelModule, cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NGSGPU_SYNC_KERNELS", "1")
    module.launch("fill", (3,), (32,), ())
    assert cuda.calls[-1] == "synchronize"


def test_grids_are_sized_for_the_gpu_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    counts = {5: 20, 6: 160}
    current = [5]

    class Device:
        def __init__(self, number: int | None = None) -> None:
            self.id = current[0] if number is None else number
            self.attributes = {"MultiProcessorCount": counts[self.id]}

    monkeypatch.setattr(cupy.cuda, "Device", Device)
    kernels._multiprocessors.cache_clear()
    assert kernels.grid_for(10**6, 256, 16) == (320,)
    assert kernels.grid_for(1000, 256, 16) == (4,)
    assert kernels.grid_for(0, 256, 16) == (0,)
    current[0] = 6
    assert kernels.grid_for(10**6, 256, 16) == (2560,)
    kernels._multiprocessors.cache_clear()


def test_no_launch_counts_the_multiprocessors_of_one_model() -> None:
    for path in (compiler.ROOT / "ngsgpu").rglob("*.py"):
        assert not re.search(r"\b132\b|\b108\b", path.read_text()), path


@pytest.mark.parametrize(("units", "blocks"), [(0, 1), (256, 1), (257, 2), (10**6, 64)])
def test_a_thread_for_each_unit(
    module: KernelModule, monkeypatch: pytest.MonkeyPatch, units: int, blocks: int
) -> None:
    launched: list[tuple[Any, ...]] = []
    monkeypatch.setattr(kernels, "multiprocessors", lambda: 2)
    monkeypatch.setattr(module, "launch", lambda *arguments: launched.append(arguments))
    module.launch_threads("fill", units, 1, 2)
    assert launched == [("fill", (blocks,), (256,), (1, 2))]
